"""Control characters that stand in a page's text for what must not be read as markup.

XML forbids them, so no dump holds any, and a text of plain letters stays one byte a letter. They stand for characters
from ``<nowiki>``, for every ``<`` left over, and for what one pass over a page leaves for the next.
"""

from collections.abc import Iterable

OPEN, CLOSE = "\x01", "\x02"  # stand around the text of a link that is an annotation
GONE = "\x03"  # stands for what leaves nothing, such as a template; link trails do not reach across
CUT = "\x04"  # stands for what leaves something that is no text, such as a reference: the line is not empty
BREAK = "\x05"  # stands for <br> and the edges of block elements
_PROTECTED = "[]{}|'<>=*:_-!~"  # not those of character references
_HIDDEN = "\x06\x07\x08\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19"  # none of them is a blank
_PROTECT = str.maketrans(_PROTECTED, _HIDDEN)
ANGLE = "<".translate(_PROTECT)
_CONTROLS = "".join(map(chr, {*range(0x20)} - {*b"\t\n\r"}))
_WITHOUT_CONTROLS = dict.fromkeys(map(ord, _CONTROLS))


def holds(text: str, marks: Iterable[str]) -> bool:
    """Whether any of a few marks is in the text: a search for each is many times as fast as a pattern of all."""
    return any(map(text.__contains__, marks))


def without_controls(text: str) -> str:
    """A page's text without the characters that XML forbids."""
    return text.translate(_WITHOUT_CONTROLS) if holds(text, _CONTROLS) else text


def reveal(text: str) -> str:
    """The text with protected characters turned back; the length stays."""
    if holds(text, _HIDDEN):
        for hidden, char in zip(_HIDDEN, _PROTECTED, strict=True):
            text = text.replace(hidden, char)
    return text


def protect(text: str) -> str:
    """The text with every character that could be read as markup hidden; the length stays."""
    return text.translate(_PROTECT)
