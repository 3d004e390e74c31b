"""The check gpu_health in situations that misled other tools, and what the kernel's log says.

What was recorded in another form than the probe asks for is written in the probe's form here.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.gpu_health_node import asked, gpu, install, log, xml
from tests.made_up import MadeUpNode, judged
from tests.this_machine import SHELLS, shell_words

FROM_LOG = {"driver": "loaded", "tool": "nvidia-smi", "container": "", "uptime": "1000000.0"}


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of this machine's commands without those that a node has its own of."""
    made = MadeUpNode(tmp_path_factory.mktemp("system"))
    made.hide("nvidia-smi", "dmesg", "journalctl")
    return made.system_path


@pytest.fixture
def node(tmp_path: Path, system: str) -> MadeUpNode:
    made = MadeUpNode(tmp_path)
    made.system_path = system
    return made


def as_user(node: MadeUpNode) -> None:
    """The login user is no root, and cannot be."""
    node.command("id", "echo 1000")


def said(node: MadeUpNode, shell: str = "sh", **options: Any) -> list[str]:
    return judged("gpu_health", node.probe("gpu_health", shell=shell, **options), **options)


def xid(
    node: MadeUpNode,
    *lines: str,
    answer: str = "",
    uptime: float = 813000,
    hours: int = 24,
    shell: str = "sh",
) -> str:
    """What is said of a kernel's log."""
    install(node, answer or xml(gpu(0)), dmesg=log(*lines), uptime=uptime)
    found = [line for line in said(node, shell, xid_hours=hours) if line.split()[1] == "xid:"]
    assert len(found) == 1
    return found[0]


def line(code: int, address: str = "0000:1b:00", at: float = 812331.1, text: str = "") -> str:
    return (
        f"[{at:.6f}] NVRM: Xid (PCI:{address}): {code}, pid=41022, name=python3, {text or 'Ch 10'}"
    )


ABORT = [
    line(31, text="Ch 00000010, intr 00000000. MMU Fault: ENGINE GRAPHICS"),
    *(line(45, f"0000:{bus}:00") for bus in ("1b", "43", "52", "61")),
]


def test_case_005_a_burst_of_45_after_a_program_ended(node: MadeUpNode) -> None:
    assert xid(node, *ABORT) == (
        "pass xid: no Xid that blames a GPU in the last 24 h; of programs or of no weight: Xid 31"
        " on 0000:1b:00; Xid 45 on 0000:1b:00, 0000:43:00, 0000:52:00 and 1 more"
    )


@pytest.mark.parametrize(
    "lines",
    [
        [line(13, text="Graphics SM Warp Exception on (GPC 0, TPC 1)"), line(43)],
        [line(45, f"0000:{bus:02x}:00", 812331 + n) for n in range(50) for bus in (3, 7)],
    ],
    ids=["13-and-43", "a-storm-of-45"],
)
def test_case_005_more_of_its_kind(node: MadeUpNode, lines: list[str]) -> None:
    assert xid(node, *lines).startswith("pass xid: no Xid that blames a GPU in the last 24 h; of")


def test_a_storm_of_45_does_not_hide_the_79_before_it(node: MadeUpNode) -> None:
    storm = [line(45, at=812340 + n / 100) for n in range(5000)]
    found = xid(node, line(79, text="GPU has fallen off the bus."), *storm)
    assert found.startswith("fail xid: Xid 79 on 0000:1b:00, 11 min ago (")


OFF_THE_BUS = (
    "[812843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0\n"
    "               NVRM: (PCI ID: 10de:26b5) installed in this system has\n"
    "               NVRM: fallen off the bus and is not responding to commands.\n"
    "[812843.439662] NVRM: The NVIDIA probe routine failed for 1 device(s).",
    "[812843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0 (PCI ID: 10de:26b5)\n"
    "[812843.308145] NVRM: installed in this system has fallen off the bus and is not\n"
    "[812843.308145] NVRM: responding to commands.",
)


@pytest.mark.parametrize("text", OFF_THE_BUS)
@pytest.mark.parametrize("shell", SHELLS)
def test_off_the_bus_in_a_message_of_several_lines(node: MadeUpNode, text: str, shell: str) -> None:
    shell_words(shell)
    assert xid(node, text, shell=shell).startswith("fail xid: Xid 79 on 0000:b3:00, 3 min ago (")
    unlike = text.replace("fallen off the bus", "no driver").replace("has no", "no")
    assert xid(node, unlike, shell=shell).startswith("pass xid:")


