"""`clustercheck history` and `clustercheck accept`."""

from typing import Annotated

import typer

from clustercheck.cli.app import app
from clustercheck.cli.arguments import InventoryOption, StateOption
from clustercheck.errors import UsageError


@app.command()
def history(
    word: Annotated[
        str, typer.Argument(metavar="[NODE|CHECK]", help="Without: what is wrong now.")
    ] = "",
    check: Annotated[str, typer.Argument(metavar="[CHECK]", help="Of a node: this check.")] = "",
    runs: Annotated[bool, typer.Option("--runs", help="List the sweeps.")] = False,
    inventory: InventoryOption = None,
    state: StateOption = None,
) -> int:
    """Show what past sweeps found, and how values went.

    Without -i, it is the only cluster that was ever swept from here.
    """
    from clustercheck import past

    return past.show(past.Place(inventory, state), word, check, runs=runs)


@app.command()
def accept(
    finding: Annotated[
        str, typer.Argument(metavar="[CHECK[.CODE]]", help="nfs.slow, or nfs for all of it.")
    ] = "",
    nodes: Annotated[str, typer.Option("-w", "--nodes", metavar="NODES", help="On these.")] = "",
    until: Annotated[
        str, typer.Option("--until", metavar="DAY", help="The last day, 2027-01-15.")
    ] = "",
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="A few words.")] = "",
    all_of_them: Annotated[bool, typer.Option("--list", help="List what is accepted.")] = False,
    remove: Annotated[
        int, typer.Option("--remove", metavar="NUMBER", min=0, help="Take one back.")
    ] = 0,
    inventory: InventoryOption = None,
    state: StateOption = None,
) -> int:
    """Accept a finding until a day.

    Sweeps show it apart, and it does not set their exit code. It comes back when the day has
    passed, and when it gets worse.
    """
    from clustercheck import acceptance
    from clustercheck.past import Place

    place = Place(inventory, state)
    if all_of_them:
        return acceptance.accepted(place)
    if remove:
        return acceptance.remove(place, remove)
    if not finding:
        raise UsageError("accept what? As `clustercheck accept nfs.slow -w node03 --until DAY`")
    if not until:
        raise UsageError("--until: until which day? Write such as --until 2027-01-15")
    return acceptance.accept(place, acceptance.Accepted(finding, nodes, until, why))
