"""Turns a case file into made-up nodes, and asks them by a whole run.

The script, the way to a node, the reading, the judging and the comparing are the product's own. A
node's files are below a folder in place of /, its programs are those that the case recorded and,
beside them, no more than the plain tools that every Linux has.
"""

import dataclasses
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from clustercheck import inventory
from clustercheck.check import AnyCheck, Status, Target
from clustercheck.fanout import Bounds
from clustercheck.node import Node
from clustercheck.report import Report
from clustercheck.run import Plan, Watch, run
from clustercheck.script import PATH, Frame
from clustercheck.transport import Channel, Connection, Transport
from clustercheck.transport.here import Here
from clustercheck.transport.openssh import OpenSsh
from clustercheck.transport.settings import SshSettings
from tests.made_up import CHECKS

FOLDER = Path(__file__).parent

# What is there on any node. All else is on those only whose case has recorded it.
TOOLS = """
    [ awk basename cat chmod chown cksum comm cp cut date dirname du env expr false find flock
    grep head hostname id join kill ln ls md5sum mkdir mktemp mv nice nl od paste printf readlink rm
    rmdir sed seq setsid sh sha1sum sha256sum sleep sort stat stty sync tac tail tee test timeout
    touch tr true uname uniq wc xargs
"""

# Stands in the script for the folder of the node that it is sent to.
PLACE = "/the-made-up-node"


class Recorded(NamedTuple):
    """What a program said to one list of arguments; `*` in them stands for anything."""

    program: str
    arguments: str
    status: int
    stdout: bytes
    stderr: bytes


@dataclass
class MadeUp:
    """One node of a case."""

    said: list[Recorded] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)


@dataclass
class Case:
    """A case file. Without `@host` a part belongs to all nodes, which are then one: node01."""

    nodes: dict[str, MadeUp]
    notes: list[str] = field(default_factory=list)


class Part(NamedTuple):
    """A command, file or note of a case file, with the blocks below it by name."""

    kind: str
    words: str
    host: str
    status: int
    blocks: Mapping[str, bytes]


def parts_of(data: bytes) -> list[Part]:
    """The parts of a case file in their order. Its bytes may be no text."""
    parts: list[Part] = []
    block: list[bytes] | None = None
    name = ""
    for line in data.removesuffix(b"\n").split(b"\n"):
        word, _, rest = line.decode(errors="surrogateescape").partition(" ")
        if block is not None:
            if word != "@end":
                block.append(line + b"\n")
                continue
            text = b"".join(block)
            parts[-1] = parts[-1]._replace(blocks={**parts[-1].blocks, name: text})
            block = None
        elif word in ("@command", "@file", "@note"):
            parts.append(Part(word[1:], rest, "", 0, {}))
            block, name = ([], "note") if word == "@note" else (None, "")
        elif word in ("@stdout", "@stderr", "@content"):
            block, name = [], word[1:]
        elif word == "@host":
            parts[-1] = parts[-1]._replace(host=rest)
        elif word == "@rc":
            parts[-1] = parts[-1]._replace(status=int(rest))
    return parts


def read_case(*files: Path) -> Case:
    """The case of its files: of what two of them say of one thing, the later counts."""
    parts = [part for file in files for part in parts_of(file.read_bytes())]
    hosts = list(dict.fromkeys(part.host for part in parts if part.host)) or ["node01"]
    case = Case({host: MadeUp() for host in hosts})
    for part in parts:
        if part.kind == "note":
            case.notes.append(part.blocks["note"].decode())
        for host in [part.host] if part.host else hosts:
            made_up = case.nodes[host]
            if part.kind == "file":
                made_up.files[part.words] = part.blocks.get("content", b"")
            elif part.kind == "command":
                _record(made_up, part)
    return case


def _record(made_up: MadeUp, part: Part) -> None:
    path, *words = shlex.split(part.words)
    recorded = Recorded(
        path.rpartition("/")[2],
        " ".join(words),
        part.status,
        part.blocks.get("stdout", b""),
        part.blocks.get("stderr", b""),
    )
    same = recorded[:2]
    if recorded.program == "cat":  # a file, which probes read in their own way
        made_up.files[words[0]] = b"" if part.status else recorded.stdout
        if part.status:
            made_up.files.setdefault(words[0] + "/", b"")  # there, and not to be read
            del made_up.files[words[0]]
        return
    if part.status == 127 and b"not found" in recorded.stderr:
        return  # not in the PATH of that login, or not installed at all
    made_up.said = [one for one in made_up.said if one[:2] != same] + [recorded]


