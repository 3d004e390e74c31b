"""What shows only between nodes: one resolves a name otherwise, or nobody finds a node's name."""

from collections.abc import Iterator, Mapping

from clustercheck.check import Facts, Finding, fail, warn

from ._dns_answers import addresses, said
from ._dns_own import is_link_local, is_loopback, own, same_name
from ._dns_remedies import ADD_RECORD, HOSTS_OR_DNS, OWN_ADDRESS, REACHED_ADDRESS, SAME_TABLE
from ._dns_view import Comparison, Row, compare_views, local_addresses, parse_table

MOST_NAMED = 5


def judge_between(
    facts: Mapping[str, Facts], servers: Mapping[str, list[str]]
) -> Iterator[tuple[str, Finding]]:
    """servers: by node, those that count for it."""
    found = compare_views(facts)
    if not found.reference:
        return
    common = parse_table(facts[found.reference].get("table", ""))
    for node in found.views:
        if node != found.reference:
            yield from _differences(node, facts, found, common)
    # What the reference's own name is to others, another one has to tell.
    witnessed = parse_table(facts[found.witness].get("table", "")) if found.witness else {}
    rows = {
        node: (witnessed if node == found.reference else common).get(node.lower()) for node in facts
    }
    for node in facts:
        yield from _name_of(node, facts, found, rows[node], common)
    yield from _records(facts, servers, rows)


def judge_shared(facts: Mapping[str, Facts]) -> Iterator[tuple[str, Finding]]:
    """Nodes whose own names are one address: each has it, so that nobody is reached by it.

    A machine that is asked under two names is one node.
    """
    having: dict[str, dict[str, str]] = {}
    owns = {node: own(told) for node, told in facts.items()}
    for node, itself in owns.items():
        for address in itself.addresses:
            if not (is_loopback(address) or is_link_local(address)):
                having.setdefault(address, {}).setdefault(itself.name, node)
    for node, itself in owns.items():
        shared = [a for a in itself.addresses if len(having.get(a, {})) > 1]
        if not shared or len(shared) < len(itself.addresses) or itself.made_up:
            continue
        if not set(shared) <= set(local_addresses(facts[node])):  # then the node itself says so
            continue
        others = [n for name, n in having[shared[0]].items() if name != itself.name]
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        message = (
            f"its own name {itself.name} is {', '.join(shared)}, as is that of {others[0]}{more};"
            " should be an address of this node alone"
        )
        yield node, fail("own_shared", message, REACHED_ADDRESS)


def _differences(
    node: str, facts: Mapping[str, Facts], found: Comparison, common: dict[str, Row]
) -> Iterator[tuple[str, Finding]]:
    """What the node resolves otherwise than the reference does."""
    view, usual = found.views[node], found.views[found.reference]
    here = parse_table(facts[node].get("table", ""))
    differs = []
    if node in found.outliers and here and common:
        families = [family for family in view.sums if family in usual.sums]
        for name, row in here.items():
            if name in (node.lower(), found.reference.lower()):
                continue
            expected = common.get(name, {})
            one, other = _some(row, families), _some(expected, families)
            if one != other:
                differs.append(f"{name} is {one} here and {other} there")
        differs += _reference_itself(here, facts, found)
    elif node in found.outliers:
        differs.append("which ones is not known")
    else:  # of IPv6 names, a node without IPv6 sees nothing, and its sum cannot show it
        differs += [
            f"{name} has no address here"
            for name in view.missing
            if name != node.lower() and name not in usual.missing
        ]
    if not differs:
        return
    whom = "most nodes" if found.majority else found.reference
    doubt = "" if found.majority else "; which is right is not known"
    more = f" and {len(differs) - MOST_NAMED} more" if len(differs) > MOST_NAMED else ""
    said = "; ".join(differs[:MOST_NAMED])
    message = f"names of nodes resolve otherwise than on {whom}: {said}{more}{doubt}"
    yield node, fail("differs", message, SAME_TABLE)


