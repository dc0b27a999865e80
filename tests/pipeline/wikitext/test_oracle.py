"""The extraction beside the oracle, which walks mwparserfromhell's whole tree."""

import sys
from pathlib import Path

import pytest

from pipeline.mediawiki.site import SiteInfo
from pipeline.wikitext.extract import extract
from tests.support import ROOT, oracle

sys.path.append(str(ROOT / "benchmarks"))

from agreement import CAUSES, ORACLE, measure

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
    tallies, _ = measure(str(shared / "data/wikipedia" / f"{dump}.xml.bz2"))
    assert tallies["links"].shared > links
    assert tallies["paragraphs"].shared > paragraphs
    assert tallies["links"].agreement() >= 0.97
    # Without the classes of which a case below proves that the oracle is wrong.
    faults = [cause.name for cause in CAUSES if cause.verdict == ORACLE]
    assert tallies["links"].agreement(faults) >= 0.995
    assert tallies["paragraphs"].agreement(faults) >= 0.99


# What MediaWiki shows, line by line, by the class of the oracle's fault.
FAULTS = [
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
    ("reference left as text", "a<ref name=b>c<ref>[[D]]</ref>e", ["ae"]),
]


@pytest.mark.parametrize(("cause", "source", "shown"), FAULTS)
def test_the_oracles_faults_are_proven(cause: str, source: str, shown: list[str]) -> None:
    assert cause in {known.name for known in CAUSES if known.verdict == ORACLE}
    assert [paragraph.text for paragraph in extract(source, SITE).paragraphs] == shown
    assert [paragraph.text for paragraph in oracle.extract(source, SITE)] != shown


def test_every_class_of_faults_has_a_case() -> None:
    assert {cause.name for cause in CAUSES if cause.verdict == ORACLE} == {cause for cause, _, _ in FAULTS}


def test_the_oracle_shares_no_code_with_the_extraction() -> None:
    folder = ROOT / "tests" / "support"
    sources = (folder / "oracle.py").read_text() + (folder / "oracle_items.py").read_text()
    imported = {
        line.split()[1]
        for line in sources.splitlines()
        if line.startswith(("from pipeline", "import pipeline"))
    }
    allowed = {f"pipeline.mediawiki.{name}" for name in ("characters", "languages", "site", "titles")}
    assert imported == allowed
