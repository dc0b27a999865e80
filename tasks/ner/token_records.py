"""Sentences with `tokens` and `ner_tags`: JSON lines, and the tables of Hugging Face's `datasets`."""

import re
from pathlib import Path

from tasks.io.data_folder import label_file, read_label_file
from tasks.io.records import Record, read_records, read_text
from tasks.io.tables import is_table
from tasks.ner.columns import ColumnFile, Line, file_of_blocks
from tasks.ner.spans import parse_tag

BLANK = re.compile(r"[ \t\n]")


def holds_records(path: Path) -> bool:
    """Whether a file is a table, or its first line that is not blank begins as JSON with `tokens` does."""
    return is_table(path) or bool(
        re.match(r'\s*\[?\s*\{\s*"[^"\s]+"\s*:', read_text(path, "a CoNLL column file"))
    )


def read_token_records(path: Path) -> ColumnFile:
    """The sentences as columns of a word and its tag.

    `ner_tags` are names, or numbers of the names that a label file beside the file lists in their order.
    Raises: ValueError naming file, line or row, and field.
    """
    names: tuple[str, ...] = ()
    if not is_table(path) and (found := label_file(path.parent)):
        names = read_label_file(found)
    blocks = [_lines(path, record, names) for record in read_records(path)]
    return file_of_blocks(path, [block for block in blocks if block], " ")


def _lines(path: Path, record: Record, names: tuple[str, ...]) -> list[Line]:
    words = record.texts("tokens")
    tags = record.field("ner_tags", list, "a list with a tag for each of tokens")
    if len(words) != len(tags):
        raise record.error(f"{len(words)} tokens and {len(tags)} ner_tags; give one tag for each token")
    for place, word in enumerate(words):
        if not word or BLANK.search(word):
            raise record.error(f"tokens[{place}] is {word!r}; wanted a word without blanks; join or split it")
    number = re.search(r"^:(?: row )?(\d+)", record.where.removeprefix(str(path)))
    assert number, record.where
    texts = [_tag(record, place, tag, names) for place, tag in enumerate(tags)]
    return [Line(int(number[1]), row) for row in zip(words, texts, strict=True)]


def _tag(record: Record, place: int, tag: object, names: tuple[str, ...]) -> str:
    where = f"ner_tags[{place}]"
    if type(tag) is int:
        if not names:
            raise record.error(
                f"{where} is {tag}, a number without a name; list the names of the tags in their order, one a line, "
                "in a file labels.txt beside this one, or write names"
            )
        if not 0 <= tag < len(names):
            raise record.error(f"{where} is {tag}; wanted a number from 0 to {len(names) - 1}, as listed")
        tag = names[tag]
    if not isinstance(tag, str):
        raise record.error(f"{where} is {tag!r}; wanted the name of a tag, such as B-PER, or its number")
    try:
        parse_tag(tag)
    except ValueError as error:
        raise record.error(f"{where}: {error}") from None
    return tag
