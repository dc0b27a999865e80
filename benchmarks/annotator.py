"""How fast entities are found in texts, and what is found in SQuAD's articles.

``python benchmarks/annotator.py --mentions DIR --pages DIR [--squad FILE.json]``

Speed: CPU seconds of one process over whole articles of the dump, with their names unknown at first and once they
are known. Coverage: passages and questions of each article of SQuAD 1.1, with its page where the dump has it, and by
commonness.
"""

import argparse
import datetime
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from measure import ROOT, environment_facts
from report import table

sys.path.insert(0, str(ROOT))  # this checkout is measured, whatever is installed

from pipeline import storage
from pipeline.lookup.entities import UNK_ID
from pipeline.lookup.names import tokens
from tasks.entities.annotator import Annotator

WANTED = 1.0  # MB of text a second and core
Record = dict[str, Any]
_HEAD = """MB are 10^6 bytes of UTF-8; seconds are CPU seconds of one process. "first" has just opened the table,
"again" is the median of the rounds behind it. A page is looked up once for all its paragraphs.
"""
_COVERAGE = """Names are annotations; words are tokens between word boundaries, punctuation marks included. Out of
vocabulary are names whose page the vocabulary lacks, most of all pages that the excerpt of the dump does not hold.
"""


def articles(folder: Path, every: int) -> list[tuple[str, list[str]]]:
    """Title and paragraphs of every so many-th article of the extracted pages."""
    paths = storage.read_manifest(str(folder)).paths(str(folder), "paragraphs/")
    rows = (row for path in paths for row in storage.read_rows(path, ["page_id", "title", "text"]))
    pages = groupby(rows, key=lambda row: (row["page_id"], row["title"]))
    chosen = (
        (title, [row["text"] for row in found])
        for number, ((_, title), found) in enumerate(pages)
        if number % every == 0
    )
    return list(chosen)


def seconds_of(work: Callable[[], int]) -> tuple[float, int]:
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found


