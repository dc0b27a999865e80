"""The words of a rendered page that extracted text lacks, beside other extractors.

A folder or a tar holds pages as NAME.wikitext and NAME.html, in one folder a language. The words of running paragraphs
are those of `<p>` outside tables, boxes, lists, notes, captions and formulas. A word is lost where the extracted text
has none at its place, and foreign where the extracted text has it and the page shows it nowhere. README.md says more.
"""

import argparse
import json
import re
import subprocess
import tarfile
import tempfile
import tomllib
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from html.parser import HTMLParser
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import mwparserfromhell

from benchmarks.harness.options import DATA, Options, absolute
from benchmarks.harness.report import Report, divide, progress
from benchmarks.harness.workloads import Record
from pipeline.mediawiki.site import SiteInfo
from pipeline.wikitext.extract import extract
from pipeline.wikitext.templates.table import TemplateTable, silent

TEMPLATES_SHOWN = 30
_WORD = re.compile(r"\w+")
_TEMPLATE = re.compile(r"\{\{\s*([^|{}<\n]+)")
_LONGEST = 2000  # characters of a template before its lost words
_HTML = tomllib.loads(Path(__file__).with_name("page.toml").read_text(encoding="utf-8"))
_ASIDE_CLASSES = re.compile(rf"(?<![\w-])(?:{'|'.join(_HTML['aside_classes'])})(?![\w-])")
_HIDDEN = re.compile(r"display:\s*none")
# Runs in the peers' Python: a line a page in, a line a page out.
_WIKIEXTRACTOR = """
import json, logging, sys
from wikiextractor.extract import Extractor
logging.disable()
for line in sys.stdin:
    text = json.loads(line)
    print(json.dumps("\\n".join(Extractor(1, 1, "", "", [text]).clean_text(text))), flush=True)
"""


class Page(NamedTuple):
    """A page's source, the words of its running paragraphs, and all words that it shows."""

    language: str
    name: str
    source: str
    running: list[str]
    shown: frozenset[str]


class _Element(NamedTuple):
    tag: str
    is_running: bool
    is_aside: bool
    is_hidden: bool


class _Reader(HTMLParser):
    """Collects the text of a page: all of it, and that of its running paragraphs."""

    def __init__(self) -> None:
        super().__init__()
        self.open = [_Element("", False, False, False)]
        self.running: list[str] = []
        self.shown: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._part(tag)
        if tag in _HTML["void"]:
            return
        given = {name: value or "" for name, value in attrs}
        outer = self.open[-1]
        aside = outer.is_aside or tag in _HTML["aside"] or bool(_ASIDE_CLASSES.search(given.get("class", "")))
        hidden = outer.is_hidden or tag in ("script", "style") or bool(_HIDDEN.search(given.get("style", "")))
        self.open.append(_Element(tag, (outer.is_running or tag == "p") and not aside, aside, hidden))

    def handle_endtag(self, tag: str) -> None:
        self._part(tag)
        if any(each.tag == tag for each in self.open):
            while self.open.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        if not self.open[-1].is_hidden:
            self.shown.append(data)
            if self.open[-1].is_running:
                self.running.append(data)

    def _part(self, tag: str) -> None:
        """Words on the two sides of a block are two words."""
        if tag not in _HTML["inline"]:
            self.shown.append("\n")
            self.running.append("\n")


def words_of(text: str) -> list[str]:
    """Return the words of a text, in one form of each letter and digit; soft hyphens part none."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).replace("\u00ad", "").replace("\u200b", ""))


def read_page(source: Path) -> Page:
    """Return the page whose wikitext is in this file."""
    reader = _Reader()
    reader.feed(source.with_suffix(".html").read_text("utf-8"))
    running, shown = words_of("".join(reader.running)), frozenset(words_of("".join(reader.shown)))
    return Page(source.parent.name, source.stem, source.read_text("utf-8"), running, shown)


def gaps(wanted: list[str], found: list[str]) -> Iterator[tuple[int, int, Counter[str]]]:
    """Yield (start, end, the words lost) of each stretch of wanted words that is otherwise among those found."""
    for kind, start, end, first, last in SequenceMatcher(None, wanted, found).get_opcodes():
        if kind in ("delete", "replace") and (lost := Counter(wanted[start:end]) - Counter(found[first:last])):
            yield start, end, lost


class Places:
    """Return where the words of a page's paragraphs stand in its source."""

    def __init__(self, page: Page) -> None:
        self.source = unicodedata.normalize("NFC", page.source)
        self.templates = TemplateTable(SiteInfo(page.language, "", "first-letter", ()))
        self.spans = [match.span() for match in _WORD.finditer(self.source)]
        words = [self.source[start:end] for start, end in self.spans]
        blocks = SequenceMatcher(None, page.running, words).get_matching_blocks()
        self.known = [(a + each, b + each) for a, b, size in blocks for each in range(size)]

    def template(self, start: int, end: int) -> str:
        """Return the first template that may show text between the words around a stretch, or the one around it."""
        at, behind = bisect_right(self.known, (start, -1)), bisect_left(self.known, (end, -1))
        first = self.spans[self.known[at - 1][1]][1] if at else 0
        last = self.spans[self.known[behind][1]][0] if behind < len(self.known) else len(self.source)
        opened = self.source.rfind("{{", max(0, first - _LONGEST), first)
        between = self.source[opened:first]
        names = self.names(first, last)
        if opened >= 0 and between.count("{{") > between.count("}}"):
            names += self.names(opened, first)
        found = (self.templates.find(name) for name in names)
        return next((name for name, rule in found if rule is not silent), "(none)")

    def names(self, first: int, last: int) -> list[str]:
        """Return the names of the templates that begin in a stretch of the source."""
        found = takewhile(lambda name: name.start() < last, _TEMPLATE.finditer(self.source, first))
        return [name[1] for name in found]


