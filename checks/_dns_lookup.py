"""resolv.conf and the name servers: what a look-up costs on the node, and who does not answer."""

import ipaddress
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from clustercheck.check import Facts, Finding, MissingFact, Quantity, fail, ok, skip, unknown, warn

from ._dns_answers import is_address
from ._dns_own import canonical, is_loopback
from ._dns_records import no_answer, refuses_all
from ._dns_remedies import LESS_NAMES, MEND_SERVER, ONE_SEARCH, READABLE, THREE_SERVERS
from ._dns_resolv import MOST_SERVERS, Resolv, parse
from ._dns_view import View

STUBS = ("127.0.0.53", "127.0.0.54")  # systemd-resolved
ORDINALS = ("first", "second", "third")


class Lookup(NamedTuple):
    """The node's look-up of a name that no file and no cache has.

    seconds: None where DNS is not asked by nsswitch.conf.
    dead: no server answered. delayed: one did, after another was silent.
    silent: which that was; "" where it is not known.
    once: another one, at once after it, took no half second: a busy node or a lost packet.
    """

    seconds: float | None
    dead: bool
    delayed: bool
    silent: str = ""
    once: bool = False


def lookup(facts: Facts, resolv: Resolv) -> Lookup:
    """Raises MissingFact.

    A server to whose address no machine answers is given up before its time is over (three
    seconds on Linux), and the kernel tells which that was.
    """
    if facts["asked"] == "no":
        return Lookup(None, False, False)
    match = re.fullmatch("([0-9]{1,9}) ([0-9]{1,9})", facts["asked"])
    if not match:
        raise MissingFact("asked")
    status, seconds = match[1], int(match[2]) / 100
    used = list(dict.fromkeys(resolv.used))
    absent = [server for server in used if server in facts.get("absent", "").split()]
    # With "rotate" another look-up begins with another server, so it shows nothing.
    quick = facts.get("waits") == "quick" and status != "124"
    if quick and not absent and not resolv.rotates:
        return Lookup(seconds, False, False, once=True)
    if status == "124" or seconds >= 0.9 * resolv.longest or (used and absent == used):
        return Lookup(seconds, True, False)
    first = waited_for(facts.get("waits", "").split(), resolv) or next(iter(absent), "")
    # Of one server alone that answers late, nobody can tell that it was silent before; but a cache
    # on the node has servers of its own.
    several = len(used) > 1 or any(is_address(one) and is_loopback(one) for one in used)
    if first in absent or (several and seconds >= 0.9 * resolv.timeout):
        return Lookup(seconds, False, True, first)
    return Lookup(seconds, False, False)


def waited_for(ends: Iterable[str], resolv: Resolv) -> str:
    """The one server at which look-ups wait; "" where it is not known.

    ends: far ends of sockets to port 53, as the kernel writes them.
    """
    addresses = {address for end in ends for address in _far_ends(end)}
    waits = {server for server in resolv.used if canonical(server) in addresses}
    # A cache on the node itself waits in its turn for who knows whom.
    local = any(is_address(server) and is_loopback(server) for server in waits)
    return waits.pop() if len(waits) == 1 and not local else ""


def _far_ends(text: str) -> list[str]:
    """The address of "35000A0A:0035", by either order of its bytes, as the kernel writes it."""
    digits = text.partition(":")[0]
    if not re.fullmatch("[0-9A-F]{8}|[0-9A-F]{32}", digits):
        return []
    words = [bytes.fromhex(digits[at : at + 8]) for at in range(0, len(digits), 8)]
    orders = (b"".join(words), b"".join(word[::-1] for word in words))
    return [str(ipaddress.ip_address(order)) for order in orders]


def resolv_of(facts: Facts) -> Resolv:
    """Raises MissingFact where the node did not say whether there is such a file."""
    return parse(facts["resolv.conf"] if facts["resolv.conf.file"] == "read" else "")


def servers_of(facts: Facts, resolv: Resolv) -> list[str]:
    """The servers that the node's look-ups end at and that this machine can ask as well."""
    servers = resolv.used if facts["asked"] != "no" else ()
    if servers and all(server in STUBS for server in servers):
        servers = parse(facts.get("upstream", "")).servers
    return [s for s in dict.fromkeys(servers) if is_address(s) and not is_loopback(s)]


def judge_files(facts: Facts, resolv: Resolv, *, short_fails: bool) -> Iterator[Finding]:
    """short_fails: the node's own short name does not resolve."""
    for name in ("resolv.conf", "hosts", "nsswitch.conf"):
        if facts[f"{name}.file"] == "unreadable":
            message = f"/etc/{name} cannot be read by this user"
            yield unknown("unreadable", message, READABLE)
    if resolv.ignored:
        counts = ", ".join(resolv.search) or "no domain"
        message = (
            f"resolv.conf has several search or domain lines, of which the last alone counts "
            f"({counts}); ignored: {', '.join(resolv.ignored)}"
        )
        if short_fails:
            message += "; the node's own short name does not resolve"
        yield (fail if short_fails else warn)("search", message, ONE_SEARCH)
    if len(resolv.servers) > MOST_SERVERS:
        unused = ", ".join(resolv.servers[MOST_SERVERS:])
        message = f"resolv.conf names {len(resolv.servers)} servers, should be 3 at most"
        yield warn("too_many", f"{message}; never asked: {unused}", THREE_SERVERS)


