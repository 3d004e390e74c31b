"""The page as it is written; what a browser makes of it is asked in test_html_browser.py."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from html.parser import HTMLParser
from pathlib import Path

import pytest

from clustercheck.changes import Acceptance, Changed, Kind, Night, Point
from clustercheck.check import Finding, Quantity, Remedy, Status, fail, ok, skip, warn
from clustercheck.render.html import render
from clustercheck.render.html_trend import HEIGHT, WIDTH, trend
from clustercheck.report import NodeResult, Report
from tests.command import clustercheck
from tests.made_up_night import BEFORE, STARTED, STEP, night
from tests.render.example import REPORT


class _Text(HTMLParser):
    """What a reader sees: a line for each heading, item, paragraph, row and so on."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = [""]
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in ("script", "style")
        if tag in (
            "h1",
            "h2",
            "h3",
            "body",
            "div",
            "li",
            "nav",
            "p",
            "tr",
            "summary",
            "br",
            "caption",
            "title",
        ):
            self.lines.append("")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.lines[-1] += data


def seen(page: str) -> list[str]:
    parser = _Text()
    parser.feed(page)
    return [" ".join(line.split()) for line in parser.lines if line.strip()]


def section(page: str, name: str) -> list[str]:
    """The lines of a section of the page, without its heading."""
    return seen(page.partition(f'<section id="{name}">')[2].partition("</section>")[0])[1:]


def test_the_example() -> None:
    page = render(REPORT)
    assert section(page, "findings") == [
        "✗ fail ntp.offset 4 nodes",
        "the clock is 4.07 s ahead, should be within 1 s (gpu09; 3 more nodes alike, 1.12 to "
        "4.07 s)",
        "What to do: disturbs running work Let chronyd step the clock with chronyc makestep, then "
        "look at chronyc sources. (field notes §4.1.1)",
        "gpu03 gpu04 gpu09 gpu11",
        "? unknown access.timeout",
        "no answer from port 22 within 10 s",
        "What to do: Look at the node's power and console.",
        "gpu07",
        "! warn selinux.at_boot 2 nodes",
        "enforcing after the next boot",
        "What to do: Set SELINUX=permissive in /etc/selinux/config; it holds from the next boot. "
        "(field notes §4.1.5)",
        "gpu15 gpu16",
        "Notes",
        "gpu16 is checked without root: sudo asks for a password there.",
    ]
    assert seen(page)[0] == "16 nodes: 4 fail, 1 unknown, 2 warn, 9 pass, 2026-03-01 02:30"


def test_a_nodes_part_tells_all_that_was_found() -> None:
    lines = section(render(REPORT), "parts")
    start = lines.index("! warn gpu16 selinux.at_boot 1.2 s")
    assert lines[start + 1 : start + 5] == [
        "! warn selinux.at_boot enforcing after the next boot",
        "What to do: Set SELINUX=permissive in /etc/selinux/config; it holds from the next boot. "
        "(field notes §4.1.5)",
        "– tmp.needs_root not looked at: needs root",
        "As on most nodes: ntp",
    ]
    assert lines[-3:] == [
        "✓ ntp.synchronised synchronised to 10.0.0.1",
        "✓ selinux.mode SELinux is permissive",
        "✓ tmp.space 61 % of /tmp is free",
    ]


def test_a_plug_in_may_have_a_dot_in_its_name() -> None:
    nodes = {f"n{i}": NodeResult(f"n{i}", {"disk.home": [ok("ok", "room")]}) for i in range(9)}
    lines = section(render(Report(STARTED, 1.0, ["disk.home"], nodes)), "parts")
    assert lines[-1] == "✓ disk.home.ok room"
    assert lines.count("As on most nodes: disk.home") == 9


def test_what_was_not_asked_is_no_pass() -> None:
    """gpu07 gave no answer: its row has the one mark and no other."""
    rows = [line for line in section(render(REPORT), "matrix") if line.startswith("gpu")]
    assert "gpu07?10.0" in rows
    assert "gpu16✓!–1.2" in rows
    assert "gpu01✓✓✓1.2" in rows


