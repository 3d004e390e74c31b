"""`clustercheck diff`."""

from typing import TYPE_CHECKING, Annotated

import typer

from clustercheck.cli import ways
from clustercheck.cli.app import app
from clustercheck.cli.arguments import (
    InventoryOption,
    StateOption,
    VerboseOption,
)

if TYPE_CHECKING:
    from clustercheck.execute import Limits, Way


@app.command()
@ways.with_options
def diff(
    one: Annotated[
        str, typer.Argument(metavar="ONE", help="A node, a folder of --record, a sweep's number.")
    ],
    other: Annotated[str, typer.Argument(metavar="OTHER", help="Another one.")],
    inventory: InventoryOption = None,
    *,
    way: "Way",
    few_limits: "Limits",
    form: Annotated[str, typer.Option("--format", metavar="FORM", help="text or json.")] = "text",
    state: StateOption = None,
    verbose: VerboseOption = 0,
) -> int:
    """Show in what two nodes, recorded runs or sweeps differ.

    Two nodes are asked; of recorded runs and sweeps no node is touched. `history --runs` has the
    numbers of sweeps.

    Exit code: 0 no difference, 1 some, 3 a node could not be asked; 64 wrong usage, 78 wrong
    configuration.
    """
    from clustercheck import diff as command
    from clustercheck import planning

    ways.log(verbose)
    return command.diff(one, other, planning.Wanted(inventory), way, few_limits, form, state)
