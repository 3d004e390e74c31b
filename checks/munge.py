"""Munge makes and reads credentials on the node, and its key is kept well and the same everywhere.

Slurm trusts a credential because nobody else has the key. Between nodes only the key can be
compared without sending a credential over the network: by a digest that is made with a secret of
this run, so that it says nothing of the key to anybody who sees it later. Whether clocks agree
well enough is the check ntp's to say.
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
    Remedy,
    fail,
    ok,
    option,
    skip,
    unknown,
    warn,
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
if [ "$status" = 0 ]; then
    said=$(printf '%s\n' "$made" | within 5 unmunge "$@" 2>&1)
    fact read_status "$?"
    fact read "$said"
else
    fact made "$made"
fi

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
    same_ids: bool = option(
        False, "the user and group that munged runs as must have the same numbers on all nodes"
    )


START = Remedy(
    "Look why munged does not run (`journalctl -u munge -e`, /var/log/munge/munged.log): mostly a"
    " key with the wrong owner or mode. Then start it with `systemctl start munge`. Slurm on the"
    " node goes on by itself."
)
SOCKET_MODE = Remedy(
    "All users must be able to reach munged's socket: its directory, /run/munge, wants mode 0755,"
    " and the socket itself 0777."
)
STUCK = Remedy(
    "Look what munged waits for (`ps -o stat,wchan:32,comm -C munged`): name services that do not"
    " answer are common, for it looks up all groups. `systemctl restart munge` does no harm to"
    " jobs that run."
)
CLOCKS = Remedy(
    "Munge refuses what was made too long ago or in the future. Look at the clocks of both nodes"
    " (check ntp), mend them, and leave the time to live as it is.",
    "§4.1.1",
)
DECODE = Remedy(
    "A credential that munged itself has made must be readable at once: look in"
    " /var/log/munge/munged.log, and whether a second munged runs with another key."
)
KEY_MODE = Remedy(
    "Whoever has the key can act as any user, root included. Give the file mode 0400 and munged's"
    " user as owner, make a new key with `mungekey`, and bring it to all nodes in a time without"
    " jobs: the old one may be known.",
    disturbs=True,
)
KEY_OWNER = Remedy(
    "Give the file the user that munged runs as (munge, as a rule) and mode 0400: otherwise munged"
    " refuses it when it is started next."
)
KEY_MISSING = Remedy(
    "Bring the file back from another node, owned by munged's user, mode 0400: munged has it in"
    " memory and will not start again without."
)
KEY_SHORT = Remedy(
    "Make a new key with `mungekey` (1024 bits) and bring it to all nodes in a time without jobs:"
    " munged takes none below 32 bytes.",
    disturbs=True,
)
KEY_NEWER = Remedy(
    "If the key was changed, `systemctl restart munge` on all nodes in one go: munged reads it when"
    " it starts, and nodes with the old and the new key refuse each other."
)
SAME_KEY = Remedy(
    "Bring the key of the other nodes to this one (owner munge, mode 0400), and"
    " `systemctl restart munge` there. Say `same_key = no` for nodes that belong to no cluster."
)
SAME_IDS = Remedy(
    "Give the user and group munge the same numbers on all nodes, with munged stopped meanwhile,"
    " and then change the owner of its files."
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
    values: dict[str, str] = {}
    for line in text.splitlines()[:60]:
        name, _, value = line.partition(":")
        values.setdefault(name.strip(), value.strip())
    said = re.fullmatch(r"([\w ]{2,60}) \(([0-9]{1,3})\)", values.get("STATUS", ""))
    if not said:
        lines = text.strip().splitlines()
        last = lines[-1].strip()[:300] if lines else "no word"
        if status == "124" or "Timed-out" in last:
            return fail("works", "munged does not answer within 5 s", STUCK)
        return unknown("works", f"what unmunge said is not understood: {last}")
    if said[2] == "0":
        ciphers = " and ".join(
            word.split(" ")[0] for word in (values.get("CIPHER", ""), values.get("MAC", "")) if word
        )
        return ok(
            "works", f"munged makes and reads credentials{f' ({ciphers})' if ciphers else ''}"
        )
    made, read = (_seconds(values.get(key, "")) for key in ("ENCODE_TIME", "DECODE_TIME"))
    if said[2] in ("15", "16") and made is not None and read is not None:
        life = f", time to live {values['TTL'][:9]} s" if values.get("TTL") else ""
        way = f"read {read - made} s after it was made" if read >= made else ""
        way = way or f"made {made - read} s later than it was read, by the clocks"
        return fail("works", f"{said[1]}: {way}{life}", CLOCKS)
    return fail("works", f"a credential made here is refused here: {said[1]}", DECODE)


def _seconds(text: str) -> int | None:
    found = re.search(r"\(([0-9]{1,12})\)$", text)
    return int(found[1]) if found else None


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


def compare(
    facts: Mapping[str, Facts], options: Mapping[str, Options]
) -> Iterator[tuple[str, Finding]]:
    """Nodes whose key, or whose munged's user, differs from that of most nodes of the cluster."""
    for kinds in _kinds(facts, {n for n, o in options.items() if o.same_key}, _digest):
        most = len(kinds[0])
        for kind in kinds if len(kinds) > 1 and len(kinds[1]) == most else kinds[1:]:
            others = f"{most} nodes" if len(kind) < most else "as many other nodes"
            for node in kind:
                message = f"the key differs from that of {others}: each refuses the other's"
                yield node, fail("same_key", f"{message} credentials", SAME_KEY)
    for kinds in _kinds(facts, {n for n, o in options.items() if o.same_ids}, _ids):
        for kind in kinds[1:]:
            for node in kind:
                ids, usual = _ids(facts[node]), _ids(facts[kinds[0][0]])
                message = f"munged runs as {ids}, as {usual} on {len(kinds[0])} nodes"
                yield node, warn("same_ids", message, SAME_IDS)


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
    "same_ids": Code("The daemon's user and group against those of other nodes.", (SAME_IDS,)),
}

CHECK = Check(
    title="Credentials and the key of Munge",
    options=Options(),
    judge=judge,
    codes=CODES,
    probe=PROBE,
    probe_options=("key", "socket", "same_key"),
    root_adds="who may read munge's key, and whether it is the same on all nodes",
    limit=20,
    compare=compare,
)
