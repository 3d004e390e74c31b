"""The check slurm on situations that misled other tools, by whole runs over made-up nodes."""

import shutil
from pathlib import Path

import pytest

from tests.cases.driver import FOLDER, Case, MadeUp, Recorded, ask, lines_of, read_case

DATA = Path(__file__).resolve().parent.parent / "data" / "slurm" / "cases"


def lines(case: Case, folder: Path, *options: str) -> list[str]:
    """Each finding as "NODE STATUS slurm.CODE: MESSAGE -> REMEDY"."""
    return lines_of(ask(case, folder, ["slurm"], options))


def public(number: str) -> Case:
    return read_case(*FOLDER.glob(f"inputs/{number}-*.txt"), DATA / f"{number}.txt")


def node_says(nodes: str, text: str, *, ping: str = "Slurmctld(primary) at ctl is UP\n") -> Case:
    """A cluster whose nodes all hear the same of their controller."""
    said = [
        Recorded("scontrol", "show node -o", 0, text.encode(), b""),
        Recorded("scontrol", "ping", 0, ping.encode(), b""),
    ]
    return Case({name: MadeUp(list(said)) for name in nodes.split()})


def states(found: list[str]) -> dict[str, str]:
    """The finding about the state, by node."""
    return {line.split()[0]: line.split(" ", 1)[1] for line in found if " slurm.state: " in line}


def sinfo(rows: str) -> Case:
    said = Recorded("sinfo", "-h -N -o %N %P %t", 0, rows.encode(), b"")
    return Case({row.split()[0]: MadeUp([said]) for row in rows.splitlines()})


def test_case_087_states_with_signs_and_nodes_in_several_partitions(tmp_path: Path) -> None:
    found = lines(public("087"), tmp_path)
    said = states(found)
    assert len(said) == 5
    assert len([line for line in found if line.startswith("node03 fail")]) == 1
    assert said["node01"].startswith("pass slurm.state: IDLE+POWERED_DOWN: power saving")
    assert said["node02"] == "pass slurm.state: MIXED+PLANNED"
    assert said["node03"].startswith("fail slurm.state: DOWN+NOT_RESPONDING, should be in service")
    assert said["node04"].startswith(
        "fail slurm.state: ALLOCATED+DRAIN, should be in service; draining (work still"
    )
    assert said["node05"] == "pass slurm.state: PLANNED"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            "c1 a* idle#\nc1 b idle#\nc2 b drain\nc3 b alloc*\nc4 b idle@\nc5 b comp\n",
            {"c1": "pass", "c2": "fail", "c3": "fail", "c4": "warn", "c5": "pass"},
        ),
        (
            "x1 a maint\nx2 a idle%\nx2 b idle%\nx3 a inval\nx4 a boot^\nx5 a unk\nx6 a resv\n"
            "x7 a mix+\nx8 a drained$\nx9 a failg\n",
            {"x1": "warn", "x2": "pass", "x3": "fail", "x4": "warn", "x5": "warn", "x6": "pass"}
            | {"x7": "pass", "x8": "fail", "x9": "fail"},
        ),
    ],
)
def test_more_of_087(rows: str, expected: dict[str, str], tmp_path: Path) -> None:
    found = lines(sinfo(rows), tmp_path)
    assert {node: said.split()[0] for node, said in states(found).items()} == expected
    assert len([line for line in found if " slurm.state: " in line]) == len(expected)


def test_case_089_a_reason_with_signs_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    said = states(lines(public("089"), tmp_path))["node05"]
    assert said.startswith(
        "warn slurm.state: IDLE+DRAIN, drained by admin2 since 2025-10-12T09:00:00:"
        " luefter=laut, S/N=88 pr\\xe9vu [x] -> Somebody has taken the node out of service"
    )


