"""The marks that the cut looks for."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from pipeline.mediawiki.tags import KINDS

# Each alternative begins with a literal, so that the search looks for five characters and skips all others; that a
# table begins a line is looked at by code.
_TOKENS = r"""<!--
    |<(?P<slash>/?)(?P<tag>[A-Za-z][A-Za-z0-9]*)(?![\w-])(?P<attributes>
        [^<>{]*+(?:(?:<!--(?:[^<>-]|-(?!->))*+-->|\{\{[^{}]*+\}\}|\{)[^<>{]*+)*+)>
    |\{\{(?P<template>[^{}<]*)\}\}(?!\})
    |\{(?P<open>\{+) | \}(?P<shut>\}+)
    |\{(?P<table>\|) | \|(?P<table_end>\})(?!\}(?!\}))"""
_LINKS = r" | \[(?:https?:)?//(?:\[[0-9A-Fa-f:.]{2,64}\])?[^\[\]\n]*\] | \[(?P<link>\[) | \](?P<link_end>\])"
_OPTION = (
    r"\s*+(?:thumb|thumbnail|frame|framed|frameless|border|left|right|center|centre|none|upright.*|baseline|sub|super|top"
    r"|text-top|middle|bottom|text-bottom|\d*(?:x\d+)?\s*px|(?:alt|link|page|class|lang|thumb|thumbtime)\s*=.*"
    r"|mini|miniatur|gerahmt|rahmenlos|hochkant.*|links|rechts|zentriert|vignette|gauche|droite|centré|cadre)?\s*"
)
IMAGE_OPTION = re.compile(_OPTION, re.IGNORECASE | re.DOTALL)
# What no reader sees of a file link that never ends: its name, and all between bars; its line if it has no name.
UNCLOSED_FILE = re.compile(
    r"\[\[[^\[\]|\n]{1,300}?\.[a-z]{3,4}(?![\w.])[ _]*"
    rf"(?:\|[^|\[\]\n]*+(?=\|))*+(?:\|{_OPTION}(?=\n|\Z)|\|)?|[^\n]*",
    re.IGNORECASE,
)
# The end tags of what has no wikitext in it, by name.
END_TAGS = {name: re.compile(rf"</{name}\s*>", re.IGNORECASE | re.ASCII) for name in (*KINDS, "nowiki")}


class Tokens(NamedTuple):
    """The tokens of a wiki; brackets of other links count inside file links alone, where they may nest."""

    outside: re.Pattern[str]
    in_file: re.Pattern[str]


def tokens(file_prefixes: Iterable[str]) -> Tokens:
    """The tokens where links with these prefixes (in any case; none: no link) go with their captions."""
    names = "|".join(sorted(re.escape(name).replace(r"\ ", "[ _]") for name in file_prefixes))
    file = rf"\[(?P<file>\[)[ _]*(?i:{names})[ _]*:" if names else r"\[(?P<file>(?!))"
    outside = f"{_TOKENS} | {file}"
    return Tokens(re.compile(outside, re.VERBOSE), re.compile(outside + _LINKS, re.VERBOSE))
