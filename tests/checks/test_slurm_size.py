"""The check slurm: what a node has against what Slurm counts on, and releases."""

import importlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from clustercheck.check import Facts
from tests.checks.test_slurm import follow_facts
from tests.made_up import CHECKS, MadeUpNode, judged, options_of
from tests.shells import SHELLS
from tests.slurm_facts import SLURM

read = importlib.import_module("clustercheck.checks._slurm_read")
SAMPLES = Path(__file__).resolve().parent.parent / "data" / "slurm" / "samples"

# As slurmd 22.05.8 prints it, with the numbers of the node gpu01 of the samples.
FOUND = (
    "NodeName=gpu01 CPUs=64 Boards=1 SocketsPerBoard=2 CoresPerSocket=16 ThreadsPerCore=2"
    " RealMemory=515848\nUpTime=0-04:27:35\n"
)
# What slurmctld 24.11 has of that node.
WANTED = "CPUTot=64 Sockets=2 CoresPerSocket=16 ThreadsPerCore=2 RealMemory=515000"


def sized(
    hardware: str = FOUND, wanted: str = WANTED, state: str = "State=IDLE", **facts: str
) -> list[str]:
    """The findings on size and release."""
    line = f"NodeName=gpu01 {wanted} {state}"
    told = {**SLURM, "here.node": line, "here.ping": "", "hardware": hardware, **facts}
    told.setdefault("hardware_status", "0")
    kept = ("size", "version")
    return [f for f in judged("slurm", told) if f.split(" ")[1].rstrip(":") in kept]


ENOUGH = "pass size: slurmd -C finds 64 CPUs and 515848 MiB of memory, no less than Slurm counts on"
SMALL = FOUND.replace("515848", "450312")
HALF = FOUND.replace("CPUs=64", "CPUs=32").replace("SocketsPerBoard=2", "SocketsPerBoard=1")
LESS_MEMORY = "450312 MiB of memory, should be 515000 MiB"


@pytest.mark.parametrize(
    ("hardware", "wanted", "parameters", "expected"),
    [
        (FOUND, WANTED, "", ENOUGH),
        # more is normal; CPUs alone are shown as so many sockets
        (FOUND, WANTED.replace("515000", "1"), "", ENOUGH),
        (FOUND, "CPUTot=64 Sockets=64 CoresPerSocket=1 ThreadsPerCore=1 RealMemory=1", "", ENOUGH),
        # cores count as CPUs, threads are left aside
        (FOUND, WANTED.replace("CPUTot=64", "CPUTot=32"), "", ENOUGH),
        # one socket a NUMA node, as some settings of the firmware have it
        (
            FOUND.replace("Board=2 CoresPerSocket=16", "Board=8 CoresPerSocket=4"),
            WANTED,
            "",
            ENOUGH,
        ),
        (
            FOUND.replace("Boards=1 SocketsPerBoard=2", "Boards=2 SocketsPerBoard=1"),
            WANTED,
            "",
            ENOUGH,
        ),
        (SMALL, WANTED, "", f"fail size: slurmd -C finds {LESS_MEMORY} by Slurm's configuration"),
        (
            HALF,
            WANTED,
            "",
            "fail size: slurmd -C finds 32 CPUs, should be 64; 1*16*2 threads, should be 2*16*2 by"
            " Slurm's configuration",
        ),
        (
            FOUND.replace("CPUs=64", "CPUs=32").replace("ThreadsPerCore=2", "ThreadsPerCore=1"),
            WANTED.replace("CPUTot=64", "CPUTot=32"),
            "",
            "fail size: slurmd -C finds 2*16*1 threads, should be 2*16*2 by Slurm's configuration",
        ),
        (
            SMALL,
            WANTED,
            "slurmdparameters Config_Overrides,l3cache_as_socket;",
            f"pass size: slurmd -C finds {LESS_MEMORY}: taken as it is, by config_overrides",
        ),
        (
            SMALL,
            WANTED,
            "fastschedule 2;",
            f"pass size: slurmd -C finds {LESS_MEMORY}: taken as it is, by FastSchedule=2",
        ),
        (
            SMALL,
            WANTED,
            "fastschedule 1;slurmctldparameters node_reg_mem_percent=90;",
            f"fail size: slurmd -C finds {LESS_MEMORY} (90 % is enough) by Slurm's configuration",
        ),
        (
            SMALL,
            WANTED,
            "slurmctldparameters idle_on_node_suspend,node_reg_mem_percent=87.4;",
            "pass size: slurmd -C finds 64 CPUs and 450312 MiB of memory, no less than Slurm counts"
            " on",
        ),
        (
            "",
            WANTED,
            "",
            "unknown size: whether the node has what Slurm counts on: slurmd -C tells nothing (exit"
            " status 0)",
        ),
    ],
)
def test_a_size(hardware: str, wanted: str, parameters: str, expected: str) -> None:
    assert sized(hardware, wanted, parameters=parameters) == [expected]