def test_a_row_that_could_not_be_recorded_is_told_by_no_state_of_now(node: MadeUpNode) -> None:
    address = "0000:10:00"
    assert xid(node, line(63, address)).startswith("pass xid:")
    assert xid(node, line(64, address)).startswith("fail xid: Xid 64 on 0000:10:00, 11 min ago (")
    failed = xml(gpu(0, remapped_row_failure="Yes"))  # then the state says it
    assert xid(node, line(64, address), answer=failed).startswith("pass xid:")


DEPRECATED = "Requested functionality has been deprecated"


def test_case_011_a_reason_that_is_not_told_any_more(node: MadeUpNode) -> None:
    reasons = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
    old = dict.fromkeys((f"clocks_event_reason_{reason}" for reason in reasons), DEPRECATED)
    install(node, xml(gpu(0, **old, clocks_event_reason_sw_thermal_slowdown=DEPRECATED)))
    found = said(node)
    assert (
        "skip field: this driver does not tell any more (deprecated): reasons for lower clocks"
        in found
    )
    assert not [line for line in found if line.split()[1] == "throttle:"]
    assert "pass remap: no row of memory waits to be remapped on 1 GPU" in found


@pytest.mark.parametrize(
    ("changed", "words", "item"),
    [
        (
            dict.fromkeys(("retired_count", "retired_count__2", "pending_retirement"), DEPRECATED)
            | {"pending_blacklist": DEPRECATED},
            "retired pages",
            "pages",
        ),
        ({"gpu_recovery_action": f"[{DEPRECATED}]"}, "recovery action", "recovery"),
    ],
)
def test_case_011_more_of_its_kind(
    node: MadeUpNode, changed: dict[str, str], words: str, item: str
) -> None:
    install(node, xml(gpu(0, **changed)))
    found = said(node)
    assert [line for line in found if "(deprecated): " in line and words in line]
    assert not [line for line in found if line.split()[1] == f"{item}:"]
    assert "pass ecc: no uncorrected memory errors on 1 GPU since the driver was loaded" in found


NVL = """\
GPU 0: NVIDIA H100 NVL (UUID: GPU-11111111-aaaa-bbbb-cccc-000000000001)
\t Link 0: 26.562 GB/s
\t Link 1: 26.562 GB/s
\t Link 2: <inactive>
\t Link 3: inActive
"""


def nvlink(node: MadeUpNode, text: str, wanted: int) -> str:
    install(node, xml(gpu(0, product_name="NVIDIA H100 NVL")), nvlink=text)
    [found] = [line for line in said(node, nvlink_links=wanted) if line.split()[1] == "nvlink:"]
    return found


def test_case_021_links_that_are_inactive_by_design(node: MadeUpNode) -> None:
    assert nvlink(node, NVL, 0) == "skip nvlink: NVLink is not looked at: no link is wanted"
    assert asked(node) == ["-q -x"]
    assert nvlink(node, NVL, 4) == (
        "fail nvlink: NVLinks active: GPU 0: 2 (not active: 2, 3), should be 4"
    )
    assert nvlink(node, NVL, -1) == "skip nvlink: 2 NVLinks active, 2 not; none wanted"


@pytest.mark.parametrize(
    ("text", "wanted", "words"),
    [
        (
            NVL.replace("inActive", "INACTIVE").replace("26.562", "25.781"),
            12,
            "fail nvlink: NVLinks active: GPU 0: 2 (not active: 2, 3), should be 12",
        ),
        (
            NVL.replace("inActive", "26.562 GB/s").replace("<inactive>", "26.562 GB/s"),
            4,
            "pass nvlink: 4 NVLinks active on each of 1 GPU",
        ),
        (
            NVL.partition("\t")[0] + "\t all links are inActive\n",
            2,
            "fail nvlink: no NVLink of any GPU is active, should be 2 links on each",
        ),
    ],
)
def test_case_021_more_of_its_kind(node: MadeUpNode, text: str, wanted: int, words: str) -> None:
    assert nvlink(node, text, wanted) == words


