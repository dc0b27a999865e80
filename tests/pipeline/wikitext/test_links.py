"""Links to articles as MediaWiki reads them, in profile "fixed"."""

import pytest

from pipeline.mediawiki.site import SiteInfo
from pipeline.wikitext.extract import extract
from tests.pipeline.wikitext.link_cases import CASES

NAMES = {-1: "Special", 1: "Talk", 2: "User", 4: "Wikipedia", 6: "File", 10: "Template", 12: "Help"}
NAMES |= {14: "Category"}
ENGLISH = SiteInfo("en", "enwiki", "first-letter", tuple(NAMES.items()))
ALL = [(rule, *case) for rule, cases in CASES.items() for case in cases]


def read(source: str, site: SiteInfo, profile: str = "fixed") -> tuple[list[tuple[str, str]], str]:
    """(the links as (anchor, title), the paragraphs with " / " between them)."""
    paragraphs = extract(source, site, profile=profile).paragraphs
    links = [(text[start:end], title) for _, text, found in paragraphs for start, end, title in found]
    return links, " / ".join(paragraph.text for paragraph in paragraphs)


@pytest.mark.parametrize(
    ("rule", "source", "links", "text"), ALL, ids=[f"{rule}-{source[:30]!a}" for rule, source, *_ in ALL]
)
def test_links_are_those_of_mediawiki(rule: str, source: str, links: list[tuple[str, str]], text: str) -> None:
    found, shown = read(source, ENGLISH)
    assert found == links, rule
    assert shown == (text or shown), rule


def wiki(language: str, dbname: str = "", names: dict[int, str] | None = None) -> SiteInfo:
    return SiteInfo(language, dbname, "first-letter", tuple((names or {}).items()))


@pytest.mark.parametrize(
    ("site", "source", "links"),
    [
        (wiki("ms"), "[[Imej:B.jpg|thumb|left|250px|caption]] [[Kategori:C]] [[A]]", [("A", "A")]),
        (wiki("jv"), "[[Gambar:B.jpg|thumb|left|250px|caption]] [[Dhiskusi:C]] [[A]]", [("A", "A")]),
        (wiki("su"), "[[Gambar:B.jpg|thumb|[[C]]]] [[Obrolan MediaWiki:D]] [[A]]", [("A", "A")]),
        (wiki("sr"), "[[Слика:B.jpg|c]] [[ВП:C]] [[Razgovor:D]] [[А]]", [("А", "А")]),
        (wiki("de", "dewiki", {4: "Wikipedia"}), "[[BD:X]] [[P:Y]] [[WP:U]] [[A]]", [("A", "A")]),
        (wiki("es"), "[[Usuaria:X]] [[CAT:Y]] [[A]]", [("A", "A")]),
        (wiki("he"), "[[קו:X.jpg|ימין]] [[קט:Y]] [[פ:Z]] [[א]]", [("א", "א")]),
        (wiki("jv", "", {4: "Wikipedia"}), "[[Dhiskusi Wikipedia:X]] [[A]]", [("A", "A")]),
        (wiki("fr", "frwiktionary"), "[[WP:X]] [[A]]", [("WP:X", "WP:X"), ("A", "A")]),
        (wiki("fr", "frwiki"), "[[WP:X]] [[w:A|a]] [[:w:fr:B]]", []),
        (wiki("be-tarask", "be_x_oldwiki"), "[[be-x-old:А|б]] [[ВП:X]]", [("б", "А")]),
        (wiki("zh", "zhwiki"), "[[zh-tw:甲|乙]] [[F:X.jpg|丙]] [[T:丁]] [[CAT:戊]]", [("乙", "甲")]),
        (wiki("simple", "simplewiki"), "[[Simple:A|b]] [[:en:C|d]]", [("b", "A")]),
    ],
)
def test_names_of_namespaces_and_wikis(site: SiteInfo, source: str, links: list[tuple[str, str]]) -> None:
    assert read(source, site)[0] == links


@pytest.mark.parametrize(
    ("source", "links"),
    [
        ("[[A|]]", [("A", "A")]),
        ("[[a~~~~]]", [("a~~~~", "A~~~~")]),
        ("[[../x]]", [("../x", "../x")]),
        ("[[[A]]]", [("A", "A")]),
        ("[[<b>A</b>]]", [("A", "A")]),
        ("[[A {{x}}|b]]", [("b", "A")]),
    ],
)
def test_profile_paper_reads_links_as_before(source: str, links: list[tuple[str, str]]) -> None:
    assert read(source, ENGLISH, "paper")[0] == links


