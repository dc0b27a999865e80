"""Holes where something was cut: closed beside it, and nothing else is touched."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.mediawiki.site import SiteInfo
from pipeline.wikitext.extract import extract
from pipeline.wikitext.holes import close_holes
from pipeline.wikitext.placeholders import CLOSE, CUT, GONE, OPEN

ENGLISH = SiteInfo("en", "enwiki", "first-letter", ((0, ""),))
CASES = [
    ("'''Berlin''' ({{IPAc-en|b}}, {{IPA-de|b}}) is", "Berlin is"),
    ("'''B''' (pronounced {{IPA|b}}) is", "B is"),
    ("'''B''' ({{IPA|b}} or {{IPA|c}}; born 1 May) is", "B (born 1 May) is"),
    ("B (born 1 May, {{x}}) is", "B (born 1 May) is"),
    ("B (Greek: {{x}}; b) is", "B (b) is"),
    ("B ([[Greek language|Greek]]: {{x}}) is", "B (Greek) is"),
    ("B (a (''{{x}}''), b) is", "B (a, b) is"),
    ("B ([http://x.org]; c) is [http://y.org].", "B (c) is."),
    ("B [{{x}}] is [a, {{y}}]", "B is [a]"),
    ("are\n{{x}}. It", "are. It"),
    ("are\n{{x}} it", "are it"),
    ("a\n\n{{x}}. It", "a\nIt"),
    ("نهر {{x}}، و", "نهر، و"),
    ("is {{x}}, which", "is, which"),
    ("a, {{x}}, b", "a, b"),
    ("a: {{x}}. b", "a. b"),
    ("a {{x}}{{y}} {{z}}, b", "a, b"),
    ("[[A]]{{x}}[[B]]", "A B"),
    ("word<ref>a</ref>word", "word word"),
    ("a <math>x</math>, b", "a, b"),
    ("* {{x}}. ISBN 5", "ISBN 5"),
    ("a\n* {{x}} – .\nb", "a\nb"),
    # what is no hole, or somebody else's
    ("a () , b ; c", "a () , b ; c"),
    ("a {{x}} .NET b", "a .NET b"),
    ("a {{x}} ...b", "a...b"),
    ("f(x<ref>a</ref>), g", "f(x), g"),
    ("H<sub>2</sub>O, wo<b>r</b>d, a<!-- b -->c", "H2O, word, ac"),
    ("a<ref>b</ref>, c<ref>d</ref>.", "a, c."),
]


@pytest.mark.parametrize(("source", "shown"), CASES)
def test_holes(source: str, shown: str) -> None:
    assert "\n".join(extract(source, ENGLISH).texts) == shown


@pytest.mark.parametrize(
    ("source", "shown"), [("日本（{{x}}、東京）は{{x}}、東{{x}}京", "日本（東京）は、東京"), ("a{{x}}b", "a b")]
)
def test_holes_where_words_have_no_blanks(source: str, shown: str) -> None:
    assert extract(source, SiteInfo("ja", "jawiki", "first-letter", ((0, ""),))).texts == [shown]


def test_holes_are_counted() -> None:
    drops = extract("a ({{x}}) b {{x}}, c\n* {{x}} –\nd", ENGLISH).drops
    holes = {name: count for name, count in drops.items() if name.startswith("holes")}
    assert holes == {"holes:brackets": 1, "holes:line": 1, "holes:punctuation": 1}


@given(st.text(st.sampled_from(f"ab1 (),.;:\n、（）{GONE}{CUT}"), max_size=40))
def test_letters_stay_and_lines_stay_lines(text: str) -> None:
    closed = close_holes(text, frozenset(), Counter())
    assert closed.count("\n") == text.count("\n")
    kept = [char for char in text if char.isalnum()]
    found = [char for char in closed if char.isalnum()]
    # A label with a colon alone goes with the hole behind it, and nothing else does.
    assert found == kept or ":" in text


@given(
    st.lists(
        st.sampled_from([f"{OPEN}a, b:{CLOSE}", f"({OPEN}c{CLOSE}:", GONE, ")", "(", ", ", "d", " ", "\n"]), max_size=20
    )
)
def test_no_link_is_lost(pieces: list[str]) -> None:
    text = "".join(pieces)
    closed = close_holes(text, frozenset({"a"}), Counter())
    marks = [char for char in text if char in OPEN + CLOSE]
    assert [char for char in closed if char in OPEN + CLOSE] == marks


@pytest.mark.parametrize(
    ("language", "source", "shown", "links"),
    [
        # what is said of a pronunciation goes with it
        ("it", "Quarto ([[alfabeto fonetico|IPA]]: {{IPA|x}}) è", "Quarto è", []),
        ("it", "Quai ([[AFI]]: {{IPA|x}}; in [[tedesco]] ''Kai'') è", "Quai (in tedesco Kai) è", ["Tedesco"]),
        ("it", "Quarto (AFI {{IPA|x}}, pronuncia {{IPA|y}}), detto [[Q]]", "Quarto, detto Q", ["Q"]),
        ("en", "Quay ({{IPAc-en|x}}, occasionally {{IPAc-en|y}}), also known", "Quay, also known", []),
        ("en", "Q (named {{IPAc-en|x}}, [[plural]] ''Qs'') is", "Q (plural Qs) is", ["Plural"]),
        ("en", "Q ([[Polish language|Polish]]: {{IPA-pl|x}}; born 1950) is [[A]]", "Q (born 1950) is A", ["A"]),
        ("en", "Quay ({{IPA|x}} in British English or {{IPA|y}}) is", "Quay is", []),
        ("en", "Quay /{{IPAc-en|x}}/. It", "Quay. It", []),
        ("fr", "Quai (prononcé {{API|x}} en français) est", "Quai est", []),
        ("fr", "Quai {{prononciation|LL-Q150 (fra)-X-quai.wav}} est", "Quai est", []),
        ("es", "Muelle (pronunciado {{AFI|x}} en español; nacido en 1950) es", "Muelle (nacido en 1950) es", []),
        ("ru", "Порт (произношение {{IPA|x}}) это", "Порт это", []),
        # names stay
        ("en", "Quay ({{lang-pl|Nab}} {{IPA-pl|x}}; born) is", "Quay (Polish: Nab; born) is", []),
        ("en", "Quay (''kaai'' {{IPA-nl|x}}) is", "Quay (kaai) is", []),
        ("en", "Quay ([[French]] ''kai'' {{IPA|x}}: shore) is", "Quay (French kai: shore) is", ["French"]),
        ("en", "Quay (Greek, {{x}}; [[Greek]]: {{y}}) is", "Quay (Greek; Greek) is", ["Greek"]),
        # the words beside a formula stay
        ("en", "area (or <math>a</math>) is", "area (or) is", []),
        ("en", "sum (in general: <math>a</math>) is", "sum (in general) is", []),
        ("en", "sum (see <chem>H</chem>, from <ce>C</ce>; [[A]]) is", "sum (see, from; A) is", ["A"]),
        ("en", "area (<math>a</math>) is", "area is", []),
        ("en", "{{nowrap|area (or <math>a</math>)}} {{box|<math>b</math>}} is", "area is", []),
        ("en", "area [[A|<math>c</math>]]", "area A", ["A"]),
    ],
)
def test_what_goes_with_a_hole_depends_on_what_was_there(
    language: str, source: str, shown: str, links: list[str]
) -> None:
    found = extract(source, SiteInfo(language, f"{language}wiki", "first-letter", ((0, ""),)))
    assert (found.texts, found.targets) == ([shown], links)
    for text, paragraph in zip(found.texts, found.paragraphs, strict=True):
        anchors = [text[link.start : link.end] for link in paragraph.links]
        assert all(anchor.strip() == anchor != "" for anchor in anchors)


@pytest.mark.parametrize(
    ("language", "source", "shown"),
    [
        ("ko", "베를린({{IPA|de}})은 도시", "베를린은 도시"),
        ("ko", "[[베를린]]({{IPA|de}}, {{x}})의 [[강]]{{x}}을", "베를린의 강을"),
        ("ko", "A{{x}}B와 서울{{x}} 시", "A B와 서울 시"),
        ("en", "Seoul ({{x}}) is 서울({{x}})이다", "Seoul is 서울이다"),
    ],
)
def test_no_blank_comes_before_a_particle(language: str, source: str, shown: str) -> None:
    site = SiteInfo(language, f"{language}wiki", "first-letter", ((0, ""),))
    assert extract(source, site).texts == [shown]
