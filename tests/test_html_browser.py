"""The page in a real browser: with JavaScript and without, by eye, keyboard and screen reader."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page

from clustercheck.changes import Night
from clustercheck.check import Finding, Quantity, Remedy, Status
from clustercheck.render.escape import visible
from clustercheck.render.html import render
from clustercheck.report import NodeResult, Report
from tests.browser import browser as started_browser
from tests.made_up_night import STARTED, night, report
from tests.render.example import REPORT
from tests.render.made_up import HOSTILE

# The first of them may have to fetch the browser.
pytestmark = pytest.mark.timeout(600)

Open = Callable[..., Page]

ATTACKS = [
    "<script>owned()</script>",
    "</script><script>owned()</script>",
    "<img src=x onerror=owned()>",
    '"><svg onload=owned()>',
    "' autofocus onfocus=owned() x='",
    "javascript:owned()",
    "{{ 7*7 }}{% raw %}",
    "<!--",
    "]]></style><style>body{display:none}</style>",
    "&lt;b&gt; &amp;amp;",
    "a`b`<i>c</i>`",
    *filter(None, HOSTILE),
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with started_browser() as browser:
        yield browser


@pytest.fixture
def opened(chromium: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens the page of a report from disk; whatever goes wrong in the browser fails the test."""
    contexts, trouble = [], list[str]()
    file = tmp_path / "page.html"

    def make(shown: Report | Night, at: str = "", *, watched: bool = True, **about: Any) -> Page:
        file.write_text(render(shown), "utf-8")
        contexts.append(chromium.new_context(**about))
        page = contexts[-1].new_page()
        page.set_default_timeout(60_000)
        if watched:
            page.on("console", lambda message: trouble.append(message.text))
            page.on("pageerror", lambda error: trouble.append(str(error)))
            page.on("request", lambda request: trouble.append(request.url))
        page.goto(f"{file.as_uri()}{at}")
        return page

    yield make
    for context in contexts:
        context.close()
    assert [text for text in trouble if text.partition("#")[0] != file.as_uri()] == []


def rows(page: Page) -> list[str]:
    """The names of the nodes whose rows are shown."""
    return page.locator(".matrix tbody tr:visible th").all_inner_texts()


def hostile() -> Report:
    nodes = {}
    for number, text in enumerate(ATTACKS):
        findings = [
            Finding(
                status,
                text,
                text,
                Remedy(text, text) if status is Status.FAIL else None,
                text,
                Quantity(1, text),
            )
            for status in Status
        ]
        name = f"{text} {number}"
        nodes[name] = NodeResult(name, {text: findings}, 1.0)
    return Report(
        STARTED, 1.0, ["ntp"], nodes, ATTACKS[1], ATTACKS, {t: [next(iter(nodes))] for t in ATTACKS}
    )


def test_what_nodes_send_is_text(opened: Open) -> None:
    page = opened(hostile())
    assert page.evaluate("typeof owned") == "undefined"
    assert page.locator("script").count() == 1
    assert page.locator("img, iframe, object, link, i, [onerror], [onload], [onfocus]").count() == 0
    assert page.locator("a:not([href^='#'])").count() == 0
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    text = " ".join(page.locator("body").inner_text().split())
    for attack in ATTACKS:
        assert " ".join(visible(attack).split()) in text
    names = page.locator(".matrix tbody th").all_inner_texts()
    assert sorted(" ".join(name.split()) for name in names) == sorted(
        " ".join(visible(f"{attack} {number}").split()) for number, attack in enumerate(ATTACKS)
    )


def test_nothing_runs_where_a_text_got_through_all_the_same(opened: Open) -> None:
    """The policy of the page is its second wall."""
    page = opened(REPORT, watched=False)
    with page.expect_event("console") as said:
        page.evaluate("document.body.insertAdjacentHTML('beforeend', '<b onclick=owned()>x</b>')")
        page.evaluate("document.body.lastElementChild.click()")
    assert "Content Security Policy" in said.value.text
    with page.expect_event("console") as said:
        page.evaluate("fetch('http://127.0.0.1:9/').catch(() => 0)")
    assert "Content Security Policy" in said.value.text