def test_many_nodes_without_trouble_are_folded() -> None:
    nodes = {f"n{i:03}": NodeResult(f"n{i:03}", {"a": [ok("x", "well")]}, 1.0) for i in range(99)}
    nodes["bad"] = NodeResult("bad", {"a": [fail("x", "not well", STEP)]}, 1.0)
    lines = section(render(Report(STARTED, 1.0, ["a"], nodes)), "matrix")
    assert "1 node with something wrong, the worst first" in lines
    assert "99 nodes where nothing is wrong n[000-098]" in lines
    assert lines.index("bad✗1.0") < lines.index("99 nodes where nothing is wrong n[000-098]")


def test_of_many_nodes_with_trouble_the_worst_are_shown_and_the_others_folded() -> None:
    nodes = {
        f"n{i}": NodeResult(f"n{i}", {"a": [warn("x", "not well", STEP)]}) for i in range(0, 900, 2)
    }
    nodes["bad"] = NodeResult("bad", {"a": [fail("x", "not well at all", STEP)]})
    page = render(Report(STARTED, 1.0, ["a"], nodes))
    lines = section(page, "matrix")
    assert "The 200 worst of 451 nodes with something wrong" in lines
    (more,) = [line for line in lines if line.startswith("251 more nodes")]
    assert more.startswith("251 more nodes with something wrong n[398,400,402,")
    assert more.endswith(",…] (251 nodes)")
    assert lines.index("bad✗") < lines.index("n0!") < lines.index(more) < lines.index("n898!")


def test_a_long_set_of_nodes_can_be_copied_whole() -> None:
    nodes = {
        f"n{i}": NodeResult(f"n{i}", {"a": [warn("x", "not well", STEP)]})
        for i in range(0, 2400, 2)
    }
    lines = section(render(Report(STARTED, 1.0, ["a"], nodes)), "findings")
    whole = f"n[{','.join(str(i) for i in range(0, 2400, 2))}]"
    assert any(line.endswith(f"(1200 nodes){whole}") for line in lines)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ({}, "Nothing was checked."),
        ({"a": NodeResult("a", {"x": [skip("none", "there is none")]})}, "Nothing was checked."),
        ({"a": NodeResult("a", {"x": [ok("mode", "well")]})}, "Nothing."),
    ],
)
def test_nothing_checked_is_not_nothing_wrong(nodes: dict[str, NodeResult], expected: str) -> None:
    page = render(Report(STARTED, 1.0, ["x"], nodes))
    assert section(page, "findings") == [expected]


def test_a_run_that_was_stopped_says_so() -> None:
    assert "Stopped early: interrupted." in seen(render(replace(REPORT, stopped="interrupted")))


def test_a_text_of_ten_megabytes_makes_no_page_of_that_size() -> None:
    message = "<&x" * 3_500_000
    nodes = {"a": NodeResult("a", {"x": [fail("big", message, STEP)]})}
    page = render(Report(STARTED, 1.0, ["x"], nodes))
    assert len(page) < 60_000
    assert "(10,500,000 characters)" in page


def test_the_policy_lets_nothing_in_but_what_the_page_has() -> None:
    page = render(REPORT)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.findall(r'(?:src|href)="(?!#)', page)
    assert "style=" not in page


def test_a_large_night_is_under_five_megabytes() -> None:
    page = render(night(1000, 30))  # 90 runs make no longer lines
    assert len(page.encode()) < 4_700_000  # under 5 MB, with some room for longer messages
    assert page.count("<svg") > 10_000  # the trends were not what was left out


# What changed


def _changed(kind: Kind, node: str = "n1", **about: object) -> Changed:
    whole: dict[str, object] = {
        "check": "ntp",
        "code": "offset",
        "peer": "",
        "now": fail("offset", "the clock is 2 s ahead", STEP),
        "before": Status.WARN,
        "since": BEFORE,
        "turns": 1,
        "nights": 9,
        **about,
    }
    return Changed(kind, node, **whole)  # type: ignore[arg-type]


