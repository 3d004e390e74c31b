"""`clustercheck judge`."""

from pathlib import Path
from typing import Annotated

import typer

from clustercheck.cli import ways
from clustercheck.cli.app import app
from clustercheck.cli.arguments import (
    ChecksOption,
    FormOption,
    InventoryOption,
    OptionOption,
    OutputOption,
    ProfileOption,
    SkipOption,
    VerboseOption,
)


@app.command()
def judge(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="What `run --record` kept.")],
    inventory: InventoryOption = None,
    checks: ChecksOption = "",
    skip: SkipOption = "",
    option: OptionOption = None,
    profile: ProfileOption = "",
    form: FormOption = "text",
    output: OutputOption = None,
    verbose: VerboseOption = 0,
) -> int:
    """Judge a recorded run again, and touch no node.

    With -o or an inventory's options, thresholds are others than when it was recorded.
    """
    from clustercheck import execute, planning

    ways.log(verbose)
    options = tuple(option or ())
    wanted = planning.Wanted(inventory, None, "", checks, skip, options, profile)
    return execute.judge(directory, wanted, execute.Shown(form, output, verbose))
