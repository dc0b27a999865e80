"""Plain text as questions: documents with their sentences."""

import re
from collections import Counter
from collections.abc import Iterator

from tasks.io.records import Record

BLANK_LINE = re.compile(r"\n[^\S\n]*(?=\n)")  # between two paragraphs
LINE_END = re.compile(r"""(?<=[.!?。！？])["'”’»)\]]*[^\S\n]*\n\s*""")  # behind that of a sentence
PAIRS = (("“", "”"), ("«", "»"), ("(", ")"), ("[", "]"))
SINGLE = re.compile(r"(?<!\w)['‘](?=\S)"), re.compile(r"(?<=\S)['’](?!\w)")  # not inside of words
NO_LANGUAGE = "none"


def question(where: str, text: str, language: str) -> Record:
    """A document with the spans of its `sentences`; for the language `none` these are its lines."""
    if language == NO_LANGUAGE:
        return Record(where, {"text": text})
    return Record(where, {"text": text, "sentences": [[*span] for span in sentences(text, language)]})


def sentences(text: str, language: str) -> list[tuple[int, int]]:
    """Half-open spans of sentences in code points; a blank line ends one, a single end of a line does not.

    A quotation mark or bracket hides the ends of sentences up to its partner, and a stray one up to the next. Those at
    the end of a line are seen.

    Raises: ValueError where the package that finds them is not installed.
    """
    try:
        from pipeline.sequences.sentences import split  # a machine that only trains lacks its package
    except ModuleNotFoundError as error:
        raise ValueError(
            f"sentences are found by the package {error.name}, which is not installed; install it, or give "
            f"--language {NO_LANGUAGE} and a sentence a line"
        ) from None
    ends = [*(match.end() for match in BLANK_LINE.finditer(text)), len(text)]
    found, start = [], 0
    for end in ends:
        for first, last in split(text[start:end], language):
            found += at_line_ends(text, start + first, start + last, language)
        start = end
    return found


def at_line_ends(text: str, start: int, end: int, language: str) -> list[tuple[int, int]]:
    """A sentence, cut where a line of it ends as a sentence does, and a mark is open."""
    from pipeline.sequences.boundaries import true_ends

    sentence = text[start:end]
    cuts = true_ends(sentence.replace("\n", " "), hidden_line_ends(sentence), language)
    starts, ends = [0, *cuts], [*cuts, len(sentence)]
    return [(start + first, start + len(sentence[:last].rstrip())) for first, last in zip(starts, ends, strict=True)]


def hidden_line_ends(sentence: str) -> Iterator[int]:
    """Yield where lines begin behind one that ends as a sentence does, while a quotation mark or a bracket is open."""
    last, straight, open_marks = 0, 0, Counter[str]()
    for match in LINE_END.finditer(sentence):
        piece = last, match.start()
        straight += sentence.count('"', *piece)
        for opening, closing in PAIRS:
            open_marks[opening] += sentence.count(opening, *piece) - sentence.count(closing, *piece)
        opened, closed = (len(mark.findall(sentence, *piece)) for mark in SINGLE)
        open_marks["'"] += opened - closed
        if straight % 2 or max(open_marks.values()) > 0:
            yield match.end()
        last = match.start()