def _night(*changed: Changed, **about: object) -> Night:
    found: dict[str, list[Finding]] = {"n1": [], "n2": [], "n3": []}
    for one in changed:
        if one.now:
            found[one.node].append(one.now)
    results = {
        name: NodeResult(name, {"ntp": findings or [ok("mode", "in step")]}, 1.0)
        for name, findings in found.items()
    }
    report = Report(STARTED, 3.0, ["ntp"], results)
    return replace(Night("hpc1", report, BEFORE, changed), **about)  # type: ignore[arg-type]


OLD = fail("offset", "the clock is 9 s ahead", STEP)


@pytest.mark.parametrize(
    ("changed", "lines"),
    [
        (
            [_changed(Kind.NEW, before=None), _changed(Kind.NEW, "n2", before=None)],
            ["New", "✗ fail ntp.offset n1 n2", "the clock is 2 s ahead"],
        ),
        (
            [_changed(Kind.WORSE)],
            ["Worse", "✗ fail ntp.offset n1", "the clock is 2 s ahead (was warn)"],
        ),
        (
            [_changed(Kind.FLAPPING, turns=5)],
            [
                "Comes and goes",
                "✗ fail ntp.offset n1",
                "the clock is 2 s ahead (5 changes in 9 runs)",
            ],
        ),
        (
            [_changed(Kind.GONE, now=None, before=Status.FAIL, earlier=OLD)],
            ["Gone", "ntp.offset n1", "the clock is 9 s ahead (was fail)"],
        ),
        (
            [_changed(Kind.STILL), _changed(Kind.STILL, "n2", since=BEFORE - timedelta(days=3))],
            [
                "Still there",
                "✗ fail ntp.offset n1 n2",
                "the clock is 2 s ahead (since 2026-02-25, the last since 2026-02-28)",
            ],
        ),
        (
            [_changed(Kind.STILL, now=None, before=Status.FAIL, earlier=OLD)],
            [
                "Was there, and could not be looked at",
                "ntp.offset n1",
                "the clock is 9 s ahead (since 2026-02-28)",
            ],
        ),
    ],
    ids=["new", "worse", "flapping", "gone", "still", "unseen"],
)
def test_what_changed(changed: list[Changed], lines: list[str]) -> None:
    told = section(render(_night(*changed)), "changed")
    still = changed[0].kind is Kind.STILL
    compared = "Compared with the run of 2026-02-28 03:00 UTC"
    assert told == [f"{compared}: nothing changed." if still else f"{compared}.", *lines]


def test_nothing_changed() -> None:
    told = section(render(_night()), "changed")
    assert told == ["Compared with the run of 2026-02-28 03:00 UTC: nothing changed."]


def test_the_first_run_has_none_before_it() -> None:
    told = section(render(_night(before=None)), "changed")
    assert told == ["This is the first run; there is none to compare it with."]


def test_nodes_that_came_and_went() -> None:
    told = section(render(_night(joined=("n3",), left=("old7", "old8"), silent=("n2",))), "changed")
    assert told[1:] == [
        "Nodes that gave no answer",
        "n2",
        "Nodes that are new",
        "n3",
        "Nodes that are not asked any more",
        "old[7-8]",
    ]


def test_what_is_accepted_stands_apart() -> None:
    one = _changed(Kind.STILL)
    until = datetime(2027, 1, 15).date()
    acceptance = Acceptance("ntp", ("n1",), until, "disk ordered", "anna", BEFORE)
    shown = replace(_night(one), changed=(), accepted=((one, acceptance),))
    page = render(shown)
    assert section(page, "changed")[1:] == [
        "Accepted",
        "✗ fail ntp.offset n1",
        "the clock is 2 s ahead (until 2027-01-15, says anna: disk ordered)",
    ]
    assert section(page, "findings") == ["Nothing but what is accepted."]
    assert "hpc1, 3 nodes: 3 pass" in " ".join(seen(page)[:3])
    assert any(
        line.startswith("✗ fail ntp.offset accepted until 2027-01-15 the clock")
        for line in section(page, "parts")
    )


# How values went


def _points(*numbers: float, unit: str = "s") -> list[Point]:
    start = STARTED - timedelta(days=len(numbers) - 1)
    return [Point(start + timedelta(days=n), number, unit) for n, number in enumerate(numbers)]


