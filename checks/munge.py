"""Munge makes and reads credentials on the node, and its key is kept well and the same everywhere.

Slurm trusts a credential because nobody else has the key. Between nodes the key is compared by a
digest that is made with a secret of this run, so that it says nothing of the key to anybody who
sees it later; only root can do so. With the option `across`, a credential of each node is read on
two others as well: that takes the key that munged has in memory and clocks that agree, and an
ordinary user can do so. Such a credential lives for 300 s at most, is for the login user alone and
holds nothing; it is neither shown nor recorded. Whether clocks are right is the check ntp's to say:
where that fails, credentials out of time only follow from it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

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

from ._munge_across import FOLLOW_PROBE, hand_over, judge_across
from ._munge_read import EXPIRED, REWOUND, read_unmunge
from ._munge_remedies import (
    CLOCKS,
    DECODE,
    KEY_MISSING,
    KEY_MODE,
    KEY_NEWER,
    KEY_OWNER,
    KEY_SHORT,
    RESTART,
    SAME_IDS,
    SAME_KEY,
    SOCKET_MODE,
    START,
    STUCK,
)

PROBE = r"""
installed=no
have munged && have munge && have unmunge && installed=yes
fact installed "$installed"
[ "$installed" = no ] && return

conf=none cluster='' auth=''
for file in /etc/slurm/slurm.conf /run/slurm/conf/slurm.conf /etc/slurm-llnl/slurm.conf; do
    [ -r "$ROOT$file" ] || continue
    conf=$file
    said=$(sed -n -e 's/[[:blank:]]*#.*//' -e 's/^[[:blank:]]*//' \
        -e 's/[[:blank:]]*=[[:blank:]]*/=/' \
        -e '/^[Cc][Ll][Uu][Ss][Tt][Ee][Rr][Nn][Aa][Mm][Ee]=/s/^/cluster/p' \
        -e '/^[Aa][Uu][Tt][Hh][Tt][Yy][Pp][Ee]=/s/^/auth/p' "$ROOT$file" 2>/dev/null)
    IFS=$cc_nl
    set -f
    for line in $said; do
        case $line in
        cluster*) cluster=${line#*=} ;;
        auth*) auth=${line#*=} ;;
        esac
    done
    unset IFS
    set +f
    break
done
fact slurm "$conf"
fact cluster "$cluster"
fact auth "$auth"
enabled=no
for file in "$ROOT"/etc/systemd/system/*.wants/munge.service \
    "$ROOT"/etc/runlevels/*/munge* "$ROOT"/etc/rc[35].d/S[0-9][0-9]munge; do
    { [ -e "$file" ] || [ -L "$file" ]; } && enabled=yes
done
fact enabled "$enabled"

# where the commands look by themselves is known to them alone
case $socket in
'/run/munge/munge.socket.2' | '/var/run/munge/munge.socket.2') set -- ;;
*) set -- -S "$ROOT$socket" ;;
esac
made=$(within 5 munge -n "$@" 2>&1)
status=$?
fact made_status "$status"
offered=''
if [ "$status" = 0 ]; then
    said=$(printf '%s\n' "$made" | within 5 unmunge "$@" 2>&1)
    fact read_status "$?"
    fact read "$said"
    if [ "$across" = 1 ]; then
        # one that nobody else can read than this user, and that no other use is made of
        fact credential "$(within 5 munge -n -t 300 -u "$(id -u)" "$@" 2>/dev/null)" && offered=1
    fi
else
    fact made "$made"
fi
fact offered "$offered"

# the socket is as old as the daemon, and owned by its user
fact socket "$(within 3 stat -L -c '%u %g %Y' "$ROOT$socket" 2>/dev/null)"
said=$(as_root stat -L -c '%a %u %g %s %Y' "$ROOT$key" 2>&1)
case $? in
126) fact key unreadable ;;
0)
    fact key "$said"
    if [ "$same_key" = 1 ] && have sha256sum; then
        # the mark is this run's secret: the digest is worth nothing to who has not got it
        digest=$({ printf '%s' "$cc_mark" && as_root cat "$ROOT$key" 2>/dev/null; } | sha256sum)
        # 64 bits of it are enough to tell two keys apart
        fact digest "${digest%"${digest#????????????????}"}"
    fi
    ;;
*) fact key "absent ${said##*: }" ;;
esac
"""


@dataclass(frozen=True)
class Options:
    key: str = option("/etc/munge/munge.key", "the file that holds the key (munged --key-file)")
    socket: str = option("/run/munge/munge.socket.2", "where munged listens (munged --socket)")
    same_key: bool = option(True, "the key must be the same on all nodes of a cluster")
    across: bool = option(
        False,
        "a credential of each node is tried on two others, which takes one more look at each node"
        " (`admit` does so)",
    )
    same_ids: bool = option(
        False, "the user and group that munged runs as must have the same numbers on all nodes"
    )


class Key(NamedTuple):
    """The key's file: permission bits, owner, size in bytes, seconds since 1970."""

    mode: int
    uid: int
    gid: int
    size: int
    changed: int


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    installed = facts["installed"]
    if installed == "no":
        yield skip("absent", "Munge is not installed")
        return
    if installed != "yes":
        yield unknown("absent", "whether Munge is installed cannot be read")
        return
    if facts["made_status"] != "0":
        found = _not_made(facts, options)
        yield found
        if found.code == "unused":
            return
    else:
        yield _read(facts["read"], facts["read_status"])
    yield from _key(facts, options)


