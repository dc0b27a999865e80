"""Holes in real and made sentences, and how an article's faults are counted."""

from collections import Counter

import pytest

from benchmarks.corpus.faults import find_holes, is_written_so
from benchmarks.corpus.text_quality import Paragraph, count_page

HOLES = [
    ("Truro () is a city", ["()"]),
    ("Berlin (, ) is the capital", ["(, )"]),
    ("Berlin ( ; , ) is the capital", ["( ; , )"]),
    ("東京（）は日本の首都", ["（）"]),
    ("東京（、）は日本の首都", ["（、）"]),
    ("Berlin (, German: Berlin) is", ["(,"]),
    ("Warsaw (Warszawa; ) is", ["; )"]),
    ("an area of , which", [" ,"]),
    ("Its coordinates are . It is", [" ."]),
    ("偉大なる 。約", [" 。"]),
    ("نهر هافل ، الذي", [" ،"]),
    ("born in , , Germany", [" ,", " ,"]),
    ("Au début du , Charles d'Orléans", [" ,"]),
    ("red,, green", [",,"]),
    ("the second,.", [",."]),
    ("known as: . It", [": ."]),
    ("the end,", []),
]

NO_HOLES = [
    "In 1927 he wrote of apples, pears, etc., and of plums.",
    "The series 1, 2, ..., n has n terms.",
    "It reads 1, 2, . . . , n at the end.",
    'He said: "arraignment shall [...] consist of [an] open reading".',
    "It runs on .NET and uses a .45 calibre bullet, or .22 if need be.",
    "The function main() calls printf() twice, and a[] is an array.",
    "The minus sign (-) and the dash (–) differ.",
    "The site example.com (founded 1999) closed; it reopened in 2004.",
    "Berlin (/bɜːrˈlɪn/; German: [bɛʁˈliːn]) is the capital.",
    "東京（とうきょう、英: Tokyo）は、日本の首都。",
    "برلين (بالألمانية: Berlin)، هي عاصمة ألمانيا.",
    'He called it "the end," she said.',
    "The /? pair dates to the No. 2, and ,< and ;: were used on keyboards.",
    "(Linear B: ]pe-rjo-[) on a tablet.",
]


@pytest.mark.parametrize(("text", "found"), [*HOLES, *((text, []) for text in NO_HOLES)])
def test_holes(text: str, found: list[str]) -> None:
    assert [text[hole.start : hole.end] for hole in find_holes(text)] == found


def test_french_has_blanks_before_semicolons() -> None:
    assert [len(find_holes("un homme ; il est , là", language)) for language in ("en", "fr")] == [2, 1]


def test_writers_leave_holes_too() -> None:
    texts = {"[[Mudbrick]] . It": "Mudbrick . It", "''Andokidès'' , or": "Andokidès , or"}
    texts |= {"is {{convert|5|km}}, which": "is , which", "Berlin ({{IPA|b}})": "Berlin ()"}
    found = [is_written_so(text, find_holes(text)[0], source) for source, text in texts.items()]
    assert found == [True, True, False, False]


def test_an_article_is_counted() -> None:
    source = "{{x}}\n'''Berlin''' ({{a}}) is , here.<ref>b</ref> It.\n== History ==\nIt is . old"
    paragraphs: list[Paragraph] = [
        ("", "—", []),
        ("", "Berlin () is , here. It is 14171701. iPhones came.", [(0, 6), (18, 27)]),
        ("History", "It is . old", []),
    ]
    counts: Counter[str] = Counter()
    count_page(counts, source, paragraphs, "en")
    assert counts["paragraphs"] == 3
    assert (counts["with a hole"], counts["as written"]) == (2, 1), "the last one stands so in the source"
    assert (counts["first paragraphs"], counts["first with a hole"], counts["first as written"]) == (1, 1, 0)
    assert (counts["links"], counts["lost links"]) == (2, 1)
    assert counts["cut before a small letter"] >= 1
    count_page(counts, source, paragraphs, "en", has_first=False)
    assert (counts["articles"], counts["first paragraphs"]) == (2, 1), "a disambiguation page has none"
    count_page(counts, "", [("", "x" * 299 + " , y", [])], "en")
    assert (counts["first paragraphs"], counts["first with a hole"]) == (2, 1), "300 characters count"
