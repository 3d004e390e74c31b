"""The page: how large it is, how long it takes to make it, and a browser to draw it.

    python -m benchmarks.page [NODES …]

Reports of 30 checks, and nights with 90 runs of each value. Drawn is from the first byte to the end
of loading, laid out and painted, by Chromium without a window, and beside it the CPU time of that,
which a busy machine changes less; filtered is from a key that is typed until the table is laid out
again.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser

from clustercheck.changes import Night
from clustercheck.render.html import render
from clustercheck.report import Report
from tests.browser import browser
from tests.made_up_night import night, report

NODES = (12, 100, 1_000)
ROUNDS = 5

# After the two frames that follow, all is painted.
PAINTED = """() => new Promise(done =>
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"""
FILTERED = """() => {
    const began = performance.now();
    const field = document.getElementById("by-name");
    field.value = "9";
    field.dispatchEvent(new Event("input", {bubbles: true}));
    document.body.getBoundingClientRect();
    return performance.now() - began;
}"""


def measured(kind: str, shown: Report | Night, nodes: int, chromium: Browser, file: Path) -> str:
    """A line of the table."""
    began = time.process_time()
    page = render(shown)
    made = time.process_time() - began
    file.write_text(page, "utf-8")
    worked, drawn, filtered = [], [], []
    for _ in range(ROUNDS):
        tab = chromium.new_page(viewport={"width": 1280, "height": 900})
        inside = tab.context.new_cdp_session(tab)
        inside.send("Performance.enable")
        tab.goto(file.as_uri())
        drawn.append(tab.evaluate(PAINTED))
        told = inside.send("Performance.getMetrics")["metrics"]
        worked += [1000 * one["value"] for one in told if one["name"] == "ProcessTime"]
        filtered.append(tab.evaluate(FILTERED))
        tab.close()
    size = len(page.encode()) / 1e6
    times = " | ".join(f"{sorted(of)[ROUNDS // 2]:,.0f}" for of in (worked, drawn, filtered))
    return f"| {nodes:,} | {kind} | {size:.2f} | {made:.2f} | {times} |"


def main() -> None:
    kinds: dict[str, Callable[[int], Report | Night]] = {"report": report, "night": night}
    print("| nodes | of a | MB | made in CPU s | drawn in CPU ms | drawn in ms | filtered in ms |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="clustercheck-bench-") as folder, browser() as chromium:
        for nodes in map(int, sys.argv[1:] or NODES):
            for kind, make in kinds.items():
                file = Path(folder) / "page.html"
                print(measured(kind, make(nodes), nodes, chromium, file), flush=True)


if __name__ == "__main__":
    main()
