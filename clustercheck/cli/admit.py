"""`clustercheck admit`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clustercheck.cli import ways
from clustercheck.cli.app import app
from clustercheck.cli.arguments import (
    ChecksOption,
    InventoryOption,
    OptionOption,
    OutputOption,
    ProfileOption,
    SkipOption,
    VerboseOption,
)

if TYPE_CHECKING:
    from clustercheck.execute import Limits, Way


@app.command()
@ways.with_options
def admit(
    candidates: Annotated[
        str, typer.Argument(metavar="NODES", help="Who wants to join: node09, 'node[09-12]'.")
    ],
    like: Annotated[
        str,
        typer.Option(
            "--like",
            metavar="NODES",
            help="Nodes that are in already: 'node[01-08]', @GROUP.",
            show_default="the others of the candidates' smallest group, or of the inventory",
        ),
    ] = "",
    light: Annotated[
        bool, typer.Option("--light", help="Without what loads file servers.")
    ] = False,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", metavar="FILE", help="Hold them against this file as well."),
    ] = None,
    save_baseline: Annotated[
        Path | None,
        typer.Option("--save-baseline", metavar="FILE", help="Write what an admitted node is."),
    ] = None,
    inventory: InventoryOption = None,
    checks: ChecksOption = "",
    skip: SkipOption = "",
    option: OptionOption = None,
    profile: ProfileOption = "",
    *,
    way: "Way",
    few_limits: "Limits",
    form: Annotated[
        str, typer.Option("--format", metavar="FORM", help="text, json or markdown.")
    ] = "text",
    output: OutputOption = None,
    verbose: VerboseOption = 0,
) -> int:
    """Say whether a new or repaired node may join.

    It is checked more closely than by `run`, and held against nodes that are in already. Nothing
    is changed on any of them.

    Exit code: 0 admit, 1 admit with remarks, 2 do not admit, 3 do not admit, for something could
    not be found out; 64 wrong usage, 78 wrong configuration.
    """
    from clustercheck import admit as command
    from clustercheck import planning

    ways.log(verbose)
    asked = command.Asked(candidates, like, light, baseline, save_baseline, form, output, verbose)
    options = tuple(option or ())
    wanted = planning.Wanted(inventory, None, "", checks, skip, options, profile)
    ways.stop_with_report()
    return command.admit(asked, wanted, way, few_limits)
