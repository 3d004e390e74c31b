"""The check dns on a node whose look-ups take long: whom they wait for, and when it gives up."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.dns_facts import GOOD, trouble
from tests.made_up import CHECKS, MadeUpNode, judged
from tests.shells import SHELLS, sh_folder

# As a node had them whose first name server had no power and whose second one answered.
ARP = """\
IP address       HW type     Flags       HW address            Mask     Device
10.99.0.250      0x1         0x0         00:00:00:00:00:00     *        eth0
10.99.0.53       0x1         0x2         8e:d7:f7:ab:b0:76     *        eth0
"""
UDP = """\
   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
  415: 0301630A:0044 0100630A:0043 01 00000000:00000000 00:00000000 00000000     0        0 281 2 0
 2381: 0501630A:E8B1 FA00630A:0035 01 00000000:00000000 00:00000000 00000000     0        0 298 2 0
"""
RESOLV = "search lab.test\nnameserver 10.99.0.250\nnameserver 10.99.0.53\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_server_that_is_waited_for_is_named(shell: str, tmp_path: Path) -> None:
    node = MadeUpNode(tmp_path)
    node.file("/etc/resolv.conf", RESOLV)
    node.file("/proc/net/arp", ARP)
    node.file("/proc/net/udp", UDP)
    (node.root / "proc/uptime").symlink_to("/proc/uptime")
    node.command("getent", "case $2 in clustercheck-*) sleep 1.5 ;; esac; exit 2")
    told = node.probe("dns", shell=shell)
    assert told["absent"] == "10.99.0.250"
    assert told["waits"] == "FA00630A:0035"
    seen = {key: told[key] for key in ("asked", "absent", "waits", "resolv.conf")}
    (found,) = trouble({**GOOD, **seen})
    assert found.startswith(
        "warn dead_server: the name server 10.99.0.250, the first of 2 in resolv.conf, does not "
        "answer; on the node each look-up that no file answers takes "
    )


@pytest.mark.parametrize("shell", SHELLS)
def test_a_look_up_that_is_slow_once_is_no_trouble(shell: str, tmp_path: Path) -> None:
    """A busy node, or a packet that was lost: the look-up after it is as quick as ever."""
    node = MadeUpNode(tmp_path)
    node.file("/etc/resolv.conf", RESOLV)
    (node.root / "proc").symlink_to("/proc")
    node.command("getent", "case $2 in clustercheck-test*) sleep 1.5 ;; esac; exit 2")
    told = node.probe("dns", shell=shell)
    seen = {key: told[key] for key in ("asked", "waits", "resolv.conf")}
    assert trouble({**GOOD, **seen}) == ["pass"]
    (found,) = (one for one in judged("dns", {**GOOD, **seen}) if " lookup: " in one)
    assert re.fullmatch(
        r"pass lookup: a look-up that no file answers took [12]\.\d s once, and less than 0\.5 s "
        "after that",
        found,
    )


@pytest.mark.parametrize(("seconds", "tried"), [(1, 1), (0, 20)])
@pytest.mark.parametrize("shell", SHELLS)
def test_names_are_given_up_where_the_first_one_shows_no_hope(
    shell: str, seconds: int, tried: int, tmp_path: Path
) -> None:
    node = MadeUpNode(tmp_path)
    (node.root / "proc").mkdir()
    (node.root / "proc/uptime").symlink_to("/proc/uptime")
    node.command(
        "getent", f'[ "$2" != 127.0.0.1 ] || echo STREAM; [ $2 != 0.0.0.1 ] || sleep {seconds}'
    )
    text = CHECKS["dns"].follow_probe.partition("| awk '{ printf")[0]
    names = "\n".join(f"node{number}" for number in range(20))
    prelude = (
        f"PATH={sh_folder(shell)}:{node.bin}:$PATH\nROOT={node.root}\n"
        f"within() {{ shift; \"$@\"; }}\nNODES='{names}'\n"
    )
    table = text.replace("most=3000 batch=64", "most=1000 batch=1")
    assert table != text
    words = [f"{sh_folder(shell)}/sh", "-c", prelude + table]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    *rows, total = done.stdout.splitlines()
    assert (len(rows), total) == (tried, "total 20")
