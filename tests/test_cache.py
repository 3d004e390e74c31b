"""The folder of kept results: what of it is believed, and what becomes of the rest."""

import errno
import hashlib
import json
import os
import random
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from clustercheck.answer import Answer
from clustercheck.cache import Cache, default_folder, question
from clustercheck.check import Facts, Quantity, Remedy, fail, ok, skip, unknown
from clustercheck.facts import Told
from clustercheck.freshness import Clock, Moment, NodeState, Stamp
from clustercheck.kept import Kept, KeptAnswer
from clustercheck.report import NodeResult, Report

PROJECT = Path(__file__).resolve().parent.parent
KEY = "a" * 32
STATE = NodeState("id", 1000.0, 1001.0, 1002.0, True, 7.5, "")
HOSTILE = "n\n1</script>\x1b[2J\"'\\é\udcff"


def kept() -> Kept:
    remedy = Remedy("Do it.", "§4.1.1", True)
    findings = {
        "ntp": [
            fail("offset", f"clock is off {HOSTILE}", remedy, value=Quantity(1.5, "s")),
            ok("path", "reached", peer="n2"),
        ],
        "gpu": [skip("none", "no GPU")],
    }
    away = {"access": [unknown("refused", "nothing listens")]}
    report = Report(
        started=datetime(2026, 12, 1, 3, 0, tzinfo=timezone.utc),
        seconds=2.5,
        checks=["ntp", "gpu"],
        nodes={
            HOSTILE: NodeResult(HOSTILE, findings, 0.5),
            "n2": NodeResult("n2", away, None),
        },
        notes=["a note"],
    )
    stamps = {HOSTILE: {"ntp": Stamp(5000.0, STATE), "gpu": Stamp(6000.0)}, "n2": {}}
    return Kept(
        report=report,
        stamps=stamps,
        stale={"ntp": "time", "gpu": "use"},
        hosts={HOSTILE: "10.0.0.1", "n2": ""},
        fields={"ntp": {HOSTILE: {"cpu": "x"}, "n2": {"cpu": "x"}}},
        more={"profile": ["benchmark", 1]},
        seen=(7000.0, {"n2": STATE}),
    )


def answer() -> KeptAnswer:
    told = {"ntp": Told(Facts({"offset": HOSTILE}), whole=True, status="0")}
    return KeptAnswer(
        Answer("n1", ["ntp"], told, ["n2"], boot_id="id", clock=(0.1, 0.2)),
        {"ntp": Stamp(5000.0, STATE)},
        {"ntp": "d" * 32, "": "e" * 32},
    )


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    made = Cache(tmp_path / "cache")
    made.write(KEY, kept())
    made.keep(answer())
    return made


def file_of(cache: Cache) -> Path:
    (file,) = (cache.folder / "questions").glob("*.json")
    return file


def test_what_was_kept_comes_back_as_it_was(cache: Cache) -> None:
    assert cache.read(KEY) == kept()
    assert cache.answer("n1") == answer()
    assert cache.read("b" * 32) is None and cache.answer("n2") is None
    assert cache.notes == []


def test_nobody_else_can_read_or_change_it(cache: Cache) -> None:
    files = [cache.folder, *cache.folder.rglob("*")]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in files}
    assert len(files) == 5 and modes == {0o700, 0o600}


def test_a_question_is_another_one_when_any_part_is() -> None:
    parts = [
        ("a", "b"),
        ("ab", ""),
        ("", "ab"),
        ("a", "b", ""),
        ("b", "a"),
        (b"a", "c"),
        ("\udcff",),
        ("\ud800",),
    ]
    assert len({question(*each) for each in parts}) == len(parts)
    assert question("a", "é") == question(b"a", "é".encode())


def rewrite(change: Callable[[dict[str, Any], bytes], bytes]) -> Callable[[Path], None]:
    """Change a file's head, or what comes after it."""

    def apply(file: Path) -> None:
        first, _, rest = file.read_bytes().partition(b"\n")
        head = json.loads(first)
        rest = change(head, rest)
        file.write_bytes(json.dumps(head).encode() + b"\n" + rest)

    return apply


def head(**values: Any) -> Callable[[Path], None]:
    def change(head: dict[str, Any], rest: bytes) -> bytes:
        head.update(values)
        return rest

    return rewrite(change)


def other_body(head: dict[str, Any], rest: bytes) -> bytes:
    head["sum"] = hashlib.sha256(b"[]").hexdigest()
    return b"[]"


def as_link(file: Path) -> None:
    file.rename(file.with_suffix(".else"))
    file.symlink_to(file.with_suffix(".else"))


def as_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


