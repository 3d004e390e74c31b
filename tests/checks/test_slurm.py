"""The check slurm: what is read, what is judged, and what its probes see on made-up nodes."""

import dataclasses
import importlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clustercheck.answer import Answer
from clustercheck.check import Facts, Target
from clustercheck.facts import Told
from clustercheck.judging import compare, judge_node
from tests.made_up import CHECKS, MadeUpNode, judged, options_of
from tests.slurm_facts import SLURM, STOPPED
from tests.this_machine import SHELLS
from tools.fetch import program

read = importlib.import_module("clustercheck.checks._slurm_read")
SAMPLES = Path(__file__).resolve().parent.parent / "data" / "slurm" / "samples"
ROOM = "pass spool: /var/spool/slurmd has 7.63 GiB free"
ANSWERS = "pass slurmd: slurmd (24.11.5) runs and answers"


def sample(name: str) -> str:
    return (SAMPLES / f"{name}.txt").read_text()


ECC = "ECC errors on GPU 2; RMA #4471 (alice)"
LOST = "gres/gpu count reported lower than configured (3 < 4)"
HOME = "NHC: check_fs_mount:  /home not mounted"
READINGS: dict[str, dict[str, tuple[str, ...]]] = {
    "01-idle": {"gpu01": ("IDLE", "gpu:a100:4")},
    "03-mixed": {"gpu01": ("MIXED", "gpu:a100:4")},
    "04-allocated": {"gpu02": ("ALLOCATED", "gpu:a100:4")},
    "05-drained-reason": {
        "gpu03": ("IDLE+DRAIN", "gpu:v100:4", ECC, "root", "2026-11-30T17:51:08")
    },
    "06-draining": {
        "gpu01": ("MIXED+DRAIN", "gpu:a100:4", "Kill task failed", "root", "2026-11-30T17:51:08")
    },
    "08-inval-gres": {
        "gpu04": (
            "UNKNOWN+DRAIN+INVALID_REG",
            "gpu:v100:4",
            LOST,
            "root",
            "2026-11-30T17:50:23",
        )
    },
    "09-down-admin": {"cpu02": ("DOWN", "", HOME, "root", "2026-11-30T17:51:09")},
    "10-down-not-responding": {
        "gpu02": (
            "DOWN+NOT_RESPONDING",
            "gpu:a100:4",
            "Not responding",
            "root",
            "2026-11-30T17:54:43",
        )
    },
    "13-cloud": {"cloud01": ("IDLE+CLOUD+POWERED_DOWN", "")},
    "14-maint": {
        "gpu03": (
            "IDLE+DRAIN+MAINTENANCE+RESERVED",
            "gpu:v100:4",
            ECC,
            "root",
            "2026-11-30T17:51:08",
        )
    },
    "16-reboot-requested": {
        "cpu01": (
            "ALLOCATED+DRAIN+REBOOT_REQUESTED",
            "",
            "kernel update",
            "root",
            "2026-11-30T17:54:47",
        )
    },
    "17-oneliner-all": {
        "cloud01": ("IDLE+CLOUD+POWERED_DOWN", ""),
        "cloud02": ("IDLE+CLOUD+POWERED_DOWN", ""),
        "cpu01": ("ALLOCATED", ""),
        "cpu02": ("MIXED", ""),
        "cpu03": ("UNKNOWN+NOT_RESPONDING", ""),
        "gpu01": ("MIXED", "gpu:a100:4"),
        "gpu02": ("ALLOCATED", "gpu:a100:4"),
        "gpu03": ("IDLE", "gpu:v100:4"),
        "gpu04": (
            "UNKNOWN+DRAIN+INVALID_REG",
            "gpu:v100:4",
            LOST,
            "root",
            "2026-11-30T17:50:23",
        ),
    },
    "19-old-star-states": {
        "c101": (
            "DOWN+NOT_RESPONDING+DRAIN",
            "gpu:4(S:0-1)",
            "Node unexpectedly rebooted",
            "slurm",
            "2024-05-02T08:13:05",
        )
    },
    "sinfo-01-default": {},  # a row is several nodes: not asked for, and not taken for a node
    "sinfo-02-N-l": {
        "cloud01": ("IDLE+POWERED_DOWN", ""),
        "cloud02": ("IDLE+POWERED_DOWN", ""),
        "cpu01": ("ALLOCATED", ""),
        "cpu02": ("DOWN+NOT_RESPONDING", ""),
        "cpu03": ("UNKNOWN+NOT_RESPONDING", ""),
        "gpu01": ("ALLOCATED+DRAIN", ""),
        "gpu02": ("ALLOCATED+NOT_RESPONDING", ""),
        "gpu03": ("IDLE+DRAIN+MAINTENANCE", ""),
        "gpu04": ("INVALID_REG", ""),
    },
    "sinfo-03-R": {},
    "sinfo-05-statecomplete": {
        "cloud01": ("IDLE+CLOUD+POWERED_DOWN", ""),
        "cloud02": ("IDLE+CLOUD+POWERED_DOWN", ""),
        "cpu01": ("ALLOCATED", ""),
        "cpu02": ("DOWN", ""),
        "cpu03": ("UNKNOWN+NOT_RESPONDING", ""),
        "gpu01": ("MIXED+DRAIN", ""),
        "gpu02": ("ALLOCATED", ""),
        "gpu03": ("IDLE+DRAIN+MAINTENANCE+RESERVED", ""),
        "gpu04": ("UNKNOWN+DRAIN+INVALID_REG", ""),
    },
    "sinfo-06-N-json-2411": {
        "cloud01": ("IDLE+CLOUD+POWERED_DOWN", ""),
        "gpu01": ("MIXED+DRAIN", "gpu:a100:4", "Kill task failed", "root", "2026-11-30T17:51:08"),
        "gpu03": (
            "IDLE+RESERVED+DRAIN+MAINTENANCE",
            "gpu:v100:4",
            ECC,
            "root",
            "2026-11-30T17:51:08",
        ),
        "gpu04": (
            "UNKNOWN+DRAIN+INVALID_REG",
            "gpu:v100:4",
            LOST,
            "root",
            "2026-11-30T17:50:23",
        ),
    },
    "sinfo-08-controller-gone": {},
}


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """JSON has times as seconds, which are shown in this machine's time."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_every_sample_of_nodes_has_a_reading() -> None:
    names = {file.stem for file in SAMPLES.glob("*.txt")}
    assert names == {*READINGS, "ping-01-up", "conf-01-good"}


@pytest.mark.parametrize("name", READINGS)
def test_each_sample_is_read_right(name: str) -> None:
    found = {record.names[0]: record for record in read.read_nodes(sample(name))}
    said = {node: (r.state, r.gres, r.reason, r.by, r.since) for node, r in found.items()}
    assert said == {node: (*of, "", "", "")[:5] for node, of in READINGS[name].items()}
    for record in found.values():  # what is handed over for a node is read in the same way
        assert read.read_nodes(record.line()) == [record._replace(names=record.names)]


def test_a_ping() -> None:
    assert read.read_ping(sample("ping-01-up")) == [read.Controller("primary", "ctl", True)]


def of_state(line: str, **facts: str) -> list[str]:
    told = {**SLURM, "here.node": f"NodeName=n {line}", "here.ping": sample("ping-01-up"), **facts}
    found = judged("slurm", told)
    assert found[0] == "pass controller: slurmctld: primary ctl UP"
    assert found[-2:] == [ANSWERS, ROOM]
    return found[1:-2]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("IDLE", "pass state: IDLE"),
        ("IDLE+CLOUD+POWERED_DOWN", "pass state: IDLE+CLOUD+POWERED_DOWN: power saving, woken"),
        ("MIXED+CLOUD+NOT_RESPONDING", "fail state: MIXED+CLOUD+NOT_RESPONDING, should be in"),
        ("ALLOCATED+CLOUD+NOT_RESPONDING+POWERING_UP", "pass state: ALLOCATED+CLOUD+NOT_RESP"),
        ("DOWN+CLOUD+POWERED_DOWN", "fail state: DOWN+CLOUD+POWERED_DOWN, should be in service"),
        ("FUTURE", "skip state: FUTURE: kept for a node that is to come"),
        ("IDLE+MAINTENANCE", "warn state: IDLE+MAINTENANCE, kept for maintenance"),
        ("IDLE+RESERVED+PLANNED", "pass state: IDLE+RESERVED+PLANNED"),
        ("DOWN+REBOOT_ISSUED", "warn state: DOWN+REBOOT_ISSUED, a reboot is planned"),
        ("UNKNOWN", "warn state: UNKNOWN: the node has not registered since its controller was"),
        ("UNKNOWN*", "fail state: UNKNOWN+NOT_RESPONDING, should be in service"),
        ("ERROR", "fail state: ERROR, should be in service"),
        ("DOWN+WHATEVER", "fail state: DOWN+WHATEVER, should be in service"),
        ("IDLE+CLOUD+POWER", "pass state: IDLE+CLOUD+POWERED_DOWN: power saving"),
        ("IDLE+WHATEVER", "unknown state: IDLE+WHATEVER: what WHATEVER means is not known here"),
    ],
)
def test_a_state(state: str, expected: str) -> None:
    found = of_state(f"State={state} Gres=(null)")
    assert len(found) == 1
    assert found[0].startswith(expected)


def test_a_lost_gpu_is_one_finding_with_its_cause() -> None:
    reason = f"Reason={LOST} [root@2026-11-30T17:50:23]"
    assert of_state(
        f"State=UNKNOWN+DRAIN+INVALID_REG Gres=gpu:v100:4 {reason}", gpus="nvidia 3"
    ) == [
        "fail state: UNKNOWN+DRAIN+INVALID_REG, should be in service; set by root since"
        f" 2026-11-30T17:50:23: {LOST}; 3 device files /dev/nvidiaN are there now"
    ]


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        ("nvidia 4", ["pass state: IDLE", "pass gres: 4 GPUs in Slurm's configuration (gpu:4), 4"]),
        ("nvidia 5", ["pass state: IDLE", "pass gres: 4 GPUs in Slurm's configuration (gpu:4), 5"]),
        ("none", ["pass state: IDLE", "fail gres: 4 GPUs in Slurm's configuration (gpu:4), 0 dev"]),
        ("other", ["pass state: IDLE"]),  # AMD's and Intel's have other files
    ],
)
def test_gpus_against_device_files(gpus: str, expected: list[str]) -> None:
    found = of_state("State=IDLE Gres=gpu:4", gpus=gpus)
    assert [line[: len(e)] for line, e in zip(found, expected, strict=True)] == expected


def test_states_that_the_site_allows() -> None:
    line = "NodeName=n State=IDLE+DRAIN Gres=(null) Reason=burn-in [root@2026-11-30T17:50:23]"
    told = {**SLURM, "here.node": line, "here.ping": ""}
    assert judged("slurm", told, allow=("drain",))[0] == "pass state: IDLE+DRAIN, as is allowed"
    assert judged("slurm", told)[0].startswith("fail state: IDLE+DRAIN, should be in service; dra")
    assert judged("slurm", told, program_users=())[0] == (
        "warn state: IDLE+DRAIN, drained by root since 2026-11-30T17:50:23: burn-in"
    )


def test_a_slurmd_that_does_not_run_is_one_finding() -> None:
    stopped = {**STOPPED, "here.ping": ""}
    silent = "NodeName=n State=DOWN* Gres=(null) Reason=Not responding [slurm@2026-11-30T17:50:23]"
    told = {**stopped, "here.node": silent}
    assert judged("slurm", told) == [
        "fail not_running: slurmd does not run, and is to run from boot on",
        ROOM,
    ]
    assert judged("slurm", {**told, "enabled": "no"})[0] == (
        "fail not_running: slurmd does not run, and Slurm has the node as DOWN+NOT_RESPONDING"
    )
    asleep = {**stopped, "enabled": "no", "here.node": "NodeName=n State=IDLE~"}
    assert judged("slurm", asleep)[0].startswith("pass state: IDLE+POWERED_DOWN")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, [ANSWERS, ROOM]),
        (
            {"answer_status": "124", "answer": ""},
            ["fail answer: slurmd runs, and gives no answer to scontrol within 4 s", ROOM],
        ),
        (
            {"answer_status": "137", "answer": "Killed"},
            ["fail answer: slurmd runs, and gives no answer to scontrol within 4 s", ROOM],
        ),
        (
            # as Slurm 22.05.8 said it
            {
                "answer_status": "1",
                "answer": "scontrol: error: slurm_slurmd_info: Connection refused\n"
                "slurm_load_slurmd_status: Connection refused",
            },
            [
                "fail answer: slurmd runs, and does not answer scontrol:"
                " slurm_load_slurmd_status: Connection refused",
                ROOM,
            ],
        ),
        (
            {"answer_status": "1", "answer": "scontrol: fatal: cannot read slurm.conf"},
            [
                "unknown answer: whether slurmd answers could not be found out:"
                " scontrol: fatal: cannot read slurm.conf",
                ROOM,
            ],
        ),
        (
            {"slurmd": "stopped", "enabled": "no"},
            ["skip no_slurmd: slurmd is installed, does not run, and is not started at boot", ROOM],
        ),
        (
            {"installed": "no"},
            ["skip no_slurmd: no slurmd is installed: no jobs are run here"],
        ),
        (
            {"installed": "no", "conf": "none"},
            ["skip absent: Slurm's commands, and neither slurmd nor slurm.conf"],
        ),
        (
            {"conf": "unreadable"},
            ["unknown unreadable: slurm.conf cannot be read", ANSWERS, ROOM],
        ),
        (
            {"spool_mode": "drwxrwxrwx"},
            [
                ANSWERS,
                "warn spool_mode: /var/spool/slurmd has mode drwxrwxrwx: any user may write there",
                ROOM,
            ],
        ),
        (
            {"spool_mode": "No such file or directory"},
            [ANSWERS, "fail spool: /var/spool/slurmd is not there, and slurmd runs"],
        ),
        (
            {"spool_mode": "hung"},
            [ANSWERS, "unknown spool: /var/spool/slurmd gives no answer within 3 s"],
        ),
        (
            {
                "space": "Filesystem 1024-blocks Used Available\n"
                "/dev/sda5 20511312 20460000 51312 99% /"
            },
            [ANSWERS, "fail spool: /var/spool/slurmd has 50.1 MiB free, should be 64 MB or more"],
        ),
        (
            {"inodes": "Filesystem Inodes IUsed IFree\n/dev/sda5 1310720 1310710 10 100% /"},
            [
                ANSWERS,
                "fail spool: /var/spool/slurmd has 7.63 GiB free and 10 inodes,"
                " should be 1000 inodes or more",
            ],
        ),
        (
            {"space": ""},
            [ANSWERS, "unknown spool: the space of /var/spool/slurmd could not be found out"],
        ),
    ],
)
def test_slurmd_and_its_directory(changed: dict[str, str], expected: list[str]) -> None:
    assert judged("slurm", {**SLURM, **changed}) == expected


CONF = """\
# ours
clustername = demo
SlurmdSpoolDir=/var/spool/slurm/%n.%h # local
SlurmdPidFile=/var/run/%n.pid
Include parts/nodes.conf
DebugFlags=Agent, \\
    NO_CONF_HASH
