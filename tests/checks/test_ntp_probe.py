"""The probe of the check ntp on made-up nodes, under each kind of sh."""

import os
import shlex
from pathlib import Path

import pytest

from tests.made_up import MadeUpNode, judged
from tests.ntp_facts import DATA, recorded, runs
from tests.shells import SHELLS, shell_words


@pytest.fixture(params=SHELLS)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> MadeUpNode:
    """A node without any time daemon or tool; probes run in the shell of the parameter."""
    node = MadeUpNode(tmp_path)
    node.hide("chronyc", "ntpq", "timedatectl", "busybox", "pmc", "ntpd")
    node.command("sh", f'exec {shlex.join(shell_words(request.param))} "$@"')
    node.file("/proc/1/comm", "systemd\n")
    return node


def test_the_probe_finds_nobody(node: MadeUpNode) -> None:
    assert node.probe("ntp") == {"running": "", "processes": "all"}
    (node.root / "proc/1/comm").unlink()
    node.file("/run/.containerenv")
    assert node.probe("ntp") == {
        "running": "",
        "processes": "own",
        "container": "/run/.containerenv",
    }


def test_the_probe_sees_daemons_by_their_processes(node: MadeUpNode) -> None:
    runs(node, 7, "chronyd", "-F", "2")
    runs(node, 8, "phc2sys", "-a")
    node.file("/proc/9/comm", "ntpd\n")
    node.file("/proc/9/cmdline", "")  # ended
    assert node.probe("ntp")["running"].splitlines() == [
        "chronyd chronyd -F 2 ",
        "phc2sys phc2sys -a ",
    ]


def test_an_old_chronyc_is_asked_for_its_text(node: MadeUpNode) -> None:
    runs(node, 7, "chronyd")
    tracking = shlex.quote(str(DATA / "chrony-tracking-synced.txt"))
    sources = shlex.quote(str(DATA / "chrony-sources-mixed.txt"))
    node.command(
        "chronyc",
        'case "$*" in *-c*) echo "Unrecognized option -c" >&2; exit 1 ;;\n'
        f"*tracking) cat {tracking} ;; *) cat {sources} ;; esac",
    )
    told = node.probe("ntp")
    assert told["chrony.tracking"] + "\n" == recorded("chrony-tracking-synced")
    assert judged("ntp", told)[0].startswith("pass synchronised: chronyd follows 10.20.0.11")
    assert judged("ntp", told)[1].startswith("warn falseticker: 1 of 5")


def test_a_chronyd_that_listens_to_root_only(node: MadeUpNode) -> None:
    if os.geteuid():
        pytest.skip("cannot here: needs root")
    runs(node, 7, "chronyd")
    second = node.root / "second"
    node.command(
        "chronyc",
        f"[ -e {second} ] || {{ : >{second}; echo 506 Cannot talk to daemon; exit 1; }}\n"
        f'case "$*" in *tracking) cat {DATA}/chrony-tracking-synced-csv.txt ;; esac',
    )
    told = node.probe("ntp")
    assert told["chrony.sources"] == "none"
    assert judged("ntp", told)[0].startswith("pass synchronised: chronyd follows 10.20.0.11")


def test_a_chronyc_that_hangs_is_no_proof_of_anything(node: MadeUpNode) -> None:
    runs(node, 7, "chronyd")
    node.command("chronyc", "exec sleep 60")
    assert judged("ntp", node.probe("ntp")) == [
        "unknown no_answer: chronyd runs, but does not answer (no answer within 3 s)"
    ]


def test_ntpq_of_the_classic_kind_without_w(node: MadeUpNode) -> None:
    runs(node, 7, "ntpd", "-g")
    files = [DATA / "ntpq-rv-classic-synced.txt", DATA / "ntpq-pn-classic.txt"]
    node.command(
        "ntpq",
        'case "$*" in *-w*) echo "ntpq: illegal option -- w" >&2; exit 1 ;; esac\n'
        f"cat {shlex.join(map(str, files))}",
    )
    assert judged("ntp", node.probe("ntp")) == [
        "pass synchronised: ntpd follows 192.0.2.15 (stratum 3), 0.000125 s ahead of it, "
        "good to 0.022 s"
    ]


def test_ntpd_of_busybox(node: MadeUpNode) -> None:
    runs(node, 7, "ntpd", "-N", "-p", "10.20.0.11")
    (node.bin / "busybox").write_text('#!/bin/sh\necho "    status:       64 (UNSYNC)"\n')
    (node.bin / "busybox").chmod(0o755)
    (node.bin / "ntpd").symlink_to("busybox")
    assert judged("ntp", node.probe("ntp"))[0].startswith(
        "fail not_synchronised: busybox's ntpd cannot be asked"
    )


def test_timesyncd_is_asked_only_where_it_runs(node: MadeUpNode) -> None:
    show = shlex.quote(str(DATA / "timedatectl-show-ntp-off.txt"))
    status = shlex.quote(str(DATA / "timedatectl-timesync-status-synced.txt"))
    asked = node.root / "asked"
    node.command(
        "timedatectl",
        f'echo "$*" >>{asked}\n'
        f"case $1 in show) cat {show} ;; timesync-status) cat {status} ;; esac",
    )
    assert judged("ntp", node.probe("ntp"))[0].startswith("warn unkept:")
    assert asked.read_text() == "show\n"
    runs(node, 7, "systemd-timesyn")
    assert judged("ntp", node.probe("ntp"))[0].startswith("pass synchronised: systemd-timesyncd")


def test_timedatectl_before_systemd_239(node: MadeUpNode) -> None:
    node.command(
        "timedatectl",
        '[ "$1" = status ] || { echo "Unknown operation $1" >&2; exit 1; }\n'
        'printf "     NTP enabled: n/a\\nNTP synchronized: yes\\n"',
    )
    assert judged("ntp", node.probe("ntp"))[0].startswith("warn unkept:")


def test_a_daemon_inside_a_container_is_not_the_nodes(node: MadeUpNode) -> None:
    node.file("/proc/41/comm", "ntpd\n")
    node.file("/proc/41/status", "Name:\tntpd\nNSpid:\t41\n")
    node.file("/proc/42/comm", "chronyd\n")
    node.file("/proc/42/status", "Name:\tchronyd\nNSpid:\t42\t7\n")
    assert node.probe("ntp")["running"].split() == ["ntpd", "ntpd"]
