"""`clustercheck gate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clustercheck.cli import ways
from clustercheck.cli.app import app
from clustercheck.cli.arguments import (
    ChecksOption,
    ExcludeOption,
    InventoryOption,
    NodesOption,
    OptionOption,
    ProfileOption,
    SkipOption,
    VerboseOption,
)

if TYPE_CHECKING:
    from clustercheck.wanted import Limits, Way


@app.command()
@ways.with_options
def gate(
    inventory: InventoryOption = None,
    nodes: NodesOption = None,
    partition: Annotated[
        str,
        typer.Option("--partition", metavar="NAME", help="All nodes of a partition of Slurm."),
    ] = "",
    exclude: ExcludeOption = "",
    need: Annotated[
        int | None,
        typer.Option(
            "--need",
            min=1,
            metavar="N",
            help="So many healthy nodes are needed.",
            show_default="all but the spare ones",
        ),
    ] = None,
    spare: Annotated[
        int, typer.Option("--spare", min=0, metavar="N", help="Name so many more, to replace one.")
    ] = 0,
    profile: ProfileOption = "",
    checks: ChecksOption = "",
    skip: SkipOption = "",
    option: OptionOption = None,
    max_age: Annotated[
        str,
        typer.Option(
            "--max-age", metavar="TIME", help="What is known for no longer counts; 0 asks anew."
        ),
    ] = "15m",
    on_unknown: Annotated[
        str,
        typer.Option(
            "--on-unknown",
            metavar="go|no-go",
            help="The answer where too little is known.",
            show_default="exit 75",
        ),
    ] = "",
    suspect: Annotated[
        float,
        typer.Option(
            "--suspect",
            min=0,
            max=100,
            metavar="PERCENT",
            help="What fails on more of the nodes excludes none of them.",
        ),
    ] = 50,
    cache: Annotated[
        Path | None,
        typer.Option(
            "--cache",
            metavar="DIR",
            help="Where results are kept.",
            show_default="~/.cache/clustercheck",
        ),
    ] = None,
    codes: Annotated[
        list[str] | None,
        typer.Option("--exit", metavar="no-go=CODE", help="Another exit code (repeatable)."),
    ] = None,
    shrink: Annotated[
        bool,
        typer.Option("--shrink", help="Let the job give back all nodes but the chosen ones."),
    ] = False,
    requeue: Annotated[
        int | None,
        typer.Option(
            "--requeue",
            min=0,
            metavar="N",
            help="Start the job again without what failed, N times at most.",
        ),
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORM",
            help="text, json, env, args, list, exclude, github, gitlab or junit.",
        ),
    ] = "text",
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write the verdict there instead."),
    ] = None,
    *,
    way: "Way",
    limits: "Limits",
    verbose: VerboseOption = 0,
) -> int:
    """Say whether work may start, and on which nodes.

    For workflow tools: what was asked a short while ago is not asked again. In a job of Slurm,
    without -w, it is about the job's nodes.

    Exit code: 0 go, 1 no-go, 75 too little is known; 64 wrong usage, 78 wrong configuration.
    """
    from clustercheck import gate as command
    from clustercheck.wanted import Wanted

    ways.log(verbose)
    asked = command.Asked(
        partition=partition,
        need=need or 0,
        spare=spare,
        on_unknown=on_unknown,  # type: ignore[arg-type] # which Asked looks at
        suspect_percent=suspect,
        max_age=command.seconds(max_age),
        cache=cache,
        form=form,
        output=output,
        codes=command.exit_code_of(codes or ()),
        shrink=shrink,
        requeue=requeue,
        verbose=verbose,
    )
    options = tuple(option or ())
    wanted = Wanted(inventory, nodes, exclude, checks, skip, options, profile)
    ways.stop_with_report()
    return command.gate(asked, wanted, way, limits)
