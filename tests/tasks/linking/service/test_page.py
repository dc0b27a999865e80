"""The page to type into: its files and their headers, and in a real browser what it makes of texts and answers."""

import html
import json
import re
from collections.abc import Iterator
from typing import Any
from unittest import mock
from urllib.parse import quote
from urllib.request import urlopen

import pytest

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")
pytest.importorskip("fastapi", reason="the service is made of it")
pytest.importorskip("uvicorn", reason="the service runs in it")

import uvicorn

from tasks.io.records import Record
from tasks.linking.formats import wikitext
from tasks.linking.linker import Linker
from tasks.linking.own import OwnEntities, OwnEntity
from tasks.linking.service import service
from tasks.linking.service.requests import Limits
from tasks.linking.service.service import make_app
from tests.support.browser import opened_on_phone
from tests.support.linking import linker_of
from tests.support.mentions import small_pages, write_mentions
from tests.support.serving import in_thread

WIKI = "https://en.wikipedia.org/wiki/"
NAME, TITLE = "<script>alert(1)</script>", "</a><img src=x onerror='alert(2)'>?&#"
HOSTILE = f"\u202e\"{NAME}\" <b onclick=alert(3)>' [[Ann]] ''\u202c"  # the other way round
ASTRAL = "\U0001d538\U0001f600\n\nBob met \U00020000Ann\U00020000; -- Ann,\n* ab\n"
ARTICLES = [
    ("Ann, Ann, Ann", [(0, 3, "A"), (5, 3, "A")]),
    (f"{NAME} ab ab ab", [(0, 25, TITLE), (26, 2, "B"), (29, 2, "A"), (32, 2, "A")]),
]


@pytest.fixture(scope="module")
def linker(tmp_path_factory: pytest.TempPathFactory) -> Linker:
    folder = tmp_path_factory.mktemp("mentions")
    write_mentions(folder, small_pages(ARTICLES, ["A", TITLE]), qids={0: "Q5"})
    linker = linker_of(folder)
    linker.finder.own = OwnEntities([OwnEntity("<1", "Bob", ["Bob"], "")], linker.finder.table)
    return linker


@pytest.fixture(scope="module")
def address(linker: Linker) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(make_app(linker, Limits(bytes=400)), log_level="error"))
    with mock.patch.object(service, "wiki_of", return_value=WIKI), in_thread(server) as port:
        yield f"http://127.0.0.1:{port}/"


@pytest.fixture
def page(address: str) -> Iterator[Any]:
    with opened_on_phone(address, ["clipboard-read", "clipboard-write"]) as page:
        page.get_by_text("names").wait_for()
        yield page


def link(page: Any, text: str) -> list[list[str]]:
    """Type a text, and return the names in it that are drawn, with the class and the tooltip of each."""
    page.get_by_label("Text", exact=True).fill(text)
    page.keyboard.press("Control+Enter")
    page.locator("main[aria-busy=false]").wait_for()
    read = "(all) => all.map((each) => [each.textContent, each.className, each.title])"
    return page.locator("#linked [role=button]").evaluate_all(read)


def copied(page: Any, form: str) -> str:
    page.get_by_role("button", name=form).click()
    page.get_by_text("Copied").wait_for()
    return page.evaluate("navigator.clipboard.readText()")


def answered(linker: Linker, *pieces: str) -> dict[str, Any]:
    """The command's answers to these documents, as if they were one."""
    found, start = list[dict[str, Any]](), 0
    for piece in pieces:
        for each in linker.answer([Record("a", {"text": piece})])[0]["mentions"]:
            found.append({**each, "start": start + each["start"], "end": start + each["end"]})
        start += len(piece)
    return {"text": "".join(pieces), "mentions": found}


@pytest.mark.parametrize(("path", "kind"), [("", "html"), ("page.js", "javascript"), ("page.css", "css")])
def test_a_policy_lets_nothing_else_run(address: str, path: str, kind: str) -> None:
    headers = urlopen(address + path).headers
    assert headers["Content-Type"] == f"text/{kind}; charset=utf-8"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert {*headers["Content-Security-Policy"].split("; ")} == {
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'",
        "form-action 'none'", "frame-ancestors 'none'", "trusted-types 'none'", "require-trusted-types-for 'script'",
    }  # fmt: skip