def test_the_filters(opened: Open) -> None:
    page = opened(report(60))
    everyone = len(rows(page))
    form = page.get_by_role("search", name="Filter the nodes")
    form.get_by_label("Name").fill("gpu[000-010], compute05")
    assert sorted(rows(page)) == [
        "compute050",
        "compute052",
        "compute053",
        "compute055",
        "compute056",
        "compute058",
        "compute059",
        "gpu000",
        "gpu003",
        "gpu006",
        "gpu009",
    ]
    assert page.locator("#shown").inner_text() == "11 of 60 nodes"
    form.get_by_label("Group").select_option("gpu")
    assert sorted(rows(page)) == ["gpu000", "gpu003", "gpu006", "gpu009"]
    form.get_by_role("button", name="All nodes").click()
    page.wait_for_function("document.getElementById('shown').textContent === ''")
    form.get_by_label("Name").fill("")
    assert everyone <= len(rows(page))
    form.get_by_label("Check").select_option("nfs")
    form.get_by_label("warn").check()
    slow = [
        node
        for node, result in report(60).nodes.items()
        if "nfs" in result.findings and result.status_of("nfs") is Status.WARN
    ]
    assert slow
    assert sorted(rows(page)) == sorted(slow)
    assert page.locator(".matrix:visible thead th:visible").all_inner_texts() == [
        "node",
        "nfs",
        "seconds",
    ]
    form.get_by_label("warn").uncheck()
    form.get_by_label("unknown").check()
    form.get_by_label("Name").fill("no such node")
    assert rows(page) == []
    assert page.locator("#shown").inner_text() == "0 of 60 nodes"
    # A link shows what it leads to all the same.
    part = page.locator(".part").first
    assert not part.is_visible()
    page.locator("#findings .on a").first.click()
    page.locator(".part[open]").wait_for(state="visible")


def test_a_cell_leads_to_what_was_found_by_keyboard_too(opened: Open) -> None:
    page = opened(REPORT)
    part = page.locator("#d2")
    assert part.get_attribute("open") is None
    page.get_by_role("link", name="gpu03 ntp fail").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#d2[open]")
    assert part.get_by_text("the clock is 1.31 s ahead").is_visible()


@pytest.mark.parametrize("scripts", [True, False], ids=["script", "no-script"])
def test_a_link_opens_what_it_leads_to(opened: Open, scripts: bool) -> None:
    """A node where nothing is wrong is folded away twice."""
    name, place = next(
        (node, place)
        for place, (node, result) in enumerate(report(60).nodes.items())
        if result.status is Status.PASS
    )
    page = opened(report(60), f"#n{place}", java_script_enabled=scripts)
    part = page.locator(f"#n{place}")
    part.wait_for(state="visible")
    assert name in page.locator(f"#d{place} > summary").inner_text()
    assert "As on most nodes" in part.inner_text()


def test_all_can_be_read_without_javascript(opened: Open) -> None:
    page = opened(night(60), java_script_enabled=False)
    assert not page.locator("#filter").is_visible()
    for heading in ("What changed", "What is wrong", "Nodes and checks", "Each node"):
        assert page.get_by_role("heading", name=heading, exact=True).is_visible()
    part = page.locator(".part").first
    assert not part.locator("> div").is_visible()
    part.locator("summary").click()
    assert part.locator("> div").is_visible()
    shut = page.locator("#matrix .fold")
    shut.locator("summary").click()
    assert shut.locator("table").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_stands_in_a_screen_readers_way(opened: Open, scheme: str) -> None:
    page = opened(night(40, 5, 6), color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    found = Axe().run(page).response
    assert [rule["id"] for rule in found["violations"]] == []
    # It has looked, at contrast too.
    assert "color-contrast" in {rule["id"] for rule in found["passes"]}


def test_the_page_is_no_wider_than_a_telephone(opened: Open) -> None:
    page = opened(hostile(), viewport={"width": 360, "height": 640})
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page = opened(night(40, 5, 6), viewport={"width": 360, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_printed_it_has_the_findings_of_nodes_with_trouble(opened: Open) -> None:
    page = opened(report(60), color_scheme="dark")
    page.emulate_media(media="print")
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(255, 255, 255)"
    assert not page.locator("#filter").is_visible()
    assert page.locator("#parts > .part > div").first.bounding_box()["height"] > 20  # type: ignore[index]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_differ_by_more_than_colour(opened: Open, scheme: str) -> None:
    page = opened(REPORT, color_scheme=scheme)
    marks = page.locator(".legend .key").all_inner_texts()
    assert len(set(marks)) == len(marks) == len(Status) + 1
    shapes = page.evaluate(
        "[...document.querySelectorAll('.legend .f, .legend .w, .legend .u')]"
        ".map(one => getComputedStyle(one).borderRadius)"
    )
    assert len(set(shapes)) == 3