def test_more_of_089(tmp_path: Path) -> None:
    # the second as Slurm 22.05.8 wrote it: the reason before comment and extra
    text = (
        "NodeName=a1 NodeHostName=a1 State=MIXED+DRAIN ThreadsPerCore=2 Comment=Reason=no State=UP"
        " Reason=see [2], Gres=gpu:9 prüfen [ops@2026-01-02T03:04:05]\n"
        "NodeName=a2 NodeHostName=a2 State=IDLE+DRAIN ThreadsPerCore=1 CurrentWatts=0 AveWatts=0"
        " Reason=lüfter=laut [x] State=IDLE [bob@2026-11-30T22:50:16]"
        " Comment=see Reason=foo State=DOWN Extra=Reason=bar\n"
    )
    said = states(lines(node_says("a1 a2", text), tmp_path))
    assert said["a1"].startswith(
        "warn slurm.state: MIXED+DRAIN, draining (work still runs there) by ops since"
        " 2026-01-02T03:04:05: see [2], Gres=gpu:9 prüfen -> "
    )
    assert said["a2"].startswith(
        "warn slurm.state: IDLE+DRAIN, drained by bob since 2026-11-30T22:50:16:"
        " lüfter=laut [x] State=IDLE -> "
    )


def test_case_091_the_backup_does_the_work(tmp_path: Path) -> None:
    found = lines(public("091"), tmp_path)
    assert found[0].startswith(
        "node01 warn slurm.controller: slurmctld: primary ctl01 DOWN, backup ctl02 UP -> Look on"
    ) or any("warn slurm.controller: slurmctld: primary ctl01 DOWN" in line for line in found)
    assert states(found) == {"node01": "pass slurm.state: IDLE"}


@pytest.mark.parametrize(
    ("ping", "expected"),
    [
        (
            "Slurmctld(primary) at m1 is UP\nSlurmctld(backup1) at m2 is DOWN\n"
            "Slurmctld(backup2) at m3 is UP\n",
            "warn slurm.controller: slurmctld: primary m1 UP, backup1 m2 DOWN, backup2 m3 UP",
        ),
        (
            "Slurmctld(primary/backup) at m1/m2 are DOWN/UP\n",
            "warn slurm.controller: slurmctld: primary m1 DOWN, backup m2 UP",
        ),
        (
            "Slurmctld(primary) at m1 is UP\nSlurmctld(backup) at m2 is UP\n",
            "pass slurm.controller: slurmctld: primary m1 UP, backup m2 UP",
        ),
    ],
)
def test_more_of_091(ping: str, expected: str, tmp_path: Path) -> None:
    case = node_says("n1 n2", "NodeName=n1 State=IDLE\nNodeName=n2 State=MIXED\n", ping=ping)
    found = [line for line in lines(case, tmp_path) if "slurm.controller" in line]
    assert [line.partition(" -> ")[0] for line in found] == [f"n1 {expected}", f"n2 {expected}"]


def with_gpus(gres: dict[str, tuple[str, int]]) -> Case:
    """Nodes with a Gres string and so many device files."""
    rows = (f"NodeName={n} State=IDLE Gres={g} Boards=1\n" for n, (g, _) in gres.items())
    case = node_says(" ".join(gres), "".join(rows))
    for name, (_, count) in gres.items():
        node = case.nodes[name]
        node.said.append(Recorded("slurmd", "-V", 0, b"slurm 24.11.5", b""))
        node.files |= {f"/dev/nvidia{n}": b"" for n in range(count)}
        node.said.append(Recorded("scontrol", "show slurmd", 0, b"Version = 24.11.5\n", b""))
        node.files |= {"/dev/nvidiactl": b"", "/proc/7/comm": b"slurmd\n"}
        node.files |= {"/var/spool/slurmd/": b""}
    return case


def of_gres(found: list[str]) -> dict[str, str]:
    chosen = [line.partition(" -> ")[0] for line in found if " slurm.gres: " in line]
    return {line.split()[0]: line.split(" ", 1)[1] for line in chosen}


