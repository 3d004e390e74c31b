"""The check cpu: the kernel's tables, read by the probe and judged."""

import re
from pathlib import Path

import pytest

from tests.made_up import MadeUpNode, judged
from tests.shells import SHELLS

NONE = {"governors": "", "driver": ""}
NO_GOVERNOR = "skip governor: no frequency governor: the firmware or the host decides"


def stat(used: int, idle: int) -> str:
    """The first line of /proc/stat: `used` ticks in all, spread over what counts as use."""
    return f"cpu  {used - 3} 1 1 {idle} 0 1 0 0 0 0"


def loaded(load: str, cpus: str, used: int, idle: int) -> list[str]:
    """What is said of a load, with so many ticks of use and of idleness between the looks."""
    first, second = stat(1000, 1000), stat(1000 + used, 1000 + idle)
    facts = {"load": load, "cpus": cpus, "first": first, "second": second, **NONE}
    return judged("cpu", facts)[:-1]


@pytest.mark.parametrize(
    ("load", "cpus", "used", "idle", "expected"),
    [
        (
            "0.31 0.2 0.1 1/900 77",
            "0-127",
            0,
            0,
            "pass busy: 0.31 tasks at a time on 128 processors in the last minute",
        ),
        # a job has all of them
        (
            "128.4 90 60 9/9 9",
            "0-127",
            99,
            1,
            "pass busy: 128.4 tasks at a time on 128 processors in the last minute",
        ),
        (
            "256.2 90 60 9/9 9",
            "0-63,128-191",
            99,
            1,
            "warn busy: 256.2 tasks at a time on 128 processors"
            " in the last minute, and 99 % of all processors are in use; should"
            " be 192 tasks at most",
        ),
        (
            "256.2 90 60 9/9 9",
            "0-127",
            2,
            98,
            "pass busy: 256.2 tasks at a time on 128 processors"
            " in the last minute, and 2 % of all processors are in use: it is"
            " going down",
        ),
        (
            "1.90 1 1 1/9 9",
            "0",
            99,
            1,
            "pass busy: 1.9 tasks at a time on 1 processor in the last minute",
        ),
        (
            "",
            "0-3",
            0,
            0,
            "unknown busy: how many tasks there are cannot be read from /proc/loadavg",
        ),
        ("99.0", "", 0, 0, "unknown busy: how many processors there are cannot be read"),
        ("99.0", "9-1", 0, 0, "unknown busy: how many processors there are cannot be read"),
        (
            "99.0",
            "4",
            0,
            0,
            "unknown busy: 99 tasks at a time on 4 processors"
            " in the last minute, and whether it still is cannot be read"
            " from /proc/stat",
        ),
    ],
)
def test_a_node_is_busy_when_its_processors_are(
    load: str, cpus: str, used: int, idle: int, expected: str
) -> None:
    assert loaded(load, cpus, used, idle) == [expected]


@pytest.mark.parametrize(
    ("load", "used", "status"), [("30.0", 30, "warn"), ("30.0", 5, "pass"), ("12.0", 99, "pass")]
)
def test_a_benchmark_wants_the_processors_for_itself(load: str, used: int, status: str) -> None:
    facts = {"load": load, "cpus": "0-127", **NONE}
    facts |= {"first": stat(1000, 1000), "second": stat(1000 + used, 1100 - used)}
    found = judged("cpu", facts, busy_percent=10.0)[0]
    assert found.startswith(
        f"{status} busy: {load[:2]} tasks at a time on 128 processors in the last minute"
    )


def test_of_few_processors_asking_takes_some_itself() -> None:
    facts = {"load": "1.8", "cpus": "0-3", "first": stat(9, 0), "second": stat(99, 0), **NONE}
    assert judged("cpu", facts, busy_percent=10.0) == [
        "pass busy: 1.8 tasks at a time on 4 processors in the last minute",
        NO_GOVERNOR,
    ]


