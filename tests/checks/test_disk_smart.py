"""The check disk: what disks say of themselves by smartctl."""

import json
import os
from typing import Any

import pytest

from tests.disk_node import MISSING, QUIET, USED, node, sample, shell
from tests.made_up import MadeUpNode, judged
from tests.storage_facts import ATA, DISK, NVME

__all__ = ["node", "shell"]


def smart(text: str, *, disk: str = "sda", status: str = "0", **changed: Any) -> list[str]:
    told = {**DISK, "disks": disk, "smart": "asked", f"status@{disk}": status}
    found = judged("disk", {**told, f"smart@{disk}": text}, **changed)
    return [said for said in found if said not in (USED, QUIET)]


@pytest.mark.parametrize(
    ("file", "status", "expected"),
    [
        ("smartctl-ata-passed", "0", "pass smart: healthy by their own word: sda"),
        ("smartctl-ata-failed", "8", "fail smart: sda is failing by its own word: health FAILED, "
         "Reallocated_Sector_Ct 5 below 36"),
        ("smartctl-scsi", "0", "pass smart: healthy by their own word: sda"),
        ("smartctl-nvme-wear", "0", "warn wear: sda: 97 % of the rated writes are used, should be "
         "below 90 %"),
    ],
)  # fmt: skip
def test_samples_of_smartctl(file: str, status: str, expected: str) -> None:
    assert smart(sample(f"disk/{file}.txt"), status=status) == [expected]


def nvme(**log: Any) -> str:
    told = json.loads(NVME)
    told["nvme_smart_health_information_log"] |= log
    told["smart_status"]["passed"] = not log.get("critical_warning")
    return json.dumps(told)


def ata(passed: bool = True, **raw: int) -> str:
    """raw: counts by number, as n5=12."""
    told = json.loads(ATA)
    told["smart_status"]["passed"] = passed
    table = told["ata_smart_attributes"]["table"]
    for name, value in raw.items():
        table.append(
            {"id": int(name[1:]), "name": name, "when_failed": "", "raw": {"value": value}}
        )
    return json.dumps(told)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NVME, "pass smart: healthy by their own word: sda"),
        (ATA, "pass smart: healthy by their own word: sda"),
        (nvme(critical_warning=1, available_spare=5), "fail smart: sda is failing by its own word: "
         "spare space below its threshold"),
        (nvme(critical_warning=12), "fail smart: sda is failing by its own word: reliability "
         "degraded, read-only"),
        (nvme(critical_warning=2), "warn hot: sda says that it is too hot"),
        (nvme(available_spare=9), "fail smart: sda is failing by its own word: spare space 9 %, "
         "should be 10 % or more"),
        (nvme(percentage_used=130, media_errors=3), "warn wear: sda: 130 % of the rated writes are "
         "used, should be below 90 %, 3 media errors, should be 0"),
        (ata(n5=9), "pass smart: healthy by their own word: sda"),
        (ata(n5=10), "warn wear: sda: 10 sectors were replaced by spare ones, should be below 10"),
        (ata(n197=8, n198=8), "warn wear: sda: 8 sectors cannot be read, should be 0, 8 sectors "
         "are uncorrectable, should be 0"),
        (ata(passed=False), "fail smart: sda is failing by its own word: health FAILED"),
        ('{"smartctl":{"messages":[{"string":"Device is in STANDBY mode, exit(2)"}]}}',
         "skip asleep: asleep, and left so: sda"),
        ("smartctl 6.5\nDevice is in STANDBY mode, exit(2)", "skip asleep: asleep, and left so: "
         "sda"),
        ('{"smartctl":{"messages":[{"string":"Smartctl open device: /dev/sda failed: DELL or '
         'MegaRaid controller, please try adding \'-d megaraid,N\'"}]}}', "skip hidden: sda: no "
         "SMART there, or a controller hides the disks behind it"),
        ("/dev/sda: requires option '-d cciss,N'", "skip hidden: sda: no SMART there, or a "
         "controller hides the disks behind it"),
        ('{"smart_support":{"available":false}}', "skip hidden: sda: no SMART there, or a "
         "controller hides the disks behind it"),
        ("SMART support is:     Unavailable - device lacks SMART capability.", "skip hidden: sda: "
         "no SMART there, or a controller hides the disks behind it"),
        ("Smartctl open device: /dev/sda failed: No such device", "unknown smart: sda: smartctl "
         "cannot tell how it is: Smartctl open device: /dev/sda failed: No such device"),
        ('{"smart_status":{"passed":tr', "unknown smart: sda: smartctl cannot tell how it is: its "
         "JSON is not whole"),
        ("", "unknown smart: sda: smartctl cannot tell how it is: exit status 0"),
    ],
)  # fmt: skip
def test_what_disks_say_of_themselves(text: str, expected: str) -> None:
    assert smart(text) == [expected]


