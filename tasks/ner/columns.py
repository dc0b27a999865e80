"""CoNLL column files: one word a line, blank lines between sentences, -DOCSTART- lines between documents."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from pathlib import Path

from tasks.io.records import read_text
from tasks.ner.spans import (
    OUTSIDE,
    SAME_PREFIXES,
    SCHEMES,
    Span,
    Tag,
    parse_tag,
    schemes_of,
    spans_of_tags,
    tags_of_spans,
)

DOCUMENT_START = "-DOCSTART-"

Row = tuple[str, ...]


@dataclass(frozen=True)
class Sentence:
    """Words with all their columns; `line` is the first word's line number in the file.

    `blanks` says of each word whether a blank stands before it, where that is known; `places` are the words'
    characters in a user's text, or their numbers (half open).
    """

    rows: tuple[Row, ...]
    line: int
    spans: tuple[Span, ...]
    blanks: tuple[bool, ...] = ()
    places: tuple[tuple[int, int], ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(row[0] for row in self.rows)


@dataclass(frozen=True)
class Document:
    """Sentences that serve each other as context; `start` has the columns of its -DOCSTART- line, if any."""

    start: Row
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True)
class ColumnFile:
    """A whole file; `scheme` is None where the file has no entity.

    A file without any -DOCSTART- says nothing about documents (`has_documents` is false): each of its
    sentences is a document of its own.
    """

    path: Path
    documents: tuple[Document, ...]
    scheme: str | None
    separator: str
    has_documents: bool

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        return tuple(sentence for document in self.documents for sentence in document.sentences)


@dataclass(frozen=True)
class Line:
    """The columns of a line of the file; none where the line is blank."""

    number: int
    columns: Row


def read_columns(path: Path, *, column_counts: Sequence[int] = (), strict: bool = True) -> ColumnFile:
    """Reads a column file whose last column is the tag; columns are separated by blanks or tabs.

    `column_counts` are the numbers of columns that are allowed, any from 2 on where it is empty.
    `strict` finds the tag scheme of the whole file and refuses tags outside it; without it any sequence
    of tags is read as `conlleval` would. Raises: ValueError naming the file and the line.
    """
    text = read_text(path, "a CoNLL column file")
    lines = [
        Line(number, tuple(part for part in re.split(r"[ \t]+", line) if part))
        for number, line in enumerate(text.split("\n"), start=1)
    ]
    _check_column_count(path, lines, column_counts)
    return file_of_blocks(path, list(_blocks(lines)), "\t" if "\t" in text else " ", strict=strict)


def file_of_blocks(
    path: Path, blocks: Sequence[Sequence[Line]], separator: str, *, strict: bool = True
) -> ColumnFile:
    """The file of these sentences; see `read_columns`. Raises: ValueError naming the file and the line."""
    tags = [[_tag(path, line) for line in block] for block in blocks]
    scheme = _scheme(path, blocks, tags) if strict else None
    has_documents = any(block[0].columns[0] == DOCUMENT_START for block in blocks)
    sentences = [
        Sentence(tuple(line.columns for line in block), block[0].number, tuple(spans_of_tags(block_tags)))
        for block, block_tags in zip(blocks, tags, strict=True)
    ]
    documents = _documents(sentences, has_documents)
    if not any(document.sentences for document in documents):
        raise ValueError(f"{path}: no sentences; expected lines of a word and its tag")
    return ColumnFile(path, documents, scheme, separator, has_documents)


def lines_with_tags(file: ColumnFile, spans: Sequence[Sequence[Span]]) -> list[str]:
    """The lines of a file with one more column: the tags of `spans`, which has an entry for each sentence.

    The tags are in the file's scheme, IOB2 where it shows none.
    """
    lines: list[str] = []
    left = iter(spans)
    for document in file.documents:
        if document.start:
            lines += [file.separator.join([*document.start, "O"]), ""]
        for sentence in document.sentences:
            tags = tags_of_spans(next(left), len(sentence.rows), file.scheme or "IOB2")
            lines += [file.separator.join([*row, tag]) for row, tag in zip(sentence.rows, tags, strict=True)]
            lines.append("")
    return lines


def check_same_words(gold: ColumnFile, predictions: ColumnFile) -> None:
    """Raises: ValueError naming the first sentence of `predictions` that has not the words of `gold`."""
    for wanted, found in zip_longest(gold.sentences, predictions.sentences):
        if wanted is None or found is None or wanted.words != found.words:
            here = f"{predictions.path}:{found.line if found else 'end'}"
            there = f"{gold.path}:{wanted.line if wanted else 'end'}"
            raise ValueError(f"{here}: not the words of {there}; both files need the same sentences")


def _check_column_count(path: Path, lines: Sequence[Line], allowed: Sequence[int]) -> None:
    wanted = 0
    for line in lines:
        found = len(line.columns)
        if not found or line.columns[0] == DOCUMENT_START:
            continue
        if found not in allowed if allowed else found < 2:
            choices = " or ".join(map(str, allowed)) or "2 or more"
            raise ValueError(f"{path}:{line.number}: {found} columns; expected {choices}, the tag last")
        wanted = wanted or found
        if found != wanted:
            raise ValueError(f"{path}:{line.number}: {found} columns; the lines above have {wanted}")


def _blocks(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Sentences, and each -DOCSTART- line as a block of its own, whether a blank line follows it or not."""
    block: list[Line] = []
    for line in lines:
        starts_document = bool(line.columns) and line.columns[0] == DOCUMENT_START
        if block and (not line.columns or starts_document):
            yield block
            block = []
        if starts_document:
            yield [line]
        elif line.columns:
            block.append(line)
    if block:
        yield block


def _tag(path: Path, line: Line) -> Tag:
    if line.columns[0] == DOCUMENT_START:
        return OUTSIDE
    try:
        return parse_tag(line.columns[-1])
    except ValueError as error:
        raise ValueError(f"{path}:{line.number}: {error}") from None


def _scheme(path: Path, blocks: Sequence[Sequence[Line]], tags: Sequence[Sequence[Tag]]) -> str | None:
    """The scheme that all tags fit; the first tag that fits none of those left is an error."""
    left = frozenset(SCHEMES)
    decided_at = 0
    for block, block_tags in zip(blocks, tags, strict=True):
        before, after = [OUTSIDE, *block_tags[:-1]], [*block_tags[1:], OUTSIDE]
        for line, *context in zip(block, before, block_tags, after, strict=True):
            fitting = left & schemes_of(*context)
            if line.columns[-1][0] in SAME_PREFIXES:  # L, U and M are of BILOU and BMES alone
                fitting &= {"IOBES"}
            if not fitting:
                since = f" as line {decided_at} does" if decided_at else ""
                raise ValueError(
                    f"{path}:{line.number}: tag {line.columns[-1]!r} does not follow "
                    f"{' or '.join(sorted(left))}{since}; use one scheme in the whole file"
                )
            decided_at = line.number if fitting < left else decided_at
            left = fitting
    return next(iter(left)) if len(left) == 1 else None


def _documents(sentences: Sequence[Sentence], has_documents: bool) -> tuple[Document, ...]:
    if not has_documents:
        return tuple(Document((), (sentence,)) for sentence in sentences)
    starts = [n for n, sentence in enumerate(sentences) if sentence.rows[0][0] == DOCUMENT_START]
    leading = [Document((), tuple(sentences[: starts[0]]))] if starts[0] else []
    return (
        *leading,
        *(
            Document(sentences[start].rows[0], tuple(sentences[start + 1 : end]))
            for start, end in pairwise([*starts, len(sentences)])
        ),
    )
