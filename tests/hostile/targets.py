"""What reads text that others have written, each as a function that any bytes may be given to.

Each returns, or raises what a user is shown as one line; anything else is a fault. They are held to
it with made-up bytes, and with those that once were a fault (tests/data/hostile).
"""

import dataclasses
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from unittest import mock

from clustercheck import inventory, silent
from clustercheck.answer import Answer, from_json
from clustercheck.check import Facts, Status
from clustercheck.errors import ConfigError
from clustercheck.facts import Flood, Reader, Told
from clustercheck.judging import compare, judge_node
from clustercheck.known_hosts import HostKey, KnownHosts
from clustercheck.report import NodeResult
from clustercheck.ssh_config import SshConfig
from tests.full_facts import FULL
from tests.made_up import CHECKS

MARK = "@m"
NAMES = list(CHECKS)
KEY = HostKey("ssh-ed25519", b"\0\0\0\x0bssh-ed25519\0\0\0 " + b"k" * 32)


def options_of(check: str, node: str) -> object:
    return CHECKS[check].options


@cache
def honest(node: str) -> Answer:
    """An answer in which nothing is wrong with the form."""
    told = {name: Told(Facts(facts[0]), whole=True, status="0") for name, facts in FULL.items()}
    return Answer(node, NAMES, told, peers=["node02", "node03"], boot_id="b", host_name=node)


def answer(data: bytes) -> None:
    """A node's answer: read, judged, kept, and compared with an honest one's."""
    reader = Reader(MARK, time.time, NAMES)
    code = ""
    try:
        reader.feed(data[:7])
        reader.feed(data[7:])
    except Flood:
        code = "flood"
    code = code or ("" if reader.done else "garbled")
    checks = {name: CHECKS[name] for name in reader.told} or CHECKS
    read = Answer(
        "node01", list(checks), peers=["node02", "node03"], code=code, message="it broke off"
    )
    read.take(reader)
    again = from_json(read.to_json(), "here")
    result = judge_node(read, checks, options_of)
    assert result.findings == judge_node(again, checks, options_of).findings
    for name, findings in result.findings.items():
        codes = {finding.code for finding in findings}
        assert name == "access" or "crashed" not in codes, findings
        whole = name in read.told and read.told[name].whole
        assert whole or Status.PASS not in {f.status for f in findings}, findings
    results: dict[str, NodeResult] = {"node01": result}
    answers = [read]
    for node in ("node02", "node03"):
        answers.append(dataclasses.replace(honest(node), asked=list(checks)))
        results[node] = judge_node(answers[-1], checks, options_of)
    compare(answers, checks, options_of, results)
    for node in ("node02", "node03"):
        for findings in results[node].findings.values():
            assert "crashed" not in {finding.code for finding in findings}, findings


def recorded(data: bytes) -> None:
    """A node's file of a recorded run."""
    with suppress(ConfigError):
        answer = from_json(data.decode(errors="surrogateescape"), "here")
        answer.to_json()
        judge_node(answer, CHECKS, options_of) if set(answer.asked) <= set(CHECKS) else None


def in_a_file(read: Callable[[Path], object]) -> Callable[[bytes], None]:
    def target(data: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            path.write_bytes(data)
            read(path)

    return target


def an_inventory(path: Path) -> None:
    with suppress(ConfigError):
        found = inventory.load(path, CHECKS)
        for node in found.nodes:
            for check in CHECKS:
                found.options(check, node)


def known_hosts(path: Path) -> None:
    known = KnownHosts((path,))
    for name in ("node01", "[node01]:2222"):
        known.kinds(name)
        known.judge(name, KEY)
    known.accept("node02", KEY, hashed=True)
    assert KnownHosts((path,)).judge("node02", KEY) == known.judge("node02", KEY)


def ssh_config(path: Path) -> None:
    # what it names is neither run nor read
    with (
        mock.patch("clustercheck.ssh_config._succeeds", return_value=True),
        mock.patch("clustercheck.ssh_config.glob.glob", return_value=[]),
        suppress(ConfigError),
    ):
        SshConfig((path,), path.parent).lookup("node01", "alice")


def silent_nodes(path: Path) -> None:
    with mock.patch("clustercheck.silent.path", return_value=path):
        names = silent.read()
        silent.write(names, {"node01": "timeout", "node02": ""})
        assert "node01" in silent.read()


TARGETS: dict[str, Callable[[bytes], None]] = {
    "answer": answer,
    "recorded": recorded,
    "inventory": in_a_file(an_inventory),
    "known_hosts": in_a_file(known_hosts),
    "ssh_config": in_a_file(ssh_config),
    "silent": in_a_file(silent_nodes),
}


def lines_of(name: str, facts: dict[str, str]) -> bytes:
    """The lines by which a node tells the facts of a check."""
    lines = []
    for key, value in facts.items():
        if "\n" in value:
            lines.append(f"{MARK} {name} : {key}")
            lines += [f"{MARK} {name} + {line}" for line in value.split("\n")]
        else:
            lines.append(f"{MARK} {name} = {key} {value}")
    lines += [f"{MARK} {name} ! whole", f"{MARK} {name} ! end 0"]
    return ("\n".join(lines) + "\n").encode(errors="surrogateescape")


def seeds(target: str) -> list[bytes]:
    """Bytes in which nothing is wrong, to be made worse."""
    begin = f"{MARK} - begin 0 b node01\n{MARK} - way direct\n".encode()
    done = f"{MARK} - done\n".encode()
    of_checks = [lines_of(name, facts) for name, full in FULL.items() for facts in full]
    extra = (
        f"{MARK} tmp ! hung 5 1/D/nfs_wait/cat\n{MARK} tmp ! stays 1/D/0/cat\n"
        f"{MARK} tmp ! end limit\n{MARK} dns ! missing getent\n{MARK} nfs ! needs-root\n"
        f"{MARK} ntp ! root\n{MARK} ntp ! stderr no\n{MARK} - sudo 1 no\n{MARK} - nodir\n"
        f"{MARK} - clock 0\n{MARK} - time 0 1700000000.5\n{MARK} - leftover /tmp/x\n"
    ).encode()
    return {
        "answer": [*(begin + text + done for text in of_checks), begin + extra + done],
        "recorded": [honest("node01").to_json().encode()],
        "inventory": [
            b"[gpu]\ngpu[01-16] port=22\n[gpu:vars]\nuser=alice\n[check:ntp]\nwarn = 0.5\n",
            b"n1 ansible_host=10.0.0.1 ansible_user='a'\n[x:children]\nall\n[all:vars]\na=1\n",
        ],
        "known_hosts": [
            b"node01 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGtra2tra2tra2tra2tra2tra2tra2s=\n"
            b"|1|AAAA|AAAA ssh-rsa AAAAB3NzaC1yc2E= x\n@revoked *,!a ssh-rsa AAAAB3NzaC1yc2E=\n"
            b"@cert-authority [n]:22 ssh-rsa AAAAB3NzaC1yc2E=\n# x\n"
        ],
        "ssh_config": [
            b'Host node* !x\n Port 22\n IdentityFile "~/.ssh/%h"\nMatch host a,b exec "x %h"\n'
            b" ProxyJump a@b:1,c\n ConnectTimeout=5\nInclude x/*\nMatch all\n HostName %h.x\n"
        ],
        "silent": [b"node01\nnode02\n"],
    }[target]
