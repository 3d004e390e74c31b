"""slurm.conf and cgroup.conf compared between nodes: first by digest, then by what they say."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from clustercheck.check import Facts, Finding, ok, warn

from ._slurm_remedies import SAME_CONF

# Nodes that are asked for the lines: one of each kind of file, so many kinds at most.
MOST_KINDS = 12
MOST_FILES = 200  # an include for each partition is plenty

LIMITS = "cgroup.conf"
# Each is compared by itself: nodes that run no jobs may have the one and not the other.
SUBJECTS = ("slurm.conf", LIMITS)

Digest = tuple[tuple[str, str], ...]


def digest_of(facts: Facts, subject: str) -> Digest:
    """(file's name, digest) of slurm.conf and what it includes, or of cgroup.conf; () for none.

    The folder does not count: a node that fetches its files keeps them below /run.
    """
    if subject == LIMITS and facts.get("installed") != "yes":
        return ()
    found = []
    for line in facts.get("digests", "").splitlines()[:MOST_FILES]:
        digest, _, path = line.partition(" ")
        name = path.strip().rsplit("/", 1)[-1]
        if name and (name == LIMITS) == (subject == LIMITS):
            found.append((name, digest))
    return tuple(sorted(found))


def _groups(facts: Mapping[str, Facts], subject: str) -> list[list[list[str]]]:
    """For each cluster, its nodes by what their files are; the largest group first.

    Sites that say NO_CONF_HASH keep different files on purpose.
    """
    clusters: dict[str, dict[Digest, list[str]]] = {}
    for node, told in facts.items():
        digest = digest_of(told, subject)
        if digest and "no_conf_hash" not in told.get("flags", "").lower():
            kinds = clusters.setdefault(told.get("cluster", ""), {})
            kinds.setdefault(digest, []).append(node)
    return [sorted(kinds.values(), key=len, reverse=True) for kinds in clusters.values()]


def whom_to_ask(facts: Mapping[str, Facts]) -> list[str]:
    """A node of each kind, where there is more than one."""
    return [
        kind[0]
        for subject in SUBJECTS
        for kinds in _groups(facts, subject)
        if len(kinds) > 1
        for kind in kinds[: MOST_KINDS + 1]
    ]


def compare_conf(facts: Mapping[str, Facts]) -> Iterator[tuple[str, Finding]]:
    """A finding for each node whose files say otherwise than those of most nodes."""
    for subject in SUBJECTS:
        for kinds in _groups(facts, subject):
            if sum(map(len, kinds)) > 1:  # somebody to compare with
                yield from _compare(subject, kinds, facts)


def _compare(
    subject: str, kinds: Sequence[list[str]], facts: Mapping[str, Facts]
) -> Iterator[tuple[str, Finding]]:
    most, *others = _merged(subject, kinds, facts)
    no_majority = bool(others) and len(others[0]) == len(most)
    if not no_majority and subject != LIMITS:  # that one file is the same is said once
        where = "as on most nodes" if others else "on all nodes"
        for node in most:
            yield node, ok("conf", f"{subject} is the same {where}")
    for kind in [most, *others] if no_majority else others:
        other = others[0] if kind is most else most
        fewer = len(kind) < len(other)
        whose = f"that of {len(other)} nodes" if fewer else "that of as many other nodes"
        words = _difference(subject, facts[kind[0]], facts[other[0]])
        for node in kind:
            yield node, warn("conf", f"{subject} differs from {whose}{words}", SAME_CONF)


def _merged(
    subject: str, kinds: Sequence[list[str]], facts: Mapping[str, Facts]
) -> list[list[str]]:
    """The kinds with those put together that differ in comments and blanks only."""
    by_lines: dict[object, list[str]] = {}
    for number, kind in enumerate(kinds):
        lines = _lines(facts[kind[0]], subject)
        key = frozenset(lines.items()) if lines else number
        by_lines.setdefault(key, []).extend(kind)
    return sorted(by_lines.values(), key=len, reverse=True)


def _lines(told: Facts, subject: str) -> Counter[str]:
    """What the files say, as it was told when they turned out to differ."""
    found: Counter[str] = Counter()
    wanted = False
    for line in told.get("lines", "").splitlines():
        if line.startswith("file "):
            wanted = line.endswith(f"/{LIMITS}") == (subject == LIMITS)
        elif wanted:
            found[line] += 1
    return found


def _difference(subject: str, one: Facts, other: Facts) -> str:
    """The first lines that one has and the other has not, in words."""
    mine, theirs = _lines(one, subject), _lines(other, subject)
    if not mine or not theirs:
        names = {name for name, _ in set(digest_of(one, subject)) ^ set(digest_of(other, subject))}
        return f" (by digest of {', '.join(sorted(names)[:3])})" if names else ""
    return f": here {_shown(mine - theirs)}, there {_shown(theirs - mine)}"


def _shown(lines: Counter[str]) -> str:
    if not lines:
        return "nothing more"
    words = [f"{line[:100]!r}" for line in list(lines)[:2]]
    more = f" and {len(lines) - 2} lines more" if len(lines) > 2 else ""
    return ", ".join(words) + more