def judge_lookup(
    facts: Facts,
    resolv: Resolv,
    asked: tuple[str, ...],
    limit: float,
    view: View | None,
    *,
    unresolved: bool,
) -> Iterator[Finding]:
    """What a look-up costs, which servers are at fault, and what that leaves untried.

    asked: servers of the option. limit: seconds. unresolved: a name that is needed has no address.
    """
    used = servers_of(facts, resolv)
    servers = [*dict.fromkeys([*used, *asked])]
    if servers and "servers" not in facts:
        yield unknown("not_asked", "the name servers could not be asked from this machine in time")
    found = lookup(facts, resolv)
    dead = _dead(facts, resolv, servers)
    own_dead = {server: words for server, words in dead.items() if server in used}
    if found.silent:  # as the node found it, whatever it is to this machine
        own_dead[found.silent] = f"{place_of(found.silent, resolv)} does not answer"
    why = "; ".join(own_dead.values())
    helpless = is_helpless(facts, resolv, view)
    cut = view is not None and view.asked < view.total
    if not (helpless and not why):
        yield _cost(found, resolv, why, limit, unresolved=unresolved, helpless=helpless, cut=cut)
    for server in servers:
        if server in dead and server not in used:
            yield warn("dead_server", dead[server], MEND_SERVER)
        if code := refuses_all(facts, server):
            yield no_answer(server, code, "every question about nodes", needed=helpless and not why)
        if _states(facts).get(server) == "late" and f"said@{server}" not in facts:
            message = f"the name server {server} was too slow to be asked about all nodes"
            yield skip("not_asked", message)
    if view and cut and not (found.dead or found.delayed or why or _slow(found, limit)):
        message = f"only {view.asked} of {view.total} names of nodes could be tried in the time"
        if slow := waited_for(view.waits, resolv):
            message += f": look-ups wait for {place_of(slow, resolv).rstrip(',')}"
        yield unknown("cut", message, LESS_NAMES)


def _slow(found: Lookup, limit: float) -> bool:
    return not found.once and (found.seconds or 0) > limit


def is_helpless(facts: Facts, resolv: Resolv, view: View | None) -> bool:
    """No name resolves, and all of the node's servers are known to be of no use."""
    used = servers_of(facts, resolv)
    dead = _dead(facts, resolv, used)
    return bool(view and view.blind and used) and all(
        server in dead or refuses_all(facts, server) for server in used
    )


def _states(facts: Facts) -> dict[str, str]:
    lines = facts.get("servers", "").splitlines()
    return dict(line.split(" ", 1) for line in lines if " " in line)


def _dead(facts: Facts, resolv: Resolv, servers: Iterable[str]) -> dict[str, str]:
    """Those that do not answer this machine, in words."""
    states = _states(facts)
    return {
        server: f"{place_of(server, resolv)} {_how(states[server])} (asked from this machine)"
        for server in servers
        if states.get(server, "").split(" ")[0] in ("silent", "closed")
    }


def _cost(
    found: Lookup,
    resolv: Resolv,
    dead: str,
    limit: float,
    *,
    unresolved: bool,
    helpless: bool,
    cut: bool,
) -> Finding:
    """What a look-up costs on the node.

    dead: those of its servers that do not answer, in words.
    """
    if found.seconds is None:
        return ok("lookup", "names come from files alone, as nsswitch.conf says")
    value = Quantity(found.seconds, "s")
    rest = "; not all names of nodes could be tried in the time" if cut else ""
    # whole seconds where they are time-outs: the rest is chance, and nodes are to say the same
    took = f"{found.seconds:.0f} s" if found.dead or found.delayed else f"{found.seconds:.1f} s"
    if found.dead:
        message = (
            f"no name server answers the node ({', '.join(resolv.used) or 'none is named'}): a "
            f"look-up ends after {took} without an answer"
        )
        if unresolved:
            return fail("no_server", f"{message}, and names of nodes need it", MEND_SERVER)
        return warn("no_server", message, MEND_SERVER)
    if found.delayed:
        who = dead or "a name server before the one that answers is silent"
        cost = f"on the node each look-up that no file answers takes {took}{rest}"
        return warn("dead_server", f"{who}; {cost}", MEND_SERVER, value=value)
    if helpless:
        return fail("no_server", f"{dead}, and names of nodes need it", MEND_SERVER)
    if dead:
        return warn("dead_server", f"{dead}{rest}", MEND_SERVER)
    if found.once:
        message = f"a look-up that no file answers took {took} once, and less than 0.5 s after that"
        return ok("lookup", message)
    if found.seconds > limit:
        message = f"a look-up takes {took}, should take {limit:g} s at most{rest}"
        return warn("slow", message, MEND_SERVER, value=value)
    took = took if found.seconds >= 0.05 else "less than 0.1 s"
    return ok("lookup", f"a look-up that no file answers takes {took}", value=value)


def place_of(server: str, resolv: Resolv) -> str:
    if server not in resolv.used:
        return f"the name server {server}"
    ordinal = ORDINALS[resolv.used.index(server)]
    return f"the name server {server}, the {ordinal} of {len(resolv.used)} in resolv.conf,"


def _how(state: str) -> str:
    return "does not answer" if state == "silent" else f"cannot be asked, {state.partition(' ')[2]}"
