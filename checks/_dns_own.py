"""The node's own name: to which addresses it resolves, and whether those lead back to it."""

import ipaddress
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from clustercheck.check import Facts, Finding, fail, ok, unknown, warn

from ._dns_answers import is_address
from ._dns_remedies import ADD_RECORD, ADD_REVERSE, OWN_ADDRESS, OWN_LINE, REACHED_ADDRESS
from ._dns_view import local_addresses

LATE = "late"  # in place of an answer that did not come in time


class Own(NamedTuple):
    """name: what the node calls itself.
    addresses: by /etc/hosts, DNS and the like; where only the node makes them up (nss-myhostname,
        systemd-resolved), those, and `made_up` is true.
    late: there was no answer in time.
    services: of nsswitch.conf, less those that make up answers; "" where none do.
    """

    name: str
    addresses: tuple[str, ...]
    made_up: bool
    late: bool
    services: str


def own(facts: Facts) -> Own:
    """What the facts say of the node's own name. Raises MissingFact."""
    seen = _addresses(facts["own"])
    late = facts["own"] == LATE
    if "own.plain" not in facts:
        return Own(facts["hostname"], seen, False, late, "")
    plain = _addresses(facts["own.plain"])
    late = late or facts["own.plain"] == LATE
    made_up = bool(seen) and not plain and not late
    return Own(facts["hostname"], plain or seen, made_up, late, facts["plain"])


def _addresses(text: str) -> tuple[str, ...]:
    words = [line.split()[0] for line in text.splitlines() if line.strip()]
    plain = [re.sub(r"^::ffff:(?=.*\.)|%.*", "", word.lower()) for word in words]
    return tuple(dict.fromkeys(canonical(word) for word in plain if is_address(word)))


def canonical(address: str) -> str:
    """The one form of an address, for IPv6 has many; other words as they are."""
    return str(ipaddress.ip_address(address)) if is_address(address) else address


def is_loopback(address: str) -> bool:
    """127.x or ::1, of an address."""
    return ipaddress.ip_address(address).is_loopback


def is_link_local(address: str) -> bool:
    """169.254.x or fe80::, of an address: each link has its own, as of a service processor."""
    return ipaddress.ip_address(address).is_link_local


def judge_own(facts: Facts, own: Own, on_loopback: str, family: str) -> Iterator[Finding]:
    """on_loopback, family: the options own_loopback and family."""
    if not own.name:
        yield unknown("own_unread", "the node's own name could not be read")
        return
    addresses = ", ".join(own.addresses)
    if not own.addresses:
        detail = "did not resolve within 11 s" if own.late else "has no address here"
        yield fail("own_unresolved", f"its own name {own.name} {detail}", ADD_RECORD)
        return
    if own.made_up:
        yield fail(
            "own_made_up",
            f"its own name {own.name} is {addresses} to the node itself only (nss-myhostname or "
            f"systemd-resolved makes that up), and has no record by {own.services}",
            ADD_RECORD,
        )
        return
    loopback = [a for a in own.addresses if is_loopback(a)]
    if loopback and on_loopback != "allow":
        line = next((x for x in _lines(facts) if x.split()[0] in loopback), "")
        where = f" (/etc/hosts: {' '.join(line.split())})" if line else ""
        message = (
            f"its own name {own.name} is {', '.join(loopback)}{where}, should be an address that "
            "other nodes can reach"
        )
        make = warn if on_loopback == "warn" else fail
        yield make("own_loopback", message, OWN_LINE)
        return
    yield _held(facts, own, addresses, family)


def _held(facts: Facts, own: Own, addresses: str, family: str) -> Finding:
    """Are they the node's addresses, and of the wanted family?"""
    local = local_addresses(facts)
    if not local and not all(is_loopback(a) for a in own.addresses):
        return unknown(
            "own_addresses",
            f"its own name {own.name} is {addresses}; whether an interface has it could not be "
            "read",
        )
    if not any(a in local or is_loopback(a) for a in own.addresses):
        return fail(
            "own_elsewhere",
            f"its own name {own.name} is {addresses}, which no interface of the node has; they "
            f"have {', '.join(local)}",
            OWN_ADDRESS,
        )
    strange = [a for a in own.addresses if a not in local and not is_loopback(a)]
    if strange:
        return warn(
            "own_elsewhere",
            f"its own name {own.name} is {addresses}, and no interface of the node has "
            f"{', '.join(strange)}: connections there are lost",
            OWN_ADDRESS,
        )
    if all(map(is_link_local, own.addresses)) and not all(map(is_link_local, local)):
        return fail(
            "own_link_local",
            f"its own name {own.name} is {addresses}, which holds on one link alone; should be an "
            "address that other nodes can reach",
            REACHED_ADDRESS,
        )
    missing = family != "any" and not any((":" in a) == (family == "ipv6") for a in own.addresses)
    if missing:
        word = "IPv6" if family == "ipv6" else "IPv4"
        message = f"its own name {own.name} is {addresses}, should have an {word} address"
        return fail("own_family", message, ADD_RECORD)
    return ok("own", f"its own name {own.name} is {addresses}")


def _lines(facts: Facts) -> list[str]:
    return [line for line in facts.get("hosts", "").splitlines() if line.strip()]


def judge_reverse(facts: Facts, own: Own, wanted: str) -> Iterator[Finding]:
    """Each of the node's addresses leads to a name, and one of them to its own.

    wanted: the option reverse.
    """
    looked_up = [a for a in own.addresses if not is_loopback(a)][:8]
    if wanted == "ignored" or own.made_up or not (own.name and looked_up):
        return
    if facts["reverse"] == LATE:
        yield unknown("reverse", "the reverse look-up gave no answer within 11 s", ADD_REVERSE)
        return
    names = reverse_names(facts["reverse"])
    make = fail if wanted == "required" else warn
    without = [a for a in looked_up if not names.get(a)]
    if without:
        message = f"{', '.join(without)} has no name by reverse look-up, should be {own.name}"
        yield make("reverse", message, ADD_REVERSE)
        return
    said = "; ".join(f"{a} is {', '.join(names[a])}" for a in looked_up)
    if any(same_name(own.name, name) for a in looked_up for name in names[a]):
        yield ok("reverse", f"by reverse look-up {said}")
    else:
        yield make("reverse", f"by reverse look-up {said}, should be {own.name}", ADD_REVERSE)


def reverse_names(text: str) -> dict[str, list[str]]:
    """Lines "ADDRESS NAME ALIAS…" of getent hosts: all names by address."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        address, *names = line.lower().split() or [""]
        kept = found.setdefault(canonical(address), [])
        kept += [n.rstrip(".") for n in names if n.rstrip(".") not in kept]
    return found


def same_name(one: str, other: str) -> bool:
    """Equal without regard to case and a dot at the end; short names match the full ones."""
    one, other = (name.lower().rstrip(".") for name in (one, other))
    if "." in one and "." in other:
        return one == other
    return one.split(".")[0] == other.split(".")[0]


def worse(findings: Sequence[Finding], code: str) -> bool:
    """Is there a finding of the code that has a remedy?"""
    return any(f.code == code and f.remedy for f in findings)
