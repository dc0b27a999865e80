"""Characters in titles and texts: what counts as a blank, and what character references stand for."""

import re
from html.entities import html5

# What MediaWiki reads as one blank in a title.
BLANKS = re.compile("[ _\t\n\r\u00a0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
# Marks of direction, which no title has; and what else no reader sees. U+200C and U+200D change how letters join.
DIRECTION_MARKS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_UNSEEN = re.compile(f"[{DIRECTION_MARKS}\u00ad\u061c\u200b\u2060\ufeff]+")
# Looked for one by one, since that is fast; U+202C and U+2069 end what the marks around them begin.
_SIGNS_OF_UNSEEN = "\u00ad\u061c\u200b\u200e\u200f\u202c\u2060\u2069\ufeff"
# A character reference such as ``&amp;`` or ``&#x3b1;``.
REFERENCE = re.compile(r"&(?:#(?:[xX]0*+[0-9a-fA-F]{1,6}|0*+[0-9]{1,7})|[A-Za-z][A-Za-z0-9]{1,31});")
# Half-open ranges of the code points that a reference may name: no controls, surrogates, noncharacters.
_HIGH = ((0xFDF0, 0xFFFE), (0x10000, 0x110000))
_CHARACTERS = ((0x9, 0xB), (0xD, 0xE), (0x20, 0x7F), (0xA0, 0xD800), (0xE000, 0xFDD0), *_HIGH)


def fold_name(name: str) -> str:
    """The name of a namespace or template in lower case, with one blank where it has several."""
    return BLANKS.sub(" ", name).strip().lower()


def decode_references(text: str) -> str:
    """Character references replaced by their characters; what is no valid reference stays as it is."""
    return REFERENCE.sub(lambda match: referenced_character(match.group()), text) if "&" in text else text


def referenced_character(reference: str) -> str:
    """The character that a reference names; the reference itself where it names none."""
    if reference[1] != "#":
        return html5.get(reference[1:], reference)
    digits = reference[2:-1].lstrip("0")
    code = int(digits[1:], 16) if digits[0] in "xX" else int(digits)
    return chr(code) if any(first <= code < end for first, end in _CHARACTERS) else reference


def without_unseen(text: str) -> str:
    """The text without characters that no reader sees."""
    return _UNSEEN.sub("", text) if any(map(text.__contains__, _SIGNS_OF_UNSEEN)) else text
