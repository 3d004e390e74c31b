"""The check gpu on recorded outputs, and on situations that other tools judged wrongly.

What was recorded in another form than the probe asks for is written in the probe's form here.
"""

import pytest

from tests.gpu_node import APPS, KERNEL, facts, gpu, listed, recorded, running
from tests.made_up import judged

NOT_LOADED = {"kernel": "absent", "module": "absent"}
ON_BUS = "0000:3b:00.0 10de 20b2 none"


def statuses(findings: list[str]) -> dict[str, str]:
    """The worst status by code."""
    order = ["pass", "skip", "warn", "unknown", "fail"]
    found: dict[str, str] = {}
    for finding in findings:
        status, code = finding.split(":")[0].split()
        found[code] = max(found.get(code, "pass"), status, key=order.index)
    return found


@pytest.mark.parametrize(
    ("name", "driver", "cuda", "gpus"),
    [
        ("smi-table-390-k80x2", "390.12", "9.1", "2 GPUs: Tesla K80"),
        ("smi-table-470-v100", "470.57.02", "11.4", "2 GPUs: Tesla V100-SXM2"),
        ("smi-table-525-a100", "525.125.06", "12.0", "1 GPU: NVIDIA A100-PCI"),
        ("smi-table-535-a100x4-one-busy", "535.129.03", "12.2", "4 GPUs: NVIDIA A100-SXM4-40GB"),
        ("smi-table-550-rtx3090x2", "550.142", "12.4", "2 GPUs: NVIDIA GeForce RTX 3090"),
        ("smi-table-570-h100", "570.124.06", "12.8", "1 GPU: NVIDIA H100 80GB HBM3"),
        ("smi-table-590-h100-mig", "590.48.01", "13.1", "1 GPU: NVIDIA H100 80GB HBM3"),
        ("smi-table-610-kmd-umd", "610.57.04", "13.3", "1 GPU: NVIDIA GeForce RTX 2080"),
    ],
)
def test_the_table_for_people_of_every_layout(name: str, driver: str, cuda: str, gpus: str) -> None:
    table = recorded(name)
    found = judged("gpu", facts(table, table, kernel=KERNEL.format(driver), month="2020-01"))
    assert (
        found[0] == f"pass driver: driver {driver} (proprietary kernel module), CUDA up to {cuda}"
    )
    assert found[1] == f"pass count: {gpus}"
    assert found[2].startswith("pass memory: ")
    assert len(found) == 3


def test_the_table_with_a_gpu_that_is_broken() -> None:
    table = recorded("smi-table-err")
    found = judged("gpu", facts(table, table, kernel=KERNEL.format("535.183.01")))
    assert found[1].startswith("fail lost: GPU 1 (00000000:2A:00.0) answers ERR!")
    assert statuses(found) == {"driver": "pass", "lost": "fail", "count": "pass", "memory": "pass"}


@pytest.mark.parametrize(
    ("name", "driver", "cuda"),
    [("smi-version-590", "590.48.01", "13.1"), ("smi-version-610", "610.57.04", "13.3")],
)
def test_the_list_of_versions(name: str, driver: str, cuda: str) -> None:
    told = facts(listed(gpu(0, driver="[Requested functionality has been deprecated]")))
    told |= {"kernel": KERNEL.format(driver), "banner": recorded(name), "month": "2020-01"}
    said = f"pass driver: driver {driver} (proprietary kernel module), CUDA up to {cuda}"
    assert judged("gpu", told)[0] == said


@pytest.mark.parametrize(
    ("name", "status", "others", "said"),
    [
        (
            "smi-nvml-mismatch-new",
            "18",
            {"kernel": KERNEL.format("570.195.03")},
            "fail driver: the loaded kernel module is 570.195.03, the library 580.126; should be"
            " the same version",
        ),
        (
            "smi-no-driver",
            "9",
            NOT_LOADED | {"pci": ON_BUS},
            "fail driver: 1 NVIDIA GPU on the PCI",
        ),
        ("smi-no-driver", "9", NOT_LOADED, "skip none: no GPU"),
        ("xml-no-driver-text", "9", NOT_LOADED | {"pci": ON_BUS}, "fail driver: 1 NVIDIA GPU on"),
        ("smi-no-devices", "6", {}, "fail devices: driver 550.90.07 can use no GPU"),
        (
            "smi-handle-unknown-error",
            "255",
            {},
            "fail lost: GPU 1 (0000:3B:00.0) does not answer, and keeps the others from it: Un",
        ),
        ("smi-nvml-unknown-error", "255", {}, "fail driver: the driver does not answer: Failed to"),
        ("smi-command-not-found", "127", {}, "unknown tool: nvidia-smi cannot be run: bash: line"),
    ],
)
def test_what_is_said_in_place_of_an_answer(
    name: str, status: str, others: dict[str, str], said: str
) -> None:
    (finding,) = judged("gpu", facts(recorded(name), status=status, **others))
    assert finding.startswith(said)


