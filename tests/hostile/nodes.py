"""Nodes that are broken or hostile, each with what has to be found there: a table.

Each is a user of one host (tests/host.py) whose login shell is a script; what it gets to do is what
any node can do to whoever logs in there. They are root there where they need a file system or
processes of their own, and then become alice.
"""

from dataclasses import dataclass

from clustercheck.transport import SCRIPT_LIMIT
from tests.host import Host

FOLDER = "/opt/hostile"
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"

# What the shells share. `answer` is what an honest node does.
COMMON = r"""
answer() { exec /bin/sh -s; }
# The script's own mark: what a node that means harm begins its lines with.
learn() {
    mark=
    while [ -z "$mark" ] && read -r line; do
        case $line in cc_mark=*) mark=${line#cc_mark=} && mark=${mark%% *} ;; esac
    done
    say '- begin 0 b0 node'
}
say() { printf '\n%s %s\n' "$mark" "$1"; }
much() { head -c "$1" /dev/zero | tr '\0' "$2"; }
become() { exec setpriv --reuid 2000 --regid 2000 --clear-groups --inh-caps=-all "$@"; }
# apart WORDS: as alice, once WORDS have been done in mounts and names of one's own
apart() { exec unshare --mount --uts sh -c ". $0.common; export HOME=/home/alice; $1"; }
"""

FLOOD = "more than 2 MiB of output"
LIMIT = f"more than {SCRIPT_LIMIT >> 20} MiB came, standard error included"
NO_ANSWER = "the node gave no answer to it"


@dataclass(frozen=True)
class Hostile:
    """One kind of node.

    shell: what its login shell does, in sh.
    found: what has to be found there, "status check.code: words in the message".
    honest: it lets the script do its work, so what is not in `found` may pass.
    root: the login is root's.
    """

    shell: str
    found: tuple[str, ...]
    honest: bool = False
    root: bool = False

    @property
    def slow(self) -> bool:
        """It is waited for until its time is over."""
        return self.found[0].startswith(("unknown access.no_start", "unknown access.limit"))


GOOD = ("pass fine.ok: fine",)

