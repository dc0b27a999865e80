"""From marked text to the reader's text: what is left of the markup inside lines goes."""

import re
from collections import Counter

from pipeline.marks import CUT, GONE, reveal
from pipeline.titles import ENTITY, entity_character

_MAGIC_WORD = re.compile(r"__[^\W\da-z_]{2,30}(?:_[^\W\da-z_]{1,30}){0,6}__")
_STRAY_BRACKETS = re.compile(r"\[\[+|\]\]+|\{\{+|\}\}+")


def clean(text: str, drops: Counter[str]) -> str:
    """Marked lines as the reader's text, still with the marks of links and breaks; lines stay lines.

    Brackets that belong to nothing and magic words go, character references are decoded.
    """
    text, stray = _STRAY_BRACKETS.subn(" ", text.replace(CUT, "").replace(GONE, ""))
    if stray:
        drops["markup:stray_brackets"] += stray
    if "__" in text:
        text = _MAGIC_WORD.sub("", text)
    if "&" in text:
        text = ENTITY.sub(_character, text)
    return reveal(text)


def _character(reference: re.Match[str]) -> str:
    character = entity_character(reference.group())
    return " " if character.isspace() else character