def test_a_threshold_unlinks_at_once(page: Any) -> None:
    """Also what is copied; the service is not asked again."""
    assert link(page, "Ann met ab.") == [["Ann", "high", "A, 66.7%"], ["ab", "high", "A, 66.7%"]]
    page.route("**/link", lambda route: route.abort())  # which would be seen
    page.get_by_label("Threshold").focus()
    page.keyboard.press("End")
    assert page.locator("#linked .none").all_inner_texts() == ["Ann", "ab"]
    mentions = json.loads(copied(page, "JSON"))["mentions"]
    assert {each["title"] or each["entity_id"] or each["reason"] for each in mentions} == {"below_threshold"}


def test_a_keyboard_and_a_narrow_screen_suffice(page: Any) -> None:
    link(page, "ab and Ann.")
    page.get_by_role("button", name="HTML").focus()
    for key in ("Tab", "Enter"):
        page.keyboard.press(key)
    rows = [row.split("\t") for row in page.locator("#candidates tbody tr").all_inner_texts()]
    assert rows == [["A\nQ5 · exact\n", "66.7%", "66.7%"], ["B\nexact\n", "33.3%", "33.3%"]]
    assert page.evaluate("document.scrollingElement.scrollWidth") == 390
    page.keyboard.press("Tab")
    assert page.locator(":focus").get_attribute("href") == f"{WIKI}A"
    page.keyboard.press("Escape")
    assert page.locator("#panel").is_hidden()
    assert page.locator(":focus").inner_text() == "ab"


def test_markup_stays_text(page: Any) -> None:
    assert link(page, HOSTILE)[0] == [NAME, "high", f"{TITLE}, 100%"]
    assert page.locator("#linked").text_content() == HOSTILE
    page.locator("#linked [role=button]").first.click()
    assert page.locator("#verdict").inner_text() == TITLE
    path = page.locator("#verdict a").get_attribute("href").removeprefix(WIKI)
    assert path == quote(TITLE.replace(" ", "_"), safe="/:,'()")
    written = copied(page, "HTML")
    assert {*re.findall("<(.[a-z]*)", written)} == {"p", "a", "/a", "/p"}
    assert html.unescape(re.sub("<[^>]*>", "", written)) == HOSTILE


def test_characters_of_two_units_move_no_link(page: Any, linker: Linker) -> None:
    assert [name for name, *_ in link(page, ASTRAL)] == ["Bob", "Ann", "Ann", "ab"]
    answer = answered(linker, ASTRAL)
    assert json.loads(copied(page, "JSON")) == answer
    assert f"== &#32; ==\n{copied(page, 'Wikitext')}\n\n" == wikitext.document(answer)


def test_a_long_text_is_asked_in_pieces(page: Any, linker: Linker) -> None:
    """A busy service is asked again, and a piece that is too much work is halved."""
    text = f"{'Ann met Bob. ' * 20}\n\n{ASTRAL * 9} {'ab ' * 99}x{ASTRAL[1] * 300} Ann"
    got, refusals, again = list[Any](), iter([503, 503, 413]), {"Retry-After": "0"}
    page.route("**/link", lambda route: route.fulfill(status=next(refusals), headers=again), times=3)
    page.on("response", lambda answer: got.append(answer))
    link(page, text)
    pieces = [each.request.post_data_json["documents"][0]["text"] for each in got if each.ok]
    assert "".join(pieces) == text
    assert [piece.rstrip(" ")[-1] for piece in pieces[:5]] == [".", "\n", "\n", "\n", "b"]
    assert json.loads(copied(page, "JSON")) == answered(linker, *pieces)


def test_one_can_stop_and_is_told_what_went_wrong(page: Any) -> None:
    text = "Ann met Bob. " * 50
    page.route("**/link", lambda route: None)  # no answer
    page.route("**/link", lambda route: route.continue_(), times=1)
    page.get_by_label("Text", exact=True).fill(text)
    page.get_by_role("button", name="Link", exact=True).click()
    page.get_by_text("names have a page in the first").wait_for()
    page.get_by_role("button", name="Stop").click()
    page.locator("main[aria-busy=false]").wait_for()
    assert 0 < len(json.loads(copied(page, "JSON"))["text"]) < len(text)
    page.route("**/link", lambda route: route.fulfill(status=400, json={"error": NAME}))
    assert link(page, text) == []
    assert page.get_by_role("alert").inner_text() == f"The service answered 400: {NAME}"
