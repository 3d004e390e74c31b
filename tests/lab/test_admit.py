"""A node with ten differences, and a clean twin, before they join."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from clustercheck.render.json import schema
from tests.host import Keys
from tests.lab.cluster import Lab
from tests.lab.joining import DIFFERENCES, specs
from tests.lab.spec import HEAD, address

PEERS = 5


@pytest.fixture(scope="module")
def joining(possible: None, keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("joining"), keys, specs(PEERS))
    yield made
    made.close()


def admitted(lab: Lab, name: str, *more: str) -> tuple[int, dict[str, Any]]:
    words = ["admit", name, "--like", f"node[01-{PEERS:02}]", "-i", str(lab.inventory), *more]
    command = [sys.executable, "-m", "clustercheck", *words, "-F", str(lab.ssh_config)]
    done = subprocess.run(
        lab.in_head([*command, "--format", "json"]), capture_output=True, text=True, timeout=100
    )
    assert done.stdout, done.stderr
    written = json.loads(done.stdout)
    jsonschema.Draft202012Validator(schema("admission")).validate(written)
    content: dict[str, Any] = written["candidates"][name]
    return done.returncode, content


def brief(remark: dict[str, Any]) -> str:
    """ "warn fingerprint.uniform limit.nofile": of the fingerprint, which field."""
    field = remark["message"].split(" ")[0] if remark["code"] == "fingerprint.uniform" else ""
    return f"{remark['status']} {remark['code']} {field}".rstrip()


def test_a_clean_twin_is_admitted(joining: Lab) -> None:
    status, told = admitted(joining, f"node{PEERS + 1:02}")
    assert (told["answer"], told["remarks"], status) == ("admit", [], 0)
    assert told["compared_with"] == [f"node{place:02}" for place in range(1, PEERS + 1)]
    assert {"fingerprint", "gpu", "munge", "slurm", "mtu", "reach"} <= set(told["passed"])


def test_ten_differences_are_named_in_order_and_nothing_else(joining: Lab) -> None:
    status, told = admitted(joining, "odd")
    assert (told["admit"], status) == (False, 2)
    assert [brief(remark) for remark in told["remarks"]] == list(DIFFERENCES.values())
    assert all(remark["said_by"] == [] for remark in told["remarks"])
    named = [code for work in told["work"] for code in work["codes"]]
    assert list(dict.fromkeys(named)) == list(
        dict.fromkeys(value.split(" ")[1] for value in DIFFERENCES.values())
    )
    checks = dict.fromkeys(code.split(".")[0] for code in named)
    assert set(told["again"]) == set(checks)
    # That Slurm has not heard of the node is no finding beside the wrong key.
    assert told["blocked"] == {"slurm": "state: blocked by munge"}


@pytest.mark.parametrize(
    ("way", "code"),
    [
        (f"input priority 0; tcp dport 22 ip saddr != {address(HEAD)} drop", "reach.unreached"),
        ("output priority 0; tcp dport 22 drop", "reach.reaches_none"),
    ],
)
def test_it_must_be_reached_and_reach_the_others(joining: Lab, way: str, code: str) -> None:
    """Either way, each by itself: that the admin's machine gets in says nothing of it."""
    name = f"node{PEERS + 1:02}"
    joining.run(name, f"nft 'table inet joins {{ chain one {{ type filter hook {way}; }}; }}'")
    try:
        status, told = admitted(joining, name, "-c", "reach")
    finally:
        joining.run(name, "nft delete table inet joins")
    assert [brief(remark) for remark in told["remarks"]] == [f"fail {code}"]
    assert (told["admit"], status) == (False, 2)
