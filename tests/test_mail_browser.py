"""The HTML of a mail in a real browser as wide as a telephone, light and dark."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Request

from clustercheck.changes import Kind
from clustercheck.check import Remedy, fail
from clustercheck.render import mail
from clustercheck.render.mail_content import content
from tests.browser import browser
from tests.mail_night import ACCEPTED, ALL_KINDS, changed, night

# It may have to fetch the browser.
pytestmark = pytest.mark.timeout(600)

HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
SCHEMES: dict[Literal["light", "dark"], str] = {
    "light": "rgb(255, 255, 255)",
    "dark": "rgb(22, 24, 28)",
}
LONG = "gpu" * 80


@dataclass
class Asked:
    """What a page loads."""

    urls: list[str] = field(default_factory=list)

    def note(self, request: Request) -> None:
        self.urls.append(request.url)


def test_it_can_be_read_on_a_telephone(tmp_path: Path) -> None:
    hostile = fail("slow", HOSTILE, Remedy(HOSTILE, "§4.1.3"))
    of = night(
        [changed(Kind.NEW, "gpu003", "nfs", hostile), *ALL_KINDS],
        accepted=(ACCEPTED,),
        joined=(LONG, HOSTILE),
        troubles=(HOSTILE,),
    )
    shown = content(of)
    file = tmp_path / "mail.html"
    file.write_text(mail.html(shown), "utf-8")
    with browser() as chromium:
        for scheme, back in SCHEMES.items():
            context = chromium.new_context(
                viewport={"width": 360, "height": 740},
                color_scheme=scheme,
            )
            page = context.new_page()
            asked = Asked()
            page.on("request", asked.note)
            page.goto(file.as_uri())
            assert page.title() == shown.subject
            assert HOSTILE in page.inner_text("body")
            assert asked.urls == [file.as_uri()]  # it loads nothing, not even the image of the text
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
            found = Axe().run(page)
            assert found.violations_count == 0, found.generate_report()
            background = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert background == back
            context.close()
