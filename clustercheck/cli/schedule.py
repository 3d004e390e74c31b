"""`clustercheck schedule`."""

from typing import Annotated

import typer

from clustercheck.cli.app import app
from clustercheck.cli.arguments import InventoryOption
from clustercheck.errors import UsageError


@app.command()
def schedule(
    inventory: InventoryOption = None,
    at: Annotated[str, typer.Option("--at", metavar="HH:MM", help="Time of the day.")] = "03:00",
    user: Annotated[
        str, typer.Option("--user", metavar="NAME", help="Who runs it; you, if not said.")
    ] = "",
    systemd: Annotated[bool, typer.Option("--systemd", help="A service and a timer.")] = False,
    cron: Annotated[bool, typer.Option("--cron", help="A line for cron.")] = False,
    max_time: Annotated[
        int,
        typer.Option(
            "--max-time", min=60, max=86_400, metavar="SECONDS", help="For the whole sweep."
        ),
    ] = 7200,
    install: Annotated[
        bool, typer.Option("--install", help="Write it; what is there is never overwritten.")
    ] = False,
) -> int:
    """Print what starts a sweep each night.

    It is a service and a timer of systemd, or a line for cron where systemd does not run.
    """
    from clustercheck import schedule as command

    if systemd and cron:
        raise UsageError("give one of --systemd and --cron")
    wanted = cron if systemd or cron else None
    return command.schedule(command.Asked(at, user, wanted, max_time, install), inventory)
