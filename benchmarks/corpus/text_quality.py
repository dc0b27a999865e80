"""What a reader finds wrong in extracted text: holes and glued words, and sentences and links that are cut.

`faults.py` says what a hole and a glued word are. A first paragraph is the first one with a word before the first
heading of an article that is no disambiguation page; its first 300 characters count. Sentences of all extractors are
cut by our splitter. README.md says more.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.corpus import quality_workloads
from benchmarks.corpus.dumps import SMALL, articles
from benchmarks.corpus.faults import find_holes, glued_at, is_plain_to_see, is_written_so, seams
from benchmarks.harness.measure import adopt_orphans
from benchmarks.harness.options import Options
from benchmarks.harness.report import Number, Report, divide, progress, target
from benchmarks.harness.workloads import ROOT, Record, ask, command, environment
from pipeline.dump.pages import Page, read_site_info
from pipeline.mediawiki.site import SiteInfo
from pipeline.mediawiki.titles import is_disambiguation
from pipeline.sequences.sentences import split

OURS, PAPER, BEFORE = "ours", "ours, profile paper", "ours before"
WIKIEXTRACTOR, MWPARSERFROMHELL = "wikiextractor", "mwparserfromhell"
EXTRACTORS = (OURS, BEFORE, PAPER, WIKIEXTRACTOR, MWPARSERFROMHELL)
DUMPS = (SMALL, "dewiki-mini", "jawiki-mini", "arwiki-mini")
PACKAGES = ("mwparserfromhell", "sentencex")
FIRST = 300  # characters of a first paragraph
COSTLY = 15  # templates that are shown
HOLES, GLUED, CUT_SENTENCES, CUT_LINKS = 2.0, 0, 1.0, 0.5  # what is wanted of ours, in per cent, at most
WORKLOADS = "corpus.quality_workloads"
_WORD = re.compile(r"\w")


class Article(NamedTuple):
    """What is asked of an article's source, once for all extractors."""

    source: str
    seams: list[tuple[str, str]]
    is_disambiguation: bool

    @classmethod
    def of(cls, page: Page, site: SiteInfo) -> "Article":
        return cls(page.text, seams(page.text), is_disambiguation(page.text, site))


def count_page(
    counts: Counter[str], article: Article, paragraphs: Iterable[Sequence[Any]], language: str
) -> None:
    """Add what is wrong in one article's paragraphs: lists of a heading, a text and the spans of links."""
    rows = list(paragraphs)
    counts["articles"] += 1
    for _, text, links in rows:
        holes = find_holes(text, language)
        counts["paragraphs"] += 1
        counts["with a hole"] += bool(holes)
        counts["as written"] += bool(holes) and all(
            is_written_so(text, hole, article.source) for hole in holes
        )
        count_sentences(counts, text, links, language)
    first = next((text for heading, text, _ in rows if not heading and _WORD.search(text)), None)
    if first is not None and not article.is_disambiguation:
        holes = [hole for hole in find_holes(first, language) if hole.end <= FIRST]
        counts["first paragraphs"] += 1
        counts["first with a hole"] += bool(holes)
        so = bool(holes) and all(is_written_so(first, hole, article.source) for hole in holes)
        counts["first as written"] += so
    glued = set(glued_at(article.seams, article.source, "\n".join(text for _, text, _ in rows)))
    counts["seams"] += len(article.seams)
    for left, right in article.seams:
        if left + right in glued:
            counts["glued words"] += 1
            counts["plain to see"] += is_plain_to_see(left, right)


def count_sentences(counts: Counter[str], text: str, links: Iterable[Iterable[int]], language: str) -> None:
    """Add sentences that begin with a small letter behind another one, and links that lie in no sentence."""
    spans = split(text, language)
    counts["sentences"] += len(spans)
    counts["cut before a small letter"] += sum(text[start].islower() for start, _ in spans[1:])
    for begin, end in links:
        counts["links"] += 1
        counts["lost links"] += not any(start <= begin and end <= last for start, last in spans)


