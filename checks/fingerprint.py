"""Nodes of one kind are alike: hardware, firmware, kernel, versions, settings, files, accounts.

What is wrong on one node of many shows best beside the others: a memory module that failed, a
kernel that was not brought up to date, a limit that somebody set by hand. Nobody writes the right
values down: of nodes of one class (the same machine, processor and GPUs) the value of most is held
to be right. Where there is no majority, that is said, and nobody is accused.

Must be alike: the machine's make, memory, processors (how many, threads, microcode, governor),
NUMA, huge pages and swap, GPUs (kind, number, VBIOS, driver, and how they are set), network cards
(kind, driver and its version, firmware), the firmware's version, OS, kernel and its command line,
clock source, versions of glibc, CUDA's toolkit, MPI, Slurm, Munge and what runs containers, options
of mounts (of local ones those that somebody has chosen, as noatime), limits, settings of the kernel
that count for MPI and storage, the numbers of accounts, and the sums of nsswitch.conf, gres.conf
and limits.conf. May vary: anything else, and what `ignore` names. Never asked for: what is one
node's own, as its name, addresses, serial numbers and UUIDs; where a value has such a part, that is
cut out.

What other checks judge by its effect is no finding here, and only shown by `clustercheck diff`:
/etc/hosts and name servers (dns), time servers (ntp), a mount that is absent or comes from
elsewhere, what NFS has negotiated, the speed of a link and its MTU, the mode of SELinux, slurm.conf
and cgroup.conf.
The key of munge is compared by the check munge, and no sum of it is kept here: a report is read by
many.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from clustercheck.check import (
    Check,
    Code,
    Facts,
    Finding,
    fail,
    ok,
    option,
    skip,
    unknown,
    warn,
)

from ._fingerprint_fields import (
    GPU_SETTINGS,
    SAME_ACCOUNTS,
    SAME_BOOT,
    SAME_FILE,
    SAME_GPUS,
    SAME_MOUNT,
    SAME_NETWORK,
    SAME_PARTS,
    SAME_SETTING,
    SAME_SETUP,
    SAME_VERSION,
    class_of,
    class_words,
    fields,
    is_cut,
    kind_of,
    place_of,
)
from ._fingerprint_probe import PROBE

ABSENT = "absent"
LEAST = 3  # nodes of a class; of two that differ nobody knows which is right
LONGEST = 120


@dataclass(frozen=True)
class Options:
    accounts: tuple[str, ...] = option(
        (),
        "accounts that must have the same numbers everywhere, besides slurm, munge and the login"
        " user",
    )
    ignore: tuple[str, ...] = option(
        (), "fields that may differ between nodes (net.*, cmdline, version.docker)"
    )
    expect: tuple[str, ...] = option(
        (),
        "fields with the values that they should have, whatever other nodes have: kernel"
        " 5.14.0-427.el9.x86_64 (`clustercheck admit --save-baseline` writes them)",
    )
    must: tuple[str, ...] = option(
        (), "fields whose difference is a failure, not a warning (kernel, gpu.*, account.*)"
    )
    gpu_settings: bool = option(
        False,
        "ask nvidia-smi for persistence, ECC, MIG, power limit and compute mode, which may take"
        " some seconds; admit and diff always do",
    )

    joins: bool = option(
        False,
        "the node is held against the others and has no say in what is right (`admit` sets this for"
        " its candidates)",
    )

    def __post_init__(self) -> None:
        for line in self.expect:
            if not all(line.partition(" ")[::2]):
                raise ValueError(f"{line!r} in expect has no field and value: kernel 6.1.0-25")

    def expected(self) -> dict[str, str]:
        """The values by field."""
        return {line.partition(" ")[0]: line.partition(" ")[2].strip() for line in self.expect}


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    found = fields(facts)
    if not found:
        yield unknown("taken", "what the node tells of itself cannot be read")
        return
    text = "\n".join(f"{name} {found[name]}" for name in sorted(found))
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
    rest = "; mounts that did not fit into 16 KB are left out" if is_cut(facts) else ""
    yield ok("taken", f"{len(found)} fields, in one number {digest[:12]}{rest}")
    yield ok("kind", class_words(found))
    yield from _gpu_settings(facts, options)
    differs = False
    for name, value in sorted(options.expected().items(), key=lambda of: (place_of(of[0]), of)):
        if name in GPU_SETTINGS and not _tells_settings(facts):
            differs = True  # as it is said above
            continue
        told = found.get(name, ABSENT)
        if told != value and not _matches(name, options.ignore):
            differs = True
            make = fail if _matches(name, options.must) else warn
            kind = kind_of(name)
            message = f"{name} is {_short(told, value)}, should be {_short(value, told)}"
            yield make("expected", message, kind.remedy if kind else SAME_SETTING)
    if options.expect and not differs:
        yield ok("expected", f"{len(options.expect)} fields are as they should be")


def _tells_settings(facts: Facts) -> bool:
    return facts.get("gpu_settings", "") == "asked"


def _gpu_settings(facts: Facts, options: Options) -> Iterator[Finding]:
    """Why the GPUs' settings are not known, where they are wanted."""
    asked = facts.get("gpu_settings", "")
    wanted = sorted(GPU_SETTINGS & options.expected().keys())
    if asked.startswith("failed "):
        status = asked.removeprefix("failed ")
        why = "gives no answer within 8 s" if status in ("124", "137") else "fails"
        yield unknown("settings", f"how the GPUs are set is not told: nvidia-smi {why}")
    elif wanted and asked != "asked":
        message = f"{', '.join(wanted)} in `expect`: not asked for, as gpu_settings is off"
        yield skip("settings", message)


