"""Words of raw text, split much as CoNLL's are."""

import re
import unicodedata
from collections.abc import Sequence

from tasks.io.records import Record

Word = tuple[str, int, int]
# Over the kinds of characters: words with joints inside them (3.5, AT&T, Jean-Paul), 's and its like, single marks.
WORD = re.compile(r"w+(?:jw+)*|aw+|[^ ]")


def record_lines(record: Record) -> list[list[Word]]:
    """The sentences of a record that are not empty, as words with their places: characters, or words."""
    if "words" in record.values:
        words = [(word, place, place + 1) for place, word in enumerate(record.texts("words"))]
        return [words] if words else []
    return split_words(record.text("text"))


def blanks_before(lines: Sequence[Sequence[Word]]) -> list[tuple[bool, ...]]:
    """Whether something, blanks or the end of a line, stands between each word of a text and the one before it."""
    place, found = 0, []
    for line in lines:
        ends = [place, *(end for _, _, end in line)]
        found.append(tuple(start > end for (_, start, _), end in zip(line, ends, strict=False)))
        place = ends[-1]
    return found


def split_words(text: str) -> list[list[Word]]:
    """The words of each line, with the characters (half open) where they stand; empty lines are left out."""
    kinds = "".join("\n" if character == "\n" else kind(character) for character in text)
    lines: list[list[Word]] = []
    start = 0
    for line in kinds.split("\n"):
        places = [(start + match.start(), start + match.end()) for match in WORD.finditer(line)]
        lines.append([(text[first:last], first, last) for first, last in places])
        start += len(line) + 1
    return [line for line in lines if line]


def kind(character: str) -> str:
    """w: part of a word; j: a mark that may join two; a: an apostrophe; p: another mark; or a blank."""
    if character.isspace():
        return " "
    if character in "-.,&":
        return "j"
    if character in "'’":
        return "a"
    return "p" if unicodedata.category(character)[0] in "PSC" else "w"
