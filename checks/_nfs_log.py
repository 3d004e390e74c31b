"""What is known of NFS without asking a server: the kernel's log, its counters, own exports."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from clustercheck.check import Facts, Finding, Quantity, fail, ok, warn

from ._mounts import plain
from ._nfs_mount import Seen, host_of, state_of
from ._nfs_options import Options
from ._nfs_remedies import FIND_LOSS, SQUASH_ROOT, TRUST_ROOT, WAKE_SERVER
from ._nfs_word import lines_of, whole

SILENT = re.compile(
    r"^\[ *([0-9]{1,12})(?:\.[0-9]+)?\].*server (\S+?),? (?:not responding|timed out)"
)
# "/export/home  192.0.2.0/24(sync,…)": one client a line, a long path on a line of its own
EXPORT = re.compile(r"^(\S+)?\s+(\S+)\(([^)]*)\)$")


def judge_log(facts: Facts, seen: Iterable[Seen], options: Options) -> Iterator[Finding]:
    """Servers that answer now, and did not at times."""
    uptime = whole(facts["uptime"].partition(".")[0])
    answering = {
        name
        for mount in seen
        if state_of(facts, mount.number) == "answers"
        for name in (mount.server, host_of(mount.mount.source))
    }
    silent: Counter[str] = Counter()
    for line in lines_of(facts.get("kernel_log", "")):
        match = SILENT.match(line)
        if match and match[2] in answering:
            age = 0 if uptime is None else uptime - int(match[1])
            if age <= options.log_hours * 3600:
                silent[match[2]] += 1
    for server, count in silent.items():
        times = "once" if count == 1 else f"{count} times"
        message = (
            f"the server {server} answers, and was silent {times} in the last"
            f" {options.log_hours} h by the kernel's log"
        )
        yield warn("log", message, WAKE_SERVER)


def judge_traffic(facts: Facts, seen: Iterable[Seen], options: Options) -> Iterator[Finding]:
    """Requests that had to be sent again, since the mount was made."""
    sent = {}
    for line in lines_of(facts["traffic"]):
        words = line.split(" ", 2)
        numbers = [whole(word) for word in words[:2]]
        if len(words) == 3 and numbers[0] is not None and numbers[1] is not None:
            sent[words[2]] = (numbers[0], numbers[1])
    for mount in seen:
        asked, transmissions = sent.get(mount.places[0], (0, 0))
        again = transmissions - asked
        percent = 100 * again / asked if asked else 0.0
        if again >= 10 and percent >= options.retrans_percent:
            message = (
                f"{mount.name}: {percent:.1f} % of the requests were sent again ({again} of"
                f" {asked} since it was mounted), should be below {options.retrans_percent:g} %"
            )
            yield warn("retrans", message, FIND_LOSS, value=Quantity(round(percent, 2), "%"))


def judge_exports(facts: Facts, options: Options) -> Iterator[Finding]:
    """Where this node is a server itself: exports that treat root otherwise than the site wants."""
    trusted: list[str] = []
    squashed: list[str] = []
    total = 0
    path = ""
    for line in lines_of(facts["exports"]):
        match = EXPORT.match(line.rstrip())
        if match is None:
            path = line.strip() or path
            continue
        path = plain(match[1] or path)
        words = match[3].split(",")
        total += 1
        as_root = "no_root_squash" in words and "all_squash" not in words
        (trusted if as_root else squashed).append(f"{path} to {match[2]}")
    if trusted and options.root_squash == "on":
        message = f"exported without root_squash, should be with it: {'; '.join(trusted)}"
        yield fail("exports", message, SQUASH_ROOT)
    elif squashed and options.root_squash == "off":
        message = f"exported with root_squash, should be without it: {'; '.join(squashed)}"
        yield fail("exports", message, TRUST_ROOT)
    elif total:
        yield ok("exports", f"this node's own exports: {total}, with root_squash: {len(squashed)}")
