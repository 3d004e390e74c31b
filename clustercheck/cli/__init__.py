"""The command line. Everything that costs start-up time is imported where it is used.

Each command has a file of its own here, which reads the command line and does nothing else.
"""

import errno
import sys
from importlib import import_module
from typing import Any, NoReturn

import typer

from clustercheck import exit_codes, streams
from clustercheck.cli import refusal, words
from clustercheck.cli.app import app
from clustercheck.errors import ConfigError, UsageError
from clustercheck.nodeset import shorten

# The files of commands, in the order in which --help has them.
COMMANDS = ("run", "admit", "gate", "sweep", "history", "schedule", "diff", "judge", "tell")

# typer's own complaints about the command line, whatever it has them from
COMMAND_LINE_ERROR: Any = typer.BadParameter.__mro__[2]


# What the system says of a path that nothing can be read from, by whichever option it came.
NO_PATH = (errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit. A bug shows its traceback; nothing else does."""
    output = streams.prepare()
    given = sys.argv[1:] if arguments is None else arguments
    try:
        with refusal.never_silent(given):
            status = _command(given)(given, standalone_mode=False, prog_name="clustercheck")
            sys.stdout.flush()
    except COMMAND_LINE_ERROR as error:
        _complain(_worded(error.format_message()), exit_codes.USAGE)
    except UsageError as error:
        _complain(str(error), exit_codes.USAGE)
    except ConfigError as error:
        _complain(str(error), exit_codes.CONFIG)
    except KeyboardInterrupt:  # before there was anything to report, or while it was written
        output.give_up()
        _complain("interrupted", exit_codes.INTERRUPTED)
    except (OSError, SystemExit) as error:
        if isinstance(error, OSError) and error.errno in NO_PATH and error.filename:
            _complain(f"{shorten(str(error.filename))}: {error.strerror}", exit_codes.USAGE)
        # typer makes 1 of a reader that has gone, which is the exit code of a warning
        if output.failure is None or (error is not output.failure and isinstance(error, OSError)):
            raise
        output.give_up()
        if isinstance(output.failure, BrokenPipeError):  # whoever reads us has seen enough
            sys.exit(exit_codes.BROKEN_PIPE)
        reason = output.failure.strerror
        _complain(f"cannot write standard output: {reason}", exit_codes.USAGE)
    sys.exit(status if isinstance(status, int) else 0)


def _command(arguments: list[str]) -> Any:
    """The command line as typer has it: all commands, or the one that is certainly meant."""
    first = arguments[:1]
    for name in first if first and first[0] in COMMANDS else COMMANDS:
        import_module(f"clustercheck.cli.{name}")
    return words.quicken(typer.main.get_command(app))


def _worded(complaint: str) -> str:
    if "extra argument" in complaint:  # `clustercheck run gpu01`, as with ssh
        return f"{complaint}; nodes are named with -w, checks with -c"
    return complaint


def _complain(text: str, status: int) -> NoReturn:
    from clustercheck.render.escape import visible

    for line in text.splitlines():
        streams.complain(f"clustercheck: {visible(line)}")
    sys.exit(status)