@pytest.mark.parametrize(
    ("name", "driver", "flavour"),
    [
        ("proc-proprietary-535", "535.183.01", "proprietary"),
        ("proc-open-555", "555.58.02", "open"),
        ("proc-old-390", "390.116", "proprietary"),
    ],
)
def test_the_kernel_modules_own_words(name: str, driver: str, flavour: str) -> None:
    told = facts(listed(gpu(0, driver=driver)), kernel=recorded(name).splitlines()[0])
    assert judged("gpu", told)[0].startswith(
        f"pass driver: driver {driver} ({flavour} kernel module)"
    )
    board = facts(listed(gpu(0, driver=driver, name="NVIDIA B200", capability="10.0")))
    board["kernel"] = told["kernel"]
    assert ("module" in statuses(judged("gpu", board))) == (flavour == "proprietary")
    board = facts(listed(gpu(0, driver=driver, name="Tesla P100-PCIE-16GB", capability="6.0")))
    board["kernel"] = told["kernel"]
    assert ("module" in statuses(judged("gpu", board))) == (flavour == "open")


def test_an_old_branch_can_be_warned_of() -> None:
    told = facts(listed(gpu(0, driver="390.116")), kernel=recorded("proc-old-390").splitlines()[0])
    assert judged("gpu", told, warn_end_of_life=True)[0].startswith("warn driver: driver 390.116")


@pytest.mark.parametrize(
    ("name", "apps", "expected"),
    [
        (
            "csv-550-a100x2",
            "gpu_bus_id, gpu_uuid, pid, used_gpu_memory [MiB], process_name",
            {"driver": "pass", "count": "pass", "memory": "fail"},
        ),
        (  # two hundred columns, some of which have gone
            "csv-595-l40s-all-fields",
            APPS,
            {"driver": "pass", "count": "pass", "memory": "pass", "field": "skip"},
        ),
        (
            "csv-reset-required",
            APPS,
            {"driver": "pass", "lost": "fail", "count": "pass", "memory": "fail"},
        ),
    ],
)
def test_the_query_for_gpus(name: str, apps: str, expected: dict[str, str]) -> None:
    text = recorded(name)
    driver = {"csv-550-a100x2": "550.90.07", "csv-595-l40s-all-fields": "595.80"}
    kernel = KERNEL.format(driver.get(name, "570.133.20"))
    found = judged("gpu", facts(text, apps, kernel=kernel))
    assert statuses(found) == expected


def test_utilisation_of_mig_is_not_reported_and_that_is_no_fault() -> None:
    apps = f"{APPS}\n00000000:00:09.0, GPU-1, 21180, 11000 MiB, ./gpu_burn"
    head, row = recorded("csv-mig-na").splitlines()
    text = f"{head}, pci.bus_id\n{row}, 00000000:00:09.0"
    found = judged("gpu", facts(text, apps, kernel=KERNEL.format("590.48.01")))
    assert statuses(found) == {"driver": "pass", "count": "pass", "memory": "pass"}


@pytest.mark.parametrize(
    ("name", "row", "expected"),
    [
        (
            "xml-390-m10-vgpu-host",
            gpu(10, "8141 MiB", name="Tesla M10", driver="390.94", total="8191 MiB"),
            {"driver": "pass", "count": "pass", "memory": "skip"},
        ),
        (
            "xml-515-t4",
            gpu(14, "1032 MiB", name="Tesla T4", driver="515.105.01", total="15360 MiB"),
            {"driver": "pass", "count": "pass", "memory": "pass"},
        ),
        (
            "xml-525-p2000",
            gpu(7, "1 MiB", name="Quadro P2000", driver="525.125.06", capability="6.1"),
            {"driver": "pass", "count": "pass", "memory": "pass"},
        ),
        (
            "xml-535-a100-mig",
            gpu(1, "50 MiB", driver="535.54.03", mig="Enabled"),
            {"driver": "pass", "count": "warn", "memory": "pass"},
        ),
        (
            "xml-570-rtx3060",
            gpu(29, "116 MiB", name="NVIDIA GeForce RTX 3060", driver="570.124.04"),
            {"driver": "pass", "count": "pass", "memory": "pass"},
        ),
        (
            "xml-580-vgpu-licensed",
            gpu(0, "406 MiB", name="NVIDIA L40S-2Q", driver="580.105.08", total="2048 MiB"),
            {"driver": "pass", "count": "pass", "memory": "pass"},
        ),
        (
            "xml-550-cuda-not-found",
            gpu(0, name="NVIDIA GeForce GTX 1060 6GB", driver="550.54.14"),
            {"driver": "pass", "libcuda": "warn", "count": "pass", "memory": "pass"},
        ),
    ],
)
def test_the_long_answer(name: str, row: str, expected: dict[str, str]) -> None:
    details = recorded(name)
    address = details.partition('gpu id="')[2].partition('"')[0]
    cells = row.split(", ")
    cells[3] = address
    text = listed(", ".join(cells))
    assert statuses(judged("gpu", facts(text, details=details))) == expected


