"""The marks that the cut looks for, and the stretches of a page that it replaces."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pipeline.mediawiki.tags import IMAGE_OPTIONS, KINDS

# Each alternative begins with a literal, so that the search looks for five characters and skips all others; that a
# table begins a line is looked at by code.
_TOKENS = r"""<!--
    |<(?P<slash>/?)(?P<tag>[A-Za-z][A-Za-z0-9]*)(?![\w-])(?P<attributes>
        [^<>{]*+(?>(?:(?:<!--(?>(?:[^<>-]|-(?!->))*)-->|\{\{[^{}]*+\}\}|\{)[^<>{]*+){0,200}))>
    |\{\{(?P<template>[^{}<]*)\}\}(?!\})
    |\{(?P<open>\{+) | \}(?P<shut>\}+)
    |\{(?P<table>\|) | \|(?P<table_end>\})(?!\}(?!\}))"""
_LINKS = r" | \[(?:https?:)?//(?:\[[0-9A-Fa-f:.]{2,64}\])?[^\[\]\n]*\] | \[(?P<link>\[) | \](?P<link_end>\])"
_OPTION = rf"\s*+(?:{'|'.join(IMAGE_OPTIONS)})?\s*"
IMAGE_OPTION = re.compile(_OPTION, re.IGNORECASE | re.DOTALL)
# What no reader sees of a file link that never ends: its name, and all between bars; its line if it has no name.
UNCLOSED_FILE = re.compile(
    r"\[\[[^\[\]|\n]{1,300}?\.[a-z]{3,4}(?![\w.])[ _]*"
    rf"(?>(?:\|[^|\[\]\n]*+(?=\|))*)(?:\|{_OPTION}\]?(?=\n|\Z)|\|)?|[^\n]*",
    re.IGNORECASE,
)
_HOLDS_LINKS = ("templates", "tables", "references", "galleries", "files", "hidden")
# The tokens of a wiki outside file links, and inside, where brackets of other links count, since they may nest.
Tokens = tuple[re.Pattern[str], re.Pattern[str]]
# The end tags of what has no wikitext in it, by name.
END_TAGS = {name: re.compile(rf"</{name}\s*>", re.IGNORECASE | re.ASCII) for name in (*KINDS, "nowiki")}


def tokens(file_prefixes: Iterable[str]) -> Tokens:
    """The tokens where links with these prefixes (in any case; none: no link) go with their captions."""
    names = "|".join(sorted(re.escape(name).replace(r"\ ", "[ _]") for name in file_prefixes))
    file = rf"\[(?P<file>\[)[ _]*(?i:{names})[ _]*:" if names else r"\[(?P<file>(?!))"
    outside = f"{_TOKENS} | {file}"
    return re.compile(outside, re.VERBOSE), re.compile(outside + _LINKS, re.VERBOSE)


class Region(NamedTuple):
    """A stretch of the source that is replaced; ``kind`` is "" where no text is lost."""

    start: int
    end: int
    replacement: str
    kind: str


def outermost(regions: list[Region]) -> list[Region]:
    """The regions in order, without those that lie inside another."""
    kept: list[Region] = []
    reached = 0
    for region in sorted(regions, key=lambda region: (region.start, -region.end)):
        if region.start >= reached:
            kept.append(region)
            reached = region.end
    return kept


def pieces(text: str, regions: list[Region], position: int, last: int) -> Iterator[str]:
    for start, end, replacement, _ in regions:
        yield text[position:start]
        yield replacement
        position = end
    yield text[position:last]


def count_drops(drops: Counter[str], text: str, region: Region) -> None:
    """Count what one region drops: itself, and the links inside."""
    kind = region.kind
    if ":" in kind:
        drops[kind] += 1
        return
    drops["links:file" if kind == "files" else f"{kind}:cut"] += 1
    if kind in _HOLDS_LINKS:
        links = text.count("[[", region.start, region.end) - (kind == "files")
        if links:
            drops[f"links:in_{kind}"] += links