@pytest.mark.parametrize(
    ("governors", "driver", "allowed", "expected"),
    [
        ("performance", "acpi-cpufreq", (), "pass governor: the frequency governor is performance"),
        ("powersave", "intel_pstate", (), "pass governor: the frequency governor is powersave"),
        ("powersave", "amd-pstate-epp", (), "pass governor: the frequency governor is powersave"),
        (
            "performance powersave",
            "acpi-cpufreq",
            (),
            "warn governor: the frequency governor is performance and powersave of acpi-cpufreq,"
            " which keeps the clock at its lowest; should be any other",
        ),
        ("powersave", "intel_cpufreq", (), "warn governor: the frequency governor is powersave of"),
        (
            "schedutil",
            "acpi-cpufreq",
            ("performance",),
            "warn governor: the frequency governor is schedutil of acpi-cpufreq, should be"
            " performance",
        ),
        ("powersave", "intel_pstate", ("performance",), "warn governor:"),
        ("turbo", "", (), "unknown governor: no frequency governor is known as 'turbo'"),
        ("turbo", "", ("turbo",), "pass governor: the frequency governor is turbo"),
        ("performance", "", ("performance",), "pass governor: the frequency governor is"),
    ],
)
def test_the_governor(governors: str, driver: str, allowed: tuple[str, ...], expected: str) -> None:
    facts = {"load": "0.1", "cpus": "0-3", "governors": governors, "driver": driver}
    (found,) = judged("cpu", facts, governor=allowed)[1:]
    assert found.startswith(expected)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_probe(tmp_path: Path, shell: str) -> None:
    node = MadeUpNode(tmp_path)
    node.file("/proc/loadavg", "7.50 4.00 2.00 9/800 4711\n")
    node.file("/sys/devices/system/cpu/online", "0-1\n")
    node.file("/proc/stat", "cpu  100 0 0 100 0 0 0 0 0 0\ncpu0 50 0 0 50 0 0 0 0 0 0\n")
    later = node.file("/later", "cpu  140 0 0 100 0 0 0 0 0 0\n")
    node.command(
        "sleep", f"[ $1 != 0.2 ] || cat {later} >{node.root}/proc/stat; exec /bin/sleep 0.1"
    )
    for cpu in (0, 1):
        folder = f"/sys/devices/system/cpu/cpu{cpu}/cpufreq"
        node.file(f"{folder}/scaling_governor", "powersave\n")
        node.file(f"{folder}/scaling_driver", "acpi-cpufreq\n")
    assert judged("cpu", node.probe("cpu", shell=shell)) == [
        "warn busy: 7.5 tasks at a time on 2 processors"
        " in the last minute, and 100 % of all processors are in use; should"
        " be 3 tasks at most",
        "warn governor: the frequency governor is powersave of acpi-cpufreq, which keeps the clock"
        " at its lowest; should be any other",
    ]


def test_the_probe_of_an_idle_node_does_not_wait(tmp_path: Path) -> None:
    node = MadeUpNode(tmp_path)
    node.file("/proc/loadavg", "0.99 4.00 2.00 9/800 4711\n")
    node.file("/sys/devices/system/cpu/online", "0-1\n")
    node.command("sleep", f"[ $1 != 0.2 ] || touch {tmp_path}/slept; exec /bin/sleep 0.1")
    assert judged("cpu", node.probe("cpu")) == [
        "pass busy: 0.99 tasks at a time on 2 processors in the last minute",
        NO_GOVERNOR,
    ]
    assert not (tmp_path / "slept").exists()


def test_this_machine_tells_its_load(tmp_path: Path) -> None:
    node = MadeUpNode(tmp_path)
    node.root = Path("/")
    (busy, _) = judged("cpu", node.probe("cpu"), busy_percent=1e6)
    assert re.fullmatch(
        r"pass busy: [0-9.]+ tasks at a time on [0-9]+ processors? in the last minute", busy
    ), busy
