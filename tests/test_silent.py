"""Nodes that let a run wait are asked last the next time."""

import json
import os
import socket
from pathlib import Path

import pytest

from tests.command import clustercheck


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def asked_in_turn(inventory: Path, state: Path) -> list[str]:
    """The nodes in the order of their answers."""
    words = ["--parallel", "1", "--connect-timeout", "0.5", "--format", "jsonl", "-F", os.devnull]
    done = clustercheck(
        "run", "-i", inventory, "-c", "tmp", *words, env={"XDG_STATE_HOME": str(state)}
    )
    assert done.status == 3, done.err
    return [json.loads(line)["node"] for line in done.out.splitlines()[:-1]]


def test_a_silent_node_is_asked_last_until_it_answers(tmp_path: Path, state: Path) -> None:
    inventory = tmp_path / "inventory.ini"
    with socket.create_server(("127.0.0.1", 0)) as server:  # takes connections and never greets
        port = server.getsockname()[1]
        inventory.write_text(f"slow port={port}\nnode01 port=1\n[all:vars]\nhost=127.0.0.1\n")
        assert asked_in_turn(inventory, state) == ["slow", "node01"]
        assert asked_in_turn(inventory, state) == ["node01", "slow"]
        assert (state / "clustercheck/silent").read_text() == "slow\n"
    assert asked_in_turn(inventory, state) == ["node01", "slow"]  # now it is refused at once
    assert asked_in_turn(inventory, state) == ["slow", "node01"]


def test_a_list_that_cannot_be_kept_does_no_harm(tmp_path: Path, state: Path) -> None:
    inventory = tmp_path / "inventory.ini"
    state.write_text("a file where a folder should be")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        inventory.write_text(f"slow port={port}\nnode01 port=1\n[all:vars]\nhost=127.0.0.1\n")
        assert asked_in_turn(inventory, state) == ["slow", "node01"]
        assert asked_in_turn(inventory, state) == ["slow", "node01"]