def test_a_line_goes_from_the_first_value_to_the_last() -> None:
    line = trend(_points(0, 10, 5))
    assert line is not None
    assert line.path == f"M0 {HEIGHT}l{WIDTH // 2}-{HEIGHT} {WIDTH // 2} {HEIGHT // 2}"
    assert (line.x, line.y) == (WIDTH, HEIGHT // 2)
    assert line.told == "5 s; in 3 runs 0 to 10 s"


@pytest.mark.parametrize(
    "points",
    [
        [],
        _points(1),
        _points(2, 2, 2),
        _points(1, float("nan")),
        [*_points(1, unit="ms"), *_points(3)],
    ],
)
def test_where_a_line_would_say_nothing_there_is_none(points: list[Point]) -> None:
    assert trend(points) is None


def test_of_many_values_the_lowest_and_highest_are_drawn() -> None:
    numbers = [1.0] * 500
    numbers[123], numbers[377] = 9.0, -9.0
    line = trend(_points(*numbers))
    assert line is not None
    assert line.path.count(" ") + line.path.count("-") < 200
    assert line.told == "1 s; in 500 runs -9 to 9 s"


def test_the_trend_goes_on_where_what_passed_begins_to_fail() -> None:
    """The finding that passes and the one that fails have other codes, and are one quantity."""
    value = Quantity(4, "s")
    bad = fail("offset", "the clock is 4 s ahead", STEP, value=value)
    points = _points(0.1, 0.2, 4)
    trends = {"n1": {"ntp.synchronised": points[:2], "ntp.offset": points[2:]}}
    page = render(_night(_changed(Kind.NEW, now=bad, before=None), trends=trends))
    assert any("4 s; in 3 runs 0.1 to 4 s" in line for line in section(page, "parts"))


def test_two_quantities_of_a_run_are_not_one_line() -> None:
    bad = warn("used", "90 % are used", STEP, value=Quantity(90, "%"))
    used, inodes = _points(80, 85, 90, unit="%"), _points(1, 2, 3, unit="%")
    trends = {"n1": {"ntp.used": used, "ntp.inodes": inodes}}
    page = render(_night(_changed(Kind.NEW, code="used", now=bad), trends=trends))
    assert any("90 %; in 3 runs 80 to 90 %" in line for line in section(page, "parts"))


def test_a_remedy_shows_what_is_to_be_typed_as_code() -> None:
    remedy = Remedy("Look at `a<b>` and ` alone.")
    nodes = {"a": NodeResult("a", {"x": [fail("code", "wrong", remedy)]})}
    page = render(Report(STARTED, 1.0, ["x"], nodes, members={}))
    assert "Look at <code>a&lt;b&gt;</code> and ` alone." in page


def test_the_time_zone_is_told() -> None:
    started = datetime(2026, 3, 1, 3, 0, tzinfo=timezone(timedelta(hours=2)))
    assert any(
        "2026-03-01 03:00 UTC+02:00" in line
        for line in seen(render(replace(REPORT, started=started)))
    )


def test_a_run_writes_it_with_the_groups_of_the_inventory(tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.ini"
    inventory.write_text(
        "[here]\nlocalhost ansible_connection=local\n"
        "[far]\nfar ansible_host=127.0.0.9 ansible_port=1\n"
    )
    file = tmp_path / "page.html"
    words: list[str | Path] = [
        "-i",
        inventory,
        "-c",
        "tmp",
        "-F",
        "/dev/null",
        "--format",
        "html",
        "--output",
        file,
    ]
    done = clustercheck("run", *words)
    assert (done.status, done.out) == (3, "")
    page = file.read_text("utf-8")
    assert '<option value="0">here</option><option value="1">far</option>' in page
    assert '<tr data-g="1"><th scope=row><a href="#n1">far</a>' in page
    assert "? unknown access.refused" in section(page, "findings")


def test_the_page_is_utf_8_in_every_locale() -> None:
    words = [sys.executable, "-m", "clustercheck", "run", "-c", "tmp", "--format", "html"]
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = subprocess.run(words, env={**os.environ, **plain}, capture_output=True)
    page = done.stdout.decode()
    assert '<meta charset="utf-8">' in page
    assert "✓" in page
    assert "\\u" not in page
