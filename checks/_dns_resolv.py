"""What /etc/resolv.conf says, read as glibc reads it (resolv.conf(5))."""

import re
from typing import NamedTuple

LONGEST = 65536  # characters that are looked at; the probe sends 4096
MOST_SERVERS = 3  # MAXNS of resolv.h: further lines are not looked at


class Resolv(NamedTuple):
    """servers: all that are named, in order; glibc asks the first three.
    search: the domains that count, those of the last line of their kind.
    ignored: the domains of earlier lines, in order.
    timeout: seconds to wait for a server. attempts: rounds over all servers.
    rotates: each process begins with another server.
    """

    servers: tuple[str, ...]
    search: tuple[str, ...]
    ignored: tuple[str, ...]
    timeout: int
    attempts: int
    rotates: bool = False

    @property
    def used(self) -> tuple[str, ...]:
        """The servers that glibc asks."""
        return self.servers[:MOST_SERVERS]

    @property
    def longest(self) -> float:
        """Seconds after which glibc gives up where no server answers.

        It waits longer for the second and third server than for the first (res_send.c); glibc 2.36
        took 10 s with one, 20 s with two and 28 s with three that were silent.
        """
        count = len(self.used) or 1  # without any, glibc asks 127.0.0.1
        waits = (max(1, (self.timeout << n) // (count if n else 1)) for n in range(count))
        return float(self.attempts * sum(waits))


def parse(text: str) -> Resolv:
    """The file's meaning; what is no known line is passed over, as by glibc."""
    servers: list[str] = []
    search: list[tuple[str, ...]] = []
    numbers = {"timeout": 5, "attempts": 2}
    rotates = False
    for line in text[:LONGEST].splitlines():
        words = re.split("[#;]", line, maxsplit=1)[0].split()
        if len(words) < 2:
            continue
        if words[0] == "nameserver":
            servers.append(words[1].lower())
        elif words[0] == "search":
            search.append(tuple(_domain(word) for word in words[1:]))
        elif words[0] == "domain":
            search.append((_domain(words[1]),))
        elif words[0] == "options":
            for name, number in re.findall(r"\b(timeout|attempts):(\d{1,9})", line):
                numbers[name] = int(number)
            rotates = rotates or "rotate" in words
    counts = tuple(domain for domain in (search[-1] if search else ()) if domain)
    ignored = [d for domains in search[:-1] for d in domains if d and d not in counts]
    return Resolv(
        tuple(servers),
        counts,
        tuple(dict.fromkeys(ignored)),
        min(max(numbers["timeout"], 1), 30),  # RES_MAXRETRANS
        min(max(numbers["attempts"], 1), 5),  # RES_MAXRETRY
        rotates,
    )


def _domain(word: str) -> str:
    return word.rstrip(".").lower()
