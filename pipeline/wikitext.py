"""Wikitext to paragraphs: running text with the spans and targets of its links, in bounded time."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import starmap

from pipeline.inline import PageContext, Writer, finish, parse, scan
from pipeline.languages import CANONICAL_NAMESPACES, FILE, NAMESPACE_ALIASES, base_language
from pipeline.markup import CUT, cut
from pipeline.titles import SiteInfo

PROFILES = ("fixed", "paper")
# mwparserfromhell's time grows with the square of a paragraph's open brackets, so both are bounded.
PARSER_LIMIT = 4_000
PARSER_BUDGET = 2_000_000

_HEADING = re.compile(rf"(={{1,6}})(.+?)\1[\s{CUT}]*")
_MARKS = re.compile(r"\A(?:[*#:;][*#:;\s]*|-{4,}\s*)")
_LINE_STARTS = ("", "*", "#", ":", ";", "-", "|")
_PREFIX_LINK_LINE = re.compile(r"\[\[[^\[\]|:]+:[^\[\]]*\]\]")


@dataclass(frozen=True)
class Link:
    """A link to an article: half-open code points in the paragraph's text, and the normalised title."""

    start: int
    end: int
    target: str


@dataclass(frozen=True)
class Paragraph:
    """A stretch of running text; ``section`` is its heading, "" before the first."""

    section: str
    text: str
    links: tuple[Link, ...]


@dataclass(frozen=True)
class Extraction:
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
    plain, drops = cut(text, file_prefixes(site) if profile == "fixed" else frozenset())
    paragraphs: list[Paragraph] = []
    page = PageContext(site, profile, drops)
    section, budget = "", PARSER_BUDGET
    for is_heading, source in blocks(plain, drops, join_lines=profile == "fixed"):
        writer = Writer(page)
        budget -= write_source(writer, source, budget)
        finished = [(line, spans) for line, spans in finish(writer) if line]
        if is_heading:
            section = " ".join(line for line, _ in finished)
            drops["links:in_heading"] += sum(len(spans) for _, spans in finished)
        else:
            paragraphs += [Paragraph(section, line, tuple(starmap(Link, spans))) for line, spans in finished]
    return Extraction(tuple(paragraphs), dict(sorted((+drops).items())))


def file_prefixes(site: SiteInfo) -> frozenset[str]:
    """The lower-cased prefixes of the File namespace: local, older and canonical names."""
    aliases = {**CANONICAL_NAMESPACES, **NAMESPACE_ALIASES.get(base_language(site.language), {})}
    names = {name for name, key in aliases.items() if key == FILE}
    return frozenset(names | {(site.namespace_name(FILE) or "file").lower()})


def write_source(writer: Writer, source: str, budget: int) -> int:
    """Write a paragraph's text and links; what of the page's parser budget it took.

    A paragraph beyond the parser's limit or the budget is scanned linearly, and counted.
    """
    unclosed = abs(source.count("[") - source.count("]"))
    cost = len(source) * (1 + unclosed) if "[" in source else 0
    if cost and len(source) > PARSER_LIMIT:
        writer.drops["parser:paragraph_too_long"] += 1
    elif cost > budget:
        writer.drops["parser:page_over_budget"] += 1
    else:
        writer.write_all(parse(source))
        return cost
    writer.write_all(scan(source))
    return 0


def blocks(text: str, drops: Counter[str], *, join_lines: bool) -> Iterator[tuple[bool, str]]:
    """(is heading, source) of each heading and paragraph; list marks are stripped, table rows dropped."""
    waiting: list[str] = []
    for line in text.split("\n"):
        heading = _HEADING.fullmatch(line)
        content = line.strip()
        first = content.lstrip(CUT)[:1]
        alone = not join_lines or heading or line[:1] == " " or first in _LINE_STARTS
        if waiting and (alone or _PREFIX_LINK_LINE.fullmatch(content)):
            yield False, "\n".join(waiting)
            waiting = []
        if heading:
            yield True, heading.group(2)
        elif first == "|":
            drops["lines:table_row"] += 1
            drops["links:in_tables"] += content.count("[[")
        elif first:
            content = _MARKS.sub("", content)
            if alone:
                yield False, content
            else:
                waiting.append(content)
    if waiting:
        yield False, "\n".join(waiting)
