"""The holes of an extracted text: what no copy-editor would leave, where something was cut out of a sentence.

- brackets with nothing or only punctuation inside, and brackets that begin or end with a comma or semicolon;
- a blank before a comma, semicolon or full stop;
- punctuation behind a comma, semicolon or colon, such as ", ," and ";." ("etc.," is right, and so is "...").

    >>> [hole.kind for hole in find_holes("Berlin (, ) is , which, , has ...")]
    ['brackets', 'blank', 'doubled']
"""

import re
from typing import NamedTuple

_COMMAS = ",;，；、،؛"
_STOP = r"(?:\.(?![.\w/<>]| \.)|[。．])"  # no ".NET", ".45", "../" or ellipsis
_MARK = rf"(?:[,;](?![^\s\w,;.\"'”’»)\]])|[，；、،؛]|{_STOP})"  # a keyboard's ",<" and ";:" are no marks
_INSIDE = rf"(?![:·/–—-][)\]])[\s{_COMMAS}:：。·/–—-]*"  # a lone mark in brackets, (-) or (:), is meant
_KINDS = {
    # A call such as main() has its brackets at the name.
    "brackets": rf"(?<![A-Za-z0-9_])(?:\({_INSIDE}\)|\[{_INSIDE}\])|（{_INSIDE}）"
    rf"|[(（\[]\s*[{_COMMAS}]|[{_COMMAS}]\s*[)）\]]",
    "doubled": rf"[{_COMMAS}:：]\s*(?:[{_COMMAS}]|{_STOP})",
    "blank": rf"(?<=[^\s.…])\s{_MARK}",
}
_HOLE = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()))
_SPACED_SEMICOLON = frozenset({"br", "fr"})  # wikis whose typography wants a blank before it


class Hole(NamedTuple):
    """A span of half-open code points, and `brackets`, `doubled` or `blank`."""

    start: int
    end: int
    kind: str


def find_holes(text: str, language: str = "en") -> list[Hole]:
    """Return the holes of a text in their order, in a wiki of this language."""
    found = (Hole(*match.span(), match.lastgroup or "") for match in _HOLE.finditer(text))
    if language in _SPACED_SEMICOLON:
        return [hole for hole in found if hole.kind != "blank" or text[hole.end - 1] not in ";؛"]
    return list(found)


def is_written_so(text: str, hole: Hole, source: str) -> bool:
    """Tell whether the writers left the hole: the source has it behind the same letters, but for links and italics."""
    before = re.escape(text[max(0, hole.start - 3) : hole.start].strip())
    return re.search(rf"{before}[\]']*{re.escape(text[hole.start : hole.end])}", source) is not None
