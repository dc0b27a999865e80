"""From marked text to the reader's text: what is left of the markup inside lines goes."""

import re
from collections import Counter

from pipeline.languages import MAGIC_WORDS
from pipeline.marks import CUT, GONE, holds, reveal
from pipeline.titles import ENTITY, entity_character

_MAGIC_WORD = re.compile(r"__(?=[^\W_])\w{1,40}?__")
_STRAY_BRACKETS = re.compile(r"\[\[+|\]\]+|\{\{+|\}\}+")
_TWO_BRACKETS = ("[[", "]]", "{{", "}}")
# The switches of MediaWiki that work in small letters, too.
_ANY_CASE = {
    *("__notoc__", "__forcetoc__", "__toc__", "__noeditsection__", "__nogallery__"),
    *("__notitleconvert__", "__notc__", "__nocontentconvert__", "__nocc__"),
}


def clean(text: str, drops: Counter[str]) -> str:
    """Marked lines as the reader's text, still with the marks of links and breaks; lines stay lines.

    Brackets that belong to nothing and magic words go, character references are decoded.
    """
    text = text.replace(CUT, "").replace(GONE, "")
    if holds(text, _TWO_BRACKETS):
        text, stray = _STRAY_BRACKETS.subn(" ", text)
        drops["markup:stray_brackets"] += stray
    if "__" in text:
        text = _MAGIC_WORD.sub(_switch, text)
    if "&" in text:
        text = ENTITY.sub(_character, text)
    return reveal(text)


def _switch(word: re.Match[str]) -> str:
    """A behaviour switch gives no text; other words between underscores do, and most switches want capitals."""
    folded = word.group().lower()
    wanted = folded in MAGIC_WORDS and (word.group() != folded or not folded.isascii() or folded in _ANY_CASE)
    return "" if wanted else word.group()


def _character(reference: re.Match[str]) -> str:
    character = entity_character(reference.group())
    return " " if character.isspace() else character
