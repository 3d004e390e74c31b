"""Getting to a node's SSH port: the name's addresses, TCP, or the user's ProxyCommand."""

import contextlib
import os
import socket
import subprocess
import threading
import time

from clustercheck.transport import Unreachable
from clustercheck.transport.wire import Wire, tcp_wire

Address = tuple[socket.AddressFamily, tuple[str | int, ...] | tuple[int, bytes]]


def dial(host: str, port: int, family: socket.AddressFamily, until: float) -> Wire:
    """Connect to the first address of a host that answers.

    until: of time.monotonic(), for all addresses; the wire gets it as its deadline.

    Raises Unreachable: no_name, refused, no_route or timeout.
    """
    addresses = _addresses(host, port, family, until)
    failures: list[Unreachable] = []
    for number, (kind, address) in enumerate(addresses):
        # A first address that swallows packets must leave time for the next.
        left = max(until - time.monotonic(), 0.001) / (len(addresses) - number)
        try:
            return tcp_wire(_connected(kind, address, left), until)
        except OSError as error:
            failures.append(_failure(error, str(address[0]), host, port, left))
    texts = dict.fromkeys(failure.message for failure in failures)
    raise Unreachable(failures[0].code, "; ".join(texts))


def _connected(
    kind: socket.AddressFamily, address: tuple[object, ...], timeout: float
) -> socket.socket:
    sock = socket.socket(kind, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout)
        sock.connect(address)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        sock.close()
        raise
    return sock


def _failure(error: OSError, address: str, host: str, port: int, waited: float) -> Unreachable:
    where = address if address == host else f"{address} ({host})"
    if isinstance(error, ConnectionRefusedError):
        return Unreachable("refused", f"nothing listens on port {port} of {where}")
    if isinstance(error, TimeoutError):
        text = f"no answer from port {port} of {where} within {waited:.1f} s"
        return Unreachable("timeout", text)
    if isinstance(error, ConnectionError):
        return Unreachable("refused", f"port {port} of {where} broke the connection off at once")
    # "No route to host" and its like; or a limit of this machine, and then the text tells.
    reason = os.strerror(error.errno or 0).lower()
    return Unreachable("no_route", f"port {port} of {where} cannot be reached: {reason}")


def _addresses(host: str, port: int, family: socket.AddressFamily, until: float) -> list[Address]:
    """The addresses of a host. The resolver has no time limit: it is asked in a thread."""
    answer: list[Address] = []
    failure: list[Exception] = []
    done = threading.Event()

    def ask() -> None:
        try:
            found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
            answer.extend(dict.fromkeys((kind, address) for kind, _, _, _, address in found))
        except (OSError, UnicodeError) as error:
            failure.append(error)
        done.set()

    if _is_address(host):
        ask()
    else:
        threading.Thread(target=ask, name=f"resolve {host}", daemon=True).start()
        if not done.wait(max(until - time.monotonic(), 0)):
            raise Unreachable("no_name", f"the resolver gave no answer about {host!r} in time")
    if failure:
        reason = failure[0].strerror if isinstance(failure[0], OSError) else "not a host name"
        raise Unreachable("no_name", f"the name {host!r} has no address: {reason}")
    return answer


def _is_address(host: str) -> bool:
    for kind in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError, ValueError):
            socket.inet_pton(kind, host)
            return True
    return False


class Proxy:
    """A running ProxyCommand and the wire through it.

    Raises Unreachable proxy_command where it cannot be started.
    """

    def __init__(self, command: str, deadline: float) -> None:
        self._command = command
        self._said = b""
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise Unreachable("proxy_command", f"{command!r} cannot be run: {error}") from error
        # In the user's shell, as ssh does; exec, so that the command itself is what is ended.
        line = command if command.startswith("exec ") else f"exec {command}"
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [os.environ.get("SHELL", "/bin/sh"), "-c", line],
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
            except OSError as error:
                ours.close()
                text = f"{command!r} cannot be run: {error}"
                raise Unreachable("proxy_command", text) from error

        def let_go() -> None:
            with contextlib.suppress(OSError):
                ours.shutdown(socket.SHUT_RDWR)
            self._process.terminate()

        self.wire = Wire(ours, deadline, let_go)
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        """Keep the end of what it says on standard error, and do not leave a zombie behind."""
        assert self._process.stderr
        with self._process.stderr as stream:
            for piece in iter(lambda: os.read(stream.fileno(), 4096), b""):
                self._said = (self._said + piece)[-1000:]
        self._process.wait()

    def failure(self) -> str:
        """How the command failed, or "" if it has not ended by itself with a status but 0."""
        self._watcher.join(0.5)  # its end of the stream may close a moment before it ends
        status = self._process.poll()
        if not status or status < 0:
            return ""
        words = " ".join(self._said.decode(errors="replace").split())
        return f"{self._command!r} ended with status {status}: {words or 'it said nothing'}"
