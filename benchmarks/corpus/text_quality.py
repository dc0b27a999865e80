"""What a reader finds wrong in extracted text: holes, and sentences and links that are cut.

`faults.py` says what a hole is. A first paragraph is the first one with a word before the first
heading of an article that is no disambiguation page; its first 300 characters count. README.md says more.
"""

import re
from collections import Counter
from collections.abc import Mapping
from itertools import islice, product

from benchmarks.corpus.dumps import SMALL, articles
from benchmarks.corpus.faults import find_holes, is_written_so
from benchmarks.harness.options import Options
from benchmarks.harness.report import Number, Report, divide, progress
from benchmarks.harness.workloads import Record
from pipeline.dump.pages import read_site_info
from pipeline.mediawiki.titles import is_disambiguation
from pipeline.sequences.sentences import split
from pipeline.wikitext.extract import extract

PROFILES = {"ours": "fixed", "ours, profile paper": "paper"}
DUMPS = (SMALL, "dewiki-mini", "jawiki-mini", "arwiki-mini")
FIRST = 300  # characters of a first paragraph
_WORD = re.compile(r"\w")
Paragraph = tuple[str, str, list[tuple[int, int]]]  # heading, text, spans of links


def count_page(
    counts: Counter[str], source: str, rows: list[Paragraph], language: str, *, has_first: bool = True
) -> None:
    """Add what is wrong in one article's paragraphs; a disambiguation page has no first one."""
    counts["articles"] += 1
    for _, text, links in rows:
        counts["paragraphs"] += 1
        count_holes(counts, "", text, source, language)
        spans = split(text, language)
        counts["sentences"] += len(spans)
        counts["cut before a small letter"] += sum(text[start].islower() for start, _ in spans[1:])
        counts["links"] += len(links)
        whole = [any(a <= start and end <= b for a, b in spans) for start, end in links]
        counts["lost links"] += whole.count(False)
    first = next((text for heading, text, _ in rows if not heading and _WORD.search(text)), None)
    if first is not None and has_first:
        counts["first paragraphs"] += 1
        count_holes(counts, "first ", first, source, language, FIRST)


def count_holes(
    counts: Counter[str], kind: str, text: str, source: str, language: str, most: int | None = None
) -> None:
    """Count the paragraph if its text has a hole within so many characters, and if all stand so in the source."""
    holes = [hole for hole in find_holes(text, language) if most is None or hole.end <= most]
    counts[f"{kind}with a hole"] += bool(holes)
    counts[f"{kind}as written"] += bool(holes) and all(is_written_so(text, hole, source) for hole in holes)


def quality(dump: str, profile: str) -> Counter[str]:
    """Return what is wrong in the text of a dump."""
    site, counts = read_site_info(dump), Counter[str]()
    for page in articles(dump, site):
        try:
            found = extract(page.text, site, profile=profile)
        except Exception:  # as the stage: what a page does to the parser, it does to itself alone
            counts["pages without text"] += 1
            continue
        spans = iter(zip(found.starts, found.ends, strict=True))
        columns = zip(found.sections, found.texts, found.link_counts, strict=True)
        rows = [(heading, text, list(islice(spans, count))) for heading, text, count in columns]
        has_first = not is_disambiguation(page.text, site)
        count_page(counts, page.text, rows, site.language, has_first=has_first)
    return counts


def row_of(counts: Mapping[str, int]) -> Record:
    """Return the columns of the table."""

    def percent(part: str, of: str) -> Number:
        return divide(100 * counts[part], counts[of])

    row: Record = {"paragraphs": counts["paragraphs"]}
    row |= {f"{name} %": percent(name, "paragraphs") for name in ("with a hole", "as written")}
    row["first paragraphs"] = counts["first paragraphs"]
    firsts = ("first with a hole", "first as written")
    row |= {f"{name} %": percent(name, "first paragraphs") for name in firsts}
    row |= {"sentences": counts["sentences"], "cut %": percent("cut before a small letter", "sentences")}
    row |= {"links": counts["links"], "lost %": percent("lost links", "links")}
    return row | {"pages without text": counts["pages without text"]}


def main() -> None:
    parser = Options("corpus.text_quality", __doc__, "data")
    parser.add_argument("dumps", nargs="*", default=DUMPS, help=f"by name (default: {' '.join(DUMPS)})")
    options = parser.read()
    report = Report("Text quality", options, ("sentencex",))
    rows = []
    for dump, (name, profile) in product(options.dumps, PROFILES.items()):
        progress(f"{dump}, {name}")
        counts = quality(str(options.data / f"{dump}.xml.bz2"), profile)
        rows.append({"dump": dump, "extractor": name, **row_of(counts)})
    report.add("Holes, sentences and links", rows)
    report.finish()


if __name__ == "__main__":
    main()