"""


FIB_TRIE = """\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
           |-- 127.0.0.0
              /8 host LOCAL
           |-- 127.0.0.1
              /32 host LOCAL
        +-- 192.0.2.0/30 2 0 2
           |-- 192.0.2.0
              /24 link UNICAST
           |-- 192.0.2.2
              /32 host LOCAL
        |-- 192.0.2.255
           /32 link BROADCAST
Local:
           |-- 192.0.2.2
              /32 host LOCAL
"""


@pytest.mark.parametrize("shell", SHELLS)
def test_what_the_probe_sees(tmp_path: Path, shell: str) -> None:
    node = MadeUpNode(tmp_path)
    node.hide("scontrol", "sinfo", "ps")
    node.says("slurmd")
    node.says("scontrol", "Version                  = 22.05.8\n")
    node.file("/proc/sys/kernel/hostname", "gpu07.cluster.example\n")
    node.file("/proc/net/fib_trie", FIB_TRIE)
    node.file("/proc/net/if_inet6", "fd000000000000000000000000000007 02 40 00 80     eth0\n")
    node.file("/proc/1/comm", "systemd\n")
    node.file("/proc/815/comm", "slurmd\n")
    node.file("/proc/815/cmdline", "/usr/sbin/slurmd\0-D\0-N\0blue7\0")
    node.file("/run/slurm/conf/slurm.conf", CONF)
    node.file("/run/slurm/conf/parts/nodes.conf", "NodeName=x\n")
    node.file("/run/slurm/conf/cgroup.conf", "ConstrainCores=yes\n")
    node.file("/var/spool/slurm/blue7.gpu07/job1", "")
    node.file("/etc/systemd/system/multi-user.target.wants/slurmd.service")
    for name in ("nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm"):
        node.file(f"/dev/{name}")
    told = node.probe("slurm", shell=shell)
    digests = [line.rpartition("/run/slurm/conf/")[2] for line in told["digests"].splitlines()]
    assert digests == ["slurm.conf", "parts/nodes.conf", "cgroup.conf"]
    wanted = {
        "tools": "scontrol",
        "conf": "/run/slurm/conf/slurm.conf",
        "installed": "yes",
        "host": "gpu07.cluster.example",
        "addresses": "192.0.2.2\nfd000000000000000000000000000007",
        "cluster": "demo",
        "flags": "Agent, NO_CONF_HASH",
        "slurmd": "815",
        "node": "blue7",
        "enabled": "yes",
        "answer_status": "0",
        "spool": "/var/spool/slurm/blue7.gpu07",
        "spool_mode": "drwxr-xr-x",
        "gpus": "nvidia 3",
    }
    assert {key: told[key] for key in wanted} == wanted
    found = judged("slurm", told)
    assert found[0] == "pass slurmd: slurmd (22.05.8) runs and answers"
    assert found[1].startswith("pass spool: /var/spool/slurm/blue7.gpu07 has ")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/etc/sysconfig/slurmd", 'OTHER=1\nSLURM_CONF="/shared/etc/slurm.conf"\n'),
        ("/etc/default/slurmd", "SLURMD_OPTIONS='-D -f /shared/etc/slurm.conf -v'\n"),
    ],
)
def test_slurm_where_a_site_has_put_it(tmp_path: Path, shell: str, path: str, text: str) -> None:
    node = MadeUpNode(tmp_path)
    node.hide("slurmd", "scontrol", "sinfo")
    node.file(path, text)
    node.file("/shared/etc/slurm.conf", "ClusterName=own\n")
    node.file("/opt/slurm/sbin/slurmd", "#!/bin/sh\n", 0o755)
    node.file("/opt/slurm/bin/scontrol", "#!/bin/sh\n", 0o755)
    told = node.probe("slurm", shell=shell)
    wanted = {"conf": "/shared/etc/slurm.conf", "cluster": "own", "installed": "yes"}
    assert {key: told[key] for key in wanted} == wanted
    assert told["tools"] == "scontrol"


@pytest.mark.parametrize("awk", ["awk", "busybox awk"])
def test_what_the_second_probe_sees(tmp_path: Path, awk: str) -> None:
    node = MadeUpNode(tmp_path)
    if awk != "awk":
        node.command("awk", f'exec {program("busybox")} awk "$@"')
    file = SAMPLES / "17-oneliner-all.txt"
    node.command(
        "scontrol", f"case $1 in show) cat {file} ;; *) cat {SAMPLES}/ping-01-up.txt ;; esac"
    )
    node.file("/etc/slurm/slurm.conf", CONF + "AccountingStoragePass=secret\n")
    node.file("/etc/slurm/parts/nodes.conf", "NodeName = x[1-9]  \\\n  CPUs=4 # four\n")
    node.file("/etc/slurm/cgroup.conf", "ConstrainCores=yes\n")
    told = follow_facts(node)
    found = {record.names[0]: record for record in read.read_nodes(told["asked.nodes"])}
    said = {name: (r.state, r.gres, r.reason, r.by, r.since) for name, r in found.items()}
    expected = READINGS["17-oneliner-all"]
    assert said == {name: (*of, "", "", "")[:5] for name, of in expected.items()}
    assert told["asked.ping"] == "Slurmctld(primary) at ctl is UP"
    assert told["lines"].splitlines() == [
        "file /etc/slurm/slurm.conf",
        "clustername=demo",
        "SlurmdSpoolDir=/var/spool/slurm/%n.%h",
        "SlurmdPidFile=/var/run/%n.pid",
        "file /etc/slurm/parts/nodes.conf",
        "NodeName=x[1-9] CPUs=4",
        "DebugFlags=Agent, NO_CONF_HASH",
        "AccountingStoragePass=...",
        "file /etc/slurm/cgroup.conf",
        "ConstrainCores=yes",
    ]


def test_where_there_is_no_slurm_next_to_nothing_is_asked(tmp_path: Path) -> None:
    node = MadeUpNode(tmp_path)
    node.hide("scontrol", "sinfo", "slurmd")
    told = node.probe("slurm")
    assert told == {"tools": "", "conf": "none", "installed": "no"}
    assert judged("slurm", told) == ["skip absent: no Slurm on the node"]


def test_a_sample_of_slurm_conf_is_read_with_its_joined_lines(tmp_path: Path) -> None:
    node = MadeUpNode(tmp_path)
    node.file("/etc/slurm/slurm.conf", sample("conf-01-good"))
    told = node.probe("slurm")
    assert (told["cluster"], told["spool"]) == ("demo", "/var/spool/slurmd")


class OwnScontrol:
    """A scontrol of this machine, that is a script."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._patch = monkeypatch

    def is_to(self, body: str) -> None:
        command = self.folder / "scontrol"
        command.write_text(f"#!/bin/sh\n{body}\n")
        command.chmod(0o755)
        self._patch.setenv("PATH", f"{self.folder}:/usr/bin:/bin")

    def tells(self, *nodes: str, **options: Any) -> dict[str, list[str]]:
        """The findings about the nodes, which tell nothing themselves."""
        ask = CHECKS["slurm"].probe_from_here
        assert ask
        told = ask([Target(node, node) for node in nodes], options_of("slurm", **options))
        return {node: judged("slurm", {**SLURM, **told.get(node, {})}) for node in nodes}


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OwnScontrol:
    return OwnScontrol(tmp_path, monkeypatch)


