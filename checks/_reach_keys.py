"""Which host keys of other nodes a node knows, and whether they are those that are shown."""

from collections.abc import Iterator, Mapping

from clustercheck.check import Facts, Finding, warn

from ._reach_remedies import ADD_KEYS, OTHER_KEYS, SAME_FILE


def judge_keys(
    facts: Mapping[str, Facts], wanted: Mapping[str, str]
) -> Iterator[tuple[str, Finding]]:
    """Host keys that are not known, or are others, said once where the fault is.

    wanted: the option known_hosts by node. With "auto" a key that is not known is a fault only
    where most are known in the file for all users.
    """
    pairs = {
        (node, peer): _verdict(told, peer, wanted[node])
        for node, told in facts.items()
        if wanted[node] == "yes" or (wanted[node] == "auto" and told.get("known_hosts") == "yes")
        for peer in told.at("system")
        if peer in facts
    }
    usual = 2 * sum(word != "unknown" for word in pairs.values()) > len(pairs)
    good = {peer for (_, peer), word in pairs.items() if word == "known"}
    knowing = {node for (node, _), word in pairs.items() if word != "unknown"}
    of_peer: dict[tuple[str, str], int] = {}
    of_node: dict[tuple[str, str], int] = {}
    for (node, peer), word in pairs.items():
        if word == "known" or (word == "unknown" and not usual and wanted[node] != "yes"):
            continue
        if peer in good or node not in knowing:
            of_node[node, word] = of_node.get((node, word), 0) + 1
        else:
            of_peer[peer, word] = of_peer.get((peer, word), 0) + 1
    for (node, word), count in of_node.items():
        whose = "1 other node" if count == 1 else f"{count} other nodes"
        if word == "unknown":
            message = f"host keys of {whose} are not known here"
            yield node, warn("known_hosts", message, SAME_FILE)
        else:
            message = f"host keys of {whose} are known here, and others are shown"
            yield node, warn("host_key", message, SAME_FILE)
    for (node, word), count in of_peer.items():
        who = "1 other node" if count == 1 else f"{count} other nodes"
        if word == "unknown":
            message = f"the host key of this node is not known on {who} that tried, and others' are"
            yield node, warn("known_hosts", message, ADD_KEYS)
        else:
            message = f"another host key of this node than it shows is known on {who}"
            yield node, warn("host_key", message, OTHER_KEYS)


def _verdict(told: Facts, peer: str, wanted: str) -> str:
    """ "known", "unknown", or "changed": of that kind another key is known, and this one is not."""
    system, user = told.get(f"system@{peer}", ""), told.get(f"user@{peer}", "")
    kind, _, key = told.get(f"key@{peer}", "").partition(" ")
    lines = [line.split() for line in f"{system}\n{user}".splitlines() if not line.startswith("#")]
    lines = [words for words in lines if len(words) > 2]
    if not lines:
        return "unknown"
    known = [words[2] for words in lines if words[1] == kind]
    authority = any(words[0] == "@cert-authority" for words in lines)
    if authority or not known or key.strip() in known:
        return "known"
    # a user's own file may be old, and is no one else's matter
    return "changed" if system.strip() or wanted == "yes" else "known"
