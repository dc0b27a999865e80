"""Linked documents in each format, read again by what reads such files; texts, titles and ids are hostile."""

import html
import io
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from pipeline.mediawiki.site import SiteInfo
from pipeline.wikitext.extract import extract
from tasks.linking.formats.formats import find_format
from tasks.linking.formats.links import address, wiki_of
from tasks.serving.formats import Format
from tests.support.properties import given, st
from tests.tasks.serving.test_formats import TAGS, Page

FACTS = {"dump": ["enwiki-2006.xml.bz2"]}
WIKI = "https://en.wikipedia.org/wiki/"
NAMESPACES = ((0, ""), (6, "File"), (14, "Category"))
TEXT = "<b>Ada</b> met\nAlan Turing's 😀 [[friend]] in São Paulo. {{x}} & ''Bob''"


def mention(start: int, end: int, title: str | None, text: str = TEXT, **more: Any) -> dict[str, Any]:
    answer = {"mention": text[start:end], "start": start, "end": end, "title": title, "page_id": None}
    return {**answer, "probability": None if title is None else 0.5, "confidence": 0.25, "step": "exact", **more}


def linked(text: str, *found: tuple[str, str | None], **more: Any) -> dict[str, Any]:
    """A document in which each of these parts, in order, is a mention of a title."""
    mentions, place = [], 0
    for part, title in found:
        start = text.index(part, place)
        place = start + len(part)
        mentions.append(mention(start, place, title, text, **more))
    return {"id": "a", "text": text, "mentions": mentions}


DOCUMENT = linked(
    TEXT, ("Ada", "Ada (given name)"), ("Alan Turing", "Alan Turing"), ("friend", None), ("São Paulo", "São Paulo"),
    ("Bob", "Rock 'n'' roll"),
)  # fmt: skip


def written(form: Format, *documents: dict[str, Any]) -> str:
    return form.begin + "".join(form.answer({"line": 1}, each) for each in documents) + form.end


@pytest.mark.parametrize(
    ("dumps", "wiki"),
    [
        (["enwiki-2006-12k.xml.bz2"], WIKI),
        (["simplewiki-20261101-pages-articles.xml.bz2"], "https://simple.wikipedia.org/wiki/"),
        (["zh_min_nanwiki-1.xml", "zh_min_nanwiki-2.xml"], "https://zh-min-nan.wikipedia.org/wiki/"),
        (["enwiktionary-20261101.xml"], None),
        (["commonswiki-20261101.xml"], None),
        (["dump.xml.bz2"], None),
        (["enwiki-1.xml", "dewiki-1.xml"], None),
        (["javascript:wiki-"], None),
        ([], None),
    ],
)
def test_the_dump_tells_the_wiki(dumps: list[str], wiki: str | None) -> None:
    assert wiki_of({"dump": dumps, "language": "en"}) == wiki


@given(st.text(st.sampled_from("aB \t\n\0\"'<>&?#%/\\:é😀\u202e[|"), max_size=20))
def test_an_address_is_one_of_the_wiki_whatever_the_title(title: str) -> None:
    found = address(WIKI, title)
    assert re.fullmatch(r"https://en\.wikipedia\.org/wiki/[\w%./:,~-]*", found, re.ASCII)
    assert unquote(found.removeprefix(WIKI)) == title.replace(" ", "_")


def test_a_document_without_id_is_named_by_its_place() -> None:
    for place, name in (({"line": 3}, "3"), ({"file": "a/b.txt"}, "a/b.txt")):
        answer = find_format("wikitext", {}).answer(place, {"text": "x", "mentions": []})
        assert answer.startswith(f"== {name} ==\n")


