"""Users can log in: nothing bars them, the home is there, and the shell starts quickly and quietly.

A shell that waits for a module system on a server that is gone keeps everybody out. One that prints
breaks scp, rsync and sftp, which take the text for their own. So the login user's shell is started
once more as ssh and scp start it (again where that was slow), with nothing to read and nothing to
run but `true`. Where it was not SSH that led to the node nothing is started.

What a terminal starts reads more: /etc/profile, and the user's own profile. `start_shell = login`
starts the shell in that way. It is not done unasked, since what such a file starts for a session
(an ssh-agent) would stay on the node.

2 s are what Slurm waits for a user's environment (GetEnvTimeout of slurm.conf), 10 s our own
choice. What is slow because of NFS is the check nfs's, and put down to its failure. Limits are
those of this session: a job has those of slurmd.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le

from clustercheck.check import (
    Check,
    Code,
    Facts,
    Finding,
    Quantity,
    Remedy,
    fail,
    ok,
    option,
    skip,
    unknown,
    warn,
)

from ._login_probe import PROBE

# With these a home does not answer, and the shell with it.
NFS_FAULTS = ("nfs.hung", "nfs.server", "nfs.stale", "nfs.broken", "nfs.absent", "nfs.full")


@dataclass(frozen=True)
class Options:
    nologin: Literal["allow", "warn", "fail"] = option(
        "warn", "what a nologin file is, which keeps all but root out"
    )
    start_shell: Literal["no", "plain", "login"] = option(
        "plain",
        "how the login user's shell is started, to time it and to see what it prints: plain is as"
        " ssh and scp do it, login is as a terminal does, and leaves what the profile starts",
    )
    warn_seconds: Annotated[float, Gt(0)] = option(
        2.0, "time for the start of the shell above which it is a warning", unit="s"
    )
    fail_seconds: Annotated[int, Ge(1), Le(15)] = option(
        10, "time after which it is given up, a failure", unit="s"
    )
    locked_memory: Literal["any", "unlimited"] = option(
        "any", "memory that a session may lock; RDMA wants unlimited"
    )
    open_files: Annotated[int, Ge(0)] = option(
        0, "files that a session must be able to open; 0: any", unit="files"
    )

    def __post_init__(self) -> None:
        if self.warn_seconds > self.fail_seconds:
            lower, upper = self.warn_seconds, self.fail_seconds
            raise ValueError(f"warn_seconds ({lower:g} s) is above fail_seconds ({upper} s)")


LET_IN = Remedy(
    "See who put the file there and why. /run/nologin is systemd's: it goes when the boot is"
    " complete (`systemctl list-jobs`, `systemctl status systemd-user-sessions`), and comes with a"
    " planned shutdown (`shutdown -c` calls it off). Where users are kept out on purpose, say"
    " `nologin = allow`.",
    "§4.4",
)
MAKE_HOME = Remedy(
    "See whether the file system with the homes is mounted, whether the user's entry"
    " (`getent passwd USER`) names the right directory, and who owns it. pam_mkhomedir makes homes"
    " at the first login where that is wanted.",
    "§4.4",
)
WAKE_HOME = Remedy(
    "Look at the file system that holds the home (`findmnt -T HOME`) and at its server. Keys of SSH"
    " are read from there: users cannot log in until it answers.",
    "§4.4",
)
FIND_SLOWNESS = Remedy(
    "See which start-up file takes the time: for bash, `PS4='+ $BASH_SOURCE:$LINENO ' bash -lxc"
    " true` stops at the line that waits. Usual causes are /etc/profile.d of a module system on a"
    " server that is slow or gone, `conda init`, and a directory service (`getent passwd USER`).",
    "§4.4",
)
BE_QUIET = Remedy(
    "Print only in interactive shells: in bash and sh put `case $- in *i*) ;; *) return ;; esac`"
    " before what prints in .bashrc or /etc/bash.bashrc, and messages to all into /etc/motd.",
)
LET_END = Remedy(
    "Look for `exit`, `exec` or an error in /etc/profile, /etc/profile.d and the user's own"
    " start-up files.",
)
RAISE_LIMIT = Remedy(
    "Raise it in /etc/security/limits.d for sessions, and for jobs in slurmd's unit"
    " (LimitMEMLOCK=infinity, LimitNOFILE=), which a job inherits; with PropagateResourceLimits in"
    " slurm.conf jobs take the limits of where they were submitted.",
    disturbs=True,
)

TIME = re.compile(r"([0-9]{1,3}) ([0-9]{1,12}(?:\.[0-9]{1,9})?) ([0-9]{1,12}(?:\.[0-9]{1,9})?)")


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    yield from _barred(facts, options)
    yield from _home(facts)
    if options.start_shell == "no":
        pass
    elif facts["way"] != "ssh":
        yield skip("start", "the shell was not started: it was not SSH that led here")
    elif not facts["shell"].startswith("/"):
        yield unknown("start", "the user's shell is not known")
    else:
        yield from _start(facts, options)
        yield from _noise(facts)
    yield from _limits(facts, options)


def _barred(facts: Facts, options: Options) -> Iterator[Finding]:
    if not re.fullmatch("[0-9]", facts["nologins"]):
        yield unknown("nologin", "whether users are kept out cannot be read")
        return
    files = list(facts.at("nologin").values())
    if facts["nologins"] == "0" and not files:
        yield ok("nologin", "no file keeps users out")
    for line in files:
        path, _, text = line.partition(" ")
        said = f': "{text.strip()[:200]}"' if text.strip() else ""
        message = f"{path} keeps all users but root out{said}"
        if options.nologin == "allow":
            yield ok("nologin", f"{message}, as the site allows")
        else:
            yield (fail if options.nologin == "fail" else warn)("nologin", message, LET_IN)


def _home(facts: Facts) -> Iterator[Finding]:
    home = facts["home"]
    if not home:
        yield unknown("home", "the session names no home")
        return
    state = facts["home_state"]
    if state == "hung":
        yield fail("home", f"{home} gives no answer within 4 s", WAKE_HOME)
    elif state.startswith(("No such file", "Not a directory")):
        yield warn("home", f"the home {home} is not there", MAKE_HOME)
    elif state != "directory":
        yield warn("home", f"the home {home} cannot be used: {state or 'no reason'}", MAKE_HOME)
    elif facts["home_writable"] == "yes":
        yield ok("home", f"the home {home} is there, and writable")
    elif facts["home_writable"] == "no":
        owner = facts["home_owner"]
        whose = "" if owner == facts["uid"] else f" (it belongs to user {owner})"
        yield warn("home", f"the home {home} is not writable by its user{whose}", MAKE_HOME)
    else:
        yield unknown("home", f"whether the home {home} is writable is not known")


def _took(text: str) -> tuple[str, float] | None:
    """Exit status and seconds of a start; None for what is none."""
    match = TIME.fullmatch(text)
    return (match[1], max(0.0, float(match[3]) - float(match[2]))) if match else None


def _start(facts: Facts, options: Options) -> Iterator[Finding]:
    shell = facts["shell"]
    hung = "hung@start" in facts
    first = None if hung else _took(facts["start"])
    if hung or (first and first[0] in ("124", "137")):
        message = f"{shell} did not start within {options.fail_seconds} s{_waiting(facts)}"
        yield fail("start", message, FIND_SLOWNESS)
        return
    if first is None:
        yield unknown("start", f"how long {shell} takes to start could not be measured")
        return
    status, seconds = first
    again = _took(facts.get("again", ""))
    if again and again[0] == status:
        seconds = min(seconds, again[1])
    value = Quantity(round(seconds, 2), "s")
    if status != "0":
        message = f"{shell} ended with status {status} when it was to start and do nothing"
        yield warn("status", message, LET_END)
    if seconds > options.warn_seconds:
        message = f"{shell} took {seconds:.1f} s to start, should be {options.warn_seconds:g} s"
        yield warn("start", f"{message} or less", FIND_SLOWNESS, value=value)
    elif status == "0":
        yield ok("start", f"{shell} starts in {seconds:.2f} s", value=value)


def _waiting(facts: Facts) -> str:
    """What the start waits for, in words."""
    words = facts.get("youngest", "").split(" ", 3)
    if len(words) != 4 or not re.fullmatch("[0-9]{1,9}", words[0]):
        return ""
    kernel = "" if words[2] == "0" else f", in {words[2][:60]}"
    return f"; it waits for {words[3][:60]} (process {words[0]}, state {words[1][:3]}{kernel})"


def _noise(facts: Facts) -> Iterator[Finding]:
    if "hung@start" in facts or facts["start"].startswith(("124 ", "137 ")):
        return  # that has been said
    if "hung@noise" in facts:
        message = "the shell leaves a process behind that holds its output: ssh and scp do not end"
        yield warn("noise", message, BE_QUIET)
        return
    text, _, status = facts["noise"].rpartition("status ")
    if not status:
        text = facts["noise"]
    if text.strip():
        first = text.strip().split("\n")[0]
        message = f"the shell prints {first[:80]!r} when scp, rsync or sftp start it"
        yield warn("noise", f"{message}, should print nothing", BE_QUIET)
    elif status in ("124", "137"):
        yield unknown("noise", "what the shell prints is not known: it took over 5 s to start")
    elif re.fullmatch("[0-9]{1,3}", status):
        yield ok("noise", "the shell prints nothing that would spoil scp or rsync")
    else:
        yield unknown("noise", "what the shell prints could not be read")


def _limits(facts: Facts, options: Options) -> Iterator[Finding]:
    if options.locked_memory == "unlimited":
        lock = facts["locked_memory"]
        if lock == "unlimited":
            yield ok("locked_memory", "a session may lock any memory")
        elif re.fullmatch("[0-9]{1,18}", lock):
            message = f"a session may lock {int(lock) // 1024} KiB of memory, should be unlimited"
            yield fail("locked_memory", message, RAISE_LIMIT)
        else:
            yield unknown("locked_memory", "how much memory may be locked cannot be read")
    if options.open_files:
        files = facts["open_files"]
        if files == "unlimited":
            yield ok("open_files", "a session may open any number of files")
        elif not re.fullmatch("[0-9]{1,18}", files):
            yield unknown("open_files", "how many files may be open cannot be read")
        elif int(files) < options.open_files:
            message = f"a session may open {int(files)} files, should be {options.open_files}"
            yield warn("open_files", f"{message} or more", RAISE_LIMIT)
        else:
            yield ok("open_files", f"a session may open {int(files)} files")


CHECK = Check(
    title="Logging in: nothing bars users, the home, time and noise of the shell",
    stale="time",
    options=Options(),
    judge=judge,
    codes={
        "nologin": Code("Whether a file keeps all users but root out.", (LET_IN,)),
        "home": Code(
            "Whether the login user's home is there, answers and can be written to.",
            (MAKE_HOME, WAKE_HOME),
        ),
        "start": Code(
            "How long the login user's shell takes to start as at a login; where it is slow, the"
            " faster of two starts counts.",
            (FIND_SLOWNESS,),
        ),
        "status": Code("The shell's start-up files end it, or leave an error.", (LET_END,)),
        "noise": Code(
            "Whether a shell that nobody sits at prints to its standard output.", (BE_QUIET,)
        ),
        "locked_memory": Code(
            "Memory that a session may lock (locked_memory = unlimited).", (RAISE_LIMIT,)
        ),
        "open_files": Code("Files that a session may open (open_files = …).", (RAISE_LIMIT,)),
    },
    probe=PROBE,
    probe_options=("start_shell", "warn_seconds", "fail_seconds"),
    follows=dict.fromkeys(("home", "start", "status", "limit"), NFS_FAULTS),
    limit=50,
)
