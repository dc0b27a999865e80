"""Marked lines to paragraphs: texts, and where in them the links are.

A page's lines are measured together and held column by column, as the tables want them: a Wikipedia has so many
links that an object for each would take longer than to find them.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, islice, repeat
from operator import sub
from types import MappingProxyType
from typing import NamedTuple

from pipeline.wikitext.placeholders import BREAK, CLOSE, OPEN, holds
from pipeline.wikitext.templates.losses import Loss

_OTHER_BLANKS = [*map(chr, (0x09, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000))]
# Each begins with a character that is looked for fast.
_LOOSE = re.compile(f"{OPEN}[ {CLOSE}]"), re.compile(f"{CLOSE}(?<= {CLOSE})")


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


class Extraction(NamedTuple):
    """A page's paragraphs column by column, and what was dropped."""

    sections: list[str]
    texts: list[str]
    link_counts: list[int]  # of each paragraph; the links follow one another through the page
    starts: list[int]
    ends: list[int]
    targets: list[str]
    drops: Mapping[str, int]  # "<what>:<reason>" -> count
    losses: Mapping[str, Loss] = MappingProxyType({})  # what templates without a rule cost, by their names

    @property
    def paragraphs(self) -> tuple[Paragraph, ...]:
        """The same as objects."""
        links = map(Link, self.starts, self.ends, self.targets)
        return tuple(
            Paragraph(section, text, tuple(islice(links, count)))
            for section, text, count in zip(self.sections, self.texts, self.link_counts, strict=True)
        )


def read_lines(text: str, kinds: Mapping[int, str], targets: Sequence[str], drops: Counter[str]) -> Extraction:
    """The paragraphs of cleaned lines; ``kinds`` says which are headings or rows of tables, in their order."""
    has_breaks, has_other_blanks = BREAK in text, holds(text, _OTHER_BLANKS)
    if has_other_blanks or any(edge.search(text) for edge in _LOOSE):
        text, targets = _tighten(text, targets, drops)
    lines = text.split("\n")
    waiting, section, first = iter(targets), "", 0
    sections: list[str] = []
    marked: list[str] = []
    counts: list[int] = []
    kept_targets: list[str] = []
    for number, kind in chain(kinds.items(), [(len(lines), "")]):
        block = lines[first:number]
        first = number + 1
        if has_breaks:
            block = "\n".join(block).replace(BREAK, "\n").split("\n")
        # With one blank where there are several, and none at the ends.
        block = [" ".join(line.split()) if has_other_blanks or "  " in line else line.strip(" ") for line in block]
        block = [line for line in block if line]
        links = [line.count(OPEN) for line in block]
        marked += block
        counts += links
        sections += repeat(section, len(block))
        kept_targets += islice(waiting, sum(links))
        if kind:
            dropped = len(list(islice(waiting, lines[number].count(OPEN))))
            if kind == "heading":
                heading = lines[number].replace(BREAK, " ").replace(OPEN, "").replace(CLOSE, "")
                section = " ".join(heading.split())
                drops["links:in_heading"] += dropped
            else:
                drops["lines:table_row"] += 1
                drops["links:in_tables"] += dropped
    texts, starts, ends = _measure(marked, counts)
    return Extraction(sections, texts, counts, starts, ends, kept_targets, dict(sorted((+drops).items())))


def _tighten(text: str, targets: Sequence[str], drops: Counter[str]) -> tuple[str, list[str]]:
    """Blanks at the edges of links move outside; a link without text goes, with its title."""
    pieces = text.replace(CLOSE, OPEN).split(OPEN)
    kept = []
    for index, target in zip(range(1, len(pieces), 2), targets, strict=True):
        bare = pieces[index].strip()
        if bare:
            before, _, behind = pieces[index].partition(bare)
            pieces[index] = f"{before}{OPEN}{bare}{CLOSE}{behind}"
            kept.append(target)
        else:
            drops["links:empty"] += 1
    return "".join(pieces), kept


def _measure(marked: list[str], counts: list[int]) -> tuple[list[str], list[int], list[int]]:
    """(texts without marks, starts of all links, their ends); ``counts`` says how many links each text has."""
    pieces = "\n".join(marked).replace(CLOSE, OPEN).split(OPEN)
    texts = "".join(pieces).split("\n") if marked else []
    edges = list(accumulate(map(len, pieces)))  # counted through the page: each text's own beginning goes off
    beginnings = accumulate([len(text) + 1 for text in texts], initial=0)
    of_links = list(chain.from_iterable(map(repeat, beginnings, counts)))
    return texts, list(map(sub, edges[0:-1:2], of_links)), list(map(sub, edges[1::2], of_links))
