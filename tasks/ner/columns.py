"""CoNLL column files: one word a line, blank lines between sentences, -DOCSTART- lines between documents."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
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
NO_JSON = "; JSON has an object with tokens and ner_tags a line"

Row = tuple[str, ...]


@dataclass(frozen=True)
class Sentence:
    """Words with all their columns."""

    rows: tuple[Row, ...]
    spans: tuple[Span, ...]
    blanks: tuple[bool, ...] = ()  # whether a blank stands before each word, where that is known
    places: tuple[tuple[int, int], ...] = ()  # the words' characters in a user's text, or their numbers (half open)
    source: str = ""  # what errors name before the line's number
    lines: tuple[int, ...] = ()  # the numbers of the words' lines

    def place(self, word: int) -> str:
        """Return where a word stands, for errors."""
        return f"{self.source}{self.lines[word]}"

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
    """A whole file."""

    path: Path
    documents: tuple[Document, ...]
    scheme: str | None  # None where the file has no entity
    separator: str
    has_documents: bool  # without any -DOCSTART- each sentence is a document of its own

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        return tuple(sentence for document in self.documents for sentence in document.sentences)

    examples = sentences  # the name that every task has for what a split holds


@dataclass(frozen=True)
class Line:
    """A word's columns and tag; a line without columns is blank."""

    source: str  # what errors name before the number
    number: int
    columns: Row
    tag: str = "O"
    blank: bool | None = None  # whether a blank stands before the word, where that is known

    @property
    def where(self) -> str:
        return f"{self.source}{self.number}"

    @property
    def starts_document(self) -> bool:
        return self.columns[:1] == (DOCUMENT_START,)


def read_columns(path: Path, *, strict: bool = True, tag_column: str = "") -> ColumnFile:
    """Reads a column file whose last column is the tag; columns are separated by tabs, or by blanks or tabs.

    Where each line of a word has a tab, tabs alone part columns, and a word may have a blank.
    `strict` finds the tag scheme of the whole file and refuses tags outside it; without it any sequence
    of tags is read as `conlleval` would. `tag_column` is another column for the tags: its number from 1, from the end
    -1, or its name in the first line of the file. Raises: ValueError naming the file and the line.
    """
    text = read_text(path, "a CoNLL column file")
    source = f"{path}:"
    texts = text.split("\n")
    words = [line for line in texts if line.strip() and not line.startswith(DOCUMENT_START)]
    by_tabs = re.compile(r" *\t[ \t]*" if words and all("\t" in line.strip() for line in words) else r"[ \t]+")
    by_blanks = re.compile(r"[ \t]+")
    parted = ((by_blanks if line.startswith(DOCUMENT_START) else by_tabs).split(line.strip(" ")) for line in texts)
    rows = (tuple(filter(None, row)) for row in parted)
    lines = [Line(source, number, row, row[-1] if row else "O") for number, row in enumerate(rows, start=1)]
    check_column_count(lines)
    if tag_column:
        lines = with_tags_of(lines, tag_column)
    return file_of_lines(path, lines, "\t" if "\t" in text else " ", strict=strict)


def with_tags_of(lines: Sequence[Line], tag_column: str) -> list[Line]:
    """The lines with the tags of another column, without the line that names it."""
    is_word = [bool(line.columns) and not line.starts_document for line in lines]
    if not any(is_word):
        return list(lines)
    first = is_word.index(True)
    place, has_header = column_place(lines[first], tag_column)
    return [
        replace(line, tag=line.columns[place]) if of_word else line
        for number, (line, of_word) in enumerate(zip(lines, is_word, strict=True))
        if not has_header or number != first
    ]


def column_place(first: Line, name: str) -> tuple[int, bool]:
    """Return where the column is that `name` means, and whether this first line names columns.

    Raises: ValueError for a column that is not there, and for the one of the words.
    """
    count = len(first.columns)
    if re.fullmatch(r"-?[0-9]+", name):
        number = int(name)
        if not 1 <= abs(number) <= count:
            raise ValueError(
                f"{first.where}: no column {name} among {count}; wanted --tag-column 2 to {count}, or -1 for the last"
            )
        place, has_header = number - 1 if number > 0 else count + number, False
    elif name in first.columns:
        place, has_header = first.columns.index(name), True
    else:
        raise ValueError(
            f"{first.where}: no column {name!r}; this line has {', '.join(first.columns)}; give --tag-column a name "
            "that stands in the first line, or the column's number"
        )
    if place == 0:
        raise ValueError(f"{first.where}: column {name} has the words; give --tag-column that of the tags")
    return place, has_header


