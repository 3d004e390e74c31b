"""The example inventory is what the code makes it, and can be read, as it is and all set."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from clustercheck import example, inventory, plugin, registry
from clustercheck.check import AnyCheck, Check, option
from clustercheck.settings import Inventory
from clustercheck.variables import OURS

FILE = Path(__file__).resolve().parent.parent / "inventory.example.ini"


@dataclass(frozen=True)
class Odd:
    """Values that are hard to write down."""

    none: float | None = option(None, "may be none", unit="s")
    hash: str = option("a # b", "with a hash")
    quoted: str = option('"a"', "with quotes")
    empty: str = option("", "empty")
    many: tuple[int, ...] = option((1, 2), "several")
    flag: bool = option(True, "a flag")
    long: float = option(1.5, "words " * 40, unit="h")


ODD: AnyCheck = Check(title="odd", options=Odd(), judge=lambda facts, options: [], codes={})


def all_set(text: str) -> str:
    """The file with the # of every setting taken away."""
    return re.sub(r"(?m)^#(?=[^\s#])", "", text)


def read(folder: Path, text: str, checks: dict[str, AnyCheck]) -> Inventory:
    path = folder / "inventory.ini"
    path.write_text(text)
    return inventory.load(path, checks)


def test_the_file_is_up_to_date() -> None:
    assert FILE.read_text() == example.text(registry.own()), "make it anew: make mend"


def test_as_it_stands_all_is_default(tmp_path: Path) -> None:
    checks = registry.own()
    found = inventory.load(FILE, checks)
    assert list(found.nodes) == ["login1", *(f"gpu0{n}" for n in range(1, 5)), "cpu001", "cpu002"]
    assert found.groups["compute"] == found.groups["gpu"] + found.groups["cpu"]
    assert {row.where for row in found.effective("gpu01")} == {"default"}
    assert all(node.user == "" and node.host == "" for node in found.nodes.values())


@pytest.mark.parametrize("checks", [registry.own(), {"odd": ODD}], ids=["real", "odd"])
def test_with_everything_set_it_says_the_same(tmp_path: Path, checks: dict[str, AnyCheck]) -> None:
    found = read(tmp_path, all_set(example.text(checks)), checks)
    plugins = plugin.checks_of(found)
    assert list(plugins) == ["var_space"]
    rows = found.with_checks(plugins).effective("gpu01")
    every = {**checks, **plugins}
    assert len(rows) == sum(len(check.option_fields()) for check in every.values())
    assert [row for row in rows if row.where == "default"] == []
    for name, check in every.items():
        if name in checks:
            assert found.options(name, "gpu01") == check.options
    node = found.nodes["login2"]
    assert (node.host, node.port, node.jump) == ("10.0.0.17", 22, "gate.example.org")


def test_each_setting_is_there_once() -> None:
    text = FILE.read_text()
    assert set(example.VARIABLES) == set(OURS)
    nodes = text.partition("[check:")[0]
    for variable in OURS:
        assert len(re.findall(rf"(?m)^#(?:login2 )?{variable} ?=", nodes)) == 1
    for name, check in registry.own().items():
        section = text.partition(f"[check:{name}]\n")[2].partition("\n\n")[0]
        for field in check.option_fields():
            assert len(re.findall(rf"(?m)^#{field.name} =", section)) == 1
            words = " ".join(section.replace("\n# ", " ").split())
            assert " ".join(field.metadata["text"].split()) in words


def test_no_line_is_wide() -> None:
    lines = FILE.read_text().splitlines()
    assert [line for line in lines if len(line) > 80 and line.startswith("# ")] == []
