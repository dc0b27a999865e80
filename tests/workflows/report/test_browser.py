"""The report of a real run in a real browser, opened from disk: drawn, read, in both themes and on a phone.

Needs Debian's `chromium` (or Google's `google-chrome`) and the package playwright, which brings no browser along here.
"""

import html
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import DATA, linked
from tests.support import report as report_for_tests
from tests.support.browser import CHROMIUM, NO_CHROMIUM, launched
from tests.support.compared import cell
from tests.support.stages import run_in_process, run_of
from workflows import Report
from workflows.report.linking import shown_document
from workflows.report.paper.comparison import compare
from workflows.report.rendering import render_page

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CHROMIUM, reason=NO_CHROMIUM)]

VIEWS = [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)]
HOSTILE = "<img src=x onerror='alert(4)'> & \N{RIGHT-TO-LEFT OVERRIDE}"
NAME, TITLE = "<script>alert(1)</script>", "</script><img src=x onerror=alert(2)>"
WIKITEXT = f"""The town of <nowiki><b onclick=alert(3)>salt</b></nowiki> lies near
[[Port Sorrel|<nowiki>{NAME}</nowiki>]] and [[Gull Bay]], as [[No such place|everybody]] knows
who has been in [[Old Sorrel|the old town]] or the harbour.

== <nowiki><i>History</i></nowiki> ==
Nobody knows more about the town than its fishermen, who sold [[salt bread]] to every ship.
"""
HOSTILE_PAGE = f"""<page><title>{html.escape(TITLE)}</title><ns>0</ns><id>9001</id><revision><id>1</id>
<text xml:space="preserve">{html.escape(WIKITEXT)}</text></revision></page>
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, quick_training: None) -> Path:
    """The folder of a report on the hand-written dump and a page that means no good."""
    folder = tmp_path_factory.mktemp("report")
    text = (DATA / "wiki-40.xml").read_text(encoding="utf-8").replace("</mediawiki>", HOSTILE_PAGE + "</mediawiki>")
    (folder / "dump.xml").write_text(text, encoding="utf-8")
    corpus = {"dump": str(folder / "dump.xml"), "held_out": 0.2}
    tables = {"fine_tuning": {"tasks": ["ner", "entity_typing"]}, "machine": {"processes": 1}}
    made = Report(settings=run_of(folder / "work", corpus=corpus, **tables))
    run_in_process(made)
    return Path(made.folder)


@pytest.fixture(scope="module")
def browser(report: Path) -> Iterator[Any]:
    with launched() as browser:
        yield browser


class Opened:
    """The report in a browser's page, and what went wrong in it."""

    def __init__(self, browser: Any, report: Path, theme: str, width: int) -> None:
        context = browser.new_context(color_scheme=theme, viewport={"width": width, "height": 900})
        self.theme, self.problems, self.page = theme, [], context.new_page()
        address = (report / "index.html").as_uri()
        self.page.set_default_timeout(20_000)
        self.page.on("console", lambda message: self.problems.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("dialog", self.dismiss)
        self.page.on("request", lambda asked: asked.url == address or self.problems.append(f"request: {asked.url}"))
        self.page.goto(address)

    def dismiss(self, dialog: Any) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def views(self) -> Iterator[str]:
        """Go from view to view by the keyboard, as somebody without a mouse does."""
        links = self.page.locator("nav a")
        for number in range(links.count()):
            links.nth(number).focus()
            self.page.keyboard.press("Enter")
            self.page.wait_for_function("(link) => link.ariaCurrent === 'page'", arg=links.nth(number).element_handle())
            yield str(links.nth(number).get_attribute("href")).removeprefix("#")


@pytest.fixture(scope="module", params=VIEWS, ids=lambda view: f"{view[0]}-{view[1]}")
def opened(browser: Any, report: Path, request: pytest.FixtureRequest) -> Iterator[Opened]:
    """Opened once for all tests of a view."""
    opened = Opened(browser, report, *request.param)
    yield opened
    opened.page.context.close()


@pytest.fixture
def page(opened: Opened) -> Iterator[Any]:
    """The opened page; whatever has gone wrong until the test's end fails it."""
    yield opened.page
    assert opened.problems == []


def test_views_are_shown_one_at_a_time_and_nothing_is_too_wide(opened: Opened, page: Any) -> None:
    seen = []
    for view in opened.views():
        assert [shown.get_attribute("id") for shown in page.locator(".view:visible").all()] == [view]
        page.evaluate("() => document.querySelectorAll('details').forEach((each) => (each.open = true))")
        assert page.evaluate("() => document.scrollingElement.scrollWidth <= innerWidth"), view
        tables = page.locator(".wide:visible").all()
        wide = [each for each in tables if each.evaluate("(each) => each.scrollWidth > each.clientWidth")]
        assert [each.get_attribute("aria-label") for each in wide] == [], view
        seen.append(view)
    assert seen == ["overview", "corpus", "training", "linking", "tasks", "provenance"]


def test_a_place_in_a_view_opens_it(page: Any) -> None:
    page.evaluate("() => { location.hash = '#linked'; }")
    page.locator("#linked").wait_for(state="visible")
    assert page.locator(".view:visible").get_attribute("id") == "linking"
    page.evaluate("() => { location.hash = '#no-such-place'; }")
    page.locator("#overview").wait_for(state="visible")


def test_the_overview_is_one_screen(opened: Opened, page: Any) -> None:
    page.evaluate("() => { location.hash = '#overview'; }")
    page.evaluate("() => document.querySelectorAll('details').forEach((each) => (each.open = false))")
    titles = page.locator("#overview h3").all_inner_texts()
    assert titles[:2] == ["known entities named right", "mentions linked right"]
    assert "What was kept of the dump" in titles
    assert "What to do next" in titles
    assert page.locator("#overview svg:visible, #overview .sample:visible").count() == 2
    if page.viewport_size["width"] > 1000:
        boxes = [article.bounding_box() for article in page.locator("#overview article").all()]
        assert max(box["y"] + box["height"] for box in boxes) <= 900


def test_print_has_all_views_and_charts(page: Any) -> None:
    page.emulate_media(media="print")
    shown = page.evaluate(
        "() => [...document.querySelectorAll('figure svg')].filter((each) => each.checkVisibility()).length"
    )
    assert shown == page.locator("figure svg").count() >= 6
    assert page.locator(".view:visible").count() == 6
    page.emulate_media(media="screen")


def test_charts_follow_the_theme(opened: Opened, page: Any) -> None:
    def shown() -> list[str]:
        return page.evaluate(
            """() => [getComputedStyle(document.body).backgroundColor,
                      getComputedStyle(document.querySelector("figure text")).fill,
                      getComputedStyle(document.querySelector("figure .mark-line path")).stroke]"""
        )

    first = shown()
    page.emulate_media(color_scheme="dark" if opened.theme == "light" else "light")
    assert all(one != another for one, another in zip(first, shown(), strict=True))
    page.emulate_media(color_scheme=opened.theme)
    assert shown() == first


def test_axe_finds_no_violation(opened: Opened, page: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python")
    for view in opened.views():
        found = axe.Axe().run(page).response["violations"]
        assert [(view, each["id"], each["nodes"][0]["html"][:200]) for each in found] == []


def test_text_stands_out_from_its_ground(page: Any) -> None:
    """WCAG 2.2, 1.4.3: a ratio of 4.5."""
    names = [
        "ground", "raised", "ink", "quiet", "accent", "ours", "warn", "warn-ground", "bad", "known", "page",
        "missing", "wrong",
    ]  # fmt: skip
    style = "getComputedStyle(document.documentElement)"
    colours = {name: page.evaluate(f"{style}.getPropertyValue('--{name}').trim()") for name in names}

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    pairs = [
        ("ink", ground) for ground in ("ground", "raised", "ours", "warn-ground", "known", "page", "missing", "wrong")
    ]
    pairs += [("quiet", "ground"), ("quiet", "raised"), ("accent", "ground"), ("warn", "warn-ground")]
    pairs += [("warn", "ours"), ("warn", "ground"), ("bad", "ground"), ("bad", "ours")]
    for text, ground in pairs:
        light, dark = sorted((luminance(colours[text]), luminance(colours[ground])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground)


def test_linked_texts_are_read_with_their_candidates(browser: Any, tmp_path: Path) -> None:
    """Ids, mentions and titles that mean no good are text, wherever they are shown."""
    texts = [linked.gold(name, f"{HOSTILE}, {HOSTILE}\nRome", {"Rome": "Rome"}) for name in ("first", HOSTILE)]
    texts[1]["mentions"] += [{"start": 0, "end": len(HOSTILE), "title": HOSTILE}]
    answers = [
        linked.answer(text, {"Rome": [("Rome", 0.75), (HOSTILE, 0.25)], HOSTILE: [("Rome", 0.5), (HOSTILE, 0.25)]})
        for text in texts
    ]
    documents = [shown_document(*pair, lambda mention: mention.title) for pair in zip(texts, answers, strict=True)]
    content = report_for_tests.content() | {"corpus": None, "training": None, "cells": []}
    read = {"of": 2, "characters": 4000, "documents": documents}
    page = render_page(content, compare([]), linked=read)
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    opened = Opened(browser, tmp_path, "light", 1280)
    text, panel = (opened.page.locator(f"#linked-{name}") for name in ("text", "mention"))
    menu = opened.page.get_by_label("Document", exact=True)
    opened.page.goto(f"{opened.page.url}#linked")
    assert opened.page.locator("#linked-extent").inner_text() == "1 right, 1 extra"
    menu.select_option(index=1)
    assert menu.evaluate("(menu) => menu.selectedOptions[0].text") == f"{HOSTILE} ({linked.HOSTILE})"
    assert opened.page.locator("#linked-next").is_disabled()
    assert text.inner_text().split("\n") == [f"{HOSTILE}, {HOSTILE}", "Rome"]
    marks = [(mark.inner_text(), mark.get_attribute("class")) for mark in text.locator("mark").all()]
    assert marks == [(HOSTILE, "wrong"), ("Rome", "right")]
    opened.page.locator("#linked-titles").focus()
    opened.page.keyboard.press("Tab")
    assert panel.locator("p").inner_text() == f"{HOSTILE} → Rome 50.0%: wrong; wanted {HOSTILE}"
    rows = [row.split("\t") for row in panel.locator("tbody tr").all_inner_texts()]
    assert rows == [["Rome", "50.0%", "50.0%", ""], [HOSTILE, "25.0%", "50.0%", "in the document"]]
    text.locator("mark").nth(1).hover()
    assert panel.locator("p").inner_text() == "Rome → Rome 75.0%: right"
    opened.page.locator("#linked-titles").check()
    after = text.locator("mark").first.evaluate("(mark) => getComputedStyle(mark, '::after').content")
    assert "Rome" in after
    assert opened.page.locator("#linking").locator("script, img, b").count() == 0
    assert opened.problems == []
    opened.page.context.close()


def test_a_reader_without_eyes_finds_the_way(page: Any) -> None:
    levels = page.evaluate(
        "() => [...document.querySelectorAll('h1, h2, h3, h4')].map((each) => Number(each.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


LONG = "x" * 300


def variants() -> dict[str, dict[str, Any]]:
    """Reports that lack something, or have too much of it."""
    whole = report_for_tests.content()
    (corpus, cells) = whole["corpus"], whole["cells"]
    seeds, failed = range(10), {"state": "failed", "reason": LONG, "metrics": {}}
    many = [
        cell(task, variant, seed)
        for task in ("ner", "extractive_qa")
        for variant in ("luke", "roberta")
        for seed in seeds
    ]
    long = {**corpus, "dump_parts": [{"name": LONG, "bytes": 1, "sha256": LONG}]}
    long["entities"] = {**corpus["entities"], "top": [{"title": LONG, "link_count": 3}]}
    return {
        "no model": {**whole, "training": None, "linking": None, "answers": [], "cells": []},
        "no corpus": {**whole, "corpus": None, "funnel": [], "training": None, "linking": None, "answers": []},
        "no linking": {**whole, "linking": None},
        "failed cells": {**whole, "cells": [each | failed for each in cells]},
        "40 experiments": {**whole, "cells": many},
        "long names": {**whole, "corpus": long, "setting": {**whole["setting"], "dump": [LONG], "base_model": LONG}},
    }  # fmt: skip


@pytest.mark.parametrize("name", variants())
def test_no_frame_is_empty_and_nothing_overflows(browser: Any, tmp_path: Path, name: str) -> None:
    content = variants()[name]
    page = render_page(content, compare(content["cells"]), settings={LONG: LONG, "workdir": LONG})
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    for width in (1280, 390):
        opened = Opened(browser, tmp_path, "light", width)
        frames = opened.page.locator("figure, article:not(#linked-text), .cards").all()
        assert all(each.evaluate("(each) => each.textContent.trim() !== ''") for each in frames)
        for view in opened.views():
            opened.page.evaluate("() => document.querySelectorAll('details').forEach((each) => (each.open = true))")
            assert opened.page.evaluate("() => document.scrollingElement.scrollWidth <= innerWidth"), (view, width)
        assert opened.problems == []
        opened.page.context.close()
