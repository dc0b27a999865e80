"""Faults of an extracted text: holes and glued words. Only text and source are looked at, so all extractors are alike.

A hole is what no copy-editor would leave, and what is there where something was cut out of a sentence:

- brackets with nothing or only punctuation inside, and brackets that begin or end with a comma or semicolon;
- a blank before a comma, semicolon or full stop;
- punctuation behind a comma, semicolon or colon, such as ", ," and ";." ("etc.," is right, and so is "...").

    >>> [hole.kind for hole in find_holes("Berlin (, ) is , which, , has ...")]
    ['brackets', 'blank', 'doubled']

A glued word is two words of the source with nothing but a template or a reference between them, which are one in the
text:

    >>> glued_words("15{{nbsp}}September, [[Foo]]{{ndash}}[[Bar]]", "15September, Foo–Bar")
    ['15September']
"""

import re
from collections import Counter
from collections.abc import Iterator
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

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TABLE = re.compile(r"^[ \t:]*\{\|.*?^[ \t]*\|\}", re.DOTALL | re.MULTILINE)
_CONTENT = re.compile(r"<(ref|math)\b[^<>]*(?:/>|>.*?</\1\s*>)|<br\b[^<>]*>", re.DOTALL | re.IGNORECASE)
_BRACES = re.compile(r"\{\{|\}\}")
_SEAM = "\x03"
_SEAMS = re.compile(
    rf"(\w+)(?:\]\]|'{{2,5}})*{_SEAM}+(?=(?:'{{2,5}}|\[\[(?:[^\[\]|\n]*\|)?)*(\w+))"  # links, bold and italics
)
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_WORD = re.compile(r"\w+")
_SHORT = 4  # characters: fewer are part of too many words


class Hole(NamedTuple):
    """Half-open code points, and `brackets`, `doubled` or `blank`."""

    start: int
    end: int
    kind: str


def find_holes(text: str, language: str = "en") -> list[Hole]:
    """The holes of a text in their order, in a wiki of this language."""
    found = (Hole(*match.span(), match.lastgroup or "") for match in _HOLE.finditer(text))
    if language in _SPACED_SEMICOLON:
        return [hole for hole in found if hole.kind != "blank" or text[hole.end - 1] not in ";؛"]
    return list(found)


def is_written_so(text: str, hole: Hole, source: str) -> bool:
    """Whether the writers left the hole: the source has it behind the same letters, but for links and italics."""
    before = re.escape(text[max(0, hole.start - 3) : hole.start].strip())
    return re.search(rf"{before}[\]']*{re.escape(text[hole.start : hole.end])}", source) is not None


def seams(source: str) -> list[tuple[str, str]]:
    """The words left and right of a template, reference, formula or line break that touches both, outside of tables.

    Words of scripts without blanks are left out: to these it is no fault to touch.
    """
    text = _TABLE.sub("", _COMMENT.sub("", source.replace(_SEAM, "")))
    text = _CONTENT.sub(_SEAM, text)
    found = _SEAMS.findall("".join(_without_templates(text)))
    return [(left, right) for left, right in found if not _UNSPACED.search(left[-1] + right[0])]


def _without_templates(text: str) -> Iterator[str]:
    """The text with a mark for each outermost template; braces that do not match stay."""
    depth = start = position = 0
    for braces in _BRACES.finditer(text):
        if braces.group() == "{{":
            start = start if depth else braces.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                yield text[position:start] + _SEAM
                position = braces.end()
    yield text[position:]


def glued_words(source: str, text: str) -> list[str]:
    """The words of the source's seams that are one in the text, and are no more often so in the source."""
    return glued_at(seams(source), source, text)


def glued_at(found: list[tuple[str, str]], source: str, text: str) -> list[str]:
    """The same with the source's seams."""
    if not found:
        return []
    new = Counter(_WORD.findall(text)) - Counter(_WORD.findall(source))
    joined = [left + right for left, right in found]
    return [
        word for word in joined if word in new or (len(word) >= _SHORT and any(word in each for each in new))
    ]


def is_plain_to_see(left: str, right: str) -> bool:
    """Whether the joint of two words shows without their source: a letter and a digit, a small and a large letter."""
    a, b = left[-1], right[0]
    return (a.isalpha() and b.isdigit()) or (a.isdigit() and b.isalpha()) or (a.islower() and b.isupper())