@pytest.mark.parametrize(
    "words",
    [
        "Error: Unable to complete diagnostic for group 2147483647. Return: (-34) The requested"
        " operation could not be completed because the affected resource is in use.",
        "Error: unable to establish a connection to the specified host: localhost",
        "Error: Cannot perform the requested operation because the diagnostic is already running.",
    ],
)
def test_case_023_dcgmi_is_not_run_and_its_refusal_is_no_fault(
    node: MadeUpNode, words: str
) -> None:
    node.command("dcgmi", f"touch '{node.root}/ran'; echo '{words}'; exit 1")
    assert said(node) == ["skip none: no NVIDIA driver"]
    install(node, xml(gpu(0)))
    assert not [line for line in said(node) if line.startswith(("fail", "warn", "unknown"))]
    assert not (node.root / "ran").exists()


@pytest.mark.parametrize(
    "words",
    [
        "dmesg: read kernel buffer failed: Operation not permitted",
        "dmesg: klogctl: Operation not permitted",
        "dmesg: /dev/kmsg: Permission denied",
    ],
)
def test_case_104_the_log_that_is_root_s_is_never_taken_for_clean(
    node: MadeUpNode, words: str
) -> None:
    as_user(node)
    install(node, xml(gpu(0)))
    node.says("dmesg", "", words + "\n", 1)
    told = node.told("gpu_health")
    assert told.whole and told.wanted_root  # said once for the node
    found = judged("gpu_health", told.facts)
    assert not [line for line in found if "xid" in line]
    assert "pass ecc: no uncorrected memory errors on 1 GPU since the driver was loaded" in found


def test_the_journal_where_it_may_be_read(node: MadeUpNode) -> None:
    as_user(node)
    install(node, xml(gpu(0)), dmesg=None, uptime=5400)
    node.file("/var/log/journal/0123/system.journal")
    node.says("journalctl", "[ 3600.100000] node07 kernel: NVRM: Xid (PCI:0000:3b:00): 62, pid=1\n")
    told = node.told("gpu_health")
    assert not told.wanted_root
    assert judged("gpu_health", told.facts)[0].startswith(
        "fail xid: Xid 62 on 0000:3b:00, 30 min ago ("
    )


def test_a_log_that_nobody_may_read(node: MadeUpNode) -> None:
    facts = {**FROM_LOG, "log_from": "dmesg", "log": "lines 0\nfirst \nended 1"}
    facts |= {"answer_status": "0", "answer": xml(gpu(0)), "nvlink_status": "-"}
    assert judged("gpu_health", facts)[0] == (
        "unknown xid: the kernel's log cannot be read (exit status 1)"
    )
    facts["log"] = "lines 0\nfirst \nended 0"
    assert judged("gpu_health", facts)[0] == (
        "unknown xid: the kernel's log is empty, should begin with the boot"
    )
    facts["log_from"] = "none"
    assert judged("gpu_health", facts)[0] == (
        "unknown xid: the kernel's log: there is neither dmesg nor journalctl"
    )


def test_the_time_that_is_looked_at(node: MadeUpNode) -> None:
    old = line(79, at=700000)
    assert xid(node, old) == "pass xid: no Xid that blames a GPU in the last 24 h"
    assert xid(node, old, hours=48).startswith("fail xid: Xid 79 on 0000:1b:00, 31.4 h ago (")
    assert xid(node, uptime=7200) == "pass xid: no Xid that blames a GPU since the boot 2.0 h ago"


def test_a_log_with_dates_in_place_of_seconds(node: MadeUpNode) -> None:
    install(node, xml(gpu(0)), uptime=813000)
    node.says(
        "dmesg", "[Mon Sep 14 04:48:45 2026] NVRM: Xid (PCI:0000:02:00): 79, pid=9962, lost\n"
    )
    assert said(node)[0].startswith("fail xid: Xid 79 on 0000:02:00 (the GPU no longer answers")
    node.says("dmesg", "[Mon Sep 14 04:48:45 2026] NVRM: loading NVIDIA UNIX\n")
    assert said(node)[0] == "pass xid: no Xid that blames a GPU in the kernel's log"


def test_a_log_that_does_not_reach_back_says_so(node: MadeUpNode) -> None:
    install(node, xml(gpu(0)), dmesg="[805800.000000] usb 1-1: new device\n", uptime=813000)
    assert said(node)[0] == (
        "pass xid: no Xid that blames a GPU in the last 2.0 h, as far back as the log goes"
    )


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (48, "Xid 48 on 0000:1b:00, 11 min ago (uncorrectable (double-bit) ECC error:"),
        (74, "Xid 74 on 0000:1b:00, 11 min ago (NVLink error:"),
        (95, "Xid 95 on 0000:1b:00, 11 min ago (uncorrectable memory error that could not be"),
        (119, "Xid 119 on 0000:1b:00, 11 min ago (the GPU system processor (GSP) did not answer"),
        (167, "Xid 167 on 0000:1b:00, 11 min ago (fatal PCIe time-out)"),
    ],
)
def test_xid_that_blame_the_gpu(node: MadeUpNode, code: int, words: str) -> None:
    assert xid(node, line(code)).startswith(f"fail xid: {words}")


