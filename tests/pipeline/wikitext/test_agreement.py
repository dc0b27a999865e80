"""The extraction beside the oracle, which walks mwparserfromhell's whole tree."""

import re
from pathlib import Path

import pytest

from pipeline.mediawiki.site import SiteInfo
from pipeline.wikitext.extract import extract
from tests.support import ROOT, oracle
from tests.support.agreement import FAULTS, measure

SITE = SiteInfo("en", "enwiki", "first-letter", ((0, ""), (6, "File"), (14, "Category")))


@pytest.mark.parametrize(
    ("dump", "links", "paragraphs"),
    [
        ("arwiki-mini", 150, 140),
        ("dewiki-mini", 1_600, 440),
        ("jawiki-mini", 500, 140),
        ("enwiki-2006-500", 30_000, 14_000),
    ],
)
def test_links_and_text_agree(shared: Path, dump: str, links: int, paragraphs: int) -> None:
    tallies = measure(str(shared / "data/wikipedia" / f"{dump}.xml.bz2"))
    assert tallies["links"].shared > links
    assert tallies["paragraphs"].shared > paragraphs
    assert tallies["links"].agreement() >= 0.97
    # Without the classes of which a case below proves that the oracle is wrong.
    assert tallies["links"].agreement(FAULTS) >= 0.995
    assert tallies["paragraphs"].agreement(FAULTS) >= 0.99


# What MediaWiki shows, line by line, by the class of the oracle's fault.
CASES = [
    ("apostrophes paired across other markup, or lost", "a [[B]]<ref>''c [[D]]</ref> e ''g''", ["a B e g"]),
    ("apostrophes paired across other markup, or lost", "''Iliad'''s end, ''x''", ["Iliad's end, x"]),
    ("apostrophes paired across other markup, or lost", "[[a|''b]] c''", ["b c"]),
    ("table left as text", "a\n:{|\n|[[X]]\n|}\nb", ["a", "b"]),
    ("table left as text", "a\n<table><tr><td>[[X]]</th></tr></table>\nb", ["a", "b"]),
    ("rows of a table that a template opens or closes", "{{office-table}}\n|[[X]]\n|-\n|[[Y]]\n|}\nb", ["b"]),
    ("rows of a table that a template opens or closes", "{|\n{{row}}\n|[[X]]\n{{end}}\n\nb", ["b"]),
    ("heading with text behind it", "== A == 1,295 km", ["== A == 1,295 km"]),
    ("line mark behind a comment, or comment without end", "a\n<!-- x\n-->==H==\nb", ["a", "b"]),
    ("line mark behind a comment, or comment without end", "a <!-- b [[C]]", ["a"]),
    ("heading of equals signs only", "a\n===\nb", ["a", "b"]),
    ("blanks behind an address", "([http://x.org  a])", ["(a)"]),
    ("heading tag without end", "<h3> A <h3>\nb", ["A", "b"]),
    ("reference left as text", "a<ref name=b>c<ref>[[D]]</ref>e", ["a e"]),
]


@pytest.mark.parametrize(("cause", "source", "shown"), CASES)
def test_the_oracles_faults_are_proven(cause: str, source: str, shown: list[str]) -> None:
    assert cause in FAULTS
    assert [paragraph.text for paragraph in extract(source, SITE).paragraphs] == shown
    assert [paragraph.text for paragraph in oracle.extract(source, SITE)] != shown


def test_every_class_of_faults_has_a_case() -> None:
    assert set(FAULTS) == {cause for cause, _, _ in CASES}


def test_the_oracle_shares_no_code_with_the_extraction() -> None:
    folder = ROOT / "tests" / "support"
    names = ("oracle", "oracle_items", "oracle_holes", "oracle_templates")
    sources = "".join((folder / f"{name}.py").read_text() for name in names)
    tables = {f"pipeline.mediawiki.{name}" for name in ("characters", "languages", "site", "titles")}
    # What a template's rule says is a table, too; its marks are turned back into wikitext.
    rules = {f"pipeline.wikitext.{name}" for name in ("placeholders", "templates.rules", "templates.table")}
    assert set(re.findall(r"(?m)^(?:from|import) (pipeline\S*)", sources)) == tables | rules