def test_the_table_of_an_old_smartctl() -> None:
    text = (
        "=== START OF READ SMART DATA SECTION ===\n"
        "SMART overall-health self-assessment test result: PASSED\n\n"
        "ID# ATTRIBUTE_NAME          FLAG     VALUE WORST THRESH TYPE      UPDATED  WHEN_FAILED"
        " RAW_VALUE\n"
        "  5 Reallocated_Sector_Ct   0x0033   100   100   036    Pre-fail  Always       -       0\n"
        "190 Airflow_Temperature_Cel 0x0022   060   040   045    Old_age  Always   In_the_past 40"
        " (Min/Max 20/41)\n"
        "197 Current_Pending_Sector  0x0012   100   100   000    Old_age   Always      -       16\n"
    )
    assert smart(text) == ["warn wear: sda: 16 sectors cannot be read, should be 0"]
    assert smart(text.replace("-       16", "-       0")) == [
        "pass smart: healthy by their own word: sda"
    ]


def test_smartctl_on_a_node(node: MadeUpNode, shell: str) -> None:
    for disk, state in (("sda", "running"), ("nvme0n1", "live"), ("sdb", "running")):
        node.file(f"/sys/block/{disk}/size", "15628053168\n")
        node.file(f"/sys/block/{disk}/removable", "1\n" if disk == "sdb" else "0\n")
        node.file(f"/sys/block/{disk}/device/state", f"{state}\n")
    node.file("/sys/block/vda/size", "100\n")
    node.file("/sys/block/nvme0c0n1/device/state", "live\n")
    text = sample("disk/smartctl-ata-failed.txt")
    node.says("old", text, status=8)
    node.command(
        "smartctl",
        f'[ "$1 $2" = "-n standby" ] || exit 99\ncase "$*" in\n*nvme0n1) echo \'{NVME}\' ;;\n'
        "*json*) echo '=======> UNRECOGNIZED OPTION: json=c'; exit 1 ;;\n"
        f'*) exec "{node.bin}/old" ;;\nesac',
    )
    told = node.probe("disk", shell=shell)
    assert told["status@sda"] == "8"
    if os.getuid() == 0:
        assert judged("disk", told)[-3:] == [
            "fail smart: sda is failing by its own word: health FAILED, Reallocated_Sector_Ct 5 "
            "below 36",
            "pass smart: healthy by their own word: nvme0n1",
            QUIET,
        ]
    assert node.probe("disk", shell=shell, smart="no")["smart"] == "not wanted"


def test_without_smartctl_it_is_said_and_where_it_is_wanted_it_is_unknown() -> None:
    assert MISSING in judged("disk", DISK)
    assert (
        "unknown smart: smartctl is not installed, and needed to tell how the disks are"
        in judged("disk", DISK, smart="yes")
    )
    assert judged("disk", {**DISK, "smart": "needs root"}) == [USED, QUIET]


# ---------------------------------------------------------------- the kernel
