"""Sentences with `tokens` and `ner_tags`: JSON lines, and the tables of Hugging Face's `datasets`."""

import re
from itertools import chain
from pathlib import Path

from tasks.io.data_folder import ClassNames
from tasks.io.records import Record, read_records, read_text
from tasks.io.tables import is_table
from tasks.ner.columns import ColumnFile, Line, file_of_lines
from tasks.ner.spans import parse_tag

BLANK = re.compile(r"[ \t\n\r\f\v]")
TAGS = "ner_tags"


def holds_records(path: Path) -> bool:
    """Return whether a file is a table, or begins as JSON objects do."""
    return is_table(path) or bool(re.match(r'\s*\[?\s*\{\s*["}]', read_text(path, "a CoNLL column file")))


def read_token_records(path: Path, *, strict: bool = True, tag_column: str = "") -> ColumnFile:
    """The sentences as columns of a word and its tag.

    The tags are names, or numbers of the names that a label file beside the file lists in their order. `tag_column` is
    another field for them than `ner_tags`. Raises: ValueError naming file, line or row, and field.
    """
    if tag_column.lstrip("-").isdecimal():
        raise ValueError(f"{path}: --tag-column {tag_column}: its fields have names; give that of the tags")
    names = ClassNames(path)
    lines = chain.from_iterable(_lines(record, names, tag_column or TAGS) for record in read_records(path))
    return file_of_lines(path, lines, " ", strict=strict)


def _lines(record: Record, names: ClassNames, field: str) -> list[Line]:
    """A line for each word, and an empty one that ends the sentence."""
    words = record.texts("tokens")
    tags = record.field(
        field, list, f"a list with a tag for each of tokens; --tag-column names another of {', '.join(record.values)}"
    )
    if len(words) != len(tags):
        raise record.error(f"{len(words)} tokens and {len(tags)} {field}; give one tag for each token")
    for place, word in enumerate(words):
        if not word or BLANK.search(word):
            raise record.error(f"tokens[{place}] is {word!r}; wanted a word without blanks; join or split it")
    texts = [_tag(record, names, f"{field}[{place}]", tag) for place, tag in enumerate(tags)]
    source = record.where.removesuffix(str(record.line))
    rows = [*zip(words, texts, strict=True), ()]
    return [Line(source, record.line, row, row[-1] if row else "O") for row in rows]


def _tag(record: Record, names: ClassNames, where: str, tag: object) -> str:
    text = names.name(record, where, tag)
    try:
        parse_tag(text)
    except ValueError as error:
        raise record.error(f"{where}: {error}") from None
    if BLANK.search(text):
        raise record.error(
            f"{where} is {text!r}; predictions are columns, which blanks part: wanted a type without any"
        )
    return text