def quality(output: Path, sources: Mapping[int, Article], language: str) -> Counter[str]:
    """What is wrong in what an extractor wrote."""
    counts: Counter[str] = Counter()
    with open(output, encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            count_page(counts, sources[row["id"]], row["paragraphs"], language)
    return counts


def percent(part: float, of: float) -> Number:
    return divide(100 * part, of)


def holes_row(dump: str, extractor: str, counts: Mapping[str, int]) -> Record:
    first, paragraphs = counts["first paragraphs"], counts["paragraphs"]
    return {
        "dump": dump,
        "extractor": extractor,
        "paragraphs": paragraphs,
        "with a hole %": percent(counts["with a hole"], paragraphs),
        "as written %": percent(counts["as written"], paragraphs),
        "first paragraphs": first,
        "of these with a hole": counts["first with a hole"],
        "first with a hole %": percent(counts["first with a hole"], first),
        "first as written %": percent(counts["first as written"], first),
        "seams": counts["seams"],
        "glued words": counts["glued words"],
        "plain to see": counts["plain to see"],
    }


def sentences_row(dump: str, extractor: str, counts: Mapping[str, int]) -> Record:
    sentences, links = counts["sentences"], counts["links"]
    return {
        "dump": dump,
        "extractor": extractor,
        "sentences": sentences,
        "cut before a small letter": counts["cut before a small letter"],
        "cut %": percent(counts["cut before a small letter"], sentences),
        "links": links or None,
        "lost links": counts["lost links"] if links else None,
        "lost %": percent(counts["lost links"], links),
    }


def costly(dump: str, losses: Mapping[str, list[int | str]]) -> Iterator[Record]:
    """The templates without a rule that cost ours the most words."""
    ranked = sorted(losses.items(), key=lambda loss: (-int(loss[1][1]), loss[0]))
    for name, (uses, words, links, example) in ranked[:COSTLY]:
        row = {"dump": dump, "template": name, "uses": uses, "words": words, "links": links}
        yield {**row, "example": example}


@contextmanager
def checkout(revision: str | None, scratch: str) -> Iterator[Path | None]:
    """A revision's files in a folder of their own; None without one."""
    if not revision:
        yield None
        return
    folder = Path(scratch) / "before"
    add = ["git", "worktree", "add", "--quiet", "--detach", str(folder), revision]
    if subprocess.run(add, cwd=ROOT).returncode:
        raise SystemExit(f"--before {revision}: git cannot check it out; wanted a revision such as bfe0e3a")
    try:
        yield folder
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", str(folder)], cwd=ROOT, check=True)


def run_extractor(name: str, dump: Path, output: Path, before: Path | None, peers: Path | None) -> Record:
    """Have an extractor write its text: what it says."""
    given, own = {"dump": str(dump), "output": str(output)}, environment()
    if name == MWPARSERFROMHELL:
        return ask(command(WORKLOADS, "strip_code", given), own)
    if name == WIKIEXTRACTOR:
        given |= {"folder": str(output.with_suffix(".out")), "python": str(peers)}
        return (
            ask(command(WORKLOADS, "wikiextractor", given), own)
            if peers
            else {"failure": "absent: no --peers"}
        )
    given["profile"] = "paper" if name == PAPER else "fixed"
    if name != BEFORE:
        return ask(command(WORKLOADS, "ours", given), own)
    # This file runs, all that it imports is the revision's: -P keeps this folder out of the way.
    words = [sys.executable, "-P", str(Path(quality_workloads.__file__)), "ours", json.dumps(given)]
    own = {**environment(ours=False), "PYTHONPATH": str(before)}
    return ask(words, own) if before else {"failure": "absent: no --before"}


def targets(dump: str, counts: Mapping[str, int]) -> list[Record]:
    """What is wanted of ours."""
    holes = percent(counts["first with a hole"], counts["first paragraphs"])
    cut = percent(counts["cut before a small letter"], counts["sentences"])
    lost = percent(counts["lost links"], counts["links"])
    return [
        target("first paragraphs with a hole, %", holes, most=HOLES, dump=dump),
        target("glued words", counts["glued words"], most=GLUED, dump=dump),
        target("sentences cut before a small letter, %", cut, most=CUT_SENTENCES, dump=dump),
        target("links lost to boundaries, %", lost, most=CUT_LINKS, dump=dump),
    ]


class Tables:
    """The report's rows, dump by dump and extractor by extractor."""

    def __init__(self) -> None:
        self.targets: list[Record] = []
        self.holes: list[Record] = []
        self.sentences: list[Record] = []
        self.templates: list[Record] = []
        self.failures: list[Record] = []

    def add(self, dump: str, name: str, told: Record, counts: Counter[str]) -> None:
        """What an extractor said and what is wrong in its text."""
        self.holes.append(holes_row(dump, name, counts))
        self.sentences.append(sentences_row(dump, name, counts))
        if name == OURS:
            self.targets += targets(dump, counts)
            self.templates += costly(dump, told["losses"])

    def fill(self, report: Report) -> None:
        """Add the tables to the report."""
        report.add("Targets", self.targets)
        report.add("Holes and glued words", self.holes)
        report.add("Sentences and links", self.sentences)
        report.add("Templates without a rule", self.templates, f"The {COSTLY} that cost ours the most words.")
        if self.failures:
            report.add("Failures", self.failures)


def run_all(options: argparse.Namespace, scratch: str, before: Path | None) -> Tables:
    """Run every extractor on every dump."""
    tables = Tables()
    for dump in options.dumps:
        path = options.data / f"{dump}.xml.bz2"
        site = read_site_info(str(path))
        sources = {page.page_id: Article.of(page, site) for page in articles(path, site)}
        for number, name in enumerate(EXTRACTORS):
            output = Path(scratch) / f"{dump}-{number}.jsonl"
            told = run_extractor(name, path, output, before, options.peers)
            failure, pages = told.get("failure", ""), told.get("failed_pages")
            progress(f"{dump} {name}: {failure or 'done'}")
            if failure or pages:
                row = {"dump": dump, "extractor": name, "pages without text": pages}
                tables.failures.append(row | {"failure": failure})
            if not failure:
                tables.add(dump, name, told, quality(output, sources, site.language))
                output.unlink()
    return tables


def main() -> None:
    parser = Options("corpus.text_quality", __doc__)
    parser.add_argument("dumps", nargs="*", default=DUMPS, help=f"by name (default: {' '.join(DUMPS)})")
    parser.add_argument("--before", metavar="REV", help="also the code of a git revision, such as bfe0e3a")
    parser.take("dumps", "peers", "scratch")
    options = parser.read()
    report = Report("Text quality", options, PACKAGES, options.peers)
    adopt_orphans()
    with (
        tempfile.TemporaryDirectory(dir=options.scratch) as scratch,
        checkout(options.before, scratch) as before,
    ):
        run_all(options, scratch, before).fill(report)
    report.finish()


if __name__ == "__main__":
    main()
