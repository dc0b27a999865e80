"""The agreement of the fast extraction with the oracle, difference by difference.

Agreement is intersection over union: of the multisets of (page, target, anchor), and of (page, paragraph text).
A difference belongs to the first cause whose change to the oracle's input (with all changes before it) makes it go
away, so that every class can be computed again. The verdict says who is wrong by MediaWiki's rules.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.dump.containers import plan_blocks
from pipeline.dump.pages import Page, read_pages, read_site_info
from pipeline.mediawiki.site import SiteInfo
from pipeline.wikitext.extract import extract
from tests.support import oracle

ORACLE, BOTH = "the oracle's fault", "both defensible"
KINDS = ("links", "paragraphs")

# What the causes change.
_WIKI_TABLE = re.compile(
    r"^[ \t:*#;]*\{\|(?:(?!^[ \t:*#;]*\{\||^[ \t]*\|\}).)*?^[ \t]*\|\}(?!\}(?!\}))", re.MULTILINE | re.DOTALL
)
_HTML_TABLE = re.compile(r"<table\b(?:(?!<table\b|</table).)*</table\s*>", re.DOTALL | re.IGNORECASE)
_ROW = re.compile(r"^[ \t]*\{?\|[^\n]*$", re.MULTILINE)
_NO_HEADING = re.compile(r"^=+(?=[^\n]*=+[^\S\n]*[^\s=<][^=\n]*$)", re.MULTILINE)
_EQUALS_LINE = re.compile(r"^={3,}[^\S\n]*$", re.MULTILINE)
_COMMENT_LINE = re.compile(r"^[ \t]*(?:<!--(?:(?!-->).)*-->[ \t]*)+\n", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--(?:(?!-->).)*(?:-->|\Z)", re.DOTALL)
_FILE_LINK = re.compile(r"\[\[\s*(?:file|image)\s*:(?:[^\[\]]|\[\[[^\[\]]*\]\]|\[[^\[\]]*\])*\]\]", re.IGNORECASE)
_REFERENCE = re.compile(r"<ref\b[^<>]*(?<!/)>(?:(?!</ref\s*>).)*</ref\s*>", re.DOTALL | re.IGNORECASE)
_ADDRESS = re.compile(r"(\[(?:https?:)?//[^\s\]]+)[ ]{2,}")
_HEADING_TAG = re.compile(r"</?h[1-6]\b[^<>]*>", re.IGNORECASE)


class Cause(NamedTuple):
    """A class of differences; ``change`` makes the oracle's input such that they go away."""

    name: str
    verdict: str
    change: Callable[[str], str]


def _tables(text: str) -> str:
    for pattern in (_WIKI_TABLE, _HTML_TABLE):
        count = 1
        while count:
            text, count = pattern.subn("\n", text)
    return text


def _comments(text: str) -> str:
    return _COMMENT.sub("", _COMMENT_LINE.sub("", text))


CAUSES = (
    Cause("apostrophes paired across other markup, or lost", ORACLE, str),
    Cause("table left as text", ORACLE, _tables),
    Cause("rows of a table that a template opens or closes", ORACLE, partial(_ROW.sub, "")),
    Cause("heading with text behind it", ORACLE, partial(_NO_HEADING.sub, r"<nowiki>\g<0></nowiki>")),
    Cause("heading of equals signs only", ORACLE, partial(_EQUALS_LINE.sub, "")),
    Cause("line mark behind a comment, or comment without end", ORACLE, _comments),
    Cause("file link in italics alone on its line", BOTH, partial(_FILE_LINK.sub, "")),
    Cause("reference left as text", ORACLE, partial(_REFERENCE.sub, "<ref/>")),
    Cause("blanks behind an address", ORACLE, partial(_ADDRESS.sub, r"\1 ")),
    Cause("heading tag without end", ORACLE, partial(_HEADING_TAG.sub, "<br>")),
)
UNEXPLAINED = Cause("single cases", BOTH, str)
FAULTS = [cause.name for cause in CAUSES if cause.verdict == ORACLE]


