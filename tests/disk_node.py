"""A made-up node for the tests of the check disk: its mounts, its df and its kernel's log."""

from pathlib import Path

import pytest

from tests.made_up import MadeUpNode
from tests.this_machine import SHELLS

DATA = Path(__file__).resolve().parent / "data"
MISSING = "skip smart: smartctl is not installed: the disks were not asked"
QUIET = "pass log: no errors of disks in the last 24 h by the kernel's log"
USED = "pass space: used: /data 50 %, / 35.5 %"


def sample(name: str) -> str:
    return (DATA / name).read_text()


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def node(tmp_path: Path) -> MadeUpNode:
    node = MadeUpNode(tmp_path)
    node.says("dmesg", "[    0.000000] Linux version 6.1.0\n")
    node.file("/proc/uptime", "90200.10 100.00\n")
    mounted(node, "/ ext4 /dev/sda2 rw")
    node.says("df")
    return node


def mounted(node: MadeUpNode, *mounts: str) -> None:
    """Set what is mounted: "PLACE KIND SOURCE OPTIONS" each."""
    lines = []
    for number, mount in enumerate(mounts, 1):
        place, kind, source, options = mount.split(" ")
        own = options.split(",")[0]
        lines.append(
            f"{number} 1 8:{number} / {place} {own} shared:1 - {kind} {source} {options}\n"
        )
    node.file("/proc/self/mountinfo", "".join(lines))


def df_says(node: MadeUpNode, space: str, inodes: str = "") -> None:
    """What df prints for -k and for -i, whatever it is asked for; the arguments are kept."""
    node.says("df-k", space)
    node.says("df-i", inodes or space)
    node.command(
        "df",
        f'printf "%s\\n" "$*" >>"{node.bin}/asked"\n'
        f'case "$2" in -k) exec "{node.bin}/df-k" ;; *) exec "{node.bin}/df-i" ;; esac',
    )


def asked(node: MadeUpNode) -> str:
    """The directories that df was asked for the space of."""
    file = node.bin / "asked"
    lines = file.read_text().splitlines() if file.exists() else []
    file.unlink(missing_ok=True)
    return " ".join(
        line.removeprefix("-P -k ") for line in lines if line.startswith("-P -k")
    ).replace(str(node.root), "")