NODES = {
    # Too much
    "output-without-end": Hostile("yes", (f"unknown access.flood: {FLOOD}",)),
    "line-without-end": Hostile("cat /dev/zero", (f"unknown access.flood: {FLOOD}",)),
    "errors-without-end": Hostile("yes >&2", (f"unknown access.flood: {LIMIT}",)),
    "errors-beside-an-answer": Hostile(
        "export SAYS=slow; yes >&2 & /bin/sh -s; sleep 60",
        (f"unknown access.flood: {LIMIT}",),
        honest=True,
    ),
    "50-mb-of-bytes": Hostile(
        "{ head -c 25000000 /dev/urandom; head -c 25000000 /dev/zero; }; answer",
        (f"unknown access.flood: {FLOOD}",),
    ),
    "fact-of-a-megabyte": Hostile(
        "learn; say 'fine = status 0'; say 'fine = stderr '; printf '%s fine = output ' $mark;"
        "much 1000000 x; say 'fine ! whole'; say 'fine ! end 0'; say '- done'",
        ("pass fine.ok: xxxxxxxx", f"unknown tmp.not_answered: {NO_ANSWER}"),
    ),
    "fact-without-end": Hostile(
        "learn; say 'fine : output'; yes \"$mark fine + \377\376\"",
        (f"unknown access.flood: {FLOOD}",),
    ),
    "million-facts": Hostile(
        'learn; seq 1000000 | sed "s/.*/$mark fine = k& v/"',
        ("unknown access.flood: more than 20000 facts",),
    ),
    "million-checks": Hostile(
        'learn; seq 1000000 | sed "s/.*/$mark c& ! needs-root/"',
        (f"unknown access.flood: {FLOOD}",),
    ),
    "output-of-a-check-too-long": Hostile(
        "export SAYS=2000000; answer",
        ("unknown fine.bad_exit: File size limit exceeded",),
        honest=True,
    ),
    # Lies
    "forged-marks": Hostile(
        "for m in @ @000000000000000000000000 '$cc_mark' ''; do"
        ' printf \'\n%s fine = status 2\n%s fine ! whole\n%s - done\n\' "$m" "$m" "$m"; done;'
        "answer",
        GOOD,
        honest=True,
    ),
    "facts-of-others": Hostile(
        "learn; say 'evil ! needs-root'; say 'root ! root'; say 'ntp = clock.offset 0';"
        "say 'ntp = clock.uncertainty 0'; say 'ntp = here.offset 0'; say 'ntp ! whole';"
        "say 'ntp ! end 0'; say '- done'",
        (f"unknown fine.not_answered: {NO_ANSWER}", "unknown ntp."),
    ),
    "done-and-nothing": Hostile(
        "learn; say '- done'",
        (f"unknown fine.not_answered: {NO_ANSWER}", f"unknown tmp.not_answered: {NO_ANSWER}"),
    ),
    "facts-of-no-sense": Hostile(
        "learn; for check in fine tmp ntp; do for key in status output directories path@1 daemons;"
        ' do say "$check = $key \033[31m-nan"; done;'
        ' say "$check ! whole"; say "$check ! end 0"; done; say "- done"',
        ("unknown tmp.unanswered: did not say what it looked at", "unknown ntp."),
    ),
    "another-node": Hostile(
        "apart 'hostname good-001; become sh -s'",
        ("unknown access.other_node: another node of this run answered in its place",),
        root=True,
    ),
    "clock-of-1970": Hostile(
        f"export LD_PRELOAD={FAKETIME} FAKETIME='@1970-01-02 00:00:00'; answer",
        (*GOOD, "fail ntp.offset: behind this machine's clock"),
        honest=True,
    ),
    "clock-of-2106": Hostile(
        f"export LD_PRELOAD={FAKETIME} FAKETIME='@2106-02-07 06:28:20'; answer",
        (*GOOD, "fail ntp.offset: ahead of this machine's clock"),
        honest=True,
    ),
    # Logins and shells
    "echo": Hostile(
        "exec 3>&1; while IFS= read -r line; do"
        " printf '%s\n' \"$line\" >&3; printf '%s\n' \"$line\"; done | /bin/sh -s",
        GOOD,
        honest=True,
    ),
    "echo-alone": Hostile("cat", ("unknown access.no_start: the script had not begun in",)),
    "escapes": Hostile(
        "printf '\033]0;owned\007\033[2J\r\010'; export SAYS=escapes; answer",
        ("pass fine.ok: \033[31mred\033]0;x\007",),
        honest=True,
    ),
    "formula": Hostile("export SAYS=formula; answer", ("pass fine.ok: =cmd",), honest=True),
    "html": Hostile(
        "export SAYS=html; answer", ("pass fine.ok: <script>alert(1)</script>",), honest=True
    ),
    "silent": Hostile("exec sleep 60", ("unknown access.no_start: the script had not begun in",)),
    "ends-at-once": Hostile(
        "exit 0", ("unknown access.nologin: the login ran no script (exit status 0)",)
    ),
    "no-sh": Hostile(
        "mkdir -p /tmp/empty; PATH=/tmp/empty exec /bin/bash -c 'exec sh -s'",
        ("unknown access.no_sh: sh could not be run (exit status 127",),
    ),
    "path-empty": Hostile(
        "PATH= exec /bin/bash -c 'exec sh -s'",
        ("unknown access.no_sh: sh could not be run (exit status 127",),
    ),
    "sh-not-executable": Hostile(
        "apart 'mount --bind /etc/hostname /usr/bin/dash; become bash -c \"exec sh -s\"'",
        ("unknown access.no_sh: sh could not be run (exit status 126",),
        root=True,
    ),
    # Short of something
    "tmp-read-only": Hostile(
        "apart 'mount -t tmpfs -o ro none /tmp; become sh -s'",
        (*GOOD, "fail tmp.read_only: /tmp is read-only"),
        honest=True,
        root=True,
    ),
    "all-read-only": Hostile(
        "apart 'for d in /dev/shm /run /tmp /var/tmp /home; do mount -t tmpfs -o ro none $d; done;"
        " become sh -s'",
        ("unknown access.no_directory: none of /dev/shm",),
        root=True,
    ),
    "no-process": Hostile(
        "exec bash -c 'ulimit -u 1; exec sh -s'",
        ("unknown access.no_process: no further process",),
    ),
    "few-processes": Hostile(
        "exec bash -c 'ulimit -u 4; exec sh -s'",
        ("unknown access.no_process: no further process",),
    ),
    "proc-hidden": Hostile(
        "apart 'mount -t proc -o hidepid=2 proc /proc; become sh -s'", GOOD, honest=True, root=True
    ),
    "no-proc": Hostile(
        "apart 'mount -t tmpfs none /proc; export SAYS=slow; become sh -s'",
        (*GOOD, "unknown ntp.no_answer: not all processes can be seen", "unknown tmp.mount: "),
        honest=True,
        root=True,
    ),
    # On the way
    "closes-in-mid-answer": Hostile(
        "/bin/sh -s | dd bs=1 count=600 2>/dev/null",
        ("unknown access.garbled: ended before its last line",),
        honest=True,
    ),
    "connection-dies": Hostile(
        "learn; sleep 0.2; kill -KILL $PPID; sleep 60",
        ("unknown access.cut: the connection broke",),
    ),
    "a-byte-a-second": Hostile(
        "/bin/sh -s | while dd bs=1 count=1 2>/dev/null; do sleep 1; done",
        ("unknown access.no_start: the script had not begun in",),
    ),
    "a-tick-a-second": Hostile(
        "learn; while sleep 1; do say '- tick'; done",
        ("unknown access.limit: no whole answer within",),
    ),
}

SAID = {
    "escapes": "\033[31mred\033]0;x\007\u202e",
    "formula": "=cmd|'/C calc'!A0",
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)>",
}
CHECKS = (
    "[check:fine]\n"
    "command = case $SAYS in slow) sleep 2.5; echo fine;; [0-9]*) yes | head -c $SAYS;;"
    f" ?*) cat {FOLDER}/says-$SAYS;; *) echo fine;; esac\n"
)


def prepare(host: Host) -> None:
    """Make the users of the host."""
    host.need_own_root()
    lines = [f"mkdir -p {FOLDER}"]
    for name, text in SAID.items():
        lines.append(f"cat >{FOLDER}/says-{name} <<'END-OF-IT'\n{text}\nEND-OF-IT")
    for number, (name, node) in enumerate(NODES.items(), 3001):
        path = f"{FOLDER}/{name}"
        who = 0 if node.root else number
        lines += [
            f"cat >{path}.common <<'END-OF-IT'\n{COMMON}\nEND-OF-IT",
            f"cat >{path} <<'END-OF-IT'\n#!/bin/sh\n. $0.common\n{node.shell}\nEND-OF-IT",
            f"chmod 755 {path}",
            f"echo '{name}:x:{who}:{who}::/tmp:{path}' >>/etc/passwd",
            f"echo '{name}:*:19000::::::' >>/etc/shadow",
        ]
    host.run("\n".join(lines))
