"""Characters in titles and texts: what counts as a blank, and what character references stand for."""

import re
from html.entities import html5

# What MediaWiki reads as one blank in a title.
BLANKS = re.compile("[ _\t\n\r\u00a0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
# A character reference such as ``&amp;`` or ``&#x3b1;``.
REFERENCE = re.compile(r"&(?:#(?:[xX][0-9a-fA-F]{1,6}|[0-9]{1,7})|[A-Za-z][A-Za-z0-9]{1,31});")
# Half-open ranges of the code points that a reference may name: no controls, surrogates, noncharacters.
_CHARACTERS = (
    (0x9, 0xB),
    (0xD, 0xE),
    (0x20, 0x7F),
    (0xA0, 0xD800),
    (0xE000, 0xFDD0),
    (0xFDF0, 0xFFFE),
    (0x10000, 0x110000),
)


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
    code = int(reference[3:-1], 16) if reference[2] in "xX" else int(reference[2:-1])
    return chr(code) if any(first <= code < end for first, end in _CHARACTERS) else reference