def speed(mentions: Path, pages: Sequence[tuple[str, list[str]]], rounds: int) -> Iterator[Record]:
    """A row for texts without and with their page."""
    size = sum(len(text.encode()) for _, texts in pages for text in texts) / 1e6
    for way in ("without a page", "with its page"):
        opened, _ = seconds_of(lambda: len(Annotator.open(mentions).table))
        annotator = Annotator.open(mentions)

        def annotate(of_page: bool = way == "with its page", annotator: Annotator = annotator) -> int:
            return sum(
                len(annotator.annotate(text, title if of_page else None))
                for title, texts in pages
                for text in texts
            )

        runs = [seconds_of(annotate) for _ in range(1 + rounds)]
        again = sorted(seconds for seconds, _ in runs[1:])
        yield {
            "texts": way,
            "articles": len(pages),
            "MB": size,
            "names": runs[0][1],
            "to open, s": opened,
            "first, MB/s": size / runs[0][0],
            "again, MB/s": size / again[len(again) // 2],
            "seconds": [seconds for seconds, _ in runs],
        }


def coverage(annotator: Annotator, path: Path) -> Iterator[Record]:
    """A row for each article of SQuAD with what is found in its passages and questions."""
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        texts = [paragraph["context"] for paragraph in article["paragraphs"]]
        texts += [each["question"] for paragraph in article["paragraphs"] for each in paragraph["qas"]]
        words = sum(1 for text in texts for _ in tokens(text))
        title = article["title"]
        row: Record = {
            "article": title,
            "page in the dump": annotator.has_page(title),
            "texts": len(texts),
            "words": words,
        }
        for way, page in (("page: ", title), ("", None)):
            known = page is None or annotator.has_page(page)
            row |= found_in(annotator, texts, page, way) if known else dict.fromkeys(columns(way))
        yield row


def columns(way: str) -> tuple[str, ...]:
    return tuple(way + name for name in ("names", "different", "annotated words", "out of vocabulary"))


def found_in(annotator: Annotator, texts: Sequence[str], page: str | None, way: str) -> Record:
    """Names, different pages, and counts of annotated words and of names out of the vocabulary."""
    names = words = unknown = 0
    titles: set[str] = set()
    for text in texts:
        for each in annotator.annotate(text, page):
            names, unknown = names + 1, unknown + (each.entity_id == UNK_ID)
            words += sum(1 for _ in tokens(text[each.start : each.end]))
            titles.add(each.title)
    return dict(zip(columns(way), (names, len(titles), words, unknown), strict=True))


def totals(rows: Sequence[Record]) -> Iterator[Record]:
    """Sums over the articles whose page the dump has, and over all, with shares."""
    known = [row for row in rows if row["page in the dump"]]
    for what, some, way in (
        ("page in the dump", known, "page: "),
        ("page in the dump", known, ""),
        ("all", rows, ""),
    ):
        names, _, words, unknown = (sum(row[name] for row in some) for name in columns(way))
        of = sum(row["words"] for row in some)
        yield {
            "articles": f"{len(some)}, {what}",
            "by": "names of the page" if way else "commonness",
            "words": of,
            "names": names,
            "annotated words": words,
            "annotated words, %": 100 * words / of if of else None,
            "out of vocabulary": unknown,
            "out of vocabulary, %": 100 * unknown / names if names else None,
        }


def markdown(report: Record) -> str:
    """The report for reading."""
    facts = report["environment"]
    lines = [
        f"# Entities in texts, {report['date']}\n",
        f"`{report['command']}`\n",
        f"Commit {facts['commit'] or 'unknown'}{', with changes' if facts['changed'] else ''}.",
        "Machine: " + "; ".join(f"{key} {value}" for key, value in facts["machine"].items()) + ".",
        "Versions: " + "; ".join(f"{key} {value}" for key, value in facts["versions"].items()) + ".\n",
        *(f"- {note}" for note in report["notes"]),
        f"\nThe mention table: {report['table']}. Largest resident size: {report['rss_mb']:.0f} MB.",
        "\n## Speed\n",
        _HEAD,
        table([{key: value for key, value in row.items() if key != "seconds"} for row in report["speed"]]),
        "\n## Targets\n",
        table(report["targets"]),
    ]
    if report["squad"]:
        lines += ["\n## SQuAD 1.1\n", _COVERAGE, table(report["totals"]), "", table(report["squad"])]
    return "\n".join(lines) + "\n"


def read_options() -> argparse.Namespace:
    results = ROOT / f"benchmarks/results/{datetime.date.today().isoformat()}-annotator.json"
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--mentions", type=Path, required=True, help="a folder that BuildMentionTable wrote")
    add("--pages", type=Path, required=True, help="the folder of ExtractPages that it was made from")
    add("--squad", type=Path, help="SQuAD 1.1 in its own JSON")
    add("--every", type=int, default=20, help="every so many-th article is annotated (default: %(default)s)")
    add("--rounds", type=int, default=3)
    add("--note", action="append", default=[], dest="notes", help="a line for the report")
    add("--output", type=Path, default=results, help="the results as JSON; Markdown goes beside it")
    return parser.parse_args()


def main() -> None:
    options = read_options()
    annotator = Annotator.open(options.mentions)
    facts = annotator.table.manifest.facts
    rows = list(speed(options.mentions, articles(options.pages, options.every), options.rounds))
    squad = list(coverage(annotator, options.squad)) if options.squad else []
    words = [Path(word).name if "/" in word else word for word in sys.argv[1:]]
    report = {
        "date": datetime.date.today().isoformat(),
        "command": " ".join(["python benchmarks/annotator.py", *words]),
        "environment": environment_facts(None),
        "notes": options.notes,
        "table": f"{', '.join(facts['dump'])}, {len(annotator.table):,} names, {facts['entities']:,} entities, "
        f"profile {annotator.table.profile}",
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "speed": rows,
        "targets": [
            {
                "target": f"MB of text a second and core, {row['texts']}, {run}",
                "wanted": WANTED,
                "found": row[f"{run}, MB/s"],
                "met": row[f"{run}, MB/s"] >= WANTED,
            }
            for row in rows
            for run in ("first", "again")
        ],
        "squad": squad,
        "totals": list(totals(squad)) if squad else [],
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    options.output.write_text(text, encoding="utf-8")
    options.output.with_suffix(".md").write_text(markdown(report), encoding="utf-8")
    print(markdown(report))


if __name__ == "__main__":
    main()
