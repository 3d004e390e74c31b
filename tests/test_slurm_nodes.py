"""What Slurm's controller says of nodes: by a real one, and in the forms of other versions."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clustercheck.freshness import NodeState
from clustercheck.slurm_nodes import (
    SET,
    SlurmNode,
    Unreadable,
    ask,
    by_our_names,
    read,
    read_lines,
    states,
)
from tests.slurm_cluster import NODES, SlurmCluster

DATA = Path(__file__).parent / "data/slurm_nodes"
NEW, OLD, SUMMED = "scontrol-24.11.json", "sinfo-22.05.json", "sinfo-24.11.json"


def data(name: str) -> bytes:
    return (DATA / name).read_bytes()


def environment_of(cluster: SlurmCluster) -> dict[str, str]:
    return {**os.environ, **cluster.env}


def test_a_real_controller_says_when_nodes_booted_and_were_used(slurm: SlurmCluster) -> None:
    began = time.time()
    answer = ask(environment_of(slurm))
    assert answer.trouble == "" and tuple(node.name for node in answer.nodes) == NODES
    before = {node.name: node for node in answer.nodes}
    first = before["n1"]
    assert (first.host, first.partitions) == ("localhost", ("main", "short"))
    assert first.states == ("IDLE",) and first.trouble == ""
    assert 0 < first.boot <= first.slurmd <= began + 1 and not first.state.in_use

    slurm.reboot("n4")
    slurm.scontrol("update", "nodename=n2", "state=drain", 'reason=bad "disk"')
    job = slurm.sbatch("sleep 100", "-w", "n3")
    slurm.until(lambda: slurm.state(job) == "RUNNING")
    now = {node.name: node for node in ask(environment_of(slurm)).nodes}
    assert now["n2"].trouble.startswith('drained: bad "disk') and now["n3"].trouble == ""
    assert [name for name in NODES if now[name].state.in_use] == ["n3"]
    assert [name for name in NODES if now[name].boot != before[name].boot] == ["n4"]
    assert now["n4"].slurmd > before["n4"].slurmd


def test_a_controller_that_is_down_is_told(make_slurm: Callable[..., SlurmCluster]) -> None:
    cluster = make_slurm()
    cluster.controller.terminate()
    cluster.controller.wait()
    answer = ask(environment_of(cluster), seconds=2)
    assert answer.nodes == ()
    assert answer.trouble in (
        "Slurm's controller did not answer within 2 s",
        "slurm_load_node: Unable to contact slurm controller (connect failure)",
        "slurm_load_node error: Unable to contact slurm controller (connect failure)",
        "slurm_load_partitions: Unable to contact slurm controller (connect failure)",
    )


def test_numbers_and_states_of_the_new_form() -> None:
    nodes = {node.name: node for node in read(data(NEW))}
    assert nodes["gpu01"] == SlurmNode(
        "gpu01",
        "gpu01.cluster",
        "10.0.0.1",
        ("IDLE",),
        "",
        "",
        ("main", "gpu"),
        1722009700.0,
        1722009794.0,
        1722009794.0,
    )
    assert {name: node.trouble for name, node in nodes.items()} == {
        "gpu01": "",
        "gpu02": "drained: bad DIMM in slot 3, by root",
        "gpu03": "down and not responding: Not responding, by slurm",
        "cloud01": "",
    }
    assert [name for name, node in nodes.items() if node.state.in_use] == ["gpu02"]
    assert nodes["cloud01"].state == NodeState()  # what is not set, and what has no end


def test_numbers_and_states_of_the_old_form() -> None:
    first, second, third = read(data(OLD))
    assert first.states == ("IDLE",) and first.boot < first.slurmd <= first.busy
    assert first.state == NodeState("", first.boot, first.slurmd, first.busy)
    assert second.states == ("IDLE", "DRAIN") and second.trouble == "drained: for a test, by root"
    assert third.states == ("MIXED",) and third.state.in_use


def made_up(folder: Path, **commands: str) -> dict[str, str]:
    """An environment with these commands, texts for sh, and no others of Slurm."""
    for name, text in commands.items():
        (folder / name).write_text(f"#!/bin/sh\necho {name} >>{folder}/called\n{text}\n")
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def test_the_new_slurm_is_asked_once(tmp_path: Path) -> None:
    environment = made_up(tmp_path, scontrol=f"cat {DATA / NEW}", sinfo=f"cat {DATA / SUMMED}")
    assert len(ask(environment).nodes) == 4
    assert (tmp_path / "called").read_text() == "scontrol\n"


COMPLAINT = "scontrol: unrecognized option '--json'"
OLD_SCONTROL = f'case $* in *--json) echo "{COMPLAINT}" >&2;; esac; exit 1'
WITHOUT = "sinfo: fatal: Unable to load serializer/json plugin"
NO_JSON = f'case $* in *--json) echo "{WITHOUT}" >&2; exit 1;; esac'
TEXT = DATA / "scontrol-22.05.txt"


@pytest.mark.parametrize(
    ("commands", "trouble", "nodes"),
    [
        ({}, "", 0),
        ({"scontrol": OLD_SCONTROL, "sinfo": f"cat {DATA / OLD}"}, "", 3),
        ({"scontrol": f"{NO_JSON}; cat {TEXT}", "sinfo": NO_JSON}, "", 5),
        ({"scontrol": f"{NO_JSON}; cat {TEXT}", "sinfo": f"cat {DATA / SUMMED}"}, "", 5),
        ({"scontrol": f"{NO_JSON}; cat {TEXT}"}, "", 5),
        ({"sinfo": NO_JSON}, WITHOUT, 0),
        ({"sinfo": f"cat {DATA / SUMMED}"}, "sinfo: its output has no list of nodes", 0),
        (
            {"sinfo": f"cat {DATA / 'sinfo-22.05-down.json'}"},
            "sinfo: it tells of an error: Unspecified error",
            0,
        ),
        ({"scontrol": "echo no JSON"}, "scontrol: its output has no node", 0),
        (
            {"scontrol": "echo 'slurm_load_node error: Unable to contact' >&2; exit 1"},
            "slurm_load_node error: Unable to contact",
            0,
        ),
        ({"scontrol": "sleep 9"}, "Slurm's controller did not answer within 0.3 s", 0),
    ],
)
def test_what_commands_may_say_instead(
    commands: dict[str, str], trouble: str, nodes: int, tmp_path: Path
) -> None:
    answer = ask(made_up(tmp_path, **commands), seconds=0.3 if "sleep" in str(commands) else 10)
    assert (answer.trouble, len(answer.nodes)) == (trouble, nodes)


def test_a_real_slurm_says_in_words_what_it_says_in_json(slurm: SlurmCluster) -> None:
    slurm.scontrol("update", "nodename=n2", "state=drain", "reason=BootTime=7 [a] test")
    told = slurm.run("scontrol", "show", "nodes", "--oneliner", env=SET).stdout
    assert tuple(read_lines(told.encode())) == ask(environment_of(slurm)).nodes


def test_states_in_words() -> None:
    content = TEXT.read_bytes().replace(b"State=DOWN ", b"State=DOWN*+DRAIN ")
    nodes = {node.name: node for node in read_lines(content)}
    assert {name: node.trouble for name, node in nodes.items()} == {
        "n1": "",
        "n2": "drained: for [a] test BootTime=7, by root",
        "n3": "",
        "n4": "down and not responding and drained: gone, by root",
        "cloud01": "",
    }
    assert nodes["n2"].boot == 1796067221 and nodes["n3"].state.in_use
    assert nodes["cloud01"].state == NodeState() and nodes["cloud01"].partitions == ("cloud",)


def changed(**values: Any) -> bytes:
    content = json.loads(data(NEW))
    content["nodes"][0].update(values)
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"", "its output is no JSON"),
        (b"[" * 100_000, "its output is no JSON"),
        (b"\xff{}", "its output is no JSON"),
        (b"{}", "its output has no list of nodes"),
        (b"[]", "its output has no list of nodes"),
        (b'{"nodes": {}}', "its output has no list of nodes"),
        (b'{"nodes": [1]}', "a node in its output has no name"),
        (b'{"nodes": [{"name": "n1"}]}', "its output does not have when nodes booted"),
        (b'{"nodes": [], "errors": [{"description": "no\\nway"}]}', "it tells of an error: no way"),
        (b'{"nodes": []}', "its output has no list of nodes"),
        (b'{"nodes": [], "errors": ["gone"]}', "it tells of an error: gone"),
        (b'{"nodes": [], "errors": {"7": 7}}', "it tells of an error: {'7': 7}"),
        (changed(name=""), "a node in its output has no name"),
    ],
)
def test_what_is_not_understood_is_told(text: bytes, complaint: str) -> None:
    with pytest.raises(Unreadable, match=f"^{complaint}$"):
        list(read(text))


@pytest.mark.parametrize(
    "value",
    [None, "soon", -1, 0, True, [], 1e300, {"set": True}, {"set": True, "number": "x"}],
)
def test_a_time_that_is_none_is_not_known(value: object) -> None:
    text = changed(boot_time=value, slurmd_start_time=value, last_busy=value)
    first = next(read(text))
    assert (first.boot, first.slurmd, first.busy) == (0, 0, 0)


def test_hostile_words_are_cut_and_do_no_harm() -> None:
    text = changed(reason="x\x1b[2J" * 1000, state=["drain", 7, None, "\n"], partitions=7)
    first = next(read(text))
    assert first.trouble.startswith("drained: x\x1b[2Jx") and len(first.trouble) < 320
    assert first.partitions == ()


def node(name: str, host: str = "", address: str = "") -> SlurmNode:
    return SlurmNode(name, host or name, address or name, ("IDLE",), "", "", (), 1, 2, 3)


@pytest.mark.parametrize(
    ("name", "host", "found"),
    [
        ("n1", "", "n1"),
        ("N1", "", "n1"),
        ("n1.cluster.example", "", "n1"),
        ("first", "n1", "n1"),
        ("first", "n1.cluster.example", "n1"),
        ("real2", "", "n2"),
        ("real2.cluster", "", "n2"),
        ("any", "10.0.0.3", "n3"),
        ("any", "10.0.0.4", ""),
        ("10.0.0.3", "", "n3"),
        ("shared", "", ""),  # two slurmd on one machine: which is meant?
        ("n4", "shared", "n4"),
        ("fe80::3", "", "n6"),
        ("strange", "", ""),
        ("10", "", ""),  # the beginning of an address is no name
    ],
)
def test_a_node_is_found_by_slurms_names_for_it(name: str, host: str, found: str) -> None:
    nodes = [
        node("n1"),
        node("n2", "real2.cluster"),
        node("n3", address="10.0.0.3"),
        node("n4", "shared"),
        node("n5", "shared"),
        node("n6", address="fe80::3"),
        node("10", "n10"),
    ]
    if name == "10":
        nodes.pop()
    fits = by_our_names({name: host}, nodes)
    assert [each.name for each in fits.values()] == ([found] if found else [])
    assert states({name: host}, nodes) == ({name: NodeState("", 1, 2, 3)} if found else {})