def test_case_093_gpus_are_counted_in_every_form(tmp_path: Path) -> None:
    case = read_case(*FOLDER.glob("inputs/093-*.txt"))
    gres = dict(line.split(": Gres=") for line in case.notes[0].splitlines())
    counts = {"a": 8, "b": 4, "c": 0, "d": 0, "e": 1, "f": 8, "g": 8, "h": 4}
    found = lines(with_gpus({name: (gres[name], counts[name]) for name in gres}), tmp_path)
    # c is cut in slices, which have no such files; d has no GPU
    assert of_gres(found) == {
        name: f"pass slurm.gres: {counts[name]} GPU{'s' * (counts[name] > 1)} in Slurm's"
        f" configuration ({gres[name]}),"
        f" {counts[name]} device files /dev/nvidiaN"
        for name in "abefgh"
    }
    assert not [line for line in found if " fail " in line]


def test_more_of_093(tmp_path: Path) -> None:
    found = lines(
        with_gpus(
            {
                "k": ("gpu:h100:8(S:0-1),shard:h100:64(S:0-1)", 7),
                "l": ("mps:200,gpu:l40s:4(S:0,2),tmp:1T", 4),
                "m": ("shard:16,license:3", 0),
                "n": ("gpu:a:3,gpu:b:2,gpu:1", 6),
                "o": ("gpu:2", 0),
            }
        ),
        tmp_path,
    )
    assert of_gres(found) == {
        "k": "fail slurm.gres: 8 GPUs in Slurm's configuration"
        " (gpu:h100:8(S:0-1),shard:h100:64(S:0-1)), 7 device files /dev/nvidiaN",
        "l": "pass slurm.gres: 4 GPUs in Slurm's configuration"
        " (mps:200,gpu:l40s:4(S:0,2),tmp:1T), 4 device files /dev/nvidiaN",
        "n": "pass slurm.gres: 6 GPUs in Slurm's configuration (gpu:a:3,gpu:b:2,gpu:1),"
        " 6 device files /dev/nvidiaN",
        "o": "fail slurm.gres: 2 GPUs in Slurm's configuration (gpu:2), 0 device files"
        " /dev/nvidiaN",
    }


def of_conf(found: list[str]) -> dict[str, str]:
    said: dict[str, str] = {}
    for line in found:
        node, _, rest = line.partition(" -> ")[0].partition(" ")
        if " slurm.conf: " in rest:
            said[node] = f"{said[node]}; {rest}" if node in said else rest
    return said


def test_case_095_one_node_has_another_slurm_conf(tmp_path: Path) -> None:
    same = "pass slurm.conf: slurm.conf is the same as on most nodes"
    assert of_conf(lines(public("095"), tmp_path)) == {
        "node01": same,
        "node02": same,
        "node03": "warn slurm.conf: slurm.conf differs from that of 3 nodes:"
        " here 'SlurmdTimeout=120', there 'SlurmdTimeout=300'",
        "node04": same,
    }


def with_files(**nodes: dict[str, str]) -> Case:
    return Case(
        {name: MadeUp(files={p: t.encode() for p, t in fs.items()}) for name, fs in nodes.items()}
    )


CONF = "ClusterName=c\nSlurmdTimeout=300\nInclude nodes.conf\nNodeName=n[1-9] \\\n  CPUs=4\n"


def test_comments_and_blanks_do_not_count(tmp_path: Path) -> None:
    other = "# ours\nClusterName = c # the name\n\n\nSlurmdTimeout=300\ninclude  nodes.conf\n"
    other += "NodeName=n[1-9]   CPUs=4\n"
    case = with_files(
        a={"/etc/slurm/slurm.conf": CONF, "/etc/slurm/nodes.conf": "PartitionName=x\n"},
        b={"/run/slurm/conf/slurm.conf": other, "/run/slurm/conf/nodes.conf": "PartitionName=x"},
    )
    same = "pass slurm.conf: slurm.conf is the same on all nodes"
    assert of_conf(lines(case, tmp_path)) == {"a": same, "b": same}