DAMAGED = "'{}' is damaged; it is left aside, and written anew"
OTHERS = "'{}' may have been written by others, and is left aside"
ANEW = "what clustercheck {} has kept is left aside, and kept anew"
SPOILT: dict[str, tuple[Callable[[Path], Any], str]] = {
    "cut": (lambda file: os.truncate(file, 300), DAMAGED),
    "empty": (lambda file: os.truncate(file, 0), DAMAGED),
    "noise": (lambda file: file.write_bytes(random.Random(1).randbytes(9999)), DAMAGED),
    "text": (lambda file: file.write_text("no\nJSON"), DAMAGED),
    "list": (lambda file: file.write_text("[]\n[]"), DAMAGED),
    "deep": (lambda file: file.write_text("[" * 100_000), DAMAGED),
    "other sum": (head(sum="0" * 64), DAMAGED),
    "other body": (rewrite(other_body), DAMAGED),
    "no clock": (head(clock=None), DAMAGED),
    "older": (head(version="0.0.9"), ANEW.format("0.0.9")),
    "newer form": (head(schema="clustercheck.cache/9", version="9"), ANEW.format("9")),
    "future": (
        head(clock=[Clock.now().wall + 900, 0, "x"]),
        "the clock was set back since results were kept: they are asked anew",
    ),
    "group": (lambda file: file.chmod(0o660), OTHERS),
    "world": (lambda file: file.chmod(0o602), OTHERS),
    "pipe": (as_pipe, OTHERS),
    "link": (as_link, "'{}' cannot be read (Too many levels of symbolic links), and is left aside"),
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILT)
def test_what_is_not_ours_or_not_whole_is_left_aside_with_a_word(cache: Cache, name: str) -> None:
    spoil, words = SPOILT[name]
    file = file_of(cache)
    spoil(file)
    assert cache.read(KEY) is None
    assert cache.notes == [words.format(file)]
    cache.write(KEY, kept())
    cache.notes.clear()
    assert cache.read(KEY) == kept() and cache.notes == []


def test_no_changed_byte_is_believed_and_none_ends_the_gate(cache: Cache) -> None:
    file, chance = file_of(cache), random.Random(2)
    whole = file.read_bytes()
    body = whole.index(b"\n") + 1
    for _ in range(200):
        place = chance.randrange(body, len(whole))
        other = whole[place] ^ (1 << chance.randrange(8))
        file.write_bytes(whole[:place] + bytes([other]) + whole[place + 1 :])
        assert cache.read(KEY) is None
    for node in (cache.folder / "nodes").iterdir():
        whole = node.read_bytes()
        node.write_bytes(whole[:-9] + b"\0" + whole[-8:])
    assert cache.answer("n1") is None


def test_the_results_of_another_question_are_not_taken_for_those(cache: Cache) -> None:
    file = file_of(cache)
    file.rename(file.with_name(f"{'b' * 32}.json"))
    assert cache.read("b" * 32) is None
    assert "is damaged" in cache.notes[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_what_another_user_owns_is_not_believed(cache: Cache) -> None:
    file = file_of(cache)
    os.chown(file, 1, -1)
    assert cache.read(KEY) is None
    assert cache.notes == [OTHERS.format(file)]
    os.chown(cache.folder, 1, -1)
    other = Cache(cache.folder)
    assert not other.usable and other.read(KEY) is None
    assert other.notes == [
        f"results are not kept: {str(cache.folder)!r} is another user's; name a folder of your own"
    ]


def test_a_full_disk_is_no_more_than_a_word(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*words: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    cache.write(KEY, kept())
    cache.keep(answer())
    assert cache.notes == [
        f"results cannot be kept in {str(cache.folder)!r}: No space left on device"
    ]
    assert not list(cache.folder.rglob(".*")), "nothing is left lying about"


def test_what_nobody_has_written_for_a_week_is_removed(cache: Cache) -> None:
    old = file_of(cache)
    os.utime(old, (1_700_000_000,) * 2)
    cache.tidy()
    assert not old.exists() and cache.answer("n1") is not None
    cache.write(KEY, kept())
    os.utime(old, (1_700_000_000,) * 2)
    cache.tidy()
    assert old.exists(), "it looks once a day"


def test_it_lies_where_others_look_for_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert str(default_folder()) == "/home/ada/.cache/clustercheck"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "clustercheck"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert str(default_folder()) == "/home/ada/.cache/clustercheck"


def test_a_user_without_a_home_is_asked_to_name_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
    cache = Cache(default_folder())
    cache.write(KEY, kept())
    cache.tidy()
    assert cache.read(KEY) is None and cache.changed(KEY) == (0, 0)
    assert cache.notes == [
        "results are not kept: you have no home directory; name a folder with --cache"
    ]


def test_what_needs_another_look_is_named_by_node_and_check() -> None:
    moment = Moment(5100.0, 5100.0, 900.0)
    idle = STATE._replace(in_use=False, busy=4000.0)
    assert kept().not_fresh({HOSTILE: idle}, moment) == {
        HOSTILE: ("gpu",),  # looked at in the future
        "n2": ("ntp", "gpu"),  # never found out
    }


def crowd(*words: object) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.crowd", *map(str, words)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=100)
    assert done.stderr == "" and done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


FOUND = {"n0": "pass", "n1": "pass"}


def test_of_many_who_ask_at_once_one_asks_the_nodes(tmp_path: Path) -> None:
    found = crowd(tmp_path, 64)
    assert [each["found"] for each in found] == [FOUND] * 64
    assert sorted(each["asked"] for each in found) == [0] * 63 + [2]
    assert all(each["notes"] == [] for each in found)
    assert (tmp_path / "asked").read_text() == "\n\n"
    left = {path.suffix for path in (tmp_path / "cache/questions").iterdir()}
    assert left <= {".json", ".guard"}  # of who saw the lock of one that had just ended


def test_who_is_killed_while_he_asks_keeps_nobody_waiting(tmp_path: Path) -> None:
    found = crowd(tmp_path, 16, "killed")
    assert [each["found"] for each in found] == [FOUND] * 16
    assert sorted(each["asked"] for each in found) == [0] * 15 + [2]
    assert (tmp_path / "asked").read_text() == "\n\n"
    left = {path.suffix for path in (tmp_path / "cache/questions").iterdir()}
    assert left <= {".json", ".guard"}
