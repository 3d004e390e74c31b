"""This machine: the script runs in the local sh, without SSH."""

import contextlib
import os
import selectors
import signal
import subprocess
import time

from clustercheck.node import Node
from clustercheck.transport import Channel, Connection, Exit, Unreachable, check_flood

# Ending the probes and removing the files takes as long as reading /proc once or twice.
SECONDS_TO_TIDY = 5


class HereChannel:
    """A running local `sh -s`."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin and process.stdout and process.stderr
        self._process = process
        self._stdin, self._stdout = process.stdin, process.stdout
        self._stderr_file = process.stderr
        self._stderr = b""
        self._said = 0
        self._selector = selectors.DefaultSelector()
        for pipe in (process.stdout, process.stderr):
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ)

    def send(self, data: bytes) -> None:
        try:
            self._stdin.write(data)
            self._stdin.flush()
        except BrokenPipeError:
            return  # the script has ended: what it said and how it ended is still to be read
        except OSError as error:
            raise Unreachable("cut", f"the local sh went away: {error}") from error

    def receive(self, timeout: float) -> bytes | None:
        end = time.monotonic() + timeout
        while True:
            left = max(0.0, end - time.monotonic())
            ready = [key.fileobj for key, _ in self._selector.select(left)]
            if self._stderr_file in ready:
                self._take_stderr()
            if self._stdout in ready:
                return os.read(self._stdout.fileno(), 1 << 16)
            if left <= 0:
                return None

    def _take_stderr(self) -> None:
        data = os.read(self._stderr_file.fileno(), 1 << 16)
        if not data:
            self._selector.unregister(self._stderr_file)
        self._stderr = (self._stderr + data)[-4096:]
        self._said += len(data)
        check_flood(self._said)

    def finish(self) -> Exit:
        try:
            status = self._process.wait(2)
        except subprocess.TimeoutExpired:
            return Exit(None, "", self._stderr.decode(errors="backslashreplace"))
        stderr = self._stderr.decode(errors="backslashreplace")
        if status < 0:
            return Exit(None, signal.Signals(-status).name.removeprefix("SIG"), stderr)
        return Exit(status, "", stderr)

    def close(self) -> None:
        self._selector.close()
        for pipe in (self._stdin, self._stdout, self._stderr_file):
            with contextlib.suppress(OSError):  # what was not yet sent is of no use to anybody
                pipe.close()
        if self._process.poll() is None:
            self._process.terminate()  # the script tidies up after itself
        try:
            self._process.wait(SECONDS_TO_TIDY)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class HereConnection:
    """The local `sh`."""

    def __init__(self) -> None:
        self._running: HereChannel | None = None

    def start(self, script: bytes, deadline: float) -> Channel:
        """Run `sh -s`; see the protocol. Raises Unreachable where there is no sh."""
        try:
            process = subprocess.Popen(
                ["sh", "-s"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise Unreachable("no_sh", f"the local sh cannot be run: {error}") from error
        self._running = HereChannel(process)
        self._running.send(script)
        return self._running

    def close(self) -> None:
        """End what still runs."""
        if self._running:
            self._running.close()


class Here:
    """The transport to this machine."""

    def connect(self, node: Node, deadline: float) -> Connection:
        """Always there."""
        return HereConnection()

    def close(self) -> None:
        """Nothing is held."""