# scontrol's JSON in the shapes of 22.05 (data_parser 0.0.38) and of 24.11 (0.0.42).
JSON_2205 = {
    "nodes": [
        {"name": "n1", "hostname": "n1", "address": "10.30.0.21", "state": "idle"}
        | {"state_flags": ["DRAIN"], "reason": "lüfter=laut", "reason_set_by_user": "bea"}
        | {"reason_changed_at": 1796061068, "gres": ""},
        {"name": "n2", "hostname": "n2", "state": "mixed", "state_flags": [], "gres": "gpu:4"},
    ]
}
JSON_2411 = {
    "nodes": [
        {"name": "n1", "hostname": "n1", "address": "10.30.0.21", "state": ["IDLE", "DRAIN"]}
        | {"reason": "lüfter=laut", "reason_set_by_user": "bea", "gres": ""}
        | {"reason_changed_at": {"set": True, "infinite": False, "number": 1796061068}},
        {"name": "n2", "hostname": "n2", "state": ["MIXED"], "gres": "gpu:4"}
        | {"reason_changed_at": {"set": True, "infinite": False, "number": 0}},
    ],
    "last_update": {"set": True, "infinite": False, "number": 1796061068},
    "meta": {"slurm": {"release": "24.11.5"}},
}


@pytest.mark.parametrize("said", [JSON_2205, JSON_2411])
def test_json_asked_from_here(scontrol: OwnScontrol, said: object) -> None:
    (scontrol.folder / "json").write_text(json.dumps(said, ensure_ascii=False, indent=2))
    scontrol.is_to(
        f"case $* in 'show node --json') cat {scontrol.folder}/json ;;"
        " ping) echo 'Slurmctld(primary) at ctl is UP' ;; *) exit 1 ;; esac"
    )
    found = scontrol.tells("n1.cluster.example", "n2", "n9")
    up = "pass controller: slurmctld: primary ctl UP"
    assert found["n1.cluster.example"] == [
        up,
        "pass address: NodeName n1, NodeAddr 10.30.0.21, which is here",
        "warn state: IDLE+DRAIN, drained by bea since 2026-11-30T17:51:08: lüfter=laut",
        ANSWERS,
        ROOM,
    ]
    assert found["n2"][:3] == [
        up,
        "pass state: MIXED",
        "pass gres: 4 GPUs in Slurm's configuration (gpu:4), 4 device files /dev/nvidiaN",
    ]
    assert found["n9"] == [ANSWERS, ROOM]  # asked by way of a node then


