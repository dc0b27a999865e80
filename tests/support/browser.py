"""Debian's `chromium` (or Google's `google-chrome`), led by playwright, which brings no browser along here."""

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PHONE = {"width": 390, "height": 800}
NO_CHROMIUM = "no chromium; `apt-get install chromium` as root"


@contextlib.contextmanager
def launched() -> Iterator[Any]:
    """The browser; a test is skipped where it or playwright is missing."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    if not CHROMIUM:
        pytest.skip(NO_CHROMIUM)
    with playwright.sync_playwright() as driver:
        # A container's root may not use the sandbox.
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@contextlib.contextmanager
def opened_on_phone(address: str, permissions: Sequence[str]) -> Iterator[Any]:
    """A page of 390 pixels; what goes wrong in it, or is asked for elsewhere than below its address, fails the test.

    Statuses of errors are not counted, which a browser writes to its console.
    """
    problems = list[str]()
    with launched() as browser:
        page = browser.new_context(viewport=PHONE, permissions=permissions).new_page()
        for event in ("console", "pageerror", "dialog"):
            page.on(event, lambda found: problems.append(str(found)))
        page.on("request", lambda asked: asked.url.startswith(address) or problems.append(asked.url))
        page.goto(address)
        yield page
    assert [each for each in problems if "responded with a status of" not in each] == []
