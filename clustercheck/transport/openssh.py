"""Nodes through the system's own ssh, for what paramiko cannot do: GSSAPI, FIDO keys, certificates.

One process of ssh for each script that runs: dearer than a connection of our own by far, and heard
only by what ssh writes on standard error, which its own remarks share with the script's.
"""

import contextlib
import logging
import math
import os
import random
import re
import selectors
import subprocess
import time

from clustercheck.node import Node
from clustercheck.transport import ACCOUNT_CLOSED, Exit, Unreachable, check_flood
from clustercheck.transport.session import COMMAND, STATUS_WAIT, STDERR_KEPT
from clustercheck.transport.settings import SshSettings

log = logging.getLogger(__name__)

PIECE = 1 << 16
FIRST_PAUSE = 0.5  # seconds before a server that was too busy to greet is tried again
LONGEST_PAUSE = 3.0
FAILED = 255  # ssh's exit status for a failure of its own; a script of ours never ends with it

# What ssh says, the more telling first, and the code of `reach` that it means.
CAUSES = tuple(
    (re.compile(pattern), code)
    for pattern, code in (
        ("IDENTIFICATION HAS CHANGED|[Hh]ost key .* has changed", "host_key_changed"),
        ("revoked (host )?key|key .*revoked", "host_key_revoked"),
        ("host key is known for|Host key verification failed", "host_key_unknown"),
        ("Permission denied \\(|Too many authentication failures", "login_refused"),
        (ACCOUNT_CLOSED.pattern, "account_closed"),
        ("terminating, [0-9]+ bad configuration|Bad owner or permissions on", "ssh_settings"),
        ("Could not resolve hostname", "no_name"),
        ("timed out during banner exchange", "no_banner"),
        ("Connection refused", "refused"),
        ("No route to host|Network is unreachable", "no_route"),
        ("timed out", "timeout"),
        ("Unable to negotiate|no matching", "handshake"),
        ("(kex|ssh)_exchange_identification|Not allowed at this time", "max_startups"),
        (
            "administratively prohibited|open failed|(session|shell|exec) request failed",
            "channel_refused",
        ),
    )
)


class OpenSsh:
    """The transport by the system's ssh. Thread-safe.

    Passwords and passphrases are not handed on: ssh takes neither but from a terminal.
    """

    def __init__(self, settings: SshSettings) -> None:
        words = ["-T", "-x", "-a"]
        if settings.config is not None:
            for file in settings.config or ("none",):
                words += ["-F", file]
        host_keys = "accept-new" if settings.host_keys == "accept-new" else "yes"
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": host_keys,
            "LogLevel": "ERROR",
            "ClearAllForwardings": "yes",
            "PermitLocalCommand": "no",
            "RemoteCommand": "none",
            "RequestTTY": "no",
            # A master of the user's own is used; one that this run began would outlive it.
            "ControlMaster": "no",
        }
        if settings.known_hosts is not None:
            options["UserKnownHostsFile"] = " ".join(map(_quoted, settings.known_hosts))
            options["GlobalKnownHostsFile"] = "/dev/null"
        if settings.connect_timeout:
            options["ConnectTimeout"] = str(math.ceil(settings.connect_timeout))
        for name, value in options.items():
            words += ["-o", f"{name}={value}"]
        self._words = words
        self._environment = dict(os.environ)
        if not settings.agent:
            self._environment.pop("SSH_AUTH_SOCK", None)

    def connect(self, node: Node, deadline: float) -> "OpenSshConnection":
        """Nothing yet: each script has a connection of its own."""
        words = ["ssh", *self._words]
        for flag, value in (("-p", str(node.port or "")), ("-l", node.user), ("-J", node.jump)):
            if value:
                words += [flag, value]
        if node.key:
            words += ["-i", os.path.expanduser(node.key)]
        host = node.host or node.name
        log.info("%s: by %s", node.name, " ".join([*words, host]))
        return OpenSshConnection([*words, "--", host, COMMAND], self._environment)

    def close(self) -> None:
        """Nothing is shared."""


def _quoted(path: str) -> str:
    return f'"{os.path.expanduser(path)}"'


class OpenSshConnection:
    """The words by which ssh gets to a node."""

    def __init__(self, words: list[str], environment: dict[str, str]) -> None:
        self._words = words
        self._environment = environment
        self._running: OpenSshChannel | None = None

    def start(self, script: bytes, deadline: float) -> "OpenSshChannel":
        """Connect, log in and run `sh -s`. Raises Unreachable, as the channel's methods do."""
        self._running = OpenSshChannel(self._words, self._environment, script, deadline)
        return self._running

    def close(self) -> None:
        """End what still runs."""
        if self._running:
            self._running.close()