def test_text_is_asked_for_where_there_is_no_json(scontrol: OwnScontrol) -> None:
    file = SAMPLES / "17-oneliner-all.txt"
    scontrol.is_to(
        f"case $* in 'show node -o') cat {file} ;; ping) echo 'Slurmctld(primary) at ctl is UP' ;;"
        " *) echo \"scontrol: unrecognized option '--json'\" >&2; exit 1 ;; esac"
    )
    found = scontrol.tells("gpu03", "cpu03")
    assert found["gpu03"][1] == "pass state: IDLE"
    assert found["cpu03"][1] == (
        "fail state: UNKNOWN+NOT_RESPONDING, should be in service; set, no reason is told"
    )


def test_a_controller_that_is_gone_seen_from_here(scontrol: OwnScontrol) -> None:
    scontrol.is_to(
        "[ $1 = ping ] && echo 'Slurmctld(primary) at ctl is DOWN' ||"
        f" cat {SAMPLES}/sinfo-08-controller-gone.txt >&2; exit 1"
    )
    ask, compare = CHECKS["slurm"].probe_from_here, CHECKS["slurm"].compare
    assert ask and compare
    options = options_of("slurm")
    told = ask([Target("n1", "n1"), Target("n2", "n2")], options)
    facts = {name: Facts({**SLURM, "tools": "", **of}) for name, of in told.items()}
    found = [
        (node, f"{f.status.value} {f.code}: {f.message}")
        for node, f in compare(facts, dict.fromkeys(facts, options))
        if f.code != "conf"
    ]
    dead = "fail controller: no slurmctld answers (primary ctl DOWN)"
    assert found == [("n1", dead), ("n2", dead)]


