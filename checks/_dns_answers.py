"""What name servers said, as text for facts and back."""

import ipaddress
import re
from typing import NamedTuple

from clustercheck.check import Facts


class Reply(NamedTuple):
    """An answer to one question.

    kind: "A", "AAAA" or "PTR". name: full name, or for PTR the address.
    code: the answer's ("NOERROR", "NXDOMAIN", "SERVFAIL", "REFUSED", …), "TIMEOUT" for none, or
        "GARBLED-…" for what is none.
    data: addresses or names, sorted, without a dot at their end.
    """

    kind: str
    name: str
    code: str
    data: tuple[str, ...] = ()

    @property
    def definite(self) -> bool:
        """The server knows: there is such data, or there is none."""
        return self.code in ("NOERROR", "NXDOMAIN")


def write_replies(replies: list[Reply]) -> str:
    """A line each: "A node01.cluster.example NOERROR 10.0.0.1,10.0.0.2"."""
    return "\n".join(" ".join([*r[:3], ",".join(r.data)]).rstrip() for r in replies)


def read_replies(text: str) -> list[Reply]:
    """The reverse; lines that are none are passed over."""
    replies = []
    for line in text.splitlines():
        words = line.split()
        if len(words) in (3, 4):
            data = tuple(words[3].split(",")) if len(words) == 4 else ()
            replies.append(Reply(words[0], words[1], words[2], data))
    return replies


def said(facts: Facts, servers: list[str]) -> dict[str, list[Reply]]:
    """By server, for those of `servers` that said anything of the node."""
    found = {s: read_replies(text) for s, text in facts.at("said").items() if s in servers}
    return {server: replies for server, replies in found.items() if replies}


def addresses(replies: list[Reply]) -> frozenset[str]:
    """All that A and AAAA gave."""
    return frozenset(data for r in replies if r.kind != "PTR" for data in r.data)


def is_address(text: str) -> bool:
    """Is it an IPv4 or IPv6 address, not a name?"""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def split_server(label: str) -> tuple[str, int]:
    """Address and port of "10.0.0.53", "10.0.0.53:5353", "2001:db8::53" or "[2001:db8::53]:5353".

    Raises ValueError for anything else: a name would have to be resolved first.
    """
    match = re.fullmatch(r"\[([^\]]+)\](?::(\d{1,5}))?|([0-9.]+):(\d{1,5})", label)
    host = (match[1] or match[3]) if match else label
    port = int((match[2] or match[4] or 53) if match else 53)
    if not is_address(host) or not 0 < port < 65536:
        raise ValueError(
            f"{label!r} is no name server's address; write 10.0.0.53, 10.0.0.53:5353 or "
            "[2001:db8::53]:5353"
        )
    return host, port