def make(made_up: MadeUp, folder: Path, *, user: int = 0, busybox: str = "") -> None:
    """Put a node into an empty folder: root/ and bin/.

    busybox: its path, where the plain tools are to be busybox's.
    """
    root, programs = folder / "root", folder / "bin"
    root.mkdir(parents=True)
    programs.mkdir()
    for tool in TOOLS.split():
        if busybox:
            (programs / tool).symlink_to(busybox)
            continue
        for directory in PATH.split(":"):
            if (Path(directory) / tool).exists():
                (programs / tool).symlink_to(Path(directory) / tool)
                break
    _write_program(programs, "id", f"case $* in -u) echo {user} ;; *) exec /usr/bin/id ;; esac")
    for path, content in {**made_up.files, **_mountinfo(made_up)}.items():
        if path.startswith("shim/"):
            _write_program(programs, path.partition("/")[2], content)
            continue
        target = root / path.strip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith("/"):
            target.mkdir(exist_ok=True)
        elif content.startswith(b"@link "):
            target.symlink_to(content[6:].decode().strip())
        else:
            target.write_bytes(content)
    if (root / "tmp").is_dir():
        (root / "tmp").chmod(0o1777)
    answers: dict[str, list[Recorded]] = {}
    for recorded in made_up.said:
        answers.setdefault(recorded.program, []).append(recorded)
    for program, known in answers.items():
        if f"shim/{program}" not in made_up.files:
            _write_program(programs, program, _body(programs, program, known))


def _write_program(programs: Path, name: str, body: str | bytes) -> None:
    (programs / name).unlink(missing_ok=True)
    text = body.encode() if isinstance(body, str) else body
    (programs / name).write_bytes(text if text.startswith(b"#!") else b"#!/bin/sh\n" + text + b"\n")
    (programs / name).chmod(0o755)


def _body(programs: Path, program: str, known: Sequence[Recorded]) -> str:
    """A program that knows what was recorded; to all else, it is as one too old to know it."""
    lines = ["case $* in"]
    for number, recorded in enumerate(known):
        said = programs / f".{program}.{number}"
        said.with_suffix(f".{number}.out").write_bytes(recorded.stdout)
        said.with_suffix(f".{number}.err").write_bytes(recorded.stderr)
        pattern = "*".join(shlex.quote(piece) for piece in recorded.arguments.split("*"))
        out = shlex.quote(str(said.with_suffix(f".{number}.out")))
        err = shlex.quote(str(said.with_suffix(f".{number}.err")))
        lines.append(f"{pattern}) cat {out}; cat {err} >&2; exit {recorded.status} ;;")
    asked = shlex.quote(str(programs.parent / "not-recorded"))
    lines += [
        f'*) printf "%s\\n" "{program} $*" >>{asked}',
        f'echo "{program}: unrecognized option: $*" >&2; exit 2 ;;',
        "esac",
    ]
    return "\n".join(lines)


def _mountinfo(made_up: MadeUp) -> dict[str, bytes]:
    """/proc/self/mountinfo, where the case has /proc/mounts alone: the kernel says both."""
    mounts = made_up.files.get("/proc/mounts")
    if mounts is None or "/proc/self/mountinfo" in made_up.files:
        return {}
    lines = []
    for number, line in enumerate(mounts.splitlines(), 100):
        source, target, kind, options, *_ = line.decode(errors="surrogateescape").split(" ")
        words = options.split(",")
        of_mount = [w for w in words if w in ("rw", "ro", "relatime", "noatime", "nosuid", "nodev")]
        of_system = [w for w in words if w not in of_mount or w in ("rw", "ro")]
        device = f"8:{number}" if source.startswith("/dev/") else f"0:{number}"
        lines.append(
            f"{number} 1 {device} / {target} {','.join(of_mount)} shared:{number} - "
            f"{kind} {source} {','.join(of_system)}\n"
        )
    return {
        "/proc/self/mountinfo": "".join(lines).encode(errors="surrogateescape"),
        "/proc/self/mounts": mounts,
    }


class MadeUpConnection(NamedTuple):
    """A connection over which the script goes with the node's own folder in it."""

    way: Connection
    folder: Path

    def start(self, script: bytes, deadline: float) -> Channel:
        return self.way.start(script.replace(PLACE.encode(), os.fsencode(self.folder)), deadline)

    def close(self) -> None:
        self.way.close()