@pytest.mark.parametrize(
    ("language", "title", "source", "links", "text", "own"),
    [
        ("en", "Gull Bay", "'''[[Gull Bay]]''' lies at [[Quay]].", ["Quay"], "Gull Bay lies at Quay.", 1),
        ("en", "Gull Bay", "its [[Gull Bay#Past|past]], [[#Past|past]]", [], "its past, past", 2),
        ("en", "Gull Bay", "[[gull_Bay|the bay]]s, [[Gull Bays]]", ["Gull Bays"], "the bays, Gull Bays", 1),
        ("en", "Gull Bay", "[[Gull%20Bay]] [[:Gull Bay]]", [], "Gull Bay Gull Bay", 2),
        ("en", "Gull Bay", "[[Gull Bay]] [[Quay|[x] y]]", ["Quay"], "Gull Bay [x] y", 1),
        ("en", "Bay", "* [[A]] [[Bay]]\n* [[Bay]] [[B]]", ["A", "B"], "A Bay / Bay B", 2),
        ("en", "Gull Bay", "[[Gull Bay|[[A]] b]]", ["A"], "A b", 0),
        ("en", "", "[[Gull Bay]]", ["Gull Bay"], "Gull Bay", 0),
        ("de", "Hafen", "Ein [[Hafen]]becken am [[Kai]].", ["Kai"], "Ein Hafenbecken am Kai.", 1),
        ("ar", "ميناء", "ال[[ميناء]] [[بحر]]", ["بحر"], "الميناء بحر", 1),
        ("zh", "港口", "[[港口|港]]和[[船]]", ["船"], "港和船", 1),
    ],
)
def test_no_link_of_a_page_is_to_itself(
    language: str, title: str, source: str, links: list[str], text: str, own: int
) -> None:
    found = extract(source, wiki(language), title=title)
    assert found.targets == links
    assert " / ".join(found.texts) == text
    assert found.drops.get("links:same_page", 0) == own


def test_links_of_a_page_to_itself_stay_in_profile_paper() -> None:
    found = extract("[[Gull Bay]] [[#Past|past]]", ENGLISH, title="Gull Bay", profile="paper")
    assert (found.targets, found.drops) == (["Gull Bay"], {"links:same_page": 1})


OWN = {0: "", 6: "File", 10: "Template", 14: "Category", 110: "Forum"}


@pytest.mark.parametrize(
    ("site", "source", "links", "text"),
    [
        (wiki("en", "reactorgame", OWN), "a [[No: 6 reactor]]", ["No: 6 reactor"], "a No: 6 reactor"),
        (wiki("en", "reactorgame", OWN), "[[q: who|quiz]].", ["Q: who"], "quiz."),
        (wiki("de", "fabelwiki", OWN), "[[:C: Eins]] [[W:Z]]", ["C: Eins", "W:Z"], "C: Eins W:Z"),
        (wiki("fr", "jeux", OWN), "[[fr:Abc|d]] [[Forum:X|y]] [[Category:Z]]", ["Fr:Abc"], "d y"),
        (wiki("en", "x.example", OWN), "[[No: 6]]", ["No: 6"], "No: 6"),
        # Wikimedia's have them all.
        (wiki("my", "mywiki", OWN), "[[ja:A|b]] [[wikt:c|d]] f", [], "d f"),
        (wiki("en", "enwiki", OWN), "[[No: 6]] [[en:A|b]] [[Star: A]]", ["A", "Star: A"], "b Star: A"),
        (wiki("en", "enwikiquote", OWN), "[[de:X]]a [[w:Y|z]]", [], "a z"),
        (wiki("en", "", OWN), "[[No: 6]]a", [], "a"),
    ],
)
def test_prefixes_of_other_wikis_are_wikimedias(site: SiteInfo, source: str, links: list[str], text: str) -> None:
    found, shown = read(source, site)
    assert [title for _, title in found] == links
    assert shown == text


@pytest.mark.parametrize(
    ("site", "source", "links", "text"),
    [
        (wiki("en", "towns", OWN), "in [[located in::Farland]].", [("Farland", "Farland")], "in Farland."),
        (wiki("en", "towns", OWN), "[[has mayor::anna Bay|Anna]]s", [("Annas", "Anna Bay")], "Annas"),
        (wiki("en", "towns", OWN), "[[a::b::Farland#x]]", [("Farland#x", "Farland")], "Farland#x"),
        (wiki("en", "towns", OWN), "[[population::1,000]] live", [("1,000", "1,000")], "1,000 live"),
        (wiki("en", "towns", OWN), "a [[secret::Farland| ]] b", [], "a b"),
        (wiki("en", "towns", OWN), "[[:is in::Farland]]", [("is in::Farland", "Is in::Farland")], "is in::Farland"),
        (wiki("de", "orte", OWN), "[[Liegt in::Land|im Land]]", [("im Land", "Land")], "im Land"),
        (wiki("en", "enwiki", OWN), "[[std::string]]", [("std::string", "Std::string")], "std::string"),
    ],
)
def test_values_of_properties_are_links_to_them(
    site: SiteInfo, source: str, links: list[tuple[str, str]], text: str
) -> None:
    assert read(source, site) == (links, text)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("See [http://[2001:db8::1]/index.html the page].", "See the page."),
        ("[//[::1]:80 a] [https://[2001:DB8::ff00:42:8329] ''b''] c", "a b c"),
        ("[http://[::ffff:192.0.2.1]/x] a", "a"),
        ("[[File:A.jpg|thumb|b [http://[::1]/ c]]]d", "d"),
        ("[http://[::1 a]", "[http://[::1 a]"),
        ("http://[::1]/ a", "http://[::1]/ a"),
        ("[http://[xyz]/ a]", "[http://[xyz]/ a]"),
    ],
)
def test_addresses_with_a_host_in_brackets(source: str, text: str) -> None:
    assert read(source, ENGLISH) == ([], text)
