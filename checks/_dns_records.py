"""What each name server says of a node, asked from this machine."""

from collections.abc import Iterator

from clustercheck.check import Facts, Finding, fail, ok, warn

from ._dns_answers import Reply, addresses, said
from ._dns_own import Own, is_loopback, same_name
from ._dns_remedies import (
    ADD_REVERSE,
    ALLOW_QUESTIONS,
    HOSTS_OR_DNS,
    MEND_SERVER,
    MEND_ZONE,
    SAME_ZONE,
)
from ._dns_view import local_addresses


def judge_records(
    facts: Facts, own: Own, servers: list[str], wanted: str, *, reverse_known: bool
) -> Iterator[Finding]:
    """servers: those that count for the node. wanted: the option reverse.

    reverse_known: that the node's addresses lead to no name is said already.
    """
    replies = said(facts, servers)
    forward = {s: [r for r in rs if r.kind != "PTR"] for s, rs in replies.items()}
    for server, answers in forward.items():
        for reply in answers:
            if not reply.definite and not refuses_all(facts, server):
                yield no_answer(server, reply.code, reply.name)
    sure = {s: a for s, a in forward.items() if a and all(r.definite for r in a)}
    by_answer: dict[str, list[str]] = {}
    for server, answers in sure.items():
        by_answer.setdefault(_words(answers), []).append(server)
    if len(by_answer) > 1:
        parts = [f"{', '.join(who)} says {what}" for what, who in by_answer.items()]
        yield warn("servers_disagree", f"name servers disagree: {'; '.join(parts)}", SAME_ZONE)
    records = frozenset[str]().union(*map(addresses, sure.values()))
    if records:
        yield from _against_own(own, local_addresses(facts), sure, records)
    if wanted != "ignored" and not reverse_known:
        yield from _reverse(replies, wanted)


def refuses_all(facts: Facts, server: str) -> str:
    """The code with which the server answers all questions about nodes; "" where it does not."""
    for line in facts.get("servers", "").splitlines():
        name, _, state = line.partition(" ")
        if name == server and state.startswith("refuses "):
            return state.split()[1]
    return ""


def no_answer(server: str, code: str, what: str, *, needed: bool = False) -> Finding:
    """The finding for a code that is no answer.

    what: the name that was asked for. needed: the node has no other server.
    """
    if code == "TIMEOUT":
        message = f"the name server {server} does not answer for {what}, though it does for others"
        return warn("no_answer", message, MEND_SERVER)
    if code.startswith("GARBLED-"):
        why = code.removeprefix("GARBLED-")
        message = f"the name server {server} sends what is no answer for {what} ({why})"
        return warn("no_answer", message, MEND_SERVER)
    message = f"the name server {server} says {code} for {what}"
    make = warn
    if needed:
        message += ", and no other server answers the node"
        make = fail
    if code == "REFUSED":
        return make("refused", message, ALLOW_QUESTIONS)
    return make("servfail", message, MEND_ZONE)


def _against_own(
    own: Own, local: tuple[str, ...], sure: dict[str, list[Reply]], records: frozenset[str]
) -> Iterator[Finding]:
    """The node's own view of its name against that of the servers."""
    asked = {r.name for answers in sure.values() for r in answers if r.data}
    if not any(same_name(own.name, name) for name in asked) or own.made_up:
        return  # it is known by another name here
    here = {a for a in own.addresses if not is_loopback(a)}
    what = f"{', '.join(sorted(asked))} is {', '.join(sorted(records))} by DNS"
    # That DNS and /etc/hosts name different interfaces of the node is no contradiction.
    if here and not here & records and not records <= set(local):
        message = f"{what}, and {', '.join(sorted(here))} on the node itself (/etc/hosts?)"
        yield warn("hosts_contradict", message, HOSTS_OR_DNS)
    else:
        yield ok("records", what)


def _reverse(replies: dict[str, list[Reply]], wanted: str) -> Iterator[Finding]:
    bad: dict[str, list[str]] = {}
    for server, answers in replies.items():
        names = [r.name for r in answers if r.kind != "PTR" and r.data]
        back = [r for r in answers if r.kind == "PTR" and r.definite]
        for reply in back:
            if not reply.data:
                bad.setdefault(f"{reply.name} has no PTR record", []).append(server)
        told = [data for reply in back for data in reply.data]
        if told and names and not any(same_name(data, name) for data in told for name in names):
            said = "; ".join(f"{r.name} is {', '.join(r.data)}" for r in back if r.data)
            bad.setdefault(f"by PTR record {said}, should be {names[0]}", []).append(server)
    for what, servers in bad.items():
        make = fail if wanted == "required" else warn
        yield make("reverse", f"{what} ({', '.join(servers)})", ADD_REVERSE)


def _words(answers: list[Reply]) -> str:
    found = sorted(addresses(answers))
    if found:
        name = next(r.name for r in answers if r.data)
        return f"{name} is {', '.join(found)}"
    last = answers[-1]
    return f"{'NXDOMAIN' if last.code == 'NXDOMAIN' else 'no address'} for {last.name}"
