"""`clustercheck run`."""

from typing import TYPE_CHECKING

from clustercheck.cli import ways
from clustercheck.cli.app import app
from clustercheck.cli.arguments import (
    ChecksOption,
    ExcludeOption,
    FormOption,
    InventoryOption,
    NodesOption,
    OptionOption,
    OutputOption,
    ProfileOption,
    RecordOption,
    SkipOption,
    VerboseOption,
)

if TYPE_CHECKING:
    from clustercheck.execute import Limits, Way


@app.command()
@ways.with_options
def run(
    inventory: InventoryOption = None,
    nodes: NodesOption = None,
    exclude: ExcludeOption = "",
    checks: ChecksOption = "",
    skip: SkipOption = "",
    option: OptionOption = None,
    profile: ProfileOption = "",
    *,
    way: "Way",
    limits: "Limits",
    record: RecordOption = None,
    form: FormOption = "text",
    output: OutputOption = None,
    verbose: VerboseOption = 0,
) -> int:
    """Ask the nodes, judge the answers, report.

    Without -i and -w, it is this machine that is checked.

    Exit code: 0 all pass, 1 worst is a warning, 2 any failure, 3 something could not be found out,
    64 wrong usage, 78 wrong configuration.
    """
    from clustercheck import execute, planning

    ways.log(verbose)
    shown = execute.Shown(form, output, verbose)
    options = tuple(option or ())
    wanted = planning.Wanted(inventory, nodes, exclude, checks, skip, options, profile)
    ways.stop_with_report()
    return execute.run(wanted, way, limits, shown, record)
