"""A real browser, without a window, that looks at pages as a person would."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tools.fetch import TOOLS, CannotFetch, fetch

_PATH = Path("usr/lib/chromium/chromium-headless-shell")


@contextmanager
def browser() -> Iterator[Browser]:
    """Chromium: the machine's own, else that of .tools/chromium."""
    try:
        fetch("chromium")
    except CannotFetch as why:
        pytest.skip(str(why))
    installed = (Path("/") / _PATH).is_file()
    layer = TOOLS / "chromium"
    objects = [] if installed else [*layer.rglob("*.so"), *layer.rglob("*.so.*")]
    libraries = ":".join(sorted({str(file.parent) for file in objects}))
    with sync_playwright() as play:
        found = play.chromium.launch(
            executable_path=(Path("/") if installed else layer) / _PATH,
            env={**os.environ, "LD_LIBRARY_PATH": libraries},
            args=["--no-sandbox"],  # it will not run as root with one; it opens our own pages only
        )
        try:
            yield found
        finally:
            found.close()
