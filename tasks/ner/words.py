"""Words of raw text, split much as CoNLL's are."""

from collections.abc import Sequence

import regex

from tasks.io.records import Record
from tasks.io.windows import CharacterSpan

Word = tuple[str, int, int]


def word_pattern() -> regex.Pattern[str]:
    """Return what a word of a text is."""
    # One word whatever stands in it: addresses, without the marks behind them; letters with dots; 's and its like.
    plain, inside = r"\p{L}\p{N}", r"""[^\s\x1C-\x1F<>"“”()]"""
    web = rf"(?i:https?://|ftp://|www\.)(?:{inside}|\({inside}*\))*(?:[{plain}/_=&%#~+$@-]|\({inside}*\))"
    mail = rf"(?<![{plain}_.+-])[{plain}_.+-]++(?:'[{plain}_.+-]+)?@[{plain}_-]+(?:\.[{plain}_-]+)+"
    # With no bound each letter would read the rest.
    dotted = rf"(?<![{plain}])(?:\p{{L}}\.){{2,20}}+(?![{plain}])"
    short = rf"(?:['’](?i:s)|(?<![{plain}])['’](?i:re|ve|ll|d|m|t))(?![{plain}])"
    whole = f"(?:{web}|{mail}|{dotted}|{short})"
    # What cannot be seen by itself belongs to what is before it: a soft hyphen, an emoji's colour. \u200D joins emoji.
    visible = r"[^\s\x1C-\x1F\u200B\uFEFF]"
    unseen = r"[\p{Cf}\uFE0E\uFE0F\U0001F3FB-\U0001F3FF--\u200B\u200D\uFEFF]"
    # Else a word has joints inside it (3.5, AT&T, Jean-Paul, don't), or is a hashtag, a user's name, or a single mark.
    letter = rf"(?!{whole})[\p{{L}}\p{{M}}\p{{N}}_--\uFE0E\uFE0F]"
    letters = rf"{letter}(?:{letter}|{unseen}|\u200D)*"
    word = rf"(?:(?<!{letter})[#@])?{letters}(?:(?!{whole})[-.,&'’]{letters})*"
    mark = rf"(?!{whole}){visible}{unseen}*"
    return regex.compile(rf"{whole}(?:{unseen}|\u200D)*|{word}|{mark}(?:\u200D{mark})*", regex.V1)


WORD, LINE = word_pattern(), regex.compile(r"[^\n]+")


def record_lines(record: Record) -> list[list[Word]]:
    """The sentences of a record that are not empty, as words with their places: characters, or words.

    Those of a `text` are its `sentences`, spans of characters, or else its lines. Raises: ValueError naming the field.
    """
    if "words" in record.values and "text" in record.values:
        raise record.error("both text and words; give one of them")
    if "words" in record.values:
        words = given_words(record)
        return [words] if words else []
    text = record.text("text")
    return split_words(text, given_sentences(record, text) if "sentences" in record.values else None)


def given_words(record: Record) -> list[Word]:
    """The field `words`. Raises: ValueError where one is blank: no entity, which it could be called, is there."""
    words = [(word, place, place + 1) for place, word in enumerate(record.texts("words"))]
    for word, place, _ in words:
        if not WORD.search(word):
            raise record.error(f"words[{place}] is {word!r}; wanted a word that is not blank; leave it out")
    return words


def given_sentences(record: Record, text: str) -> list[CharacterSpan]:
    """The field `sentences`. Raises: ValueError where one is no span of the text, or begins before another ends."""
    given = record.field("sentences", list, "a list of [start, end]")
    spans, last = [], 0
    for number, value in enumerate(given):
        span = record.span(f"sentences[{number}]", value, len(text), "characters")
        if span[0] < last:
            raise record.error(f"sentences[{number}] begins at {span[0]}, before {last}, where another ends")
        spans.append(span)
        last = span[1]
    return spans


def blanks_before(lines: Sequence[Sequence[Word]]) -> list[tuple[bool, ...]]:
    """Return whether blanks or the end of a line stand between each word of a text and the one before it."""
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
    lines: list[list[Word]] = []
    spans = (match.span() for match in LINE.finditer(text)) if sentences is None else sentences
    for start, end in spans:
        lines.append([(match[0], *match.span()) for match in WORD.finditer(text, start, end)])
    return [line for line in lines if line]
