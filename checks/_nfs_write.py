"""What an empty file in a mount shows: who may write, whose the file is, what became of root.

chmod of a file that root made succeeds under root_squash too, for nobody owns it: only the owner
after touch, and chown, tell a squashed root. What root is, says nothing about ordinary users.
"""

from collections.abc import Iterator

from clustercheck.check import Facts, Finding, fail, ok, skip, unknown, warn

from ._nfs_mount import Seen, state_of, value_of
from ._nfs_options import Options
from ._nfs_remedies import (
    CLOSE_WRITING,
    FREE_SPACE,
    LET_WRITE,
    MAP_IDS,
    RAISE_QUOTA,
    REMOVE_FILE,
    SEE_LOGS,
    SQUASH_ROOT,
    TRUST_ROOT,
    WAKE_SERVER,
)
from ._nfs_word import whole

DENIED = ("Permission denied", "Operation not permitted")
NOBODY = {"65534": "nobody", "4294967294": "nobody", "99": "nobody"}


def judge_write(facts: Facts, seen: Seen, options: Options) -> Iterator[Finding]:
    """What was found out about writing to one mount."""
    number = seen.number
    if state_of(facts, number) != "answers":
        return
    wanted = any(place in options.writable for place in seen.places)
    unwanted = any(place in options.read_only for place in seen.places)
    if "ro" in seen.mount.options:
        if wanted:
            yield fail("read_only", f"{seen.name} is mounted ro, should be writable", LET_WRITE)
        return
    by_user, by_root = facts.get(f"touch@{number}"), facts.get(f"root.touch@{number}")
    if by_user is None and by_root is None:
        if not options.write:
            if wanted or unwanted:
                yield unknown("write", f"{seen.name}: writing was not tried (write = no)")
        else:
            yield unknown("write", f"{seen.name}: the probe did not say what came of writing")
        return
    place = facts.get(f"place@{number}", "") or seen.places[0]
    tried = by_user if by_user is not None else by_root or ""
    if unwanted and "done" in (by_user, by_root):
        who = "the login user" if by_user == "done" else "root"
        message = f"{place} can be written to by {who}, should be read-only"
        yield fail("read_only", message, CLOSE_WRITING)
    if tried == "done":
        if by_user is not None:
            yield from _as_user(facts, seen, place)
    elif tried in DENIED:
        yield from _denied(facts, seen, place, by_user is not None, wanted, unwanted)
    else:
        yield from _refused(tried, place, by_user is not None, wanted, unwanted)
    if by_root is not None and by_root != tried or by_root in ("done", *DENIED):
        yield from _as_root(facts, seen, place, options)
    yield from _left(facts, number, place)


def _as_user(facts: Facts, seen: Seen, place: str) -> Iterator[Finding]:
    number, uid = seen.number, facts["uid"]
    owner, chmod = facts[f"owner@{number}"], facts[f"chmod@{number}"]
    home = facts.get(f"home@{number}", "")
    cause = "all_squash"
    if seen.version != "3":
        cause = "id mapping or all_squash"
    if whole(owner) is None:
        yield unknown("owner", f"{place}: the owner of a new file could not be read")
    elif owner != uid:
        who = NOBODY.get(owner, "another user")
        message = f"{place}: a file of user {uid} belongs to {owner} ({who}): {cause}"
        yield fail("owner", message, MAP_IDS)
    elif whole(home) is not None and home != uid:
        who = NOBODY.get(home, "another user")
        message = f"{seen.name}: the home of user {uid} belongs to {home} ({who}): {cause}"
        yield fail("owner", message, MAP_IDS)
    elif chmod != "done":
        message = f"{place}: user {uid} may not set the mode of a file of its own: {chmod}"
        yield warn("owner", message, MAP_IDS)
    else:
        yield ok("owner", f"{place}: the login user's file belongs to it and obeys chmod")