def test_nobody_asks_from_here_where_that_is_not_wanted(scontrol: OwnScontrol) -> None:
    scontrol.is_to(f"touch {scontrol.folder}/asked")
    for ask in ("node", "never"):
        assert scontrol.tells("n1", ask=ask)["n1"] == [ANSWERS, ROOM]
    assert not (scontrol.folder / "asked").exists()
    assert scontrol.tells("n1", ask="here")["n1"] == [ANSWERS, ROOM]
    assert (scontrol.folder / "asked").exists()


def test_a_node_of_which_nobody_could_be_asked_is_no_pass() -> None:
    compare = CHECKS["slurm"].compare
    assert compare
    facts = {"n1": Facts({**SLURM, "tools": ""})}
    found = list(compare(facts, dict.fromkeys(facts, options_of("slurm"))))
    assert [(f.status.value, f.message) for _, f in found] == [
        ("unknown", "the node's state was not told: no scontrol on this machine, nor on any node")
    ]


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        ("124", "", "fail controller: no slurmctld answers: no answer within 10 s"),
        ("137", "Killed", "fail controller: no slurmctld answers: no answer within 10 s"),
        (
            "1",
            "slurm_load_node error: Protocol authentication error",
            "unknown state: the node's state was not told: slurm_load_node error: Protocol"
            " authentication error",
        ),
    ],
)
def test_an_asker_that_was_not_answered(status: str, error: str, said: str) -> None:
    compare = CHECKS["slurm"].compare
    assert compare
    told = {**SLURM, "asked.status": status, "asked.error": error, "asked.ping": ""}
    found = list(compare({"n1": Facts(told)}, {"n1": options_of("slurm")}))
    ((_, finding),) = [one for one in found if one[1].code in ("controller", "state")]
    assert f"{finding.status.value} {finding.code}: {finding.message}" == said
    assert finding.remedy and ("munge" in finding.remedy.text) == ("authentication" in error)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("NodeAddr=10.31.0.21 State=IDLE", "pass address: NodeName n, NodeAddr 10.31.0.21, which"),
        (
            "NodeAddr=10.30.0.22 State=IDLE",
            "warn address: Slurm looks for the node at 10.30.0.22 (NodeAddr), and no interface here"
            " has that, only 10.30.0.21, 10.31.0.21",
        ),
        ("NodeAddr=10.30.0.22 State=DOWN*", "fail address: Slurm looks for the node at 10.30.0.22"),
        ("NodeAddr=fd00::7 State=IDLE", "warn address: Slurm looks for the node at fd00::7 (Node"),
        (
            "NodeAddr=fe80::211:22ff:fe33:4455 State=IDLE",
            "pass address: NodeName n, NodeAddr fe80:",
        ),
        ("NodeAddr=n-ib State=IDLE", "pass state: IDLE"),  # a name is looked up by others
        ("NodeAddr=10.30.0.22 State=IDLE~", "pass state: "),  # in a cloud, none yet
    ],
)
def test_the_address_by_which_slurm_looks_for_it(line: str, expected: str) -> None:
    assert of_state(line)[0].startswith(expected)