def _not_made(facts: Facts, options: Options) -> Finding:
    said = facts["made"].strip().splitlines()
    last = said[-1].strip().removeprefix("munge: Error: ")[:300] if said else "no word"
    status = facts["made_status"]
    if not re.fullmatch("[0-9]{1,3}", status):
        return unknown("works", f"what munge said cannot be read: {status[:40]!r}")
    if status == "124" or "Timed-out" in last:
        return fail("works", "munged does not answer within 5 s", STUCK)
    if "Permission denied" in last:
        return fail("works", f"munged cannot be reached by this user: {last}", SOCKET_MODE)
    if "No such file" in last or "Connection refused" in last or "start munged" in last:
        if facts["auth"].strip().lower() == "auth/slurm":
            return skip("unused", "Slurm does without Munge here (AuthType=auth/slurm)")
        if facts["enabled"] == "no" and facts["slurm"] == "none":
            return skip("unused", "Munge is installed, and nothing starts it")
        what = "nobody listens at" if "refused" in last else "there is no"
        return fail("works", f"munged does not run: {what} {options.socket}", START)
    return fail("works", f"munged makes no credentials: {last}", START)


def _read(text: str, status: str) -> Finding:
    """What unmunge says of a credential that the node has made."""
    said = read_unmunge(text)
    if said.number is None:
        if status == "124" or "Timed-out" in said.word:
            return fail("works", "munged does not answer within 5 s", STUCK)
        return unknown("works", f"what unmunge said is not understood: {said.word}")
    if said.number == 0:
        ciphers = " and ".join(word.split(" ")[0] for word in (said.cipher, said.mac) if word)
        return ok(
            "works", f"munged makes and reads credentials{f' ({ciphers})' if ciphers else ''}"
        )
    if said.number in (EXPIRED, REWOUND) and said.age is not None:
        life = f", time to live {said.ttl} s" if said.ttl else ""
        way = f"read {said.age} s after it was made"
        if said.age < 0:
            way = f"made {-said.age} s later than it was read, by the clocks"
        return fail("works", f"{said.word}: {way}{life}", CLOCKS)
    return fail("works", f"a credential made here is refused here: {said.word}", DECODE)


def _numbers(text: str, count: int) -> list[int] | None:
    words = text.split(" ", count)
    good = len(words) == count and all(re.fullmatch("[0-9]{1,18}", word) for word in words)
    return [int(word) for word in words] if good else None


def _key(facts: Facts, options: Options) -> Iterator[Finding]:
    said = facts["key"]
    socket = _numbers(facts["socket"], 3)
    if said == "unreadable":  # said once for the node as what root adds
        return
    if said.startswith("absent "):
        if socket is not None:
            message = f"{options.key} is not there ({said.partition(' ')[2][:80]})"
            yield warn("key", f"{message}, and munged runs", KEY_MISSING)
        return
    numbers = _numbers(said, 5)
    if numbers is None or not re.fullmatch("[0-7]{1,4}", said.split(" ")[0]):
        yield unknown("key", f"what {options.key} is cannot be read: {said[:80]!r}")
        return
    key = Key(int(said.split(" ")[0], 8), *numbers[1:])
    if key.mode & 0o077:
        who = "all users" if key.mode & 0o007 else "its group"
        message = f"{options.key} is open to {who} (mode {key.mode:04o}), should be 0400 or 0600"
        yield fail("key", message, KEY_MODE)
    elif socket is not None and key.uid != socket[0]:
        message = f"{options.key} belongs to uid {key.uid}, should be munged's, {socket[0]}"
        yield warn("key", message, KEY_OWNER)
    elif key.size < 32:
        yield warn("key", f"{options.key} has {key.size} bytes, should be 32 or more", KEY_SHORT)
    elif socket is not None and key.changed > socket[2] + 1:
        late = key.changed - socket[2]
        message = f"{options.key} was written {late} s after munged was started: munged has read"
        yield warn("key_newer", f"{message} what was there before", KEY_NEWER)
    else:
        yield ok("key", f"{options.key} is kept well (mode {key.mode:04o}, {key.size} bytes)")