INFOROM = "WARNING: infoROM is corrupted at gpu 0000:10:00.0"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("first", [True, False])
def test_a_warning_of_the_tools_is_no_row(first: bool, end: str) -> None:
    rows = listed(gpu(0), gpu(1, "10151 MiB")).splitlines()
    apps = APPS.splitlines()
    said = [INFOROM, *rows] if first else [*rows, INFOROM]
    apps = [INFOROM, *apps] if first else [*apps, INFOROM]
    told = facts(listed(gpu(0), gpu(1))) | {"gpus": end.join(said), "apps": end.join(apps)}
    found = judged("gpu", told)
    assert found[1] == (
        "warn inforom: the infoROM of GPU 0 (00000000:10:00.0) is damaged, should be whole"
    )
    assert statuses(found) == {
        "driver": "pass",
        "inforom": "warn",
        "count": "pass",
        "memory": "fail",
    }


def test_words_in_place_of_a_list_of_processes() -> None:
    text = listed(gpu(0, "10151 MiB"))
    none = judged("gpu", facts(text, "No running processes found"))
    assert statuses(none)["memory"] == "fail"
    assert statuses(judged("gpu", facts(text, "[N/A]")))["memory"] == "unknown"


def test_gpus_that_are_lost_are_named_whatever_the_exit_status() -> None:
    gone = ", ".join(["1", *["[GPU is lost]"] * 11])
    told = facts(listed(gpu(0), gpu(1)), status="15") | {"gpus": listed(gpu(0), gone)}
    assert judged("gpu", told) == [
        "fail lost: GPU 1 answers GPU is lost; should tell its temperature and state"
    ]


def test_memory_that_the_login_user_may_not_see_is_not_shared_with_the_cpu() -> None:
    told = facts(listed(gpu(0, "[Insufficient Permissions]")))
    assert judged("gpu", told)[-1] == (
        "unknown memory: GPU 0: the login user may not see how much memory is in use"
    )


def test_where_the_bus_cannot_be_read_nvidia_smi_is_believed() -> None:
    told = facts(recorded("smi-no-driver"), status="9", **NOT_LOADED | {"pci": "unreadable"})
    (found,) = judged("gpu", told)
    assert found.startswith("fail driver: nvidia-smi is there, and no driver of NVIDIA's")


@pytest.mark.parametrize(
    ("said", "which"),
    [
        ("GPU0000:C1:00.0: Unknown Error", "GPU (0000:C1:00.0)"),
        ("GPU3: 00000000:C1:00.0: GPU requires reset", "GPU 3 (00000000:C1:00.0)"),
        ("GPU 0000:82:00.0: GPU is lost.  Reboot the system to", "GPU (0000:82:00.0)"),
    ],
)
def test_each_form_in_which_a_gpu_is_lost(said: str, which: str) -> None:
    text = f"Unable to determine the device handle for {said}"
    (finding,) = judged("gpu", facts(text, status="15"))
    assert finding.startswith(f"fail lost: {which} does not answer")


def test_the_same_of_one_gpu_among_others() -> None:
    lost = ", ".join(["1", *["[GPU is lost]"] * 11])
    told = facts(listed(gpu(0), gpu(1), gpu(2))) | {"gpus": listed(gpu(0), lost, gpu(2))}
    assert statuses(judged("gpu", told)) == {
        "driver": "pass",
        "lost": "fail",
        "count": "pass",
        "memory": "pass",
    }


def test_a_process_of_the_table_whose_name_has_blanks() -> None:
    table = recorded("smi-table-535-a100x4-one-busy")
    (row,) = [line for line in table.splitlines() if " C " in line and "MiB |" in line]
    words = row.split()
    name = words[-3]
    changed = table.replace(row, row.replace(name, "my program --x"))
    told = facts(changed, changed, kernel=KERNEL.format("535.129.03"))
    assert statuses(judged("gpu", told))["memory"] == "pass"


