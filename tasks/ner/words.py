"""Words of raw text, split much as CoNLL's are."""

import re
import unicodedata
from collections.abc import Sequence

from tasks.io.excerpts import CharacterSpan
from tasks.io.records import Record

Word = tuple[str, int, int]
# What is one word whatever stands in it: addresses, without the marks behind them; letters with dots; 's and its like.
WHOLE = re.compile(
    r"""(?:https?://|ftp://|www\.)(?:[^\s<>"“”()]|\([^\s<>"“”()]*\))*(?:[^\W_]|[/_=&%\#~+$@-]|\([^\s<>"“”()]*\))
    |(?<![\w.+-])[\w.+-]+(?:'[\w.+-]+)?@[\w-]+(?:\.[\w-]+)+
    |(?<![^\W_])(?:[^\W\d_]\.){2,}(?![^\W_])
    |['’]s(?![^\W_])
    |(?<![^\W_])['’](?:re|ve|ll|d|m|t)(?![^\W_])""",
    re.VERBOSE | re.IGNORECASE,
)
# Over the kinds of characters: what is whole; words with joints inside them (3.5, AT&T, Jean-Paul, don't), hashtags
# and user names; single marks, and emoji that are joined. What shapes a character belongs to it.
WORD = re.compile(r"Uu*[sz]*|(?:(?<!w)h)?w[wsz]*(?:[ja]w[wsz]*)*|[^ ]s*(?:z[^ ]s*)*")
ZERO_WIDTH_JOINER = "\u200d"
SHAPES = {"\ufe0e", "\ufe0f", *map(chr, range(0x1F3FB, 0x1F400))}  # of emoji: as text, in colour, of the skin
BLANKS = {"\u200b", "\ufeff"}  # that str.isspace does not know: of no width, and the byte order mark


def record_lines(record: Record) -> list[list[Word]]:
    """The sentences of a record that are not empty, as words with their places: characters, or words.

    Those of a `text` are its `sentences`, spans of characters, or else its lines. Raises: ValueError naming the field.
    """
    if "words" in record.values and "text" in record.values:
        raise record.error("both text and words; give one of them")
    if "words" in record.values:
        words = [(word, place, place + 1) for place, word in enumerate(record.texts("words"))]
        return [words] if words else []
    text = record.text("text")
    return split_words(text, given_sentences(record, text) if "sentences" in record.values else None)


def given_sentences(record: Record, text: str) -> list[CharacterSpan]:
    """The field `sentences`. Raises: ValueError where one is no span of the text, or begins before another ends."""
    given = record.field("sentences", list, "a list of [start, end]")
    spans, last = [], 0
    for number, value in enumerate(given):
        span = record.span(f"sentences[{number}]", value, len(text), "characters")
        if span[0] < last:
            raise record.error(
                f"sentences[{number}] begins at {span[0]}, before {last}, where another one ends"
            )
        spans.append(span)
        last = span[1]
    return spans


def blanks_before(lines: Sequence[Sequence[Word]]) -> list[tuple[bool, ...]]:
    """Whether something, blanks or the end of a line, stands between each word of a text and the one before it."""
    place, found = 0, []
    for line in lines:
        ends = [place, *(end for _, _, end in line)]
        found.append(tuple(start > end for (_, start, _), end in zip(line, ends, strict=False)))
        place = ends[-1]
    return found


def split_words(text: str, sentences: Sequence[CharacterSpan] | None = None) -> list[list[Word]]:
    """The words of each sentence, with the characters (half open) where they stand; empty sentences are left out.

    A sentence is a line where they are not given.
    """
    kinds = kinds_of(text)
    lines: list[list[Word]] = []
    for start, end in spans_of_lines(text) if sentences is None else sentences:
        places = [match.span() for match in WORD.finditer(kinds, start, end)]
        lines.append([(text[first:last], first, last) for first, last in places])
    return [line for line in lines if line]


def spans_of_lines(text: str) -> list[CharacterSpan]:
    """The characters of each line without its end."""
    spans, start = [], 0
    for line in text.split("\n"):
        spans.append((start, start + len(line)))
        start += len(line) + 1
    return spans


def kinds_of(text: str) -> str:
    """The kind of each character; U and u: the first and the other characters of what is whole."""
    kinds, start = [], 0
    for match in WHOLE.finditer(text):
        kinds += [*map(kind, text[start : match.start()]), "U", "u" * (match.end() - match.start() - 1)]
        start = match.end()
    return "".join([*kinds, *map(kind, text[start:])])


def kind(character: str) -> str:
    """w: part of a word; j: a mark that may join two; a: an apostrophe; h: # or @; p: another mark; or a blank.

    s: what cannot be seen by itself, as a soft hyphen or the non-joiner of Persian; z: the joiner.
    """
    if character.isspace() or character in BLANKS:
        return " "
    if character == ZERO_WIDTH_JOINER:
        return "z"
    if character in "-.,&":
        return "j"
    if character in "'’":
        return "a"
    if character in "#@":
        return "h"
    category = unicodedata.category(character)
    if category == "Cf" or character in SHAPES:
        return "s"
    return "p" if character != "_" and category[0] in "PSC" else "w"
