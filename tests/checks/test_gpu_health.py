"""The check gpu_health by its real probe: states of GPUs, and recorded outputs of the driver."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.gpu_health_node import CLEAN, asked, gpu, install, log, recorded, xml
from tests.made_up import CHECKS, MadeUpNode, judged, options_of
from tests.this_machine import SHELLS, shell_words

SOUND = [
    "pass xid: no Xid that blames a GPU in the kernel's log",
    "pass recovery: the driver asks for nothing on 2 GPUs",
    "pass ecc: no uncorrected memory errors on 2 GPUs since the driver was loaded",
    "pass remap: no row of memory waits to be remapped on 2 GPUs",
    "pass throttle: no clock is held down by heat or power on 2 GPUs",
    "pass pcie: PCIe x16 on 2 GPUs",
]
LINKS = "".join(
    f"GPU {number}: NVIDIA A100-SXM4-80GB (UUID: GPU-0000-{number})\n"
    + "".join(f"\t Link {link}: 25 GB/s\n" for link in range(12))
    for number in (0, 1)
)


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


def said(node: MadeUpNode, shell: str = "sh", **options: Any) -> list[str]:
    """What the check says of the made-up node."""
    told = node.probe("gpu_health", shell=shell, **options)
    return judged("gpu_health", told, **options)


def of_gpu(node: MadeUpNode, code: str, **changed: str) -> list[str]:
    """What a node with one sound GPU and one that is changed is told of one item."""
    install(node, xml(gpu(0), gpu(1, **changed)), nvlink=LINKS)
    return [line for line in said(node) if line.split()[1] == f"{code}:"]


@pytest.mark.parametrize("shell", SHELLS)
def test_sound_gpus(node: MadeUpNode, shell: str) -> None:
    shell_words(shell)
    install(node, xml(gpu(0), gpu(1)), nvlink=LINKS)
    assert said(node, shell) == [*SOUND, "pass nvlink: 12 NVLinks active on each of 2 GPUs"]
    assert asked(node) == ["-q -x", "nvlink -s"]


def test_what_is_not_judged_stays_on_the_node(node: MadeUpNode) -> None:
    install(node, xml(gpu(0)))
    answer = node.probe("gpu_health")["answer"]
    assert "supported_clocks" not in answer and "<remapped_row_pending>" in answer
    assert len(answer) < 2500


def test_no_driver_costs_nothing(node: MadeUpNode) -> None:
    node.command("dmesg", "echo asked for nothing >&2; kill -KILL $PPID")
    assert node.probe("gpu_health") == {"driver": "absent", "tool": "absent"}
    assert said(node) == ["skip none: no NVIDIA driver"]


def test_nvidia_smi_on_a_node_without_gpus(node: MadeUpNode) -> None:
    words = recorded("gpu/smi-no-driver")
    install(node, words, status=9, driver=False)
    assert said(node) == ["skip none: no NVIDIA driver is loaded"]
    assert "log" not in node.probe("gpu_health")


def test_a_container_without_a_gpu(node: MadeUpNode) -> None:
    install(node, recorded("gpu/smi-no-devices"), status=6)
    node.file("/.dockerenv")
    assert said(node) == ["skip none: no GPU was given to this container"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"dram_uncorrectable": "2"},
            "warn ecc: uncorrected memory errors since the driver was loaded:"
            " GPU 1 (0000:11:00.0): 2; should be 0 at most",
        ),
        (
            {"sram_uncorrectable_parity": "1", "sram_uncorrectable_secded": "3"},
            "warn ecc: uncorrected memory errors since the driver was loaded:"
            " GPU 1 (0000:11:00.0): 4; should be 0 at most",
        ),
        (  # in its life, and not since
            {"dram_uncorrectable__2": "7"},
            "pass ecc: no uncorrected memory errors on 2 GPUs since the driver was loaded,"
            " 7 in their lives",
        ),
        (
            {"sram_threshold_exceeded": "Yes"},
            "fail ecc: GPU 1 (0000:11:00.0): more uncorrected errors of on-chip memory than NVIDIA"
            " allows",
        ),
    ],
)
def test_memory_errors(node: MadeUpNode, changed: dict[str, str], words: str) -> None:
    assert words in of_gpu(node, "ecc", **changed)


def test_memory_errors_as_drivers_before_450_tell_them(node: MadeUpNode) -> None:
    """Of each kind of memory and of all, single ones beside double ones."""

    def kinds(single: int, double: int) -> str:
        of = "<{0}><device_memory>{1}</device_memory><total>{1}</total></{0}>"
        both = of.format("single_bit", single) + of.format("double_bit", double)
        return both.replace("><", ">\n<")

    head, _, tail = gpu(0, product_name="Tesla K80").partition("<ecc_errors>")
    tail = tail.partition("</ecc_errors>")[2]
    old = f"<volatile>\n{kinds(9, 2)}\n</volatile>\n<aggregate>\n{kinds(9, 5)}\n</aggregate>"
    install(node, xml(f"{head}<ecc_errors>\n{old}\n</ecc_errors>{tail}"))
    assert (
        "warn ecc: uncorrected memory errors since the driver was loaded: GPU 0 (0000:10:00.0): 2;"
        " should be 0 at most" in said(node)
    )


def test_memory_errors_that_are_allowed(node: MadeUpNode) -> None:
    install(node, xml(gpu(0, dram_uncorrectable="2")), nvlink=LINKS)
    assert "pass ecc: 2 uncorrected memory errors on 1 GPU since the driver was loaded" in said(
        node, ecc_uncorrected=2
    )


def test_rows(node: MadeUpNode) -> None:
    assert of_gpu(node, "remap", remapped_row_pending="Yes", remapped_row_unc="1") == [
        "warn remap: GPU 1 (0000:11:00.0): a bad row of memory is remapped only at the next reset"
    ]
    assert of_gpu(node, "remap", remapped_row_failure="Yes", remapped_row_pending="Yes") == [
        "fail remap: GPU 1 (0000:11:00.0): a bad row of memory could not be remapped"
    ]
    assert of_gpu(node, "remap", remapped_row_unc="1", remapped_row_corr="4") == [
        "pass remap: no row of memory waits to be remapped on 2 GPUs; 5 remapped so far"
    ]


def test_pages(node: MadeUpNode) -> None:
    old = {"retired_count": "10", "retired_count__2": "2"}
    assert of_gpu(node, "pages", **old, pending_retirement="No") == [
        "pass pages: no page of memory waits to be retired on 1 GPU; 12 retired so far"
    ]
    assert of_gpu(node, "pages", **old, pending_blacklist="Yes") == [
        "warn pages: GPU 1 (0000:11:00.0): a bad page of memory is retired only at the next reset"
    ]
    full = {"retired_count": "61", "retired_count__2": "2", "pending_retirement": "No"}
    assert of_gpu(node, "pages", **full) == [
        "fail pages: retired pages of memory: GPU 1 (0000:11:00.0): 63; should be fewer than 63"
    ]


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("hw_thermal_slowdown", "by heat"),
        ("sw_thermal_slowdown", "by heat"),
        ("hw_power_brake_slowdown", "by the power brake"),
        ("hw_slowdown", "by the board (HW slowdown)"),
    ],
)
def test_clocks_that_are_held_down(node: MadeUpNode, reason: str, words: str) -> None:
    changed = {f"clocks_event_reason_{reason}": "Active"}
    assert of_gpu(node, "throttle", **changed) == [
        f"warn throttle: clocks are held down {words} on GPU 1 (0000:11:00.0)"
    ]


def test_heat_is_one_finding_though_the_board_gives_two_reasons(node: MadeUpNode) -> None:
    both = {
        "clocks_event_reason_hw_slowdown": "Active",
        "clocks_event_reason_hw_thermal_slowdown": "Active",
    }
    assert len(of_gpu(node, "throttle", **both)) == 1


@pytest.mark.parametrize("wanted", ["Reset", "Reboot", "Drain P2P", "Drain and Reset"])
def test_what_the_driver_asks_for(node: MadeUpNode, wanted: str) -> None:
    assert of_gpu(node, "recovery", gpu_recovery_action=wanted) == [
        f"fail recovery: the driver asks for {wanted} of GPU 1 (0000:11:00.0), should ask for"
        " nothing"
    ]


def test_what_an_older_driver_asks_for(node: MadeUpNode) -> None:
    older = gpu(0, reset_required="Yes", drain_and_reset_recommended="No")
    install(node, xml(older.replace("<gpu_recovery_action>None</gpu_recovery_action>", "")))
    assert (
        "fail recovery: the driver asks for a reset of GPU 0 (0000:10:00.0), should ask for nothing"
        in said(node)
    )


def test_fabric(node: MadeUpNode) -> None:
    assert of_gpu(node, "fabric", state="In Progress") == [
        "fail fabric: the NVLink fabric is not set up on GPU 1 (0000:11:00.0): In Progress, should"
        " be Completed"
    ]
    assert of_gpu(node, "fabric", state="Completed", status="Success") == [
        "pass fabric: the NVLink fabric is set up on 1 GPU"
    ]
    assert of_gpu(node, "fabric", state="Completed", status="Insufficient Resources") == [
        "fail fabric: the NVLink fabric was not set up on GPU 1 (0000:11:00.0): Insufficient"
        " Resources"
    ]


def in_slot(node: MadeUpNode, number: int, width: int, most: int, slot: int) -> None:
    """A GPU on a made-up PCI bus: its lanes, the most that it can and the most of its slot."""
    address = f"0000:{0x10 + number:02x}:00.0"
    real = f"/sys/devices/pci0000:00/0000:00:0{number}.0"
    node.file(f"{real}/max_link_width", f"{slot}\n")
    node.file(f"{real}/{address}/current_link_width", f"{width}\n")
    node.file(f"{real}/{address}/max_link_width", f"{most}\n")
    (node.root / f"proc/driver/nvidia/gpus/{address}").mkdir(parents=True)
    bus = node.root / "sys/bus/pci/devices"
    bus.mkdir(parents=True, exist_ok=True)
    (bus / address).symlink_to(node.root / f"{real}/{address}".lstrip("/"))


def test_lanes_that_gpu_and_slot_can(node: MadeUpNode) -> None:
    in_slot(node, 0, 8, 16, 16)
    in_slot(node, 1, 8, 16, 16)
    assert of_gpu(node, "pcie") == [
        "warn pcie: PCIe lanes: GPU 0 (0000:10:00.0): x8, should be x16;"
        " GPU 1 (0000:11:00.0): x8, should be x16"
    ]
    # a virtual machine's slot is not a real one
    assert of_gpu(node, "pcie", virtualization_mode="Pass-Through") == [
        "warn pcie: PCIe lanes: GPU 0 (0000:10:00.0): x8, should be x16"
    ]


def test_a_slot_of_eight_lanes_is_no_fault(node: MadeUpNode) -> None:
    in_slot(node, 0, 8, 16, 8)
    in_slot(node, 1, 8, 16, 8)
    assert of_gpu(node, "pcie")[0].startswith("pass pcie: PCIe x8 on 2 GPUs")


def test_fewer_lanes_than_its_like_has(node: MadeUpNode) -> None:
    assert of_gpu(node, "pcie", current_link_width="4x") == [
        "warn pcie: PCIe lanes: GPU 1 (0000:11:00.0): x4, should be x16"
    ]


def test_lanes_that_are_wanted(node: MadeUpNode) -> None:
    install(node, xml(gpu(0, current_link_width="8x")), nvlink=LINKS)
    found = said(node, pcie_width=16)
    assert "fail pcie: PCIe lanes: GPU 0 (0000:10:00.0): x8, should be x16" in found
    assert any(line.startswith("pass pcie") for line in said(node, pcie_width=8))
    assert not any(" pcie: " in line for line in said(node, pcie_width=-1))


def test_the_generation_counts_only_while_the_gpu_works(node: MadeUpNode) -> None:
    assert of_gpu(node, "pcie", current_link_gen="1", performance_state="P8") == [
        "pass pcie: PCIe x16 on 2 GPUs"
    ]
    assert of_gpu(node, "pcie", current_link_gen="1", gpu_util="97 %") == [
        "warn pcie: PCIe link: GPU 1 (0000:11:00.0): generation 1 at 97 % use, should be 4"
    ]


def test_nvlink_of_one_gpu_is_less_than_of_the_others(node: MadeUpNode) -> None:
    less = LINKS.rpartition("Link 3: 25 GB/s")
    install(node, xml(gpu(0), gpu(1)), nvlink=f"{less[0]}Link 3: InActive{less[2]}")
    assert (
        "warn nvlink: NVLinks active: GPU 1: 11 (not active: 3), should be 12, as on others of the"
        " node" in said(node)
    )


def test_nvlink_is_not_asked_for_where_it_is_not_wanted(node: MadeUpNode) -> None:
    install(node, xml(gpu(0)), nvlink=LINKS)
    found = said(node, nvlink_links=0)
    assert "skip nvlink: NVLink is not looked at: no link is wanted" in found
    assert asked(node) == ["-q -x"]


def test_nvlink_of_a_kind_that_has_none(node: MadeUpNode) -> None:
    install(node, xml(gpu(0, product_name="NVIDIA L40S")))
    assert not [line for line in said(node) if "nvlink" in line.lower()]
    assert asked(node) == ["-q -x"]
    assert "fail nvlink: no GPU has NVLink, should be 4 links on each" in said(node, nvlink_links=4)


def test_nvidia_smi_that_hangs(node: MadeUpNode) -> None:
    install(node, xml(gpu(0)))
    node.command("nvidia-smi", "trap '' TERM; sleep 30")
    began = time.monotonic()
    found = said(node, answer_seconds=1)
    assert time.monotonic() - began < 25
    assert found == [SOUND[0], "unknown answer: no answer of nvidia-smi within 1 s"]


def test_nvidia_smi_that_prints_without_end(node: MadeUpNode) -> None:
    install(node, xml(gpu(0)))
    node.command("nvidia-smi", "yes '<gpu id=\"00000000:10:00.0\">'")
    assert said(node)[1:] == [
        "unknown answer: nvidia-smi prints thousands of lines that are no answer"
    ]


def test_a_dead_driver_is_told_by_the_check_that_looks_at_it(node: MadeUpNode) -> None:
    assert CHECKS["gpu_health"].after == ("gpu",)
    install(node, recorded("gpu/smi-nvml-mismatch-new"), status=18)
    found = said(node)
    assert found[1].startswith("unknown answer: nvidia-smi ends with status 18: Failed to init")
    assert asked(node) == ["-q -x"]


def test_the_query_where_there_is_no_xml(node: MadeUpNode) -> None:
    install(node, "-q is not known\n", status=2, rows=recorded("csv-remap-pending"))
    found = [line for line in said(node) if " remap:" in line]
    assert found == [
        "fail remap: GPU 2: a bad row of memory could not be remapped",
        "warn remap: GPU 1: a bad row of memory is remapped only at the next reset",
    ]


def test_a_field_that_is_not_known_is_left_out_and_the_others_are_asked(node: MadeUpNode) -> None:
    install(node, "no XML\n", status=2)
    row = "index, name, remapped_rows.pending, remapped_rows.failure\n0, Tesla T4, No, No\n"
    (node.bin / ".smi.rows").write_text(row)
    refusal = 'Field "gpu_recovery_action" is not a valid field to query.'
    text = (node.bin / "nvidia-smi").read_text()
    node.command(
        "nvidia-smi",
        text.replace("#!/bin/sh\n", "").replace(
            "--query-gpu=*)",
            f"--query-gpu=*gpu_recovery_action*) echo '{refusal}'; echo; exit 2 ;;\n--query-gpu=*)",
        ),
    )
    told = node.probe("gpu_health")
    assert told["refused"] == "gpu_recovery_action"
    assert "pass remap: no row of memory waits to be remapped on 1 GPU" in judged(
        "gpu_health", told
    )


# Recorded outputs, with the reading that is right


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "dmesg-xid79",
            "fail xid: Xid 79 on 0000:18:00 (the GPU no longer answers on PCIe: reboot or"
            " power-cycle the node; reseat or replace if it returns) in the kernel's log",
        ),
        (
            "dmesg-xid31-app",
            "pass xid: no Xid that blames a GPU in the kernel's log; of programs or of no weight:"
            " Xid 31 on 0000:3b:00; Xid 43 on 0000:3b:00",
        ),
        (
            "dmesg-xid119-gsp",
            "fail xid: Xid 119 on 0000:9b:00 (the GPU system processor (GSP) did not answer a"
            " driver request) in the kernel's log",
        ),
        (
            "dmesg-xid94-154",
            "fail xid: Xid 154 on 0000:2a:00 (the driver asks for: GPU Reset Required) in the"
            " kernel's log",
        ),
        (
            "dmesg-xid149-nvlink5",
            "fail xid: Xid 149 on 0000:04:00 (NVLink5 network interface error, link down included"
            " (Blackwell and later): decode unit, status and link: the unit decides between ignore,"
            " reset and service) in the kernel's log",
        ),
        ("dmesg-clean-no-xid", "pass xid: no Xid that blames a GPU in the kernel's log"),
        (
            "dmesg-old-prefix",
            "fail xid: Xid 79 on 0000:01:00 (the GPU no longer answers on PCIe: reboot or"
            " power-cycle the node; reseat or replace if it returns) in the kernel's log",
        ),
    ],
)
def test_recorded_logs(node: MadeUpNode, name: str, words: str) -> None:
    install(node, xml(gpu(0)), nvlink=LINKS, dmesg=recorded(name))
    assert said(node)[0] == words


def test_a_lesser_event_of_nvlink_5_alone(node: MadeUpNode) -> None:
    line = recorded("dmesg-xid149-nvlink5").splitlines()[1]
    install(node, xml(gpu(0)), nvlink=LINKS, dmesg=log(line))
    assert said(node)[0].startswith("warn xid: Xid 144 on 0000:04:00 (NVLink5 unit SAW error")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("xml-390-m10-vgpu-host", {"field": "skip", "pcie": "skip"}),
        ("xml-515-t4", {"ecc": "pass", "pages": "pass", "throttle": "pass", "pcie": "pass"}),
        ("xml-525-p2000", {"throttle": "pass", "pcie": "pass"}),
        ("xml-535-a100-mig", {"recovery": "pass", "ecc": "pass", "throttle": "pass"}),
        ("xml-570-rtx3060", {"recovery": "pass", "throttle": "pass", "pcie": "pass"}),
        ("xml-580-vgpu-licensed", {"field": "skip"}),
        ("xml-550-cuda-not-found", {"field": "skip"}),
        ("xml-no-driver-text", {"answer": "unknown"}),
        ("smi-table-390-k80x2", {"ecc": "skip"}),
        ("smi-table-470-v100", {"ecc": "warn"}),
        ("smi-table-525-a100", {"ecc": "skip"}),
        ("smi-table-535-a100x4-one-busy", {"ecc": "pass"}),
        ("smi-table-550-rtx3090x2", {"field": "skip"}),
        ("smi-table-570-h100", {"ecc": "pass"}),
        ("smi-table-590-h100-mig", {"field": "skip"}),
        ("smi-table-610-kmd-umd", {"field": "skip"}),
        ("smi-table-err", {"answer": "unknown", "ecc": "pass"}),
        ("csv-550-a100x2", {"ecc": "pass"}),
        ("csv-470-compute-cap-invalid", {"answer": "unknown"}),
        ("csv-mig-na", {"ecc": "pass"}),
        ("csv-reset-required", {"recovery": "fail", "ecc": "pass"}),
        ("csv-595-l40s-all-fields", {"recovery": "pass", "ecc": "pass", "remap": "pass"}),
        ("smi-handle-unknown-error", {"answer": "unknown"}),
        ("smi-nvml-unknown-error", {"answer": "unknown"}),
        ("smi-command-not-found", {"answer": "unknown"}),
        ("smi-version-610", {"answer": "unknown"}),
    ],
)
def test_recorded_answers(node: MadeUpNode, name: str, found: dict[str, str]) -> None:
    install(node, recorded(f"gpu/{name}"), rows=recorded(f"gpu/{name}"))
    of_gpus = [line.partition(":")[0].split() for line in said(node)[1:]]
    statuses = {code: status for status, code in of_gpus}
    assert {code: statuses.get(code) for code in found} == found
    worst = {"fail", "warn", "unknown"} & set(statuses.values())
    assert worst == {"fail", "warn", "unknown"} & set(found.values())


def test_the_table_names_the_gpu_with_errors(node: MadeUpNode) -> None:
    install(node, rows=recorded("gpu/smi-table-470-v100"))
    assert said(node)[1] == (
        "warn ecc: uncorrected memory errors since the driver was loaded: GPU 1 (0000:8c:00.0): 2;"
        " should be 0 at most"
    )


def test_clean_is_what_the_tests_take_for_it() -> None:
    assert "Xid" not in CLEAN
    assert options_of("gpu_health").xid_hours == 24