# situations that were reported against tools that do this job


def test_case_library_and_module_of_two_versions() -> None:
    text = (
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.127"
    )
    assert judged("gpu", facts(text, status="18")) == [
        "fail driver: the loaded kernel module is 550.90.07, the library 550.127; should be the"
        " same version"
    ]


def test_case_a_gpu_is_lost() -> None:
    text = (
        "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the"
        " system to recover this GPU"
    )
    assert judged("gpu", facts(text, status="15")) == [
        "fail lost: GPU (0000:3B:00.0) does not answer, and keeps the others from it: GPU is lost."
        " Reboot the system to recover this GPU"
    ]


def test_case_a_virtual_gpu_that_reports_no_power() -> None:
    row = gpu(0, "1 MiB", name="NVIDIA H100L-2-24C", driver="535.216.03", total="24576 MiB")
    text = f"{listed(row)}".replace("31, P0", "[N/A], [N/A]")
    found = judged("gpu", facts(text))
    assert statuses(found) == {"driver": "pass", "count": "pass", "memory": "pass"}


def test_case_a_gpu_that_shares_the_memory_of_the_cpu() -> None:
    row = gpu(0, "[N/A]", name="NVIDIA GB10", driver="580.95.05", total="[N/A]", capability="12.1")
    told = facts(listed(row), kernel="NVRM version: Open Kernel Module 580.95.05")
    found = judged("gpu", told, held_mib=500)
    assert statuses(found) == {"driver": "pass", "count": "pass", "memory": "skip"}
    assert found[-1] == (
        "skip memory: GPU 0: memory is not reported, as of a GPU that shares it with the CPU"
    )


def test_case_fields_that_have_gone_or_never_were() -> None:
    row = gpu(0).replace("31, P0", "[Requested functionality has been deprecated], P0")
    found = judged("gpu", facts(listed(row), refused="retired_pages.madeup"))
    assert statuses(found) == {"driver": "pass", "count": "pass", "memory": "pass", "field": "skip"}
    assert found[-1].endswith("retired_pages.madeup, temperature.gpu")


TABLE_384 = """\
Wed Mar  6 10:02:11 2019
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 384.183                Driver Version: 384.183                   |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  Tesla P100-PCIE...  On   | 00000000:84:00.0 Off |                    0 |
| N/A   31C    P0    26W / 250W |      0MiB / 16276MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
"""


def test_case_a_driver_that_does_not_print_its_cuda_version() -> None:
    told = facts(TABLE_384, TABLE_384, kernel="unreadable", module="absent")
    found = judged("gpu", told, require_cuda="12.4")
    assert found[0] == "pass driver: driver 384.183, CUDA up to 9.0"
    assert found[2].startswith(
        "fail cuda: driver 384.183 is too old for CUDA 12.4, should be 525.60.13 or newer"
    )


def test_case_memory_without_a_process() -> None:
    used = ["4 MiB", "4 MiB", "10151 MiB", "4 MiB"]
    text = listed(*(gpu(n, amount) for n, amount in enumerate(used))).replace("0 %", "100 %")
    (finding,) = [f for f in judged("gpu", facts(text), held_mib=500) if f.startswith("fail")]
    assert finding.startswith("fail memory: GPU 2 (")
    assert finding.endswith(
        "10151 MiB of 81920 MiB in use, by no process; should be 500 MiB or less"
    )


def test_case_a_zombie_and_one_that_waits_for_ever() -> None:
    text = listed(gpu(0, "30600 MiB"), gpu(1, "30600 MiB"))
    apps = running((0, 41022, "30512 MiB", "python3"), (1, 41023, "30512 MiB", "python3"))
    processes = (
        "41022 40990 Z 2 alice - - - slurmstepd python3\n"
        "41023 1 D 1 alice - nvidia_close - systemd python3"
    )
    found = judged("gpu", facts(text, apps, processes=processes))
    assert found[2:] == [
        "fail stuck: memory is held by what cannot let go: python3 (process 41022 of alice, zombie"
        " of its parent slurmstepd 40990) holds 30512 MiB of GPU 0; python3 (process 41023 of"
        " alice, in D state: waits in the kernel on nvidia_close, without a parent) holds 30512 MiB"
        " of GPU 1"
    ]


def test_case_one_major_family() -> None:
    told = facts(listed(gpu(0, driver="535.183.01"), gpu(1, driver="535.183.01")))
    assert statuses(judged("gpu", told, require_cuda="12.4"))["cuda"] == "pass"
    found = judged("gpu", told, require_cuda="13.0")
    assert found[2].startswith("fail cuda: driver 535.183.01 is too old for CUDA 13.0")