def test_what_is_included_and_cgroup_conf_count(tmp_path: Path) -> None:
    def files(folder: str, nodes: str, limits: str) -> dict[str, str]:
        return {f"{folder}/slurm.conf": CONF, f"{folder}/nodes.conf": nodes} | {
            f"{folder}/cgroup.conf": limits
        }

    case = with_files(
        a=files("/etc/slurm", "PartitionName=x\n", "ConstrainCores=yes\n"),
        b=files("/etc/slurm", "PartitionName=x MaxTime=1\n", "ConstrainCores=yes\n"),
        c=files("/run/slurm/conf", "PartitionName=x\n", "ConstrainCores=yes\n"),
        d=files("/etc/slurm", "PartitionName=x\n", "ConstrainCores=no\n"),
        login=files("/etc/slurm", "PartitionName=x\n", "nothing that counts here\n"),
    )
    for name in "abcd":
        case.nodes[name].said.append(Recorded("slurmd", "-V", 0, b"slurm 24.11.5", b""))
    same = "pass slurm.conf: slurm.conf is the same as on most nodes"
    assert of_conf(lines(case, tmp_path)) == {
        "a": same,
        "b": "warn slurm.conf: slurm.conf differs from that of 4 nodes:"
        " here 'PartitionName=x MaxTime=1', there 'PartitionName=x'",
        "c": same,
        "d": f"{same}; warn slurm.conf: cgroup.conf differs from that of 3 nodes:"
        " here 'ConstrainCores=no', there 'ConstrainCores=yes'",
        "login": same,
    }


def test_two_nodes_that_differ_have_no_majority_and_no_password_is_shown(tmp_path: Path) -> None:
    case = with_files(
        a={"/etc/slurm/slurm.conf": "ClusterName=c\nAccountingStoragePass=one\nA=1\n"},
        b={"/etc/slurm/slurm.conf": "ClusterName=c\nAccountingStoragePass=two\nA=2\n"},
    )
    words = "warn slurm.conf: slurm.conf differs from that of as many other nodes"
    assert of_conf(lines(case, tmp_path)) == {
        "a": f"{words}: here 'A=1', there 'A=2'",
        "b": f"{words}: here 'A=2', there 'A=1'",
    }


def test_files_that_differ_on_purpose_are_not_compared(tmp_path: Path) -> None:
    flags = "DebugFlags=Agent,NO_CONF_HASH\n"
    case = with_files(
        a={"/etc/slurm/slurm.conf": flags}, b={"/etc/slurm/slurm.conf": flags + "A=2\n"}
    )
    assert of_conf(lines(case, tmp_path)) == {}
    assert of_conf(lines(public("095"), tmp_path / "b", "slurm.same_conf=no")) == {}


def test_case_097_who_drained_a_node_and_why_is_kept(tmp_path: Path) -> None:
    said = states(lines(public("097"), tmp_path))
    assert said["node08"].startswith(
        "warn slurm.state: IDLE+DRAIN, drained by admin1 since 2025-10-12T09:00:00:"
        " waiting for new PSU, do not resume -> Somebody has taken the node out"
    )
    assert "resume it by hand" not in said["node08"]
    assert said["node09"].startswith(
        "warn slurm.state: IDLE+DRAIN, drained by root since 2025-10-14T03:00:00:"
        " clustercheck: ntp offset 4.2 s -> The node was drained after a finding of these checks"
    )


@pytest.mark.parametrize(
    ("state", "reason", "expected"),
    [
        ("MIXED+DRAIN", "RMA 4471 [bea@2026-02-01T10:00:00]", "warn slurm.state: MIXED+DRAIN, d"),
        ("IDLE+DRAIN", "burn-in [ops7@2026-02-01T10:00:00]", "warn slurm.state: IDLE+DRAIN, d"),
        ("IDLE+DRAIN", "NHC: no /home [bea@2026-02-01T10:00:00]", "fail slurm.state: IDLE+DRAIN"),
        ("DOWN+DRAIN", "RMA [bea@2026-02-01T10:00:00]", "fail slurm.state: DOWN+DRAIN, should be"),
    ],
)
def test_more_of_097(state: str, reason: str, expected: str, tmp_path: Path) -> None:
    case = node_says("n1", f"NodeName=n1 State={state} Reason={reason}\n")
    said = states(lines(case, tmp_path))["n1"]
    assert said.startswith(expected)
    assert reason.partition(" [")[0] in said


