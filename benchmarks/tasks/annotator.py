"""How fast entities are found in texts, and what is found in SQuAD's articles.

Speed: CPU seconds of one process over whole articles of the dump, with their names unknown at first and once they
are known. Coverage: passages and questions of each article of SQuAD 1.1, with its page where the dump has it, and by
commonness.
"""

import json
import resource
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from benchmarks.harness.options import Options, absolute, count
from benchmarks.harness.report import Report, divide, median, target
from benchmarks.harness.workloads import Record, timed
from pipeline import storage
from pipeline.lookup.entities import UNK_ID
from pipeline.lookup.names import tokens
from tasks.entities.annotator import Annotator

WANTED = 1.0  # MB of text a second and core
RUNS = ("first", "again")
FIGURES = ("names", "different", "annotated words", "out of vocabulary")
HEAD = """MB are 10^6 bytes of UTF-8; seconds are CPU seconds of one process. "first" has just opened the table,
"again" is the median of the rounds behind it. A page is looked up once for all its paragraphs."""
COVERAGE = """Names are annotations; words are tokens between word boundaries, punctuation marks included. Out of
vocabulary are names whose page the vocabulary lacks, most of all pages that the excerpt of the dump does not hold."""


def articles(folder: Path, every: int) -> list[tuple[str, list[str]]]:
    """Title and paragraphs of every so many-th article of the extracted pages."""
    paths = storage.read_manifest(str(folder)).paths(str(folder), "paragraphs/")
    rows = (row for path in paths for row in storage.read_rows(path, ["page_id", "title", "text"]))
    pages = groupby(rows, key=lambda row: (row["page_id"], row["title"]))
    found = ((title, [row["text"] for row in of_page]) for (_, title), of_page in pages)
    return list(islice(found, 0, None, every))


def speed(mentions: Path, pages: Sequence[tuple[str, list[str]]], rounds: int) -> Iterator[Record]:
    """A row for texts without and with their page."""
    size = sum(len(text.encode()) for _, texts in pages for text in texts) / 1e6
    pairs = [(text, title) for title, texts in pages for text in texts]
    for way, asked in (("without a page", [(text, None) for text, _ in pairs]), ("with its page", pairs)):
        _, opened = timed(lambda: len(Annotator.open(mentions).table))
        annotate = Annotator.open(mentions).annotate
        runs = [timed(partial(names_in, annotate, asked)) for _ in range(1 + rounds)]
        seconds = [clock["cpu_seconds"] for _, clock in runs]
        row = {"texts": way, "articles": len(pages), "MB": size, "names": runs[0][0]}
        row |= {"to open, s": opened["cpu_seconds"], "first, MB/s": size / seconds[0]}
        yield row | {"again, MB/s": divide(size, median(seconds[1:]))}


def names_in(annotate: Callable[..., Sequence[Any]], asked: Sequence[tuple[str, str | None]]) -> int:
    """How many names are found in texts, each with its page or with none."""
    return sum(len(annotate(text, page)) for text, page in asked)


def coverage(annotator: Annotator, path: Path) -> Iterator[Record]:
    """A row for each article of SQuAD with what is found in its passages and questions."""
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        texts = [paragraph["context"] for paragraph in article["paragraphs"]]
        texts += [each["question"] for paragraph in article["paragraphs"] for each in paragraph["qas"]]
        title, known = article["title"], annotator.has_page(article["title"])
        row: Record = {"article": title, "page in the dump": known, "texts": len(texts)}
        row["words"] = sum(1 for text in texts for _ in tokens(text))
        of_page = found_in(annotator, texts, title) if known else dict.fromkeys(FIGURES)
        row |= {f"page: {name}": value for name, value in of_page.items()}
        yield row | found_in(annotator, texts, None)


def found_in(annotator: Annotator, texts: Sequence[str], page: str | None) -> Record:
    """Names, different pages, and counts of annotated words and of names out of the vocabulary."""
    found = [(text, each) for text in texts for each in annotator.annotate(text, page)]
    words = sum(1 for text, each in found for _ in tokens(text[each.start : each.end]))
    unknown, pages = sum(each.entity_id == UNK_ID for _, each in found), {each.title for _, each in found}
    return dict(zip(FIGURES, (len(found), len(pages), words, unknown), strict=True))


def totals(rows: Sequence[Record]) -> Iterator[Record]:
    """Sums over the articles whose page the dump has, and over all, with shares."""
    known = [row for row in rows if row["page in the dump"]]
    kinds = [("page in the dump", known, "page: "), ("page in the dump", known, ""), ("all", rows, "")]
    for what, some, way in kinds:
        names, _, words, unknown = (sum(row[way + name] for row in some) for name in FIGURES)
        of = sum(row["words"] for row in some)
        row: Record = {"articles": f"{len(some)}, {what}", "by": "names of the page" if way else "commonness"}
        row |= {"words": of, "names": names, "annotated words": words}
        row |= {"annotated words, %": divide(100 * words, of), "out of vocabulary": unknown}
        yield row | {"out of vocabulary, %": divide(100 * unknown, names)}


def main() -> None:
    parser = Options("tasks.annotator", __doc__, quick="a fifth of the articles, one round")
    add = parser.add_argument
    add("--mentions", type=absolute, required=True, help="a folder that BuildMentionTable wrote")
    add("--pages", type=absolute, required=True, help="the folder of ExtractPages that it was made from")
    add("--squad", type=absolute, help="SQuAD 1.1 in its own JSON")
    parser.take("rounds")
    add("--every", type=count, default=20, help="every so many-th article (default: %(default)s)")
    options = parser.read()
    every = options.every * 5 if options.quick else options.every
    report = Report("Entities in texts", options, ("marisa-trie", "pyarrow"))
    annotator = Annotator.open(options.mentions)
    facts, names = annotator.table.manifest.facts, len(annotator.table)
    rows = list(speed(options.mentions, articles(options.pages, every), options.rounds))
    squad = list(coverage(annotator, options.squad)) if options.squad else []
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    report.head.append(
        f"The mention table: {', '.join(facts['dump'])}, {names:,} names, {facts['entities']:,} entities, "
        f"profile {annotator.table.profile}. Largest resident size: {largest:.0f} MB.\n"
    )
    report.add("Speed", rows, HEAD)
    what = "MB of text a second and core"
    found = [(f"{what}, {row['texts']}, {run}", row[f"{run}, MB/s"]) for row in rows for run in RUNS]
    report.add("Targets", [target(name, speed, least=WANTED) for name, speed in found])
    if squad:
        report.add("SQuAD 1.1", totals(squad), COVERAGE)
        report.add("Articles of SQuAD 1.1", squad)
    report.measured["rss_mb"] = largest
    report.finish()


if __name__ == "__main__":
    main()
