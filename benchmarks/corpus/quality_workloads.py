"""The extractors whose text `text_quality.py` looks at, each in a process of its own.

Each writes a line of JSON for every article: its id and its paragraphs, which are a heading ("" before the first), a
text, and the spans of the links to articles, where the extractor says them. The code before a change runs this very
file: only what both have is imported.
"""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TextIO

from benchmarks.corpus.dumps import articles
from benchmarks.harness.workloads import Record, serve
from pipeline.dump.pages import read_site_info
from pipeline.wikitext.extract import extract

Paragraph = tuple[str, str, list[tuple[int, int]]]  # heading, text, links

_HEADING = re.compile(r"^=+[ \t]*([^\n]*?)[ \t]*=+[ \t]*$", re.MULTILINE)
_MARKS = re.compile(r"'{2,5}|\[\[(?:[^\[\]|]*\|)?|\]\]")


def ours(*, dump: str, output: str, profile: str) -> Record:
    """Our own extraction, and what templates without a rule cost: uses, words, links and an example by name."""
    site, losses, failed = read_site_info(dump), dict[str, list[int | str]](), 0
    with open(output, "w", encoding="utf-8") as lines:
        for page in articles(dump, site):
            try:
                found = extract(page.text, site, profile=profile)
            except Exception:  # as the stage: what a page does to the parser, it does to itself alone
                failed += 1
                continue
            spans = iter(zip(found.starts, found.ends, strict=True))
            columns = zip(found.sections, found.texts, found.link_counts, strict=True)
            paragraphs = [(heading, text, list(islice(spans, count))) for heading, text, count in columns]
            _write(lines, page.page_id, paragraphs)
            for name, loss in getattr(found, "losses", {}).items():
                *counts, example = loss
                known = losses.setdefault(name, [0, 0, 0, example])
                losses[name] = [a + b for a, b in zip(known, counts, strict=False)] + known[3:]
    return {"losses": losses, "failed_pages": failed}


def _write(lines: TextIO, page_id: int, paragraphs: Iterable[Paragraph]) -> None:
    lines.write(json.dumps({"id": page_id, "paragraphs": list(paragraphs)}, ensure_ascii=False) + "\n")


def strip_code(*, dump: str, output: str) -> Record:
    """mwparserfromhell: the lines of each section's `strip_code()`, without the heading."""
    import mwparserfromhell

    counts = Counter(failed_pages=0)
    with open(output, "w", encoding="utf-8") as lines:
        for page in articles(dump, read_site_info(dump)):
            try:
                code = mwparserfromhell.parse(page.text)
            except mwparserfromhell.parser.ParserError:
                counts["failed_pages"] += 1
                continue
            paragraphs: list[Paragraph] = []
            for section in code.get_sections(flat=True, include_lead=True):
                headings = section.filter_headings()
                for heading in headings:
                    section.remove(heading)
                title = str(headings[0].title).strip() if headings else ""
                shown = map(str.strip, section.strip_code().splitlines())
                paragraphs += [(title, line, []) for line in shown if line]
            _write(lines, page.page_id, paragraphs)
    return dict(counts)


def wikiextractor(*, dump: str, output: str, folder: str, python: str) -> Record:
    """wikiextractor with the dump's own templates; its headings are lines like any other, and end in a full stop."""
    options = ["--json", "--processes", "1", "-q", "-o", folder, dump]
    subprocess.run([python, "-m", "wikiextractor.WikiExtractor", *options], check=True, capture_output=True)
    texts = {}
    for path in sorted(Path(folder).rglob("wiki_*")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            texts[int(row["id"])] = row["text"]
    failed = 0
    with open(output, "w", encoding="utf-8") as lines:
        for page in articles(dump, read_site_info(dump)):
            if page.page_id in texts:
                _write(lines, page.page_id, _with_headings(texts[page.page_id], page.text))
            else:
                failed += 1
    return {"failed_pages": failed}


def _with_headings(text: str, source: str) -> Iterator[Paragraph]:
    titles = {_MARKS.sub("", heading).strip() for heading in _HEADING.findall(source)}
    titles |= {f"{title}." for title in titles}
    heading = ""
    for line in filter(None, map(str.strip, text.split("\n"))):
        if line in titles:
            heading = line.rstrip(".")
        else:
            yield heading, line, []


if __name__ == "__main__":
    serve(ours, strip_code, wikiextractor)