def test_a_slurmd_that_hangs_over_it() -> None:
    assert sized("", hardware_status="124") == [
        "unknown size: whether the node has what Slurm counts on: slurmd -C gives no answer within"
        " 5 s"
    ]


@pytest.mark.parametrize("wanted", ["", "CPUTot=64 RealMemory=515000"])
def test_what_is_not_told_is_compared_with_nothing(wanted: str) -> None:
    """As by sinfo, and by runs of an earlier release."""
    assert sized(SMALL, wanted) == []


@pytest.mark.parametrize("state", ["IDLE+CLOUD+POWERED_DOWN", "FUTURE"])
def test_a_node_that_is_not_there_yet(state: str) -> None:
    assert sized(SMALL, state=f"State={state}") == []


LOW = "Low RealMemory (reported:450312 < 100.00% of configured:515000)"


@pytest.mark.parametrize(
    ("hardware", "now"),
    [
        (SMALL, LESS_MEMORY),
        (FOUND, "enough now (64 CPUs and 515848 MiB of memory)"),
    ],
)
def test_a_node_that_slurm_drained_for_it_has_one_finding(hardware: str, now: str) -> None:
    reason = f"{LOW} [slurm@2026-11-30T17:50:23]"
    line = f"NodeName=gpu01 {WANTED} State=IDLE+DRAIN+INVALID_REG Reason={reason}"
    told = {**SLURM, "here.node": line, "here.ping": "", "hardware": hardware}
    found = [f for f in judged("slurm", told) if not f.startswith("pass")]
    assert found == [
        "fail state: IDLE+DRAIN+INVALID_REG, should be in service; set by slurm since"
        f" 2026-11-30T17:50:23: {LOW}; slurmd -C finds {now}"
    ]


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        ("24.11.5", "24.11.5", "pass version: slurmd 24.11.5, slurmctld 24.11.5"),
        ("24.11.0", "24.11.5", "pass version: slurmd 24.11.0, slurmctld 24.11.5"),
        ("24.11.5", "24.11.0", "pass version: slurmd 24.11.5, slurmctld 24.11.0"),
        ("23.02.7", "23.11.4", "pass version: slurmd 23.02.7, slurmctld 23.11.4"),
        ("22.05.8", "23.11.4", "pass version: slurmd 22.05.8, slurmctld 23.11.4"),
        (
            "21.08.8",
            "23.11.4",
            "fail version: slurmd 21.08.8 is more than 2 major releases behind its slurmctld"
            " 23.11.4",
        ),
        (
            "22.05.8",
            "24.05.1",
            "fail version: slurmd 22.05.8 is more than 2 major releases behind its slurmctld"
            " 24.05.1",
        ),
        ("23.02.7", "24.11.0-0rc1", "pass version: slurmd 23.02.7, slurmctld 24.11.0-0rc1"),
        (
            "22.05.8",
            "24.11.1",
            "fail version: slurmd 22.05.8 is more than 3 major releases behind its slurmctld"
            " 24.11.1",
        ),
        ("24.05.4", "25.11.0", "pass version: slurmd 24.05.4, slurmctld 25.11.0"),
        (
            "24.05.4",
            "23.11.10",
            "fail version: slurmd 24.05.4 is newer than its slurmctld 23.11.10, which takes none"
            " that is",
        ),
    ],
)
def test_releases(mine: str, theirs: str, expected: str) -> None:
    answer = SLURM["answer"].replace("24.11.5", mine)
    found = sized("", "", answer=answer, **{"here.version": theirs})
    assert found == [expected]