def test_a_host_name_that_slurm_does_not_know() -> None:
    """slurmd cannot start; and where it runs, it has found itself by an alias or by -N."""
    line = "NodeName=n NodeHostName=gpu07 State=IDLE"
    told = {**STOPPED, "here.ping": "", "here.node": line}
    assert judged("slurm", told)[0] == (
        "fail name: the host name is node01.cluster.example, should be gpu07 by NodeHostname:"
        " slurmd does not know which node it is"
    )
    assert of_state("NodeHostName=gpu07 State=IDLE")[0] == "pass state: IDLE"
    line = "NodeName=n NodeHostName=node01.other State=IDLE"
    assert not judged("slurm", {**told, "here.node": line})[0].startswith("fail name")


def test_what_follows_from_a_wrong_address_is_no_finding_of_its_own() -> None:
    line = "NodeName=n NodeAddr=10.30.0.22 NodeHostName=node01 State=DOWN*"
    report = one_node({**SLURM, "here.ping": "", "here.node": line})
    assert [line for line in report if line.startswith(("fail", "skip"))] == [
        "fail slurm.address",
        "skip slurm.blocked",
    ]
    line = "NodeName=n NodeHostName=gpu07 State=DOWN*"
    report = one_node({**STOPPED, "here.ping": "", "here.node": line})
    assert [line for line in report if line.startswith(("fail", "skip"))] == [
        "fail slurm.name",
        "skip slurm.blocked",
    ]


