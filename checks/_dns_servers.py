"""Each name server asked directly, from this machine, for the addresses and names of all nodes.

Servers are asked side by side, each by a few threads. One that does not answer the first questions
is not asked any more: it is found once, not once for each node.
"""

import queue
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import dns.exception
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import dns.reversename

from clustercheck.check import Target

from ._dns_answers import Reply, is_address, split_server, write_replies
from ._dns_resolv import Resolv, parse

ANSWER_WITHIN = 1.5  # seconds, each try
TRIES = 2
ALL_WITHIN = 11.0  # seconds, everything; what is not answered by then was not asked
ASKERS = 16  # of one server at a time
SILENT_AFTER = 6  # time-outs without any answer between them
MOST_DOMAINS = 3


def own_resolv() -> Resolv:
    """What this machine's resolver is told; behind systemd's stub, what systemd-resolved is."""
    found = parse(_text("/etc/resolv.conf"))
    if found.servers in (("127.0.0.53",), ("127.0.0.54",)):
        found = found._replace(servers=parse(_text("/run/systemd/resolve/resolv.conf")).servers)
    return found


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def facts(
    targets: Sequence[Target], servers: Sequence[str], domain: str
) -> dict[str, dict[str, str]]:
    """By node: "servers" (a line each: server and state) and "said@SERVER" (a line each question).

    servers: those of the option; this machine's own are asked besides.
    domain: of short names; "" takes this machine's search list.
    """
    own = own_resolv()
    wanted = dict.fromkeys([*filter(is_address, own.used), *servers])
    domains = [domain.strip(".")] if domain else list(own.search[:MOST_DOMAINS])
    names = [t.name for t in targets if t.name != "localhost" and not is_address(t.name)]
    until = time.monotonic() + ALL_WITHIN
    asked = [Server(label, names, domains, until) for label in wanted]
    for server in asked:
        server.start()
    for server in asked:
        server.wait()
    states = "\n".join(f"{server.label} {server.state}" for server in asked)
    found = {target.name: {"servers": states} for target in targets}
    for server in asked:
        if server.label in own.used and (trouble := _trouble(server.state)):
            note = f"this machine's name server {server.label} {trouble}"
            found.setdefault("", {})[server.label] = note
    for server in asked:
        for name, replies in server.snapshot().items():
            found[name][f"said@{server.label}"] = write_replies(replies)
    return found


def _trouble(state: str) -> str:
    how, _, why = state.partition(" ")
    return {"silent": "does not answer", "closed": f"cannot be asked: {why}"}.get(how, "")


class _Silent(Exception):
    """The server gave no answer in all tries."""


class _Closed(Exception):
    """The server's machine says that nothing listens there, or cannot be reached; the message."""


