"""The report of a real run in a real browser, opened from disk: drawn, read, in both themes and on a phone.

Needs Debian's `chromium` (or Google's `google-chrome`) and the package playwright, which brings no browser along here.
"""

import html
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import DATA, linked
from tests.support import report as report_for_tests
from tests.support.browser import CHROMIUM, NO_CHROMIUM, launched
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
    text = (
        (DATA / "wiki-40.xml")
        .read_text(encoding="utf-8")
        .replace("</mediawiki>", HOSTILE_PAGE + "</mediawiki>")
    )
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
    """The report in a browser's page, with all its figures drawn, and what went wrong in it."""

    def __init__(self, browser: Any, report: Path, theme: str, width: int) -> None:
        context = browser.new_context(color_scheme=theme, viewport={"width": width, "height": 900})
        self.theme, self.problems, self.page = theme, [], context.new_page()
        address = (report / "index.html").as_uri()
        self.page.set_default_timeout(20_000)
        self.page.on("console", lambda message: self.problems.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("dialog", self.dismiss)
        self.page.on(
            "request", lambda asked: asked.url == address or self.problems.append(f"request: {asked.url}")
        )
        self.page.goto(address)
        self.page.wait_for_selector("html[data-drawn]", state="attached")

    def dismiss(self, dialog: Any) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()


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


def data(page: Any, name: str) -> Any:
    return json.loads(page.locator(f"#data-{name}").text_content())


def test_every_figure_is_drawn_and_nothing_is_too_wide(page: Any) -> None:
    figures = data(page, "figures")
    assert set(figures) == {
        "rank-frequency", "word-loss",
        "word-accuracy", "entity-loss", "entity-accuracy", "held-out-words", "held-out-masked-entity",
        "held-out-known-entity", "throughput", "fine-tuning", "reliability",
    }  # fmt: skip
    sizes = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll("[data-figure]")].map((place) => [
            place.dataset.figure,
            [...place.querySelectorAll(".scatterlayer .trace, .barlayer .trace")].map((trace) => {
                const box = trace.getBoundingClientRect();
                return Math.max(box.width, box.height);
            }),
        ]))"""
    )
    assert set(sizes) == set(figures)
    for name, traces in sizes.items():
        choices = {trace["meta"].get("choice") for trace in figures[name]["data"]}
        assert len(traces) == len(figures[name]["data"]) // len(choices), name
        assert min(traces) > 3, name
    page.evaluate("() => document.querySelectorAll('details').forEach((each) => (each.open = true))")
    assert page.evaluate("() => document.scrollingElement.scrollWidth <= innerWidth")


def test_figures_follow_the_theme(opened: Opened, page: Any) -> None:
    def shown() -> list[str]:
        return page.evaluate(
            """() => [getComputedStyle(document.body).backgroundColor,
                      getComputedStyle(document.querySelector(".plot .xtick text")).fill,
                      getComputedStyle(document.querySelector(".plot .scatterlayer .js-line")).stroke]"""
        )

    def change(theme: str) -> list[str]:
        before = shown()[1]
        page.emulate_media(color_scheme=theme)
        page.wait_for_function(
            "(before) => getComputedStyle(document.querySelector('.plot .xtick text')).fill !== before",
            arg=before,
        )
        return shown()

    first = shown()
    other = change("dark" if opened.theme == "light" else "light")
    assert all(one != another for one, another in zip(first, other, strict=True))
    assert change(opened.theme) == first


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
        ("ink", ground)
        for ground in ("ground", "raised", "ours", "warn-ground", "known", "page", "missing", "wrong")
    ]
    pairs += [("quiet", "ground"), ("quiet", "raised"), ("accent", "ground"), ("warn", "warn-ground")]
    pairs += [("warn", "ours"), ("warn", "ground"), ("bad", "ground"), ("bad", "ours")]
    for text, ground in pairs:
        light, dark = sorted((luminance(colours[text]), luminance(colours[ground])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground)


def test_linked_texts_are_read_with_their_candidates(browser: Any, tmp_path: Path) -> None:
    """Ids, mentions and titles that mean no good are text, wherever they are shown."""
    texts = [
        linked.gold(name, f"{HOSTILE}, {HOSTILE}\nRome", {"Rome": "Rome"}) for name in ("first", HOSTILE)
    ]
    texts[1]["mentions"] += [{"start": 0, "end": len(HOSTILE), "title": HOSTILE}]
    answers = [
        linked.answer(
            text, {"Rome": [("Rome", 0.75), (HOSTILE, 0.25)], HOSTILE: [("Rome", 0.5), (HOSTILE, 0.25)]}
        )
        for text in texts
    ]
    documents = [
        shown_document(*pair, lambda mention: mention.title) for pair in zip(texts, answers, strict=True)
    ]
    content = report_for_tests.content() | {"corpus": None, "training": None, "cells": []}
    read = {"of": 2, "characters": 4000, "documents": documents}
    page = render_page(content, compare([]), linked=read)
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    opened = Opened(browser, tmp_path, "light", 1280)
    text, panel = (opened.page.locator(f"#linked-{name}") for name in ("text", "mention"))
    menu = opened.page.get_by_label("Document", exact=True)
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


def test_curves_are_shown_a_task_at_a_time(page: Any) -> None:
    traces = (
        "() => document.querySelector('[data-figure=fine-tuning]').data.map((trace) => trace.meta.choice)"
    )
    page.get_by_label("Task").select_option("ner")
    assert page.evaluate(traces) == ["ner"] * 2, "both variants"
    page.get_by_label("Task").select_option("entity typing")
    assert page.evaluate(traces) == ["entity typing"] * 2


def test_a_reader_without_eyes_finds_the_way(page: Any) -> None:
    levels = page.evaluate(
        "() => [...document.querySelectorAll('h1, h2, h3, h4')].map((each) => Number(each.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("main :is(input, select, button, [role=region], [role=img])")]
            .filter((each) => !each.labels?.length && !each.ariaLabel)
            .filter((each) => each.localName !== "button" || !each.textContent)
            .map((each) => each.outerHTML.slice(0, 80))"""
    )
    assert nameless == []
    assert page.locator("main h2").count() == page.locator("nav > ul > li").count() - (
        not page.locator("#results").count()
    )