def _denied(
    facts: Facts, seen: Seen, place: str, as_user: bool, wanted: bool, unwanted: bool
) -> Iterator[Finding]:
    """No right to write: for an ordinary user no fault, unless it should."""
    home = facts.get(f"home@{seen.number}", "")
    if as_user and whole(home) is not None and home != facts["uid"]:
        message = (
            f"{seen.name}: the home of user {facts['uid']} belongs to {home}"
            f" ({NOBODY.get(home, 'another user')}), and that user may not write there"
        )
        yield fail("owner", message, MAP_IDS)
    elif unwanted and as_user:
        yield ok("read_only", f"{place} cannot be written to by the login user, as wanted")
    elif wanted and as_user:
        message = f"{place} cannot be written to by the login user, should be: permission denied"
        yield fail("write", message, LET_WRITE)
    elif wanted:
        message = (
            f"{place}: whether ordinary users can write cannot be tried by root, who is denied"
        )
        yield unknown("write", message, LET_WRITE)
    elif as_user:
        message = f"{place} cannot be written to by the login user, so owners were not looked at"
        yield skip("write", message)


def _refused(
    why: str, place: str, as_user: bool, wanted: bool, unwanted: bool
) -> Iterator[Finding]:
    """Writing failed for another reason than a missing right."""
    if why == "Read-only file system":
        if unwanted:
            yield ok("read_only", f"{place} is read-only, as wanted")
        elif wanted:
            message = f"{place} is exported ro, should be writable: the mount itself is rw"
            yield fail("read_only", message, LET_WRITE)
        else:
            yield skip("write", f"{place} is exported ro: nothing can be written there")
    elif why == "No space left on device":
        message = f"{place}: no space left on device, not even for an empty file"
        yield fail("full", message, FREE_SPACE)
    elif why == "Disk quota exceeded":
        message = f"{place}: the quota of {'the login user' if as_user else 'root'} is used up"
        yield warn("quota", message, RAISE_QUOTA)
    elif why == "hung":
        message = f"{place}: making an empty file did not end within 4 s, though reading answers"
        yield fail("hung", message, WAKE_SERVER)
    else:
        yield fail("broken", f"{place}: an empty file cannot be made: {why}", SEE_LOGS)


def _as_root(facts: Facts, seen: Seen, place: str, options: Options) -> Iterator[Finding]:
    number = seen.number
    touch = facts[f"root.touch@{number}"]
    kerberos = value_of(seen.mount, "sec").startswith("krb5")
    if touch in DENIED and kerberos:
        yield skip("root_squash", f"{place}: root has no right there (Kerberos decides, not uid 0)")
        return
    if touch in DENIED:
        squashed, seen_by = True, "root may not write there"
    elif touch == "done":
        owner, chown = facts[f"root.owner@{number}"], facts[f"root.chown@{number}"]
        if whole(owner) is None or (owner == "0") != (chown == "done"):
            message = (
                f"{place}: a file of root belongs to {owner or '?'} and chown says {chown!r}:"
                " whether root is squashed cannot be told"
            )
            yield unknown("root_squash", message)
            return
        squashed = owner != "0"
        seen_by = f"a file of root belongs to {owner}"
    else:
        return  # a full or read-only file system says nothing about root
    words = f"{place}: root is {'squashed' if squashed else 'not squashed'} ({seen_by})"
    if squashed and options.root_squash == "off":
        yield fail("root_squash", f"{words}, should not be", TRUST_ROOT)
    elif not squashed and options.root_squash == "on":
        yield fail("root_squash", f"{words}, should be", SQUASH_ROOT)
    else:
        yield ok("root_squash", words)


def _left(facts: Facts, number: str, place: str) -> Iterator[Finding]:
    """What of ours is or was in the directory."""
    now = facts.get(f"left@{number}", "")
    if now:
        yield warn("leftover", f"the empty file {now} could not be removed", REMOVE_FILE)
    old = facts.get(f"old@{number}", "").split()
    if old:
        message = f"{place}: left by an earlier run: {', '.join(old)}"
        yield warn("leftover", message, REMOVE_FILE)
    removed = facts.get(f"removed@{number}", "").split()
    if removed:
        words = f"{place}: left by an earlier run, and removed now: {', '.join(removed)}"
        yield ok("leftover", words)
