"""The command line itself: what stands before any command."""

import sys
from typing import Annotated

import typer

from clustercheck import __version__, exit_codes

# "\b" keeps the lines as they are
EXAMPLES = """\b
Examples:
  clustercheck run                      check this machine
  clustercheck run -w 'gpu[01-16]'      check these nodes, reached as ssh reaches them
  clustercheck run -i inventory.ini     check all nodes of an inventory
  clustercheck explain ntp.offset       what a finding means, and what to do
"""

app = typer.Typer(
    name="clustercheck",
    help="Which nodes are fit for work, what is wrong with the others, and what to do about it.",
    epilog=EXAMPLES,
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"clustercheck {__version__}")
        raise typer.Exit


@app.callback()
def clustercheck(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Show the help where no command is given."""
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(exit_codes.USAGE)