class OpenSshChannel:
    """A running ssh with `sh -s` at its other end. To be used by one thread at a time."""

    def __init__(
        self, words: list[str], environment: dict[str, str], script: bytes, deadline: float
    ) -> None:
        self._words = words
        self._environment = environment
        self._script = script
        self._deadline = deadline
        self._pause = FIRST_PAUSE
        self._begun = False  # something has come from the node
        self._begin()

    def _begin(self) -> None:
        self._output = b""
        self._stderr = b""
        self._said = 0
        self._open = True
        self._process = subprocess.Popen(
            self._words,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._environment,
            start_new_session=True,  # Ctrl-C is for us, and there is no terminal to ask at
        )
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._errors = self._process.stderr
        self._selector = selectors.DefaultSelector()
        for pipe in (self._stdout, self._errors):
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ)
        os.set_blocking(self._stdin.fileno(), False)
        try:
            self.send(self._script)
        except Unreachable:
            self.close()
            raise

    def send(self, data: bytes) -> None:
        """Write to the script's standard input; nowhere, if the script has ended."""
        self._selector.register(self._stdin, selectors.EVENT_WRITE)
        try:
            while data and self._open:
                if self._wait(self._deadline):
                    with contextlib.suppress(BlockingIOError):
                        data = data[os.write(self._stdin.fileno(), data) :]
        except BrokenPipeError:
            return  # what was said is still to be read
        finally:
            self._selector.unregister(self._stdin)

    def receive(self, timeout: float) -> bytes | None:
        """The next piece of standard output; b"" at its end; None after `timeout` seconds."""
        end = time.monotonic() + timeout
        while not self._output:
            if not self._open and not self._begun_again():
                return b""
            if time.monotonic() >= end:
                return None
            self._wait(end)
        data, self._output = self._output, b""
        return data

    def finish(self) -> Exit:
        """How it ended. Waits two seconds at most. ssh does not tell a signal from a status."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STATUS_WAIT)
        self._take_errors()
        status = self._process.returncode
        stderr = self._stderr.decode(errors="backslashreplace")
        return Exit(None if status is None or status < 0 else status, "", stderr)

    def close(self) -> None:
        """Let go at once."""
        self._selector.close()
        for pipe in (self._stdin, self._stdout, self._errors):
            with contextlib.suppress(OSError):
                pipe.close()
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _wait(self, until: float) -> bool:
        """Take what there is to read, until `until`; whether standard input can be written to."""
        now = time.monotonic()
        if now >= self._deadline:
            raise Unreachable("limit", f"no answer by ssh in time{self._remark()}")
        ready = [key.fileobj for key, _ in self._selector.select(min(until, self._deadline) - now)]
        if self._errors in ready:
            self._take_errors()
        if self._stdout in ready:
            data = os.read(self._stdout.fileno(), PIECE)
            self._output += data
            self._begun = self._begun or bool(data)
            if not data:
                self._open = False
                self._selector.unregister(self._stdout)
        return self._stdin in ready

    def _take_errors(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._errors.fileno(), PIECE):
                self._stderr = (self._stderr + data)[-STDERR_KEPT:]
                self._said += len(data)
                check_flood(self._said)
            if self._errors in {key.fileobj for key in self._selector.get_map().values()}:
                self._selector.unregister(self._errors)

    def _begun_again(self) -> bool:
        """After the end of output: whether ssh has been started anew, as the server was busy.

        Raises Unreachable where it is ssh that has failed.
        """
        if self.finish().status != FAILED:
            return False
        said = self._stderr.decode(errors="backslashreplace")
        code = next((code for pattern, code in CAUSES if pattern.search(said)), "cut")
        wait = self._pause * random.uniform(0.5, 1.5)
        if code != "max_startups" or self._begun or time.monotonic() + wait > self._deadline:
            raise Unreachable("cut" if self._begun else code, f"ssh failed{self._remark()}")
        self.close()
        time.sleep(wait)
        self._pause = min(self._pause * 1.5, LONGEST_PAUSE)
        self._begin()
        return True

    def _remark(self) -> str:
        words = " ".join(self._stderr.decode(errors="backslashreplace").split())[-300:]
        return f": {words}" if words else ""
