"""The check ntp with real time daemons, and its questions to real servers."""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clustercheck.check import Target
from tests.made_up import CHECKS, MadeUpNode, judged, options_of
from tests.ntp_facts import NO_REFERENCE, runs
from tests.time_daemons import Answers, Chronyd, chronyds, free_port, libraries, tool
from tools.fetch import TOOLS


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Chronyd]]:
    with chronyds(tmp_path_factory.mktemp("chrony")) as made:
        yield made


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("follows good", "pass synchronised: chronyd follows 127.77.0.1 (stratum 4), 0.000"),
        ("follows 0.7", "warn daemon_offset: chronyd says that the clock is 0.7"),
        ("follows 3", "fail daemon_offset: chronyd says that the clock is 3.0"),
        ("follows nobody", "fail silent: no source answers, of 1: 127.0.0.1; chronyd is not"),
        (
            "has no source",
            "fail no_source: no source is configured, or none has an address; chronyd",
        ),
        ("follows itself", "fail name_only: chronyd is synchronised by name only"),
    ],
)
@pytest.mark.parametrize("form", ["csv", "text"])
def test_real_chronyd(
    real: dict[str, Chronyd], tmp_path: Path, name: str, form: str, expected: str
) -> None:
    node = MadeUpNode(tmp_path)
    node.hide("ntpq", "timedatectl", "busybox")
    runs(node, 1, "systemd")
    runs(node, 7, "chronyd")
    old = 'case "$*" in *-c*) exit 1 ;; esac\n' if form == "text" else ""
    node.command("chronyc", f'{old}exec env {real[name].chronyc()} "$@"')
    assert settled(node, expected).startswith(expected)


def settled(node: MadeUpNode, expected: str) -> str:
    """The first finding; a daemon that has just begun answers for little, so it gets a minute."""
    end = time.monotonic() + 60
    while True:
        said = judged("ntp", node.probe("ntp"))[0]
        if said.startswith(expected) or time.monotonic() > end:
            return said
        time.sleep(0.5)


def test_real_sources_that_disagree(real: dict[str, Chronyd], tmp_path: Path) -> None:
    real["follows all"].wait_until(",x,", "sources")
    node = MadeUpNode(tmp_path)
    node.hide("ntpq", "timedatectl", "busybox")
    runs(node, 7, "chronyd")
    node.command("chronyc", f'exec env {real["follows all"].chronyc()} "$@"')
    expected = "fail falseticker: the sources disagree: 127.77.0.1, 127.77.0.2, 127.77.0.3; chronyd"
    assert settled(node, expected).startswith(expected)


def test_real_chronyd_that_is_gone(tmp_path: Path) -> None:
    node = MadeUpNode(tmp_path)
    node.hide("ntpq", "timedatectl", "busybox")
    runs(node, 1, "systemd")
    gone = f"{tool('chrony', 'chronyc')} -h 127.0.0.1 -p {free_port()}"
    node.command(
        "chronyc", f'LD_LIBRARY_PATH={libraries("chrony")["LD_LIBRARY_PATH"]} exec {gone} "$@"'
    )
    assert judged("ntp", node.probe("ntp")) == [
        "fail no_daemon: no time daemon runs: neither chronyd (chronyc says: 506 Cannot talk to "
        "daemon) nor ntpd nor systemd-timesyncd"
    ]


# It brings up the loopback device of a network of its own and stays as ntpd.
ALONE = """
import fcntl, os, socket, struct, sys
lo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(lo, 0x8914, struct.pack("16sh", b"lo", 1))
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_real_ntpsec_without_a_server(tmp_path: Path) -> None:
    ntpd, ntpq = tool("ntpsec", "ntpd"), tool("ntpsec", "ntpq")
    nsenter = shutil.which("nsenter")
    if not (nsenter and shutil.which("unshare")):
        pytest.skip("no unshare or no nsenter: tools/fetch.py gets them")
    unshare = ["unshare", "--user", "--map-root-user", "--net"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("cannot here: namespaces of one's own are not allowed on this machine")
    environment = libraries("ntpsec")
    config = tmp_path / "ntp.conf"
    config.write_text("disable ntp\nrestrict default noquery\nrestrict 127.0.0.1\n")
    with (tmp_path / "log").open("w") as log:
        daemon = subprocess.Popen(
            [*unshare, sys.executable, "-c", ALONE, ntpd, "-n", "-c", config],
            env=environment,
            stdout=log,
            stderr=log,
        )
    try:
        node = MadeUpNode(tmp_path)
        node.hide("chronyc", "timedatectl", "busybox")
        runs(node, 7, "ntpd", "-n")
        modules = unpacked_modules(tmp_path)
        inside = (
            f"{shutil.which('nsenter')} --preserve-credentials --user --net --target {daemon.pid}"
        )
        node.command(
            "ntpq",
            f"export PYTHONPATH={modules} LD_LIBRARY_PATH={environment['LD_LIBRARY_PATH']}\n"
            f'exec {inside} {ntpq} "$@"',
        )
        end = time.monotonic() + 60
        while "not running" in (told := node.probe("ntp"))["ntpq"] and time.monotonic() < end:
            time.sleep(0.2)
    finally:
        daemon.terminate()
        daemon.wait(20)
    assert judged("ntp", told) == [
        "fail no_source: no source is configured, or none has an address; ntpd is not "
        "synchronised (leap=11, stratum=16)"
    ]


def unpacked_modules(folder: Path) -> str:
    """Where ntpq's Python modules are, with their library beside them; "" if installed."""
    modules = TOOLS / "ntpsec/usr/lib/python3/dist-packages/ntp"
    if not modules.exists():
        return ""
    here = folder / "python"
    here.mkdir()
    (here / "ntp").mkdir()
    for file in modules.glob("*.py"):
        (here / "ntp" / file.name).symlink_to(file)
    (library,) = list((TOOLS / "ntpsec").glob("usr/lib/*/ntp/libntpc.so.1"))
    (here / "ntp/libntpc.so").symlink_to(library.resolve())
    return str(here)