@pytest.mark.parametrize("theirs", ["", "unknown", "24"])
def test_a_release_that_is_not_told(theirs: str) -> None:
    assert sized("", "", **{"here.version": theirs}) == []


def test_a_slurmd_that_is_not_heard_for_its_release_has_one_finding() -> None:
    line = "NodeName=gpu01 State=DOWN* Reason=Not responding [slurm@2026-11-30T17:50:23]"
    told = {**SLURM, "here.node": line, "here.ping": "", "here.version": "23.11.4"}
    found = [f for f in judged("slurm", told) if not f.startswith("pass")]
    assert found == [
        "fail state: DOWN+NOT_RESPONDING, should be in service; set by slurm since"
        " 2026-11-30T17:50:23: Not responding; slurmd 24.11.5 is newer than its slurmctld 23.11.4,"
        " which takes none that is"
    ]


def test_what_is_configured_is_read_from_the_samples() -> None:
    for name in ("01-idle", "17-oneliner-all"):
        records = read.read_nodes((SAMPLES / f"{name}.txt").read_text())
        sizes = {record.names[0]: record.size for record in records}
        assert sizes["gpu01"] == (64, 2, 16, 2, 515000)


CONF = (
    "ClusterName=demo\nSlurmdParameters=config_overrides\n"
    "SlurmctldParameters=node_reg_mem_percent=95\n"
)


@pytest.mark.parametrize("shell", SHELLS)
def test_what_the_probe_tells(tmp_path: Path, shell: str) -> None:
    node = MadeUpNode(tmp_path)
    node.hide("scontrol", "sinfo")
    node.command("slurmd", f"[ \"$*\" = -C ] && printf '%s' '{FOUND}'")
    node.file("/etc/slurm/slurm.conf", CONF)
    told = node.probe("slurm", shell=shell)
    assert told["hardware"] == FOUND.splitlines()[0]
    assert told["hardware_status"] == "0"
    assert told["parameters"] == (
        "slurmdparameters config_overrides;slurmctldparameters node_reg_mem_percent=95;"
    )


@pytest.mark.parametrize("shell", SHELLS)
def test_a_slurmd_that_hangs_in_the_probe(tmp_path: Path, shell: str) -> None:
    node = MadeUpNode(tmp_path)
    node.hide("scontrol", "sinfo")
    node.command("slurmd", "exec sleep 30")
    told = node.probe("slurm", shell=shell)
    assert told["hardware"] == ""
    assert told["hardware_status"] in ("124", "137", "143")


def by_way_of_a_node(facts: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The findings on size and release, where this machine cannot ask the controller."""
    compare = CHECKS["slurm"].compare
    assert compare
    told = {name: Facts({**SLURM, "host": name, "node": name, **of}) for name, of in facts.items()}
    found = compare(told, dict.fromkeys(told, options_of("slurm")))
    return [
        f"{node} {f.status.value} {f.code}: {f.message}"
        for node, f in found
        if f.code in ("size", "version")
    ]


@pytest.mark.parametrize("shell", SHELLS)
def test_asked_by_way_of_a_node(tmp_path: Path, shell: str) -> None:
    node = MadeUpNode(tmp_path)
    lines = [f"NodeName=n{n} {WANTED} State=IDLE Boards=1" for n in (1, 2)]
    (tmp_path / "nodes").write_text("\n".join(lines) + "\n")
    node.command(
        "scontrol",
        f"""case $* in 'show node -o') cat {tmp_path}/nodes ;;
        'show config') printf 'Configuration data\\nSLURM_VERSION           = 24.11.5\\n' ;;
        *) echo 'Slurmctld(primary) at ctl is UP' ;; esac""",
    )
    told = follow_facts(node, shell)
    assert told["asked.version"] == "24.11.5"
    here = {"hardware": FOUND, "hardware_status": "0"}
    assert by_way_of_a_node({"n1": {**here, **told}, "n2": {**here, "hardware": SMALL}}) == [
        f"n1 {ENOUGH}",
        "n1 pass version: slurmd 24.11.5, slurmctld 24.11.5",
        f"n2 fail size: slurmd -C finds {LESS_MEMORY} by Slurm's configuration",
        "n2 pass version: slurmd 24.11.5, slurmctld 24.11.5",
    ]
