r"""Control characters in a page's text that mean what must not be read as markup.

XML forbids them, so no dump holds any, and a text of plain letters stays one byte a letter. They replace characters
from ``<nowiki>``, every ``<`` left over, and what one pass over a page leaves for the next. For example:

    >>> from pipeline.wikitext.cut import cut
    >>> from pipeline.wikitext.cut.tokens import tokens
    >>> cut("A <nowiki>[[b]]</nowiki> is a{{x}} [[C|d]].<ref>e</ref>", tokens([]))[0]
    'A \x04\x06\x06b\x07\x07\x04 is a\x03 [[C|d]].\x04\x03'

The brackets from ``<nowiki>`` are hidden (\x06, \x07), the template is GONE (\x03), the reference is CUT and GONE.
So the next pass reads one link, ``[[C|d]]``, and ``reveal`` gives at the end: "A [[b]] is a d."
"""

from collections.abc import Iterable

OPEN, CLOSE = "\x01", "\x02"  # around the text of a link that is an annotation
GONE = "\x03"  # a hole: a template or a reference that leaves no text; link trails do not reach across
CUT = "\x04"  # what is no text, such as a tag; the line is not empty
KIND = "\x1b"  # behind a hole in running text, once or twice: what was there
SPOKEN, FORMULA = GONE + KIND, GONE + KIND + KIND
BREAK = "\x05"  # <br> and the edges of block elements
_PROTECTED = "[]{}|'<>=*:_-!~"  # not those of character references
_HIDDEN = "\x06\x07\x08\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19"  # none of them is a blank
_PROTECT = str.maketrans(_PROTECTED, _HIDDEN)
ANGLE = "<".translate(_PROTECT)
_CONTROLS = "".join(map(chr, {*range(0x20)} - {*b"\t\n\r"}))
_WITHOUT_CONTROLS = dict.fromkeys(map(ord, _CONTROLS))


def holds(text: str, marks: Iterable[str]) -> bool:
    """Return whether any of a few marks is in the text: a search for each is many times as fast as a pattern of all."""
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