def follow(facts: Mapping[str, Facts], options: Mapping[str, Options]) -> dict[str, str]:
    """Who is to read whose credentials."""
    return hand_over(facts, {node for node, of in options.items() if of.across})


def compare(
    facts: Mapping[str, Facts], options: Mapping[str, Options]
) -> Iterator[tuple[str, Finding]]:
    """What differs from most nodes of the cluster, and whose credentials others refuse."""
    differing = list(_same_key(facts, options))
    yield from differing
    known = {node for node, _ in differing}
    across = {node for node, of in options.items() if of.across}
    yield from judge_across(facts, across, known)
    for kinds in _kinds(facts, {n for n, o in options.items() if o.same_ids}, _ids):
        for kind in kinds[1:]:
            for node in kind:
                ids, usual = _ids(facts[node]), _ids(facts[kinds[0][0]])
                message = f"munged runs as {ids}, as {usual} on {len(kinds[0])} nodes"
                yield node, warn("same_ids", message, SAME_IDS)


def _same_key(
    facts: Mapping[str, Facts], options: Mapping[str, Options]
) -> Iterator[tuple[str, Finding]]:
    """Nodes whose key differs from that of most nodes of the cluster."""
    for kinds in _kinds(facts, {n for n, o in options.items() if o.same_key}, _digest):
        most = len(kinds[0])
        for kind in kinds if len(kinds) > 1 and len(kinds[1]) == most else kinds[1:]:
            others = f"{most} nodes" if len(kind) < most else "as many other nodes"
            for node in kind:
                message = f"the key differs from that of {others}: each refuses the other's"
                yield node, fail("same_key", f"{message} credentials", SAME_KEY)


def _kinds(
    facts: Mapping[str, Facts], nodes: set[str], what: Callable[[Facts], str]
) -> list[list[list[str]]]:
    """For each cluster its nodes by what they have, most nodes first."""
    clusters: dict[str, dict[str, list[str]]] = {}
    for node, told in facts.items():
        if node in nodes and what(told):
            kinds = clusters.setdefault(told.get("cluster", ""), {})
            kinds.setdefault(what(told), []).append(node)
    return [sorted(kinds.values(), key=len, reverse=True) for kinds in clusters.values()]


def _digest(told: Facts) -> str:
    digest = told.get("digest", "")
    return digest if re.fullmatch("[0-9a-f]{16}", digest) else ""


def _ids(told: Facts) -> str:
    numbers = _numbers(told.get("socket", ""), 3)
    return f"uid {numbers[0]}, gid {numbers[1]}" if numbers else ""


CODES = {
    "absent": Code("Munge is not installed."),
    "unused": Code("Munge is installed and nothing uses it."),
    "works": Code(
        "Whether a credential that is made on the node can be read there.",
        (START, SOCKET_MODE, STUCK, CLOCKS, DECODE),
    ),
    "key": Code(
        "Who may read the key, and whether munged will take it when it is started next.",
        (KEY_MODE, KEY_OWNER, KEY_MISSING, KEY_SHORT),
    ),
    "key_newer": Code("Whether munged has read the key that is there now.", (KEY_NEWER,)),
    "same_key": Code("The key against those of the cluster's other nodes.", (SAME_KEY,)),
    "across": Code(
        "Credentials of a node on other nodes, and theirs here: whether all have one key.",
        (SAME_KEY, RESTART),
    ),
    "clock": Code(
        "Credentials that are refused by the nodes' clocks: made too long ago, or in the future.",
        (CLOCKS,),
    ),
    "same_ids": Code("The daemon's user and group against those of other nodes.", (SAME_IDS,)),
}

CHECK = Check(
    title="Credentials and the key of Munge",
    stale="time",
    options=Options(),
    judge=judge,
    codes=CODES,
    probe=PROBE,
    probe_options=("key", "socket", "same_key", "across"),
    root_adds="who may read munge's key, and whether it is the same on all nodes",
    limit=20,
    follow_probe=FOLLOW_PROBE,
    follow=follow,
    secrets=("credential",),
    follows={"clock": ("ntp",)},
    compare=compare,
)