OVERLAPPING = {"text": TEXT, "mentions": [mention(3, 6, "A"), mention(0, 4, "B")]}


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        *(
            (name, OVERLAPPING, r"the mentions '<b>A' at 0 and 'Ada' at 3 overlap.*--format json")
            for name in ("html", "wikitext")
        ),
        *(
            ("wikitext", linked("Ann", ("Ann", title)), "fits in no link of wikitext")
            for title in ("A|B", "A]]", "A\nB", "{{A}}", "A#b", " ")
        ),
    ],
)
def test_what_fits_in_no_format_is_an_error(name: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        written(find_format(name, FACTS), values)


class Links(Page):
    """As `Page`, with links among the marks."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag(tag, attrs)
        if tag == "a":
            self.marks.append(("", dict(attrs)))

    def handle_data(self, data: str) -> None:
        super().handle_data(data)
        if "a" in self.open:
            text, attributes = self.marks[-1]
            self.marks[-1] = text + data, attributes


HOSTILE = "\"><script>alert(1)</script>'&"


def test_a_page_has_texts_with_links_and_tooltips() -> None:
    candidates = [{"title": HOSTILE, "probability": 0.5, "prior": 0.25}]
    hostile = {**linked("Ann", ("Ann", HOSTILE), candidates=candidates), "id": HOSTILE}
    form = find_format("html", FACTS)
    content = form.begin + form.answer({"line": 1}, DOCUMENT) + form.answer({"line": 2}, hostile)
    content += form.answer({"line": 3}, {"text": "x", "mentions": []}) + form.error({"line": 4}, HOSTILE) + form.end
    found = Links(content)
    assert set(found.tags) == TAGS | {"a"}
    assert found.texts[1:] == [TEXT, "Ann", "x", HOSTILE]
    _, _, _, *marks = found.marks  # behind the legend
    assert [text for text, _ in marks] == [*(each["mention"] for each in DOCUMENT["mentions"]), "Ann"]
    assert marks[0][1] == {
        "href": f"{WIKI}Ada_%28given_name%29", "rel": "noreferrer", "style": "--sure: 0.25",
        "title": "Ada (given name) 50.0%",
    }  # fmt: skip
    assert marks[2][1] == {"class": "none", "title": "no page"}
    assert marks[5][1]["title"] == f"{HOSTILE} 50.0%\n{HOSTILE} 50.0%, prior 25.0%"
    headings = re.findall("<h2>(.*)</h2>", content)
    assert [html.unescape(each) for each in headings] == ["a", HOSTILE, "line 3", "line 4"]
    assert all((each.get("href") or WIKI).startswith(WIKI) for _, each in marks)
    assert not re.search(r"src=|url\(|@import", content)
    assert "default-src 'none'" in content


def test_without_the_wiki_there_are_no_links() -> None:
    content = written(find_format("html", {"dump": ["dump.xml"]}), DOCUMENT)
    assert "href" not in content
    assert Page(content).marks[3] == ("Ada", {"style": "--sure: 0.25", "title": "Ada (given name) 50.0%"})


def extracted(values: dict[str, Any], language: str = "en") -> list[tuple[str, list[tuple[str, str]]]]:
    """Each paragraph of the wikitext as the pipeline reads it, with its links."""
    site = SiteInfo(language, f"{language}wiki", "first-letter", NAMESPACES)
    return [
        (each.text, [(each.text[link.start : link.end], link.target) for link in each.links])
        for each in extract(written(find_format("wikitext", FACTS), values), site).paragraphs
    ]


@pytest.mark.parametrize("language", ["en", "de", "ar", "zh"])
def test_the_pipeline_reads_the_links_again(language: str) -> None:
    links = [(each["mention"], each["title"]) for each in DOCUMENT["mentions"] if each["title"]]
    [(text, found)] = extracted(DOCUMENT, language)
    assert "".join(text.split()) == "".join(TEXT.split())  # ends of lines are blanks, but in Chinese nothing
    assert found == links


def test_colons_make_no_files_and_letters_beside_stay_beside() -> None:
    values = linked("In xChinas a b", ("China", "Category: China"), ("a", "/b"), ("b", "Star Trek: TNG"))
    assert written(find_format("wikitext", FACTS), values) == (
        "== a ==\nIn &#120;[[:Category: China|China]]&#115; [[:/b|a]] [[:Star Trek: TNG|b]]\n\n"
    )
    [(text, links)] = extracted(linked("In xChinas", ("China", "China")))
    assert (text, links) == ("In xChinas", [("China", "China")])


PARTS = "[ ] { } | < > & ' = * # : ; ! ~ _ - a B é 😀 [[x|y]] {{t}} <!-- <nowiki> __TOC__ ---- &amp; &#91; <ref>"
PARTS += " {| |} -{a}- </nowiki> http://a.b/c mailto:a@b.c"
MARKUP = st.lists(
    st.sampled_from([*PARTS.split(), " ", "\n", "\n\n", "http://a.b ", "[http://x y]", "ISBN 1234567890"]), max_size=8
)


@given(MARKUP, MARKUP, MARKUP)
def test_any_text_is_read_as_it_is(before: list[str], inside: list[str], behind: list[str]) -> None:
    parts = ["x" + "".join(before) + "x ", "y" + "".join(inside) + "y", " z" + "".join(behind) + "z"]
    text, place = "".join(parts), len(parts[0])
    values = {"text": text, "mentions": [mention(place, place + len(parts[1]), "A", text)]}
    found = extracted(values)
    assert " ".join(each for each, _ in found).split() == text.split()
    assert [(" ".join(part.split()), title) for _, links in found for part, title in links] == [
        (" ".join(parts[1].split()), "A")
    ]


def test_the_command_writes_every_format(
    table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tasks.linking.__main__ import main

    record = {"text": "Ann met Bob.", "mentions": [{"start": 0, "end": 3}, {"start": 2, "end": 4}]}
    data = f"{json.dumps({'id': 'a', 'text': 'Ann met Bob.'})}\n{json.dumps(record)}\n".encode()
    for name, written in (
        ("wikitext", "== a ==\n[[A|Ann]] met [[B|Bob]].\n\n"),
        ("html", 'title="A 50.0%">Ann</mark> met <mark style="--sure: 0.33" title="B 100.0%">Bob</mark>.'),
    ):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        with pytest.raises(SystemExit, match=r"^1$"):
            main(["link", "--format", name, "--mentions", str(table)])
        out, err = capsys.readouterr()
        wrong = "error: stdin:2: the mentions 'Ann' at 0 and 'n ' at 2 overlap"
        assert (written in out, err.startswith(wrong)) == (True, name != "html")
        assert name != "html" or "'Ann' at 0" in html.unescape(out)
