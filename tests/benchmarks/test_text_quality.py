"""What counts as a hole and as glue, and how an article's faults are counted."""

from collections import Counter

import pytest

from benchmarks.corpus.faults import find_holes, glued_words, is_plain_to_see, is_written_so, seams
from benchmarks.corpus.text_quality import Article, count_page

HOLES = [
    ("Truro () is a city", ["()"]),
    ("Berlin (, ) is the capital", ["(, )"]),
    ("Berlin ( ; , ) is the capital", ["( ; , )"]),
    ("Faroese (føroyskt []) is", ["[]"]),
    ("東京（）は日本の首都", ["（）"]),
    ("東京（、）は日本の首都", ["（、）"]),
    ("Berlin (, German: Berlin) is", ["(,"]),
    ("Warsaw (Warszawa; ) is", ["; )"]),
    ("Masuhito (益仁;), but", [";)"]),
    ("an area of , which", [" ,"]),
    ("Its coordinates are . It is", [" ."]),
    ("a range of ; others", [" ;"]),
    ("産業 、テレビ", [" 、"]),
    ("偉大なる 。約", [" 。"]),
    ("نهر هافل ، الذي", [" ،"]),
    ("born in , , Germany", [" ,", " ,"]),
    ("Au début du , Charles d'Orléans", [" ,"]),
    ("red,, green", [",,"]),
    ("red, , green", [", ,"]),
    ("in German;, and", [";,"]),
    ("the second,.", [",."]),
    ("known as: . It", [": ."]),
    ("the end,", []),
]

NO_HOLES = [
    "In 1927 he wrote of apples, pears, etc., and of plums.",
    "The U.S., the U.K., and France signed.",
    "The series 1, 2, ..., n has n terms.",
    "It reads 1, 2, . . . , n at the end.",
    'He said: "arraignment shall [...] consist of [an] open reading".',
    "Wait ... there is more.",
    "It runs on .NET and uses a .45 calibre bullet, or .22 if need be.",
    "Look in ../lib and ./bin first.",
    "The function main() calls printf() twice, and a[] is an array.",
    "The minus sign (-) and the dash (–) differ.",
    "a proportion of 3 : 4; the rest",
    "The site example.com (founded 1999) closed; it reopened in 2004.",
    "Berlin (/bɜːrˈlɪn/; German: [bɛʁˈliːn]) is the capital.",
    "東京（とうきょう、英: Tokyo）は、日本の首都。",
    "برلين (بالألمانية: Berlin)، هي عاصمة ألمانيا.",
    'He called it "the end," she said.',
    "The /? pair dates to the No. 2, and ,< and ;: were used on keyboards.",
    "(Linear B: ]pe-rjo-[) on a tablet.",
]


@pytest.mark.parametrize(("text", "found"), HOLES)
def test_holes(text: str, found: list[str]) -> None:
    assert [text[hole.start : hole.end] for hole in find_holes(text)] == found


@pytest.mark.parametrize("text", NO_HOLES)
def test_real_sentences_have_none(text: str) -> None:
    assert find_holes(text) == []


def test_french_has_blanks_before_semicolons() -> None:
    assert find_holes("un homme ; il est", "fr") == []
    assert len(find_holes("un homme ; il est , là", "en")) == 2
    assert len(find_holes("un homme ; il est , là", "fr")) == 1


@pytest.mark.parametrize(
    ("source", "text", "written"),
    [
        ("[[Mudbrick]] . It", "Mudbrick . It", True),
        ("''Andokidès'' , or", "Andokidès , or", True),
        ("is {{convert|5|km}}, which", "is , which", False),
        ("Berlin ({{IPA|b}})", "Berlin ()", False),
    ],
)
def test_writers_leave_holes_too(source: str, text: str, written: bool) -> None:
    (hole,) = find_holes(text)
    assert is_written_so(text, hole, source) == written


GLUED = [
    ("(1417{{endash}}1701)", "(14171701)", ["14171701"]),
    ("(1417{{endash}}1701)", "(1417–1701)", []),
    ("15{{nbsp}}September", "15September", ["15September"]),
    ("[[Foo]]{{ndash}}[[Bar (city)|Bar]]", "FooBar", ["FooBar"]),
    ("'''Foo'''{{x|{{y|z}}}}''Bar''", "FooBar", ["FooBar"]),
    ("word<ref name=a>b {{c}}</ref>next", "wordnext", ["wordnext"]),
    ("word<ref name=a/>next", "word next", []),
    ("one<br />two", "onetwo", ["onetwo"]),
    ("a{{x}}b{{y}}c", "abc", []),
    ("long{{x}}chain{{y}}here", "longchainhere", ["longchain", "chainhere"]),
    ("as{{x}}is, and asis stands twice", "as is, and asis stands twice", []),
    ("word<!-- c -->end", "wordend", []),
    ("word {{x}} end", "word end", []),
    ("H<sub>2</sub>O", "H2O", []),
    ("東京{{仮リンク|x}}都市", "東京都市", []),
    ("{|\n| a<br>b\n|}\nword", "ab word", []),
    ("never {{closed", "never closed", []),
]


@pytest.mark.parametrize(("source", "text", "found"), GLUED)
def test_glued_words(source: str, text: str, found: list[str]) -> None:
    assert glued_words(source, text) == found


def test_some_joints_are_plain_to_see() -> None:
    pairs = {"15|September": True, "B|12": True, "Foo|Bar": True, "14|17": False, "there|although": False}
    assert {pair: is_plain_to_see(*pair.split("|")) for pair in pairs} == pairs


def test_an_article_is_counted() -> None:
    source = (
        "{{x}}\n'''Berlin''' ({{a}}) is , here.<ref>b</ref> 1417{{endash}}1701.\n== History ==\nIt is . old"
    )
    paragraphs = [
        ["", "—", []],
        ["", "Berlin () is , here. It 14171701. iPhones came.", [[0, 6], [18, 27]]],
        ["History", "It is . old", []],
    ]
    counts: Counter[str] = Counter()
    count_page(counts, Article(source, seams(source), False), paragraphs, "en")
    assert counts["paragraphs"] == 3
    assert (counts["with a hole"], counts["as written"]) == (2, 1), "the last one stands so in the source"
    assert (counts["first paragraphs"], counts["first with a hole"], counts["first as written"]) == (1, 1, 0)
    assert (counts["seams"], counts["glued words"], counts["plain to see"]) == (1, 1, 0)
    assert (counts["links"], counts["lost links"]) == (2, 1)
    assert counts["cut before a small letter"] >= 1
    count_page(counts, Article(source, [], True), paragraphs, "en")
    assert (counts["articles"], counts["first paragraphs"]) == (2, 1), "a disambiguation page has none"
    far = [["", "x" * 299 + " , y", []]]
    count_page(counts, Article("", [], False), far, "en")
    assert (counts["first paragraphs"], counts["first with a hole"]) == (2, 1), "300 characters count"
