"""Standard streams that can be relied on: open, and known to be at fault when they are."""

import contextlib
import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class Output(io.FileIO):
    """Standard output, which remembers why it failed.

    failure: what a write raised (a full disk, a reader that has gone), or None.
    """

    failure: OSError | None = None

    def write(self, data: "ReadableBuffer", /) -> int:
        """As io.FileIO.write."""
        try:
            return super().write(data)
        except OSError as error:
            self.failure = error
            raise

    def give_up(self) -> None:
        """What is not yet written goes nowhere, so that Python does not complain at its end."""
        discard(self.fileno())


def prepare() -> Output:
    """Make all three streams usable, whatever the caller has closed; returns standard output.

    A number that is closed would go to the first file or socket that is opened, and what is meant
    for people would be written there. A closed standard output stays one that nothing can be
    written to. What a locale's encoding lacks ("§") is escaped.
    """
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, flags)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    elif isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")
    output = Output(1, "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(output),
        encoding=sys.stdout.encoding if sys.stdout else "utf-8",
        errors="backslashreplace",
        line_buffering=output.isatty(),
    )
    return output


def discard(number: int) -> None:
    """Send what is written to a descriptor from now on nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def complain(text: str) -> None:
    """Say something on standard error, or nothing where that cannot be written to."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        with contextlib.suppress(OSError):
            discard(2)
