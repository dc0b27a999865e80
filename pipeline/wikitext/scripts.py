"""Wikis in several scripts: of ``-{zh-hans:...; zh-hant:...}-``, what a reader sees who has chosen none of them.

The rules are those of MediaWiki's ConverterRule; a link's own bar is told from that behind flags, since there links
are read before.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from pipeline.mediawiki.languages import VARIANT_NAMES
from pipeline.wikitext.placeholders import CUT

_EDGE = re.compile(r"-\{|\}-")
_REFERENCE = re.compile(r"(&#?\w{1,31});")
_SHIELD = "\x1a"  # for the semicolon of a character reference
_FLAGS = frozenset("ADHNRT-")
_MAX_DEPTH = 10


def choose_variants(text: str, variants: Sequence[str], drops: Counter[str]) -> str:
    """The text with one form of whatever has several; ``variants`` are a wiki's codes, the first of them preferred.

    Time is linear in the text: what is nested deeper than ten times, as in MediaWiki, stays as it is.
    """
    opened: list[list[str]] = [[]]  # the pieces of the text, and of each open conversion
    position = too_deep = 0
    for edge in _EDGE.finditer(text):
        opened[-1].append(text[position : edge.start()])
        position = edge.end()
        begins = edge.group() == "-{"
        if begins and len(opened) <= _MAX_DEPTH:
            opened.append([])
        elif begins or too_deep or len(opened) == 1:
            too_deep = max(0, too_deep + (1 if begins else -1))
            opened[-1].append(edge.group())
        else:
            content = "".join(opened.pop())
            opened[-1].append(shown := _shown(content, variants))
            drops["markup:variants"] += shown != content
            drops["links:in_variants"] += content.count("[[") - shown.count("[[")
    opened[-1].append(text[position:])
    return "-{".join("".join(pieces) for pieces in opened)


def _shown(content: str, variants: Sequence[str]) -> str:
    """Return the text of a conversion; a rule for elsewhere, a description or a name is no text, nor an empty line."""
    before, bar, rules = content.partition("|")
    if not bar or "[[" in before:
        before, rules = "", content
    flags = {flag.strip() for flag in before.split(";")} & {*_FLAGS, *variants}
    if "R" in flags:
        return rules
    if flags == {"T"} or not flags.isdisjoint("N-"):
        return CUT
    if "H" not in flags and not flags.isdisjoint(variants):
        return rules
    two_way, one_way = _read_rules(rules, variants)
    if not two_way and not one_way:
        return rules
    if not flags.isdisjoint("HD"):
        return CUT
    if two_way:
        return two_way[min(two_way, key=variants.index)]
    return one_way.get(variants[0], next(iter(one_way.values())))


def _read_rules(text: str, variants: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """(forms by variant, forms by variant that replace another word); none where a rule is for no variant."""
    two_way: dict[str, str] = {}
    one_way: dict[str, str] = {}
    for rule in _split_rules(text, variants):
        left, colon, form = rule.partition(":")
        word, arrow, name = left.rpartition("=>")
        code, form = _code(name), form.strip().replace(_SHIELD, ";")
        if colon and code not in variants:
            return {}, {}
        if arrow and word.strip():
            one_way.setdefault(code, form)
        elif colon and form and not arrow:
            two_way[code] = form
    return two_way, one_way


def _split_rules(text: str, variants: Sequence[str]) -> Iterator[str]:
    """The rules between semicolons; a semicolon that no rule follows is part of a form."""
    pieces: list[str] = []
    for piece in _REFERENCE.sub(rf"\1{_SHIELD}", text).split(";"):
        left, colon, _ = piece.partition(":")
        if pieces and colon and _code(left.rpartition("=>")[2]) in variants:
            yield ";".join(pieces)
            pieces = []
        pieces.append(piece)
    yield ";".join(pieces).rstrip("; ")


def _code(name: str) -> str:
    code = name.strip().lower()
    return VARIANT_NAMES.get(code, code)