@dataclass
class Server:
    """A name server, and what it says.

    state: "answers", "silent" (no answer to the first questions), "closed WHY" (it cannot be
        asked), "refuses CODE" (the same refusal to every question) or "late" (it answers, and not
        all could be asked in time).
    """

    label: str
    names: Sequence[str]
    domains: Sequence[str]
    until: float
    state: str = "silent"
    _said: dict[str, list[Reply]] = field(default_factory=dict)
    _timeouts: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._open: queue.SimpleQueue[str] = queue.SimpleQueue()
        for name in self.names:
            self._open.put(name)
        self._ended = threading.Event()

    def start(self) -> None:
        """Begin to ask; returns at once."""
        threading.Thread(target=self._run, daemon=True).start()

    def wait(self) -> None:
        """Until all is asked, or the time is up."""
        self._ended.wait(max(0.0, self.until - time.monotonic()))

    def snapshot(self) -> dict[str, list[Reply]]:
        """What it said of each name that it was asked all about."""
        with self._lock:
            return dict(self._said)

    def _run(self) -> None:
        try:
            self._begin()
        except _Closed as why:
            self.state = f"closed {why}"
        except _Silent:
            self.state = "silent"
        except dns.exception.DNSException:
            self.state = "closed it sends what is no answer"
        self._ended.set()

    def _begin(self) -> None:
        with Asker(self.label) as asker:
            asker.ask(".", "NS")  # any answer will do, a refusal too
        self.state = "late" if self.names else "answers"
        threads = [
            threading.Thread(target=self._work, daemon=True)
            for _ in range(min(ASKERS, len(self.names)))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        said = self.snapshot()
        if len(said) == len(set(self.names)):
            self.state = "answers"
            codes = {reply.code for replies in said.values() for reply in replies}
            if len(codes) == 1 and not codes & {"NOERROR", "NXDOMAIN", "TIMEOUT"}:
                self.state = f"refuses {codes.pop()}"

    def _work(self) -> None:
        with Asker(self.label) as asker:
            while time.monotonic() < self.until and self._timeouts < SILENT_AFTER:
                try:
                    name = self._open.get_nowait()
                except queue.Empty:
                    return
                replies = self._about(asker, name)
                with self._lock:
                    self._said[name] = replies

    def _about(self, asker: "Asker", name: str) -> list[Reply]:
        """Addresses of the name, in the first domain that has any, and the names of those."""
        full = [name] if "." in name else [*(f"{name}.{domain}" for domain in self.domains), name]
        tried = []
        for one in full:
            tried.append(self._addresses(asker, one))
            if any(reply.data for reply in tried[-1]):
                break
        else:
            tried = tried[:1]  # what the first domain lacks is what is to be mended
        replies = tried[-1]
        if replies[0].code == "REFUSED" and "." not in replies[0].name:
            return []  # to a name without a domain a server need not answer
        for address in [data for reply in replies for data in reply.data]:
            replies.append(self._reply(asker, "PTR", address))
        return replies

    def _addresses(self, asker: "Asker", name: str) -> list[Reply]:
        four = self._reply(asker, "A", name)
        if four.code != "NOERROR":  # it is said of the name, whatever the type
            return [four]
        return [four, self._reply(asker, "AAAA", name)]

    def _reply(self, asker: "Asker", kind: str, name: str) -> Reply:
        question = dns.reversename.from_address(name).to_text() if kind == "PTR" else name + "."
        try:
            code, data = asker.ask(question, kind)
            self._timeouts = 0
        except (_Silent, _Closed):
            code, data = "TIMEOUT", ()
            self._timeouts += 1
        except dns.exception.DNSException as error:  # what came is no answer
            code, data = f"GARBLED-{type(error).__name__}", ()
        return Reply(kind, name, code, data)


class Asker:
    """One socket to a server; connected, so that a closed port is told apart from silence."""

    def __init__(self, label: str) -> None:
        self._host, self._port = split_server(label)
        self._socket: socket.socket | None = None

    def __enter__(self) -> "Asker":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._socket:
            self._socket.close()
        self._socket = None

    def ask(self, name: str, kind: str) -> tuple[str, tuple[str, ...]]:
        """The answer's code and data. Raises _Silent, _Closed, DNSException."""
        why: Exception = _Silent()
        for _ in range(TRIES):
            try:
                return self._once(name, kind)
            except dns.exception.Timeout:
                why = _Silent()
            except OSError as error:
                why = _Closed(error.strerror or str(error))
            except dns.exception.DNSException:
                self._close()  # a late answer to another question may be waiting there
                raise
            self._close()
        raise why

    def _once(self, name: str, kind: str) -> tuple[str, tuple[str, ...]]:
        if self._socket is None:
            family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
            self._socket = socket.socket(family, socket.SOCK_DGRAM)
            self._socket.connect((self._host, self._port))
            self._socket.setblocking(False)
        question = dns.message.make_query(name, kind)
        answer, _ = dns.query.udp_with_fallback(
            question, self._host, ANSWER_WITHIN, self._port, udp_sock=self._socket
        )
        wanted = dns.rdatatype.from_text(kind)
        data = {
            record.to_text().rstrip(".").lower()
            for rrset in answer.answer
            if rrset.rdtype == wanted
            for record in rrset
        }
        return dns.rcode.to_text(answer.rcode()), tuple(sorted(data))
