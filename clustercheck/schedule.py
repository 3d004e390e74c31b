"""The command `schedule`: what starts a sweep each night, for systemd or for cron."""

import getpass
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clustercheck import planning
from clustercheck.errors import UsageError
from clustercheck.mail_options import Options
from clustercheck.output import check_writable, write_atomically
from clustercheck.planning import Wanted
from clustercheck.settings import NOBODY
from clustercheck.sweep import cluster_of

SYSTEM_UNITS = Path("/etc/systemd/system")
USER_UNITS = Path("~/.config/systemd/user")
CRON_FOLDER = Path("/etc/cron.d")
RUNS_SYSTEMD = Path("/run/systemd/system")  # is there where systemd runs (sd_booted(3))

NICE = 10
TO_END = 240  # seconds beyond --max-time for history and page, and then a mail has its own

_TIME = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
_USER = re.compile(r"[a-z_][a-z0-9_.-]{0,31}\$?")


@dataclass(frozen=True)
class Asked:
    """What the command line asks for.

    at: "03:00". user: who is to run it; "" for who asks. cron: True, or False for systemd; None
    for what this machine has. max_seconds: of the asking. install: write it.
    """

    at: str
    user: str
    cron: bool | None
    max_seconds: int
    install: bool


@dataclass(frozen=True)
class Job:
    """A sweep as it is to be started.

    words: the command. seconds: after which it must have ended by itself. mails: somebody is told.
    """

    name: str
    cluster: str
    words: tuple[str, ...]
    hour: int
    minute: int
    seconds: int
    mails: bool


def schedule(asked: Asked, inventory: Path | None) -> int:
    """Print it, or write it and say what to do next."""
    job = _job(asked, inventory)
    by_cron = not RUNS_SYSTEMD.is_dir() if asked.cron is None else asked.cron
    is_root = os.geteuid() == 0
    me = getpass.getuser()
    user = asked.user or me
    if user != me and not is_root:
        raise UsageError("--user: only root may have another user do it; run this as that user")
    if not _USER.fullmatch(user):
        raise UsageError(f"--user: {user!r} is no user's name")
    files = _files(job, user, by_cron, is_root)
    if not asked.install:
        sys.stdout.write("\n".join(f"# {path}\n{text}" for path, text in files.items()))
    elif by_cron and not is_root:
        raise UsageError("--install: another's crontab is not edited; add the line by `crontab -e`")
    else:
        _install(files)
    shown = _next_steps(job, user, by_cron, is_root, asked.install)
    print("\n".join(shown), file=sys.stderr)
    return 0


def _job(asked: Asked, inventory: Path | None) -> Job:
    at = _TIME.fullmatch(asked.at)
    if not at:
        raise UsageError(f"--at: {asked.at!r} is not a time of the day; write such as 03:00")
    if inventory is None:
        raise UsageError("schedule a sweep of what? Give the inventory with -i")
    found = planning.choose_all(Wanted(inventory)).inventory  # tells what is wrong with it now
    cluster = cluster_of(found.options("sweep", NOBODY), inventory)
    mails = [found.options("mail", node) for node in (NOBODY, *found.nodes)]
    path = os.path.abspath(inventory)
    if not path.isprintable():
        raise UsageError(f"{path!r}: cannot be written in a line; call the inventory otherwise")
    return Job(
        name=f"clustercheck-{re.sub(r'[^A-Za-z0-9_-]+', '-', cluster).strip('-') or 'sweep'}",
        cluster=cluster if cluster.isprintable() else repr(cluster),
        words=(*command(), "sweep", "-i", path, "--max-time", str(asked.max_seconds)),
        hour=int(at[1]),
        minute=int(at[2]),
        seconds=asked.max_seconds + TO_END + int(mails[0].patience),
        mails=any(_told(mail) for mail in mails),
    )


def _told(mail: Options) -> bool:
    return bool(mail.to or mail.chat)


def command() -> tuple[str, ...]:
    """How this program is started, by its whole path."""
    own = shutil.which(sys.argv[0])
    if own and Path(own).name == "clustercheck":
        return (os.path.abspath(own),)
    return (sys.executable, "-m", "clustercheck")


def _files(job: Job, user: str, by_cron: bool, is_root: bool) -> Mapping[Path, str]:
    if by_cron:
        # a point in its name, and cron would pass the file over
        where = CRON_FOLDER / job.name if is_root else Path(f"for the crontab of {user}")
        return {where: cron_lines(job, user if is_root else "")}
    folder = SYSTEM_UNITS if is_root else USER_UNITS.expanduser()
    return {
        folder / f"{job.name}.service": service(job, user if is_root else ""),
        folder / f"{job.name}.timer": timer(job),
    }


