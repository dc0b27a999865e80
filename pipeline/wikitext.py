"""Wikitext to paragraphs: running text with the spans and targets of its links, in bounded time.

A page goes through passes over its whole text: ``markup`` cuts what is no running text, ``links`` marks the links,
``split_lines`` joins and sorts the lines, ``inline`` leaves the reader's text.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import accumulate
from typing import NamedTuple

from pipeline.inline import clean
from pipeline.links import mark_links
from pipeline.marks import BREAK, CLOSE, CUT, GONE, OPEN
from pipeline.markup import cut
from pipeline.quotes import without_quotes
from pipeline.targets import LinkRules, link_rules
from pipeline.titles import SiteInfo

PROFILES = ("fixed", "paper")

_HEADING = re.compile(rf"(={{1,6}})(.+?)\1[\s{CUT}{GONE}]*")
_RULER = re.compile(r"-{4,}")
_LIST_MARKS = re.compile(r"[*#:;]+")
_LINE_STARTS = frozenset("=|!*#:;-") | {chr(code) for code in range(0x10000) if chr(code).isspace()}
_NOTHING_BEFORE_TEXT = re.compile(rf"\n{GONE}[{GONE} \t]*")
_BLANK_IN_LINK = re.compile(f"{OPEN} | {CLOSE}")
_LOOSE = (f"{OPEN} ", f" {CLOSE}", f"{OPEN}{CLOSE}")


class Link(NamedTuple):
    """A link to an article: half-open code points in the paragraph's text, and the normalised title."""

    start: int
    end: int
    target: str


class Paragraph(NamedTuple):
    """A stretch of running text; ``section`` is its heading, "" before the first."""

    section: str
    text: str
    links: tuple[Link, ...]


# Of a tuple of their fields: there are many, so they are made without a function of Python.
_link, _paragraph = partial(tuple.__new__, Link), partial(tuple.__new__, Paragraph)


class Extraction(NamedTuple):
    """A page's paragraphs, and what was dropped: "<what>:<reason>" -> count."""

    paragraphs: tuple[Paragraph, ...]
    drops: Mapping[str, int]


def extract(text: str, site: SiteInfo, *, profile: str = "fixed") -> Extraction:
    """The paragraphs of a page's wikitext.

    Profile "fixed" drops image captions, joins hard-wrapped lines, takes link trails into the mention and
    cuts fragments off targets; "paper" does the opposite of each, as the paper's code does. ValueError for
    an unknown profile; no text raises anything.
    """
    if profile not in PROFILES:
        raise ValueError(f"profile: unknown value {profile!r}; use one of {', '.join(PROFILES)}")
    rules = link_rules(site, profile)
    plain, drops = cut(text, rules.tokens)
    marked, targets = mark_links("\n" + plain, rules, drops)
    marked = _NOTHING_BEFORE_TEXT.sub("\n", marked)
    sources, kinds = split_lines(marked, rules)
    cleaned = clean("\n".join(sources), drops).split("\n")
    paragraphs = tuple(_paragraphs(cleaned, kinds, iter(targets), drops))
    return Extraction(paragraphs, dict(sorted((+drops).items())))


def split_lines(text: str, rules: LinkRules) -> tuple[list[str], dict[int, str]]:
    """(the lines of the page that are not empty, "heading" or "table_row" by the number of such a line).

    Hard-wrapped lines of running text are joined (not in profile "paper"); list marks and quotes vanish.
    """
    kept: list[str] = []
    kinds: dict[int, str] = {}
    running: list[str] = []
    for line in text.split("\n"):
        if not line:
            read: tuple[str, str] | None = "", ""
        else:
            read = _read_start(line) if line[0] in _LINE_STARTS else None
        kind, content = read or ("", line)
        if "''" in content:
            content = without_quotes(content)
        if read is None and not rules.paper:
            running.append(content)
            continue
        if running:
            kept.append(rules.line_joint.join(running))
            running = []
        if kind:
            kinds[len(kept)] = kind
        if content:
            kept.append(content)
    if running:
        kept.append(rules.line_joint.join(running))
    return kept, kinds


def _read_start(line: str) -> tuple[str, str] | None:
    """(kind, text) of a line that stands alone, without its marks; None where the line is running text."""
    first = line[:1]
    if first == "=":
        heading = _HEADING.fullmatch(line)
        return ("heading", heading[2]) if heading else None
    if first == "|" or (first == "!" and ("|" in line or "!!" in line)):
        return "table_row", line  # of a table that has lost its beginning or end
    if marks := _LIST_MARKS.match(line) or _RULER.match(line):
        text = line[marks.end() :]
        return "", _split_term(text) if ";" in marks.group() else text
    if line.isspace():
        return "", ""
    return ("", line) if first == " " else None


def _split_term(text: str) -> str:
    """``term : definition`` with a break for the first colon that is in no link and no address."""
    colon = text.find(":")
    while colon >= 0:
        linked = text.rfind(OPEN, 0, colon) > text.rfind(CLOSE, 0, colon)
        if not linked and not text.startswith("//", colon + 1):
            return text[:colon] + BREAK + text[colon + 1 :]
        colon = text.find(":", text.find(CLOSE, colon) if linked else colon + 1)
    return text


def _paragraphs(
    lines: list[str], kinds: dict[int, str], targets: Iterator[str], drops: Counter[str]
) -> Iterator[Paragraph]:
    section = ""
    for number, line in enumerate(lines):
        if number in kinds:
            text, links = _measure(_single_blanks(line.replace(BREAK, " ")), targets, drops)
            if kinds[number] == "heading":
                section = text
                drops["links:in_heading"] += len(links)
            else:
                drops["lines:table_row"] += 1
                drops["links:in_tables"] += len(links)
            continue
        for part in line.split(BREAK) if BREAK in line else (line,):
            text, links = _single_blanks(part), ()
            if OPEN in text:
                text, links = _measure(text, targets, drops)
            if text:
                yield _paragraph((section, text, links))


def _single_blanks(line: str) -> str:
    """The line with one blank where there are several, and none at its ends."""
    # Faster, and right for most: of ASCII's other blanks `cut` has left none.
    if line.isascii() and "  " not in line and "\t" not in line:
        return line.strip(" ")
    return " ".join(line.split())


def _measure(line: str, targets: Iterator[str], drops: Counter[str]) -> tuple[str, tuple[Link, ...]]:
    """The text of a line with single blanks, and its links."""
    if _LOOSE[0] in line or _LOOSE[1] in line or _LOOSE[2] in line:
        line, targets = _tighten(line, targets, drops)
    pieces = line.replace(CLOSE, OPEN).split(OPEN)
    edges = list(accumulate(map(len, pieces)))
    # The titles go last: of an iterator, zip would take one too many.
    return "".join(pieces), tuple(map(_link, zip(edges[0:-1:2], edges[1::2], targets, strict=False)))


def _tighten(line: str, targets: Iterator[str], drops: Counter[str]) -> tuple[str, Iterator[str]]:
    """Blanks at the edges of links move outside; a link without text goes, with its title."""
    line = _BLANK_IN_LINK.sub(lambda match: match.group()[::-1], line)
    kept = []
    for piece in line.split(OPEN)[1:]:
        target = next(targets)
        if piece.startswith(CLOSE):
            drops["links:empty"] += 1
        else:
            kept.append(target)
    return " ".join(line.replace(f"{OPEN}{CLOSE}", "").split()), iter(kept)