def from_here(*reference: str) -> dict[str, str]:
    probe = CHECKS["ntp"].probe_from_here
    assert probe
    found = probe([Target("node01", "10.0.0.1")], options_of("ntp", reference=reference))
    return dict(found["node01"])


def test_real_servers_tell_this_machines_offset(real: dict[str, Chronyd]) -> None:
    told = from_here(real["good"].server)
    assert abs(float(told["here.offset"])) < 0.05
    assert 0 < float(told["here.uncertainty"]) < 0.5
    assert told["here.server"] == real["good"].server
    for name, off in (("0.7", 0.7), ("3", 3.0)):
        told = from_here(real[name].server)
        doubt = float(told["here.uncertainty"]) + 0.05
        assert abs(abs(float(told["here.offset"])) - off) < doubt


def test_a_clock_that_is_ahead_of_the_reference_is_told_as_ahead(real: dict[str, Chronyd]) -> None:
    follower = from_here(real["3"].server)
    # chronyd's word on this very clock, against the same server
    said = subprocess.run(
        ["sh", "-c", f"{real['follows 3'].chronyc()} -n tracking"], capture_output=True, text=True
    ).stdout
    assert ("fast of NTP time" in said) == (float(follower["here.offset"]) > 0)


def test_servers_are_outvoted_and_may_disagree(real: dict[str, Chronyd], tmp_path: Path) -> None:
    good, other, off = (real[name].server for name in ("good", "follows good", "3"))
    told = from_here(good, off, other)
    assert abs(float(told["here.offset"])) < 0.5
    assert told["here.server"] in (good, other)
    assert from_here(good, off)["here.error"].startswith("the references disagree (from this ")
    dead = f"127.0.0.1:{free_port()}"
    assert from_here(dead, good)["here.server"] == good


def test_servers_that_tell_no_time(real: dict[str, Chronyd]) -> None:
    unsynchronised = real["follows nobody"].server
    assert from_here(unsynchronised)["here.error"].startswith(
        f"{unsynchronised} is not synchronised itself (leap 3, stratum "
    )
    dead = f"127.0.0.1:{free_port()}"
    assert from_here(dead)["here.error"] == f"{dead} gave no answer to an NTP request"
    assert from_here("nobody.invalid")["here.error"].startswith(
        "nobody.invalid cannot be resolved: "
    )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((3, 4, 0, 0x52415445), "refuses to tell the time (kiss of death RATE)"),
        ((0, 4, 16, 0), "is not synchronised itself (leap 0, stratum 16)"),
        ((0, 3, 2, 0), "gave an answer that does not fit the request"),
    ],
)
def test_answers_that_are_refused(answer: tuple[int, ...], expected: str) -> None:
    server = Answers(answer)
    threading.Thread(target=server.one, daemon=True).start()
    assert from_here(f"127.0.0.1:{server.port}") == {
        "here.error": f"127.0.0.1:{server.port} {expected}"
    }


def test_nobody_is_asked_unless_named_or_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert from_here() == NO_REFERENCE


def test_the_servers_that_this_machine_follows_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ["^,+,127.78.0.1", "^,*,127.78.0.2", "^,x,127.78.0.3", "^,?,127.78.0.4", "#,*,PHC0"]
    (tmp_path / "rows").write_text("".join(f"{row},3,0,377,1,0,0,0\n" for row in rows))
    chronyc = tmp_path / "chronyc"
    chronyc.write_text(f"#!/bin/sh\ncat {tmp_path}/rows\n")
    chronyc.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    # nobody is there, on NTP's own port
    assert sorted(from_here()["here.error"].split("; ")) == [
        "127.78.0.1 gave no answer to an NTP request",
        "127.78.0.2 gave no answer to an NTP request",
    ]
