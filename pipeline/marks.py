"""Unicode noncharacters that stand in a page's text for what must not be read as markup.

No text may contain them, so they are free: for characters from ``<nowiki>``, for every ``<`` left over, and for the
marks that one pass over a page leaves for the next.
"""

import re

_PROTECTED = "[]{}|'<>=*:_-!~"  # not those of character references
PROTECT = {ord(char): 0xFDD0 + index for index, char in enumerate(_PROTECTED)}
_REVEAL = {chr(hidden): chr(char) for char, hidden in PROTECT.items()}
OPEN, CLOSE = "\ufdec", "\ufded"  # stand around the text of a link that is an annotation
GONE = "\ufdeb"  # stands for what leaves nothing, such as a template; link trails do not reach across
CUT = "\ufdee"  # stands for what leaves something that is no text, such as a reference: the line is not empty
BREAK = "\ufdef"  # stands for <br> and the edges of block elements
NONCHARACTERS = re.compile("[\ufdd0-\ufdef]")
ANGLE = chr(PROTECT[ord("<")])


def reveal(text: str) -> str:
    """The text with protected characters turned back; the length stays."""
    if not text.isascii() and NONCHARACTERS.search(text):
        for hidden, char in _REVEAL.items():
            text = text.replace(hidden, char)
    return text


def protect(text: str) -> str:
    """The text with every character that could be read as markup hidden; the length stays."""
    return text.translate(PROTECT)
