"""What a run is doing, on one line of the terminal; nothing at all where there is no terminal."""

import os
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from clustercheck.check import Status
from clustercheck.render.escape import visible
from clustercheck.render.terminal import is_terminal, look, moves_cursor

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

REDRAWS = 8  # a second, however many nodes there are


class Progress:
    """Live progress; every method may be called from any thread.

    with Progress(sys.stderr) as progress: the line is gone and the cursor back at the end, also
    after Ctrl-C.
    """

    def __init__(self, stream: TextIO, environ: Mapping[str, str] = os.environ) -> None:
        self._stream = stream
        self._environ = environ
        self._shows = is_terminal(stream) and moves_cursor(environ)
        self._lock = threading.Lock()
        self._running: dict[str, float] = {}  # the longest running first
        self._counts = dict.fromkeys(Status, 0)
        self._total = 0
        self._began = 0.0
        self._colour = False
        self._live: Live | None = None

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self, total: int) -> None:
        """Begin to show; `total` nodes are to be asked."""
        self._total, self._began = total, time.monotonic()
        self._show()

    def began(self, node: str) -> None:
        """A node is being asked."""
        with self._lock:
            self._running[node] = time.monotonic()

    def ended(self, node: str, status: Status) -> None:
        """A node is judged; it need not have begun."""
        with self._lock:
            self._running.pop(node, None)
            self._counts[status] += 1

    def stop(self) -> None:
        """Take the line away. Harmless when there is none."""
        live, self._live = self._live, None
        if live:
            live.stop()

    def _show(self) -> None:
        if not self._shows or self._live:
            return
        from rich.console import Console
        from rich.live import Live

        width, self._colour = look(self._stream, self._environ)
        console = Console(
            file=self._stream,
            force_terminal=True,
            width=width,
            no_color=not self._colour,
            _environ=self._environ,
        )
        self._live = Live(
            console=console,
            get_renderable=self._line,
            refresh_per_second=REDRAWS,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def _line(self) -> "Text":
        from rich.text import Text

        now = time.monotonic()
        with self._lock:
            counts, running = dict(self._counts), len(self._running)
            slowest = next(iter(self._running.items()), None)
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"{sum(counts.values())}/{self._total} nodes")
        line.append(f"  {running} running")
        for status, style in (
            (Status.FAIL, "bold red"),
            (Status.UNKNOWN, "magenta"),
            (Status.WARN, "yellow"),
        ):
            if counts[status]:
                line.append("  ")
                line.append(f"{counts[status]} {status.value}", style if self._colour else "")
        line.append(f"  {now - self._began:.0f} s")
        if slowest:
            name, since = slowest
            line.append(f"  slowest {visible(name)} {now - since:.0f} s")
        return line