def test_xid_that_are_watched(node: MadeUpNode) -> None:
    assert xid(node, line(94)).startswith(
        "warn xid: Xid 94 on 0000:1b:00, 11 min ago (uncorrectable memory error, contained to"
    )
    assert xid(node, line(999)).startswith(
        "warn xid: Xid 999 on 0000:1b:00, 11 min ago (a code without a known meaning)"
    )


def test_what_the_driver_asked_for_and_took_back(node: MadeUpNode) -> None:
    asks = "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
    done = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
    assert xid(node, line(95), line(154, text=asks)).startswith("fail xid: Xid 154 on 0000:1b:00")
    assert xid(node, line(95), line(154, text=asks), line(154, text=done)).startswith("pass xid")
    # what came after it is not taken back
    assert xid(node, line(154, text=done), line(95)).startswith("fail xid: Xid 95")
    # nor is what another GPU has
    assert xid(node, line(95, "0000:2a:00"), line(154, text=done)).startswith("fail xid: Xid 95")


def test_switches_count_in_numbers_of_their_own(node: MadeUpNode) -> None:
    switch = (
        "[812331.1] nvidia-nvswitch0: SXid (PCI:0000:05:00.0): {}, Link 32 egress error (First)"
    )
    assert xid(node, switch.format("79, Non-fatal")) == (
        "warn xid: SXid 79 on 0000:05:00, 11 min ago (a fault of an NVSwitch that it calls not"
        " fatal) in the last 24 h"
    )
    assert xid(node, switch.format("12028, Fatal")) == (
        "fail xid: SXid 12028 on 0000:05:00, 11 min ago (a fault of an NVSwitch that it calls"
        " fatal) in the last 24 h"
    )


def test_one_cause_is_one_finding(node: MadeUpNode) -> None:
    """What nvidia-smi counts and the log tells is one fault."""
    errors = xml(gpu(0, dram_uncorrectable="1", gpu_recovery_action="Reset"))
    install(node, errors, dmesg=log(line(95, "0000:10:00")), uptime=813000)
    faults = [f for f in said(node) if f.startswith(("fail", "warn", "unknown"))]
    assert len(faults) == 1 and faults[0].startswith("fail xid: Xid 95 on 0000:10:00")
    waits = xml(gpu(0, remapped_row_pending="Yes"))
    install(node, waits, dmesg=log(line(63, "0000:10:00")), uptime=813000)
    faults = [f for f in said(node) if f.startswith(("fail", "warn", "unknown"))]
    assert len(faults) == 1 and faults[0].startswith("warn remap: GPU 0")
    # after the reset the event is history
    install(node, xml(gpu(0)), dmesg=log(line(63, "0000:10:00")), uptime=813000)
    assert not [f for f in said(node) if f.startswith(("fail", "warn", "unknown"))]


def test_another_gpu_s_event_is_told_as_well(node: MadeUpNode) -> None:
    found = xid(node, line(79), line(94, "0000:2a:00"))
    assert "Xid 79 on 0000:1b:00" in found and "Xid 94 on 0000:2a:00" in found


def test_the_driver_without_nvidia_smi(node: MadeUpNode) -> None:
    install(node, dmesg=log(*ABORT))
    (node.bin / "nvidia-smi").unlink()
    found = said(node)
    assert found[0].startswith("pass xid")
    assert found[1:] == ["unknown answer: there is no nvidia-smi to ask"]


def test_a_gpu_that_waits_for_its_reset(node: MadeUpNode) -> None:
    install(node, xml(gpu(0), gpu(1, performance_state="[GPU requires reset]")))
    assert [f for f in said(node) if f.startswith("fail")] == [
        "fail recovery: the driver asks for a reset of GPU 1 (0000:11:00.0), should ask for nothing"
    ]
    install(node, xml(gpu(0), gpu(1, performance_state="[GPU is lost]")))
    assert [f for f in said(node) if f.startswith("fail")] == [
        "fail answer: GPU 1 (0000:11:00.0): GPU is lost; should tell its state"
    ]
