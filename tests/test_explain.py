"""`explain` and `checks`: pages that tell all of a check, for the real checks and a made-up one."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from clustercheck import explain, fieldnotes, inventory, plugin, reach, registry, verdict
from clustercheck.check import AnyCheck, Check, Code, Facts, Finding, Remedy, ok, option
from clustercheck.errors import UsageError
from tests.made_up import CHECKS

PROJECT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Options:
    warn: float = option(0.5, "from which on it is a warning", unit="s")
    paths: tuple[str, ...] = option((), "what else to look at")
    space: bool = option(True, "whether space is looked at")


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    yield ok("space", "enough")


FREE = Remedy("Free some space: ask the owners.", "§5.5")
RESTART = Remedy("Restart the daemon when the node is drained.", "§4.1.1", disturbs=True)
MADE_UP: AnyCheck = Check(
    title="room for everything",
    options=Options(),
    judge=judge,
    codes={
        "full": Code("No space is left.", (FREE, RESTART)),
        "space": Code("How much space there is.", (FREE,)),
    },
    probe="fact a b",
    needs=("df", "stat", "lsof"),
    needs_root=True,
    limit=7,
    after=("gpu",),
    follows={"space": ("mounts.read_only", "nfs")},
    probe_peers=True,
    probe_nodes=True,
    follow_probe="fact e f",
    follow=lambda facts, options: [],
    heavy_probe="fact c d",
    heavy_limit=90,
    compare=lambda facts, options: [],
)

PAGE = """\
room: room for everything

How it is asked
---------------
  - A probe in sh on the node, for 7 s at most; it needs df, stat and lsof
    there.
  - A heavy probe, for 90 s at most: it runs after all others, on one node at a
    time for each thing that nodes share.
  - Each node tries some of the other nodes that are asked in the same run.
  - It is told the names of all nodes that are asked in the same run.
  - When all have answered, the few nodes that differ are asked once more.
  - The answers of all nodes are compared with each other.
  - A gate may keep its result until it is older than --max-age.
  - It needs root (become = sudo), and is not run without.
  - It is skipped on a node where gpu failed, which explains it.
  - Put down to a failure of mounts.read_only or nfs, and not told twice:
    space.

Options
-------
  Set below [check:room] in the inventory, as room.OPTION in [GROUP:vars] or on
  a node's line, or with -o room.OPTION=VALUE.

  warn = 0.5 s
      From which on it is a warning.

  paths = (empty)
      What else to look at.

  space = yes
      Whether space is looked at.

Findings
--------
  room.full
      No space is left.
      -> Free some space: ask the owners. (§5.5)
      -> [disturbs running work] Restart the daemon when the node is drained.
         (§4.1.1)

  room.space
      How much space there is.
      -> as for room.full: Free some space: ask the …

