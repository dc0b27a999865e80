"""Plain text as questions: documents with their sentences."""

import re

from tasks.io.records import Record

BLANK_LINE = re.compile(r"\n[^\S\n]*(?=\n)")  # between two paragraphs
# The end of a line behind that of a sentence, and what opens or closes: a stray one hides the ends up to the next.
LINE_END = re.compile(r"""(?<=[.!?。！？])["'”’»)\]]*[^\S\n]*\n""")
PAIRED = re.compile(r"""["'“”‘’«»()\[\]]""")
NO_LANGUAGE = "none"


def question(where: str, text: str, language: str) -> Record:
    """A document with the spans of its `sentences`; for the language `none` these are its lines."""
    if language == NO_LANGUAGE:
        return Record(where, {"text": text})
    return Record(where, {"text": text, "sentences": [[*span] for span in sentences(text, language)]})


def sentences(text: str, language: str) -> list[tuple[int, int]]:
    """Half-open spans of sentences in code points; a blank line ends one, a single end of a line does not.

    Where quotation marks or brackets hide the end of a sentence, it is seen at the end of a line.

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
            found += at_line_ends(text, start + first, start + last)
        start = end
    return found


def at_line_ends(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """A sentence; one with marks in pairs is cut where a line of it ends as a sentence does."""
    if not PAIRED.search(text, start, end):
        return [(start, end)]
    ends = [*(match.end() for match in LINE_END.finditer(text, start, end)), end]
    parts = []
    for stop in ends:
        piece = text[start:stop]
        if piece.strip():
            parts.append((start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())))
        start = stop
    return parts