@dataclass
class Tally:
    """Agreement on one kind of unit (links or paragraphs) over a dump."""

    shared: int = 0
    by_cause: Counter[str] = field(default_factory=Counter)

    def agreement(self, without: Collection[str] = ()) -> float:
        left = self.shared + sum(count for name, count in self.by_cause.items() if name not in without)
        return self.shared / left if left else 1.0


class Difference(NamedTuple):
    """Count the links or paragraphs that only one side gives for a cause."""

    kind: str
    cause: Cause
    count: int


Unit = tuple[str, ...]
Units = Counter[Unit]


def units_of(paragraphs: Iterable[Any]) -> dict[str, Units]:
    """The links (target, anchor) and the paragraphs (text,) of a page."""
    links, texts = Units(), Units()
    for paragraph in paragraphs:
        texts[(paragraph.text,)] += 1
        for link in paragraph.links:
            start, end, target = link if isinstance(link, tuple) else (link.start, link.end, link.target)
            links[target, paragraph.text[start:end]] += 1
    return {"links": links, "paragraphs": texts}


def folded(units: Units) -> Units:
    """The units without apostrophes, which the oracle loses where they stand beside bold or italics."""
    counts: Units = Counter()
    for unit, count in units.items():
        counts[tuple(part.replace("'", "") for part in unit)] += count
    return counts


def split(units: Units, explained: Units) -> tuple[Units, Units]:
    """(those that ``explained`` covers, the rest)."""
    budget, solved = Counter(explained), Counter[Unit]()
    for unit in sorted(units):
        key = tuple(part.replace("'", "") for part in unit)
        solved[unit] = min(units[unit], budget[key])
        budget[key] -= solved[unit]
    return +solved, units - solved


def explain(page: Page, fast: dict[str, Units], slow: dict[str, Units], site: SiteInfo) -> Iterator[Difference]:
    """The differences between the units of a page, each with its cause."""
    left = {(kind, "fast"): fast[kind] - slow[kind] for kind in fast}
    left |= {(kind, "oracle"): slow[kind] - fast[kind] for kind in fast}

    def settle(kind: str, side: str, cause: Cause, explained: Units) -> Iterator[Difference]:
        solved, left[kind, side] = split(left[kind, side], explained)
        yield Difference(kind, cause, solved.total())

    text = page.text
    for cause in CAUSES:
        if not any(left.values()):
            return
        text = cause.change(text)
        changed = units_of(oracle.extract(text, site, styles=False))
        for kind in fast:
            if cause is CAUSES[0]:
                both = folded(left[kind, "fast"]) & folded(left[kind, "oracle"])
                yield from settle(kind, "fast", cause, both)
                yield from settle(kind, "oracle", cause, both)
            yield from settle(kind, "fast", cause, folded(changed[kind]) - folded(slow[kind]))
            yield from settle(kind, "oracle", cause, folded(slow[kind]) - folded(changed[kind]))
    for (kind, side), units in list(left.items()):
        yield from settle(kind, side, UNEXPLAINED, folded(units))


def site_of(path: str) -> SiteInfo:
    """The dump's site; an excerpt that names another wiki in its file's name than in its head is of the former."""
    site = read_site_info(path)
    named = re.match(r"([a-z]{2,3})wiki-", Path(path).name)
    return replace(site, language=named[1]) if named else site


def measure(path: str) -> dict[str, Tally]:
    """The agreement on one dump."""
    site = site_of(path)
    tallies = {kind: Tally() for kind in KINDS}
    blocks = plan_blocks([path], 16 << 20)
    pages = chain.from_iterable(read_pages(each, site, Counter(), allow_truncated=True) for each in blocks)
    for page in (each for each in pages if isinstance(each, Page) and not each.redirect):
        fast, slow = units_of(extract(page.text, site).paragraphs), units_of(oracle.extract(page.text, site))
        for kind in KINDS:
            tallies[kind].shared += (fast[kind] & slow[kind]).total()
        for found in explain(page, fast, slow, site):
            tallies[found.kind].by_cause[found.cause.name] += found.count
    return tallies