def file_of_lines(path: Path, lines: Iterable[Line], separator: str, *, strict: bool = True) -> ColumnFile:
    """The file of these lines; see `read_columns`. Raises: ValueError naming the file and the line."""
    blocks = list(blocks_of(lines))
    tags = [[_tag(line) for line in block] for block in blocks]
    scheme = _scheme(blocks, tags) if strict else None
    has_documents = any(block[0].starts_document for block in blocks)
    sentences = [
        Sentence(
            tuple(line.columns for line in block),
            tuple(spans_of_tags(block_tags)),
            blanks=tuple(line.blank for line in block if line.blank is not None),
            source=block[0].source,
            lines=tuple(line.number for line in block),
        )
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
            here, there = (
                sentence.place(0) if sentence else f"{file.path}:end"
                for sentence, file in ((found, predictions), (wanted, gold))
            )
            raise ValueError(f"{here}: not the words of {there}; both files need the same sentences")


def check_column_count(lines: Iterable[Line]) -> None:
    """Raises: ValueError naming the first line with one column, or with another number than those before."""
    first: Line | None = None
    for line in lines:
        found = len(line.columns)
        if not found or line.starts_document:
            continue
        if found < 2:
            hint = NO_JSON * line.columns[0].startswith(("{", "["))
            hint = hint or "; commas part no columns, blanks and tabs do" * ("," in line.columns[0])
            raise ValueError(f"{line.where}: {found} columns; expected 2 or more, the tag last{hint}")
        first = first or line
        if found != len(first.columns):
            comments = [each.where for each in (first, line) if each.columns[0].startswith("#")]
            hint = f"; if {comments[0]} is a comment, remove it and others" if comments else ""
            raise ValueError(f"{line.where}: {found} columns; the lines above have {len(first.columns)}{hint}")


def blocks_of(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Sentences, and each -DOCSTART- line as a block of its own, whether a blank line follows it or not."""
    block: list[Line] = []
    for line in lines:
        if block and (not line.columns or line.starts_document):
            yield block
            block = []
        if line.starts_document:
            yield [line]
        elif line.columns:
            block.append(line)
    if block:
        yield block


def _tag(line: Line) -> Tag:
    if line.starts_document:
        return OUTSIDE
    try:
        return parse_tag(line.tag)
    except ValueError as error:
        if line.columns[0].startswith("#"):
            raise ValueError(f"{line.where}: {error}; remove the line if it is a comment") from None
        raise ValueError(
            f"{line.where}: {error}; --tag-column (of predictions --predicted-column) names another column by its "
            "number, or by its name where the first line has names"
        ) from None


def _scheme(blocks: Sequence[Sequence[Line]], tags: Sequence[Sequence[Tag]]) -> str | None:
    """The scheme that all tags fit; the first tag that fits none of those left is an error."""
    left = frozenset(SCHEMES)
    decided_at = ""
    for block, block_tags in zip(blocks, tags, strict=True):
        before, after = [OUTSIDE, *block_tags[:-1]], [*block_tags[1:], OUTSIDE]
        for line, *context in zip(block, before, block_tags, after, strict=True):
            fitting = left & schemes_of(*context)
            if line.tag[0] in SAME_PREFIXES:  # L, U and M are of BILOU and BMES alone
                fitting &= {"IOBES"}
            if not fitting:
                since = f", as {decided_at} does" if decided_at else ""
                raise ValueError(
                    f"{line.where}: tag {line.tag!r} does not follow "
                    f"{' or '.join(sorted(left))}{since}; use one scheme in the whole file"
                )
            decided_at = line.where if fitting < left else decided_at
            left = fitting
    return next(iter(left)) if len(left) == 1 else None


def _documents(sentences: Sequence[Sentence], has_documents: bool) -> tuple[Document, ...]:
    if not has_documents:
        return tuple(Document((), (sentence,)) for sentence in sentences)
    starts = [n for n, sentence in enumerate(sentences) if sentence.rows[0][0] == DOCUMENT_START]
    leading = [Document((), tuple(sentences[: starts[0]]))] if starts[0] else []
    parts = pairwise([*starts, len(sentences)])
    others = (Document(sentences[start].rows[0], tuple(sentences[start + 1 : end])) for start, end in parts)
    return (*leading, *others)
