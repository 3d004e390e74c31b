"""`clustercheck sweep`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clustercheck.cli import ways
from clustercheck.cli.app import app
from clustercheck.cli.arguments import (
    ChecksOption,
    InventoryOption,
    OptionOption,
    ProfileOption,
    SkipOption,
    StateOption,
    VerboseOption,
)

if TYPE_CHECKING:
    from clustercheck.execute import Limits, Way


@app.command()
@ways.with_options
def sweep(
    inventory: InventoryOption = None,
    checks: ChecksOption = "",
    skip: SkipOption = "",
    option: OptionOption = None,
    profile: ProfileOption = "",
    *,
    way: "Way",
    limits: "Limits",
    state: StateOption = None,
    page: Annotated[
        Path | None,
        typer.Option("--page", metavar="FILE", help="Write the HTML page there."),
    ] = None,
    print_mail: Annotated[
        bool,
        typer.Option("--print-mail", help="Show the mail; send nothing, keep nothing."),
    ] = False,
    verbose: VerboseOption = 0,
) -> int:
    """Check all nodes each night, and tell what changed.

    The run is kept in the history and held against the one before. What the section [sweep] of the
    inventory says is done: a page is written, a mail is sent.

    Exit code: as of run, for what is not accepted; 69 a mail is not sent yet, 75 another sweep
    goes on, 64 wrong usage, 78 wrong configuration.
    """
    from clustercheck import planning
    from clustercheck import sweep as command

    ways.log(verbose)
    asked = command.Asked(state, page, print_mail, verbose)
    options = tuple(option or ())
    wanted = planning.Wanted(inventory, None, "", checks, skip, options, profile)
    ways.stop_with_report()
    return command.sweep(asked, wanted, way, limits)
