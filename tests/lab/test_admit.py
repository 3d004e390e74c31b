"""A node with many differences, and a clean twin, before they join."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.host import Keys
from tests.lab.cluster import Lab
from tests.lab.spec import DOMAIN, LATER, NOBODY, Spec, address, healthy, time_client

# What is wrong with it, each with what must name it.
DIFFERENCES = {
    "its interface for data at MTU 1500": "mtu.side",
    "an old address in /etc/hosts": "dns.differs",
    "a time server that is 3 s off": "ntp.daemon_offset",
    "/tmp with another mode": "tmp.mode",
    "another version of a program": "fingerprint.uniform version.docker",
    "other words in nsswitch.conf": "fingerprint.uniform file.nsswitch.conf",
    "another number of an account": "fingerprint.uniform account.slurm",
    "another setting of the kernel": "fingerprint.uniform sysctl.vm.swappiness",
    "a lower limit of open files": "fingerprint.uniform limit.nofile",
    "another limit of memory maps": "fingerprint.uniform sysctl.vm.max_map_count",
}
ACCOUNT = "echo 'slurm:x:{}:64030::/nonexistent:/usr/sbin/nologin' >>/etc/passwd"
DOCKER = (
    "printf '#!/bin/sh\\necho Docker version {}\\n' >/usr/bin/docker; chmod 755 /usr/bin/docker"
)
ODD = """
chmod 755 /tmp
prlimit --nofile=512:1000 --pid "$(cat /run/sshd.pid)"
echo 1 >/run/swappiness
mount --bind /run/swappiness /proc/sys/vm/swappiness
echo 1 >/run/maps
mount --bind /run/maps /proc/sys/vm/max_map_count
"""


def twin(spec: Spec) -> Spec:
    lines = [ACCOUNT.format(64030), DOCKER.format("28.2.2"), spec.before]
    return replace(spec, before="\n".join(lines))


def odd(name: str) -> Spec:
    spec = time_client(name, LATER)
    hosts = f"127.0.0.1 localhost\n{address(NOBODY)} node01.{DOMAIN} node01\n"
    lines = [ACCOUNT.format(1234), DOCKER.format("20.10.1"), spec.before]
    names = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\n"
    files = {**spec.files, "etc/hosts": hosts, "etc/nsswitch.conf": names}
    return replace(spec, before="\n".join(lines), after=ODD, data_mtu=1500, files=files)


@pytest.fixture(scope="module")
def joining(possible: None, keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    specs = [twin(spec) for spec in healthy(6)]
    made = Lab(tmp_path_factory.mktemp("joining"), keys, [*specs, odd("odd")])
    yield made
    made.close()


def admitted(lab: Lab, name: str) -> tuple[int, dict[str, Any]]:
    words = ["admit", name, "--like", "node[01-05]", "-i", str(lab.inventory)]
    command = [sys.executable, "-m", "clustercheck", *words, "-F", str(lab.ssh_config)]
    done = subprocess.run(
        lab.in_head([*command, "--format", "json"]), capture_output=True, text=True, timeout=100
    )
    assert done.stdout, done.stderr
    content: dict[str, Any] = json.loads(done.stdout)["candidates"][name]
    return done.returncode, content


def test_a_clean_twin_is_admitted(joining: Lab) -> None:
    status, told = admitted(joining, "node06")
    assert (told["answer"], told["remarks"], status) == ("admit", [], 0)
    assert told["compared_with"] == [f"node{place:02}" for place in range(1, 6)]


def test_all_differences_are_named_and_nothing_else(joining: Lab) -> None:
    status, told = admitted(joining, "odd")
    assert status == 2 and not told["admit"]
    found = [
        f"{remark['code']} {remark['message'].split(' ')[0]}"
        if remark["code"].startswith("fingerprint.")
        else remark["code"]
        for remark in told["remarks"]
    ]
    assert sorted(found) == sorted(DIFFERENCES.values()), told["remarks"]
    checks = [code.split(".")[0] for code in found]
    assert list(dict.fromkeys(checks)) == ["mtu", "dns", "ntp", "tmp", "fingerprint"]
    assert set(told["again"]) == set(checks)