"""


def test_a_page_tells_all() -> None:
    page = explain.page("room", {"room": MADE_UP})
    assert page.startswith(PAGE)
    notes = fieldnotes.sections()
    last = " ".join(page.removeprefix(PAGE).split())
    assert last == (
        "As any check it may also give "
        + ", ".join(f"room.{code}" for code in verdict.COMMON_CODES)
        + ". What the field notes say there ------------------------------ "
        + " ".join(f"§{number} {notes['§' + number]}" for number in ("4.1.1", "5.5"))
    )


def test_a_code_and_an_option_of_one_name() -> None:
    page = explain.page("room.space", {"room": MADE_UP})
    assert page.startswith(
        "room.space, a finding of room: room for everything\n\n  How much space there is.\n"
        "  -> Free some space: ask the owners. (§5.5)\n\nWhat the field notes say there\n"
    )
    assert page.endswith(
        "\n\nroom.space, an option of room: room for everything\n\n"
        "  space = yes\n      Whether space is looked at.\n"
    )


@pytest.mark.parametrize("name", [*CHECKS, reach.NAME])
def test_every_real_page_is_whole_and_narrow(name: str) -> None:
    page = explain.page(name, CHECKS)
    wide = [line for line in page.splitlines() if len(line) > 79 and " " in line.strip()]
    assert wide == [] and "\n\n\n" not in page
    words = " ".join(page.split())
    codes = reach.CODES if name == reach.NAME else CHECKS[name].codes
    for code, known in codes.items():
        assert f"{name}.{code} {known.meaning}" in words
        alone = " ".join(explain.page(f"{name}.{code}", CHECKS).split())
        for remedy in known.remedies:
            assert f"{remedy.text} ({remedy.see})".removesuffix(" ()") in alone
            assert remedy.see in words
            assert not remedy.see or remedy.see + " " + fieldnotes.sections()[remedy.see] in alone
    if name in CHECKS:
        assert registry.docs(name).split("\n")[0] in words.replace("\n", " ")
        for field in CHECKS[name].option_fields():
            assert f" {field.name} = " in words
            assert field.metadata["text"][1:] in words
            assert explain.page(f"{name}.{field.name}", CHECKS)


def test_codes_of_the_frame() -> None:
    page = explain.page("selinux.limit", CHECKS)
    assert "The probe did not end within its limit; what it waits on is named." in page


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (
            "selinx",
            "no check, finding, option or profile is called 'selinx'; did you mean 'selinux'?",
        ),
        ("selinux.mod", "selinux has no finding or option 'mod'; did you mean 'mode'?"),
        ("selinux.foo", "no finding or option 'foo'; `clustercheck explain selinux` lists them"),
        (f"{reach.NAME}.refusd", "did you mean 'refused'?"),
        ("qqqqq", "called 'qqqqq'; `clustercheck checks` lists the checks, with -i those of an"
         " inventory too"),
        ("selinux.", "did you mean 'selinux'?"),
    ],
)  # fmt: skip
def test_an_unknown_word(word: str, expected: str) -> None:
    with pytest.raises(UsageError) as raised:
        explain.page(word, CHECKS)
    assert str(raised.value).endswith(expected)


def test_a_plugin_has_a_page(tmp_path: Path) -> None:
    file = tmp_path / "inventory.ini"
    file.write_text("here\n[check:raid]\ncommand = check_raid -w 1\nremedy = Call Ann.\n")
    page = explain.page("raid", plugin.checks_of(inventory.load(file, CHECKS)))
    assert page.startswith("raid: Monitoring plug-in check_raid\n\nA monitoring plug-in, as Nagios")
    assert "  command = check_raid -w 1\n" in page
    assert "  raid.critical\n      The plug-in ended with 2: critical.\n" in page
    assert "      -> as for raid.warning: Call Ann. …\n" in page


def test_the_table_of_checks() -> None:
    table = explain.checks_table({"room": MADE_UP, "selinux": CHECKS["selinux"]})
    assert [line.split() for line in table.splitlines() if "--" not in line] == [
        ["check", "what", "is", "looked", "at", "load", "root"],
        ["room", "room", "for", "everything", "heavy", "needed"],
        ["selinux", *CHECKS["selinux"].title.split(), "light", "adds", "to", "it"],
    ]


def test_options_as_they_stand_for_a_node(tmp_path: Path) -> None:
    file = tmp_path / "inventory.ini"
    file.write_text("[gpu]\nnode03\n[gpu:vars]\nroom.warn = 1.50\n[check:room]\npaths = /a, /b\n")
    read = inventory.load(file, {"room": MADE_UP}, ["room.space=no"])
    table = explain.effective(read.effective("node03"))
    assert [line.split(maxsplit=1) for line in table.splitlines()[2:]] == [
        ["room.warn", f"1.5 s    {file}:4 [gpu:vars]"],
        ["room.paths", f"/a, /b   {file}:6 [check:room]"],
        ["room.space", "no       -o"],
    ]


def test_the_readme_says_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cogapp", "--check", "--diff", "README.md"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    readme = (PROJECT / "README.md").read_text()
    for name in registry.own():
        assert f"\n| `{name}` " in readme, "the table of checks has gone from README.md"
    assert "| exit code " in " ".join(readme.split()), "the exit codes have gone from README.md"