def like_on_its_kind(facts: Facts) -> dict[str, str]:
    """The fields that nodes of one kind have alike, in the order of a work list."""
    found = fields(facts)
    if not _tells_settings(facts):
        found |= dict.fromkeys(GPU_SETTINGS, "")
    names = sorted(found, key=lambda name: (place_of(name), name))
    return {name: found[name] for name in names if kind_of(name)}


def compare(
    facts: Mapping[str, Facts], options: Mapping[str, Options]
) -> Iterator[tuple[str, Finding]]:
    """Fields in which a node differs from most of its class."""
    told = {node: found for node, of in facts.items() if "fields" in of and (found := fields(of))}
    by_options = {id(of): of.expected() for of in options.values()}  # most nodes share theirs
    expected = {node: by_options[id(options[node])] for node in told}
    classes: dict[tuple[str, ...], list[str]] = {}
    for node, found in told.items():
        classes.setdefault(class_of(found), []).append(node)
    for nodes in classes.values():
        strangers = len(nodes) < len(told) and all(options[node].joins for node in nodes)
        if strangers or (len(nodes) == 1 and len(told) > 1):
            which = "that is in already" if strangers else "of this run"
            message = f"no other node {which} is of its kind: {class_words(told[nodes[0]])}"
            yield from ((node, skip("alone", message)) for node in nodes)
        if len(nodes) > 1 or len(told) == 1:
            names = {name for node in nodes for name in told[node]}
            settings = [node for node in nodes if _tells_settings(facts[node])]
            for name in sorted(names, key=lambda name: (place_of(name), name)):
                of = settings if name in GPU_SETTINGS else nodes
                yield from _field(name, of, told, options, expected)


def _field(
    name: str,
    nodes: list[str],
    told: Mapping[str, Mapping[str, str]],
    options: Mapping[str, Options],
    expected: Mapping[str, Mapping[str, str]],
) -> Iterator[tuple[str, Finding]]:
    kind = kind_of(name)
    if kind is None or kind.said_by:
        return
    # That a mount is absent, the check mounts says; and not all nodes have the same login user.
    if name.startswith(("mount.", "user.")):
        nodes = [node for node in nodes if name in told[node]]
    values = {node: told[node].get(name, ABSENT) for node in nodes}
    everywhere = Counter(values.values())
    if len(everywhere) < 2:
        return
    voters = [node for node in nodes if not options[node].joins] or nodes
    counts = Counter(values[node] for node in voters)
    usual, count = counts.most_common(1)[0]
    which = ""
    if len(nodes) < LEAST:
        which = "which of the two"
    elif len(voters) < 2:
        which = "which"
    elif list(counts.values()).count(count) > 1:
        which = "no value is that of most, so which"
    for node, value in values.items():
        if _matches(name, options[node].ignore) or name in expected[node]:
            continue
        apart = options[node].joins and len(voters) < len(nodes)
        other = "other " if apart else ""
        if which:
            pool = counts if apart else everywhere
            size = sum(pool.values())
            message = (
                f"{name} is {_short(value, usual)}, and differs on {size - pool[value]} of {size}"
                f" {other}nodes of its kind; {which} is right is not known"
            )
            yield node, unknown("undecided", message)
        elif value != usual:
            make = fail if _matches(name, options[node].must) else warn
            message = (
                f"{name} is {_short(value, usual)}, and {_short(usual, value)} on {count} of"
                f" {len(voters)} {other}nodes of its kind"
            )
            yield node, make("uniform", message, kind.remedy)


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _short(value: str, other: str) -> str:
    """A value for a message; of long ones, the words that the other has not."""
    if len(value) == 64 and value.isalnum():
        return f"{value[:12]}… by its sum"
    if len(value) <= LONGEST:
        return value
    others = set(other.split(" "))
    more = [word for word in value.split(" ") if word not in others]
    text = f"… {' '.join(more)} …" if more else value
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


REMEDIES = (
    SAME_PARTS,
    SAME_SETUP,
    SAME_BOOT,
    SAME_VERSION,
    SAME_GPUS,
    SAME_NETWORK,
    SAME_FILE,
    SAME_ACCOUNTS,
    SAME_MOUNT,
    SAME_SETTING,
)

CHECK = Check(
    title="what nodes of one kind should have alike",
    stale="boot",
    options=Options(),
    judge=judge,
    compare=compare,
    fields=like_on_its_kind,
    codes={
        "taken": Code("What the node is and has, in one number: equal where all is equal."),
        "kind": Code("Of which kind it is: the machine, its processor and its GPUs."),
        "expected": Code("A field has another value than `expect` says.", REMEDIES),
        "settings": Code(
            "How the GPUs are set (persistence, ECC, MIG, power limit) could not be found out."
        ),
        "uniform": Code("A field differs from that of most nodes of the same kind.", REMEDIES),
        "alone": Code("No other node of the run is of its kind, so nothing is compared."),
        "undecided": Code("A field differs between nodes, and no value is that of most."),
    },
    probe=PROBE,
    probe_options=("accounts", "gpu_settings"),
    limit=20,
)