def service(job: Job, user: str) -> str:
    """The unit that sweeps once. user: "" in a user's own systemd."""
    lines = ["[Unit]", f"Description=clustercheck: the sweep of {_plain(job.cluster)}"]
    if user:
        lines += ["Wants=network-online.target", "After=network-online.target"]
    lines += ["", "[Service]", "Type=oneshot"]
    lines += [f"User={user}"] if user else []
    lines += [
        f"ExecStart={' '.join(_quoted(word) for word in job.words)}",
        "# What is found on nodes (1, 2, 3) is no failure of this unit; a mail not sent (69) is.",
        "SuccessExitStatus=1 2 3",
        "# The sweep ends by itself; this is for the case that it does not.",
        f"TimeoutStartSec={job.seconds}",
        "TimeoutStopSec=120",
        "KillMode=mixed",
        f"Nice={NICE}",
        "UMask=0077",
    ]
    return "\n".join(lines) + "\n"


def timer(job: Job) -> str:
    """The unit that starts it each night, and after a night when the machine was off."""
    return "\n".join(
        [
            "[Unit]",
            f"Description=clustercheck: the sweep of {_plain(job.cluster)}, each night",
            "",
            "[Timer]",
            f"OnCalendar=*-*-* {job.hour:02}:{job.minute:02}:00",
            "Persistent=true",
            "",
            "[Install]",
            "WantedBy=timers.target",
            "",
        ]
    )


def cron_lines(job: Job, user: str) -> str:
    """Lines for /etc/cron.d, or for a user's own crontab where user is ""."""
    limit = ("timeout", "-k", "120", str(job.seconds))
    words = shlex.join(("nice", "-n", str(NICE), *limit, *job.words))
    words = words.replace("%", r"\%")  # else the end of the line to cron
    # What goes to standard error is still mailed by cron: what keeps the sweep from being told of.
    quiet = " >/dev/null" if job.mails else ""
    as_user = f" {user}" if user else ""
    return f"{job.minute} {job.hour} * * *{as_user} {words}{quiet}\n"


def _install(files: Mapping[Path, str]) -> None:
    """Write what is not there yet; what is there and other is never touched."""
    for path, text in files.items():
        try:
            old = path.read_text("utf-8", "replace") if path.exists() else text
        except OSError as error:
            raise UsageError(f"--install: {path} cannot be read: {error.strerror}") from None
        if old != text:
            raise UsageError(
                f"--install: {path} is there and says something else; nothing was written. Compare"
                " it with what this command prints without --install, and remove it first"
            )
    for path in files:
        if path.parent == USER_UNITS.expanduser():
            path.parent.mkdir(parents=True, exist_ok=True)
        check_writable(path)
    for path, text in files.items():
        known = path.exists()
        if not known:
            write_atomically(path, text)
        print(f"{path} {'is there already' if known else 'written'}", file=sys.stderr)


def _next_steps(job: Job, user: str, by_cron: bool, is_root: bool, installed: bool) -> list[str]:
    me = getpass.getuser()
    as_user = ("sudo", "-u", user) if user != me else ()
    again = shlex.join((*as_user, *job.words[: job.words.index("--max-time")], "--print-mail"))
    lines = []
    if not installed and (is_root or not by_cron):
        lines.append("Nothing was written; with --install it is.")
    lines.append(f"Try it first, as the user {user}: {again}")
    if not by_cron:
        control = ("systemctl",) if is_root else ("systemctl", "--user")
        lines.append("Then start it:")
        lines.append(f"  {shlex.join((*control, 'daemon-reload'))}")
        lines.append(f"  {shlex.join((*control, 'enable', '--now', f'{job.name}.timer'))}")
        if not is_root:
            lines.append(f"  loginctl enable-linger {user}    so that it also runs with you away")
        log = ("journalctl", "-u") if is_root else ("journalctl", "--user", "-u")
        lines.append(f"What it said: {shlex.join((*log, f'{job.name}.service'))}")
    elif not is_root:
        lines.append("Then add the line by `crontab -e`.")
    if not job.mails:
        lines.append(
            "Nobody gets a mail yet: set mail.to below [sweep] in the inventory."
            if not by_cron
            else "cron mails the whole text each night: set mail.to below [sweep] for what changed."
        )
    lines.append(
        f"At night there is no ssh-agent: the user {user} needs a key without a passphrase."
    )
    return lines


def _plain(text: str) -> str:
    """A text in a description."""
    return text.replace("%", "%%")


def _quoted(word: str) -> str:
    """A word of ExecStart (systemd.service(5))."""
    word = word.replace("%", "%%").replace("$", "$$")
    if re.fullmatch(r"[A-Za-z0-9_./:=@%+,$-]+", word):
        return word
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'