def one_node(told: dict[str, str]) -> list[str]:
    """What is found on a node that told this, whatever follows from what."""
    checks = {"slurm": CHECKS["slurm"]}
    answer = Answer("n", ["slurm"], {"slurm": Told(Facts(told), whole=True)})

    def options(check: str, node: str) -> Any:
        return CHECKS[check].options

    results = {"n": judge_node(answer, checks, options)}
    compare([answer], checks, options, results)
    return [f"{f.status.value} slurm.{f.code}" for f in results["n"].findings["slurm"]]


def test_ten_thousand_nodes_fit_into_one_answer(tmp_path: Path) -> None:
    names = [f"node{number:05}" for number in range(10_000)]
    tail = "Arch=x86_64 CPUTot=64 Gres=gpu:a100:4 NodeAddr={0} NodeHostName={0} RealMemory=515000"
    tail = tail.replace("{0}", "10.100.{1}.{2}", 1)  # addresses of their own, as many sites have
    lines = [
        f"NodeName={name} {tail.format(name, place >> 8, place & 255)}"
        f" State={'MIXED' if place % 3 else 'IDLE'} Boards=1"
        for place, name in enumerate(names)
    ]
    for place in range(0, 10_000, 50):
        lines[place] += f" Reason=broken fan {place} [bob@2026-01-01T01:00:00]"
    node = MadeUpNode(tmp_path)
    node.says("scontrol", "\n".join(lines) + "\n")
    told = follow_facts(node)
    records = read.read_nodes(told["asked.nodes"])
    assert {r.names[0] for r in records} == set(names)
    assert len([r for r in records if r.reason]) == 200
    assert records[-1].names[1] == records[-1].address and len(told["asked.nodes"]) < 300_000