def ours(page: Page) -> str:
    """Return the text that `ExtractPages` writes."""
    site = SiteInfo(page.language, f"{page.language}wiki", "first-letter", ())
    return "\n".join(extract(page.source, site).texts)


def with_mwparserfromhell(page: Page) -> str:
    return str(mwparserfromhell.parse(page.source).strip_code())


def count_page(page: Page, text: str, lost_by: Counter[str], foreign_by: Counter[str]) -> Counter[str]:
    """Count the words of a page, those lost and those foreign; by template and by word, too."""
    found, places = words_of(text), Places(page)
    counts = Counter({"pages": 1, "words": len(page.running), "written": len(found)})
    for start, end, lost in gaps(page.running, found):
        counts["lost"] += lost.total()
        lost_by[places.template(start, end)] += lost.total()
    foreign = [word for word in found if word not in page.shown]
    foreign_by.update(foreign)
    return counts + Counter({"foreign": len(foreign)})


def measure(pages: list[Page], extractor: Callable[[Page], str]) -> tuple[Record, list[Record]]:
    """Return the row of an extractor in one language, and rows of what it loses by template."""
    counts, lost_by, foreign_by = Counter[str](), Counter[str](), Counter[str]()
    for page in pages:
        counts.update(count_page(page, extractor(page), lost_by, foreign_by))
    row: Record = {name: counts[name] for name in ("pages", "words", "lost")}
    row |= {"lost %": divide(100 * counts["lost"], counts["words"]), "foreign": counts["foreign"]}
    row["foreign %"] = divide(100 * counts["foreign"], counts["written"])
    common = lost_by.most_common(TEMPLATES_SHOWN)
    rows: list[Record] = [{"what": "lost by template", "name": name, "words": count} for name, count in common]
    common = foreign_by.most_common(TEMPLATES_SHOWN)
    return row, rows + [{"what": "foreign word", "name": name, "words": count} for name, count in common]


def main() -> None:
    parser = Options("corpus.rendered", __doc__, "peers")
    place, told = DATA / "rendered" / "pairs.tar.xz", "folder with a folder a language, or a tar of it"
    parser.add_argument("--pages", type=absolute, default=place, help=told)
    options = parser.read()
    with tempfile.TemporaryDirectory() as scratch:
        if options.pages.is_file():
            with tarfile.open(options.pages) as archive:
                archive.extractall(scratch, filter="data")
            options.pages = Path(scratch)
        report_on(options)


def report_on(options: argparse.Namespace) -> None:
    """Measure all extractors on the pages of every language."""
    report = Report("Rendered pages", options, ("mwparserfromhell",), options.peers)
    extractors: dict[str, Callable[[Page], str]] = {"ours": ours, "mwparserfromhell": with_mwparserfromhell}
    if options.peers:
        words = [str(options.peers), "-c", _WIKIEXTRACTOR]
        peer = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def with_wikiextractor(page: Page) -> str:
            assert peer.stdin
            assert peer.stdout
            print(json.dumps(page.source), file=peer.stdin, flush=True)
            return str(json.loads(peer.stdout.readline()))

        extractors["wikiextractor"] = with_wikiextractor
    rows, details = list[Record](), list[Record]()
    for language in sorted(options.pages.iterdir()):
        pages = [read_page(source) for source in sorted(language.glob("*.wikitext"))]
        for name, extractor in extractors.items() if pages else ():
            progress(f"{language.name}, {name}")
            row, found = measure(pages, extractor)
            rows.append({"language": language.name, "extractor": name, **row})
            details += [{"language": language.name, **each} for each in found if name == "ours"]
    report.add("Words", rows)
    report.add("What ours loses and adds", details, "The largest of each kind.")
    report.finish()


if __name__ == "__main__":
    main()