def test_case_099_the_cause_of_a_drain_is_looked_at(tmp_path: Path) -> None:
    said = states(lines(public("099"), tmp_path))
    assert said["n1"].startswith(
        "fail slurm.state: IDLE+DRAIN, should be in service; drained by slurm since"
        " 2025-10-14T01:00:00: SlurmdSpoolDir is full; /var/spool/slurmd is 61 % full now"
        " (7.63 GiB free) -> There is room again"
    )
    assert said["n2"].startswith(
        "fail slurm.state: IDLE+DRAIN, should be in service; drained by root since"
        " 2025-10-14T02:00:00: Kill task failed; still waiting in the kernel: python3"
        " (process 41022, in rpc_wait_bit_killable, NFS) -> A process of a job could not be ended"
    )


def test_more_of_099(tmp_path: Path) -> None:
    text = (
        "NodeName=s1 State=IDLE+DRAIN Reason=SlurmdSpoolDir is full [root@2026-01-01T01:00:00]\n"
        "NodeName=s2 State=MIXED+DRAIN Reason=Kill task failed [slurm@2026-01-01T02:00:00]\n"
        "NodeName=s3 State=IDLE+DRAIN Reason=Kill task failed [root@2026-01-01T02:00:00]\n"
    )
    case = node_says("s1 s2 s3", text)
    full = b"Filesystem 1024-blocks Used Available Capacity Mounted on\n"
    full += b"/dev/mapper/vg-var 10255636 10255636 0 100% /var\n"
    case.nodes["s1"].said.append(Recorded("df", "-P -k */var/spool/slurmd", 0, full, b""))
    waiting = b"  1 Ss ep_poll systemd\n 77 D  nv_drm_wait a b\n 78 Ds cl_sync_io_wait ior\n"
    ps = Recorded("ps", "-eo pid=,stat=,wchan:32=,comm=", 0, waiting, b"")
    case.nodes["s2"].said.append(ps)
    case.nodes["s3"].said.append(ps._replace(stdout=b"  1 Ss ep_poll systemd\n"))
    said = states(lines(case, tmp_path))
    assert "full; /var/spool/slurmd is 100 % full now (0 KiB free) -> Make room" in said["s1"]
    assert (
        "Kill task failed; still waiting in the kernel: a b (process 77, in nv_drm_wait, a GPU's"
        " driver), ior (process 78, in cl_sync_io_wait, Lustre) -> " in said["s2"]
    )
    assert "failed; no process waits in the kernel any more -> " in said["s3"]


def test_a_controller_that_is_gone_is_one_finding_for_each_node(tmp_path: Path) -> None:
    gone = b"slurm_load_partitions: Unable to contact slurm controller (connect failure)\n"
    said = [
        Recorded("scontrol", "show node -o", 1, b"", gone),
        Recorded("scontrol", "ping", 1, b"Slurmctld(primary) at ctl is DOWN\n****\n", b""),
    ]
    case = Case({name: MadeUp(list(said)) for name in ("n1", "n2", "n3")})
    expected = "fail slurm.controller: no slurmctld answers (primary ctl DOWN)"
    found = lines(case, tmp_path)
    bad = [line.partition(" -> ")[0] for line in found if " skip " not in line]
    assert bad == [f"{name} {expected}" for name in case.nodes]


def test_only_two_nodes_ask_the_controller(tmp_path: Path) -> None:
    log = tmp_path / "asked"
    names = [f"n{number:02}" for number in range(12)]
    text = "".join(f"NodeName={name} State=IDLE Gres=(null) Boards=1\n" for name in names)
    case = node_says(" ".join(names), text)
    for node in case.nodes.values():
        node.said = []
        script = f'echo "$*" >>{log}\n[ "$1" = show ] && printf %s \'{text}\'\nexit 0\n'
        node.files["shim/scontrol"] = script.encode()
    found = states(lines(case, tmp_path / "nodes"))
    assert found == dict.fromkeys(names, "pass slurm.state: IDLE")
    asked = ["ping", "show config", "show node -o"]
    assert sorted(log.read_text().split("\n")) == ["", *sorted(asked * 2)]
    shutil.rmtree(tmp_path / "nodes")
    log.unlink()
    assert states(lines(case, tmp_path / "nodes", "slurm.ask=never")) == {}
    assert not log.exists()
