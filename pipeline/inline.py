"""From marked text to the reader's text: what is left of the markup inside lines goes."""

import re
from collections import Counter

from pipeline.markup import CLOSE, OPEN, reveal
from pipeline.titles import ENTITY, entity_character

_MAGIC_WORD = re.compile(r"__[^\W\da-z_]{2,30}(?:_[^\W\da-z_]{1,30}){0,6}__")
_STRAY_BRACKETS = re.compile(r"\[\[+|\]\]+|\{\{+|\}\}+")
_BLANKS_IN_LINK = re.compile(rf"{OPEN}\s+|\s+{CLOSE}")


def clean(text: str, targets: list[str], drops: Counter[str]) -> tuple[str, list[str]]:
    """Marked lines as the reader's text, still with the marks of links and breaks; lines stay lines.

    Brackets that belong to nothing and magic words go, character references are decoded, blanks at the edges of links
    move outside. A link whose text is blank goes, with its title.
    """
    text, stray = _STRAY_BRACKETS.subn(" ", text)
    if stray:
        drops["markup:stray_brackets"] += stray
    if "__" in text:
        text = _MAGIC_WORD.sub("", text)
    if "&" in text:
        text = ENTITY.sub(_character, text)
    if targets:
        text, targets = _tighten_links(text, targets, drops)
    return reveal(text), targets


def _character(reference: re.Match[str]) -> str:
    character = entity_character(reference.group())
    return " " if character.isspace() else character


def _tighten_links(text: str, targets: list[str], drops: Counter[str]) -> tuple[str, list[str]]:
    text = _BLANKS_IN_LINK.sub(lambda match: match.group()[::-1], text)
    if f"{OPEN}{CLOSE}" in text:
        full = [not piece.startswith(CLOSE) for piece in text.split(OPEN)[1:]]
        drops["links:empty"] += len(full) - sum(full)
        targets = [target for target, kept in zip(targets, full, strict=True) if kept]
        text = text.replace(f"{OPEN}{CLOSE}", "")
    return text, targets
