"""In what two nodes differ, what changed between two recorded runs, and baselines."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from clustercheck import execute
from clustercheck.diff import diff
from clustercheck.planning import Wanted
from clustercheck.render.json import schema
from tests.command import Done, clustercheck
from tests.made_up import judged


def recorded(folder: Path, inventory: Path) -> Path:
    done = clustercheck("run", "-i", inventory, "-c", "fingerprint", "--record", folder)
    assert done.status == 0, done
    return folder


def changed(folder: Path, node: str, old: str, new: str, *, asked: str = "") -> None:
    """As if the node had told something else."""
    (file,) = (folder / "nodes").glob(f"{node}*.json")
    content = json.loads(file.read_text())
    facts = content["told"]["fingerprint"]["facts"]
    assert old in facts["fields"]
    facts["fields"] = facts["fields"].replace(old, new)
    facts["gpu_settings"] = asked or facts["gpu_settings"]
    file.write_text(json.dumps(content))


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    path = tmp_path / "inventory.ini"
    path.write_text("n1 ansible_connection=local\nn2 ansible_connection=local\n")
    return path


def test_two_nodes_that_are_the_same_machine(inventory: Path) -> None:
    done = clustercheck("diff", "n1", "n2", "-i", inventory)
    assert (done.status, done.out, done.err) == (0, "no difference\n", "")


def test_gpus_are_asked_how_they_are_set(inventory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run leaves that out: nvidia-smi takes its time."""
    asked: dict[str, bool] = {}

    def ask(chosen: Any, way: Any, limits: Any, watch: Any, *, options_of: Any) -> None:
        for name in ("n1", "n2"):
            asked[name] = options_of("fingerprint", name).gpu_settings

    monkeypatch.setattr(execute, "ask", ask)
    way: Any = None
    assert diff("n1", "n2", Wanted(inventory), way, way, "text") == 3
    assert asked == {"n1": True, "n2": True}


def test_what_changed_between_two_runs(inventory: Path, tmp_path: Path) -> None:
    before = recorded(tmp_path / "before", inventory)
    after = recorded(tmp_path / "after", inventory)
    assert clustercheck("diff", before, after).out == "no difference\n"
    for node in ("n1", "n2"):
        changed(after, node, "sysctl.vm/swappiness ", "sysctl.vm/swappiness 7")
    changed(after, "n2", "limit.nofile ", "limit.nofile 9")
    done = clustercheck("diff", before, after, "--format", "json")
    assert done.status == 1
    content: dict[str, Any] = json.loads(done.out)
    jsonschema.Draft202012Validator(schema("diff")).validate(content)
    assert [(d["field"], d["nodes"]) for d in content["differences"]] == [
        ("sysctl.vm.swappiness", ["n1", "n2"]),
        ("limit.nofile", ["n2"]),
    ]
    first = content["differences"][0]
    assert first["other"] == f"7{first['one']}"
    done = clustercheck("diff", before, after)
    assert done.status == 1
    heading, _, line, *_ = done.out.splitlines()
    assert heading.split()[:2] == ["field", "nodes"]
    assert line.split() == ["sysctl.vm.swappiness", "n[1-2]", first["one"], first["other"]]


def test_settings_that_one_run_has_not_asked_for_are_no_difference(
    inventory: Path, tmp_path: Path
) -> None:
    before = recorded(tmp_path / "before", inventory)
    after = recorded(tmp_path / "after", inventory)
    for node in ("n1", "n2"):
        changed(after, node, "cpu.model ", "gpu.ecc_mode 4 x Enabled\ncpu.model ", asked="asked")
    done = clustercheck("diff", before, after)
    assert (done.status, done.out) == (3, "")
    assert done.err == f"clustercheck: n[1-2]: not told in {before}: gpu.ecc_mode\n"
    for node in ("n1", "n2"):
        changed(before, node, "cpu.model ", "cpu.model ", asked="asked")
    done = clustercheck("diff", before, after)
    assert done.status == 1
    assert done.out.splitlines()[2].split() == ["gpu.ecc_mode", "n[1-2]", "absent", "Enabled"]