class MadeUpNodes(NamedTuple):
    """The transport to made-up nodes, each in the folder of its name."""

    way: Transport
    folder: Path

    def connect(self, node: Node, deadline: float) -> Connection:
        return MadeUpConnection(self.way.connect(node, deadline), self.folder / node.name)

    def close(self) -> None:
        self.way.close()


def way_by_ssh(case: Case, folder: Path) -> Transport:
    """OpenSSH's way, with an ssh that says what the case recorded of it, call by call.

    Where that ended well, it goes on to run a shell, as the real one does.
    """
    (made_up,) = case.nodes.values()
    calls = [one for one in made_up.said if one.program == "ssh"]
    lines = [
        f"cd {shlex.quote(str(folder))}",
        "echo >>calls; calls=$(wc -l <calls)",
        "case $calls in",
    ]
    for number, call in enumerate(calls, 1):
        (folder / f"{number}.out").write_bytes(call.stdout)
        (folder / f"{number}.err").write_bytes(call.stderr)
        last = f"exit {call.status}" if call.status else "exec sh -s"
        pattern = "*" if number == len(calls) else number
        lines.append(f"{pattern}) cat {number}.out; cat {number}.err >&2; {last} ;;")
    _write_program(folder, "ssh", "\n".join([*lines, "esac"]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{folder}:{PATH}")
        return OpenSsh(SshSettings(config=()))


class MadeUpPlan(Plan):
    """A plan whose script looks below PLACE."""

    def frame(self) -> Frame:
        return dataclasses.replace(super().frame(), root=f"{PLACE}/root", path=f"{PLACE}/bin")


def ask(
    case: Case,
    folder: Path,
    checks: Sequence[str],
    options: Sequence[str] = (),
    *,
    user: int = 0,
    become: str = "",
    busybox: str = "",
    way: Transport | None = None,
) -> Report:
    """The report on a case's nodes, made in an empty folder.

    options: texts as for -o. user: the id of the login user. busybox: as for `make`.
    way: by default this machine's sh.
    """
    for name, made_up in case.nodes.items():
        make(made_up, folder / name, user=user, busybox=busybox)
    chosen = {name: _for_case(name, case) for name in checks}
    said = inventory.empty(chosen, options)
    made_up_nodes = MadeUpNodes(way or Here(), folder)
    plan = MadeUpPlan(
        nodes=[Node(name, become=become) for name in case.nodes],
        checks=chosen,
        options_of=said.options,
        transport_for=lambda node: made_up_nodes,
        bounds=Bounds(4, 90),
    )
    return run(plan, Watch())


def _for_case(name: str, case: Case) -> AnyCheck:
    """A check that sees of this machine's world only that the case's name servers answer."""
    check = dataclasses.replace(CHECKS[name], probe_from_here=None, probe_here=None)
    if name != "dns":
        return check
    text = b"\n".join(m.files.get("/etc/resolv.conf", b"") for m in case.nodes.values()).decode()
    servers = {
        "servers": "\n".join(f"{s} answers" for s in re.findall(r"nameserver\s+(\S+)", text))
    }

    def answers(targets: Sequence[Target], options: object) -> dict[str, dict[str, str]]:
        return {target.name: servers for target in targets}

    return dataclasses.replace(check, probe_from_here=answers)


def trouble(report: Report) -> list[str]:
    """What a user reads of all that is not as it should be, remedies with it."""
    return [line for line in lines_of(report) if not re.match(r"\S+ (pass|skip) ", line)]


def lines_of(report: Report) -> list[str]:
    """Each finding as a line: node, status, check and code, message, remedy."""
    return [
        f"{node} {f.status.value} {check}.{f.code}: {f.message}"
        f"{f' [{f.peer}]' if f.peer else ''}{f' -> {f.remedy.text}' if f.remedy else ''}"
        for node, result in report.nodes.items()
        for check, found in result.findings.items()
        for f in found
    ]


def status_of(report: Report, node: str, codes: Iterable[str] = ()) -> str:
    """The worst status of a node, "PASS" and so on; of the codes (ntp.offset) where some are named.

    SKIP where nothing applied.
    """
    wanted = set(codes)
    statuses = {
        f.status
        for check, found in report.nodes[node].findings.items()
        for f in found
        if not wanted or f"{check}.{f.code}" in wanted
    }
    return max(statuses - {Status.SKIP}, default=Status.SKIP).name


def worst_of(report: Report, codes: Iterable[str] = ()) -> str:
    """The worst status of all nodes."""
    return max((status_of(report, node, codes) for node in report.nodes), key=lambda s: Status[s])