def _reference_itself(
    here: dict[str, Row], facts: Mapping[str, Facts], found: Comparison
) -> list[str]:
    """The reference node's own name, held against the addresses that it has."""
    name = found.reference
    row = here.get(name.lower())
    local = local_addresses(facts[name])
    if row is None or not local or _set(row) & set(local):
        return []
    return [f"{name} is {_some(row, [4, 6])} here, and has {', '.join(local)}"]


def _name_of(
    node: str,
    facts: Mapping[str, Facts],
    found: Comparison,
    row: Row | None,
    common: dict[str, Row],
) -> Iterator[tuple[str, Finding]]:
    """The node's name as another node resolves it, in `row`."""
    itself = own(facts[node])
    known = same_name(node, itself.name)
    if row is None:
        return
    seen = _set(row)
    local = local_addresses(facts[node])
    if not seen:
        if known and itself.addresses:  # else the node itself says so
            asked = found.witness if node == found.reference else found.reference
            message = f"the name {node} has no address on other nodes ({asked} was asked)"
            yield node, fail("unresolved", message, ADD_RECORD)
        return
    if not known or not local:
        return
    strange = sorted(seen - set(local))
    is_said = f"to other nodes the name {node} is {', '.join(sorted(seen))}"
    if not strange:
        yield from _without_four(node, row, common)
    elif seen & set(local):
        if set(strange) <= set(itself.addresses):  # then the node itself says so
            return
        message = (
            f"{is_said}, and no interface of the node has {', '.join(strange)}: connections there "
            "are lost"
        )
        yield node, warn("elsewhere", message, OWN_ADDRESS)
    elif seen != set(itself.addresses):  # else the node itself says so
        message = f"{is_said}, which no interface of the node has; they have {', '.join(local)}"
        yield node, fail("elsewhere", message, OWN_ADDRESS)


def _without_four(node: str, row: Row, common: dict[str, Row]) -> Iterator[tuple[str, Finding]]:
    """IPv6 alone, where most names have IPv4: Slurm uses IPv4 unless it is told otherwise."""
    if 4 not in row and 2 * sum(4 in other for other in common.values()) > len(common):
        message = (
            f"to other nodes the name {node} is {row[6]}, an IPv6 address alone; most names of "
            "nodes have an IPv4 address"
        )
        yield node, warn("own_family", message, ADD_RECORD)


def _records(
    facts: Mapping[str, Facts],
    servers: Mapping[str, list[str]],
    rows: Mapping[str, Row | None],
) -> Iterator[tuple[str, Finding]]:
    """DNS against what nodes resolve, and nodes that are not in DNS though most are."""
    by_dns = {}
    absent = []
    for node, told in facts.items():
        replies = said(told, servers[node])
        sure = [r for rs in replies.values() for r in rs if r.kind != "PTR" and r.definite]
        if sure:
            by_dns[node] = addresses(sure)
            if not by_dns[node]:
                absent.append(node)
    for node, records in by_dns.items():
        seen = _set(rows[node] or {})
        if records and seen and not seen & records and seen != set(own(facts[node]).addresses):
            message = (
                f"{node} is {', '.join(sorted(records))} by DNS, and {', '.join(sorted(seen))} to "
                "the nodes (/etc/hosts?)"
            )
            yield node, warn("hosts_contradict", message, HOSTS_OR_DNS)
    if 2 * len(absent) < len(by_dns):
        for node in absent:
            if own(facts[node]).addresses:
                message = f"{node} is not in DNS, where the names of most nodes are"
                yield node, warn("not_in_dns", message, ADD_RECORD)


def _set(row: Row) -> set[str]:
    return {address for text in row.values() for address in text.split(",")}


def _some(row: Row, families: list[int]) -> str:
    return ",".join(row[family] for family in families if family in row) or "unknown"