def test_a_node_that_is_in_one_run_only_is_named(inventory: Path, tmp_path: Path) -> None:
    before = recorded(tmp_path / "before", inventory)
    inventory.write_text("n1 ansible_connection=local\n")
    after = recorded(tmp_path / "after", inventory)
    done = clustercheck("diff", before, after)
    assert done.status == 3
    assert done.err == f"clustercheck: n2: not in {after}\n"
    assert done.out == ""


def test_a_node_that_does_not_answer_is_no_difference() -> None:
    done = clustercheck("diff", "127.0.0.8", "127.0.0.9", "--port", "1", "-F", "/dev/null")
    assert done.status == 3
    assert done.out == "" and done.err.count("\n") == 2
    assert "127.0.0.8: " in done.err and "127.0.0.9: " in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["n1", "n1"], "n1 does not differ from itself"),
        (["n[1-2]", "n3"], "'n[1-2]' is 2 nodes; give one at a time"),
        (["n1", "/tmp"], "/tmp is a folder; give two folders of recorded runs, or two nodes"),
        (["n1", "n2", "--format", "jsn"], "--format: there is no form 'jsn'"),
    ],
)
def test_wrong_words(words: list[str], message: str) -> None:
    done = clustercheck("diff", *words)
    assert done.status == 64 and message in done.err and done.err.count("\n") == 1


def test_folders_without_a_run(tmp_path: Path) -> None:
    done = clustercheck("diff", tmp_path, tmp_path)
    assert done.status == 78 and "holds no recorded run" in done.err


# ---------------------------------------------------------------- baselines


def admit(inventory: Path, *words: str | Path) -> Done:
    return clustercheck("admit", "n2", "-i", inventory, "-c", "fingerprint", *words)


def test_a_baseline_is_kept_and_held_against(inventory: Path, tmp_path: Path) -> None:
    file = tmp_path / "compute.baseline"
    done = admit(inventory, "--save-baseline", file)
    assert done.status == 0, done
    lines = file.read_text().splitlines()
    assert lines[0] == "# what n2 is and has, written by clustercheck admit"
    assert any(line.startswith("kernel ") for line in lines)
    done = admit(inventory, "--baseline", file)
    assert (done.status, done.out.splitlines()[0]) == (0, "n2: admit")
    number = next(n for n, line in enumerate(lines) if line.startswith("kernel "))
    lines[number] = "kernel 1.0"
    file.write_text("\n".join(lines))
    done = admit(inventory, "--baseline", file)
    assert done.status == 1
    assert "[1] warn fingerprint.expected: kernel is " in done.out
    assert ", should be 1.0\n" in done.out
    assert f"--baseline {file} -c fingerprint" in done.out


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        (b"kernel\n", 78, ":1: a field has no value"),
        (b"# nothing\n", 78, "has no field"),
        (b"kernel \xff\n", 78, "is not UTF-8"),
        (None, 64, "cannot be read: No such file"),
    ],
)
def test_a_baseline_that_is_none(
    inventory: Path, tmp_path: Path, text: bytes | None, status: int, message: str
) -> None:
    file = tmp_path / "baseline"
    if text is not None:
        file.write_bytes(text)
    done = admit(inventory, "--baseline", file)
    assert done.status == status and message in done.err, done
    assert done.err.count("\n") == 1 and done.out == ""


def test_what_is_expected_stands_in_the_inventory_as_well() -> None:
    told = {"fields": "kernel 6.1\nos Debian\n"}
    assert judged("fingerprint", told, expect=("kernel 6.1", "os Debian"))[2:] == [
        "pass expected: 2 fields are as they should be"
    ]
    assert judged("fingerprint", told, expect=("kernel 6.2", "glibc 2.36"), must=("kernel",))[
        2:
    ] == [
        "fail expected: kernel is 6.1, should be 6.2",
        "warn expected: glibc is absent, should be 2.36",
    ]


def test_nobody_is_compared_where_a_value_is_expected() -> None:
    from tests.fingerprint_facts import compared, four

    assert compared(four(kernel="6.1"), expect=("kernel 5.14.0-427.el9.x86_64",)) == []