def follow_facts(node: MadeUpNode, shell: str = "sh") -> dict[str, str]:
    """What the node tells when it is asked again."""
    again = dataclasses.replace(CHECKS["slurm"], probe=CHECKS["slurm"].follow_probe)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CHECKS, "slurm", again)
        return node.probe("slurm", shell=shell)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("load", "steps", "expected"),
    [
        ("0.42", "NONE", "none"),
        ("0.42", "771.0", "none"),
        ("1.00", "NONE", "ps\n    77 D    rpc_wait_bit_killable            python3"),
        ("63.90", "771.0,772.batch", ""),
    ],
)
def test_all_processes_are_looked_at_where_that_is_worth_it(
    tmp_path: Path, shell: str, load: str, steps: str, expected: str
) -> None:
    node = MadeUpNode(tmp_path)
    node.says("slurmd")
    node.says("scontrol", f"Active Steps             = {steps}\nVersion                  = 24\n")
    waiting = "    77 D    rpc_wait_bit_killable            python3\n"
    node.says("ps", f"     1 Ss   ep_poll                          systemd\n{waiting}")
    node.file("/proc/815/comm", "slurmd\n")
    node.file("/proc/loadavg", f"{load} 0.80 0.70 1/900 4711\n")
    assert node.probe("slurm", shell=shell)["waiting"] == expected
    assert "77 D" in follow_facts(node, shell)["waiting"]


def test_a_node_with_a_task_that_could_not_be_killed_is_asked_again() -> None:
    follow = CHECKS["slurm"].follow
    assert follow
    line = "NodeName={} State=MIXED+DRAIN Reason=Kill task failed [root@2026-11-30T17:51:08]"
    facts = {
        "n1": Facts({**SLURM, "here.node": line.format("n1"), "here.ping": "", "waiting": ""}),
        "n2": Facts({**SLURM, "here.node": line.format("n2"), "here.ping": "", "waiting": "none"}),
        "n3": Facts({**SLURM, "here.node": "NodeName=n3 State=IDLE", "here.ping": ""}),
    }
    assert list(follow(facts, dict.fromkeys(facts, options_of("slurm")))) == ["n1"]


ASKED_ANSWER = "NodeName=n1 State=IDLE\nNodeName=n2 State=IDLE"


@pytest.mark.parametrize(
    ("of_login", "expected"),
    [
        ({"installed": "no", "slurmd": "stopped", "enabled": "no"}, []),
        ({"slurmd": "stopped", "enabled": "no"}, []),  # the package is there, and not used
        (
            {},
            [
                ("pass", "slurmctld: primary ctl UP"),
                ("unknown", "slurmd is to run here, and Slurm has no node of this name"),
            ],
        ),
    ],
)
def test_a_node_that_slurm_does_not_have(
    of_login: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    asked = {"asked.status": "0", "asked.nodes": ASKED_ANSWER, "asked.ping": sample("ping-01-up")}
    facts = {
        "n1": Facts({**SLURM, "node": "n1", "host": "n1", **asked}),
        "login": Facts({**SLURM, "node": "login", "host": "login", **of_login}),
    }
    compare = CHECKS["slurm"].compare
    assert compare
    found = list(compare(facts, dict.fromkeys(facts, options_of("slurm"))))
    said = [(f.status.value, f.message) for node, f in found if node == "login"]
    assert [pair for pair in said if "slurm.conf" not in pair[1]] == expected
