"""Plain text as questions: documents with their sentences."""

import re

from tasks.io.records import Record

BLANK_LINE = re.compile(r"\n[^\S\n]*(?=\n)")  # between two paragraphs
NO_LANGUAGE = "none"


def question(where: str, text: str, language: str) -> Record:
    """A document with the spans of its `sentences`; for the language `none` these are its lines."""
    if language == NO_LANGUAGE:
        return Record(where, {"text": text})
    return Record(where, {"text": text, "sentences": [[*span] for span in sentences(text, language)]})


def sentences(text: str, language: str) -> list[tuple[int, int]]:
    """Half-open spans of sentences in code points; a blank line ends one, a single end of a line does not.

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
        found += [(start + first, start + last) for first, last in split(text[start:end], language)]
        start = end
    return found
