"""AIDA-CoNLL's columns: a token a line, with tabs B or I, the mention, YAGO's entity and the address in Wikipedia.

A document begins with -DOCSTART- and its name in brackets; an empty line ends a sentence.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from pipeline.lookup.names import page_title
from tasks.io.records import read_text
from tasks.linking.documents.document import NO_ENTITY, Document, Mention, Skipped, mention_noted, noted

START = "-DOCSTART-"


class _Opened(NamedTuple):
    """A mention up to some line: its place, the columns of its first token, and where that stands."""

    start: int
    end: int
    columns: list[str]
    where: str


def read_aida(path: Path, left_out: Skipped | None = None) -> Iterator[Document]:
    """The documents of a file: tokens between blanks, a sentence a line.

    Raises: ValueError naming the line. Where `left_out` is given, what is wrong is added there instead. A wrong title
    costs its mention; any other wrong line its document, whose text and mentions it would change.
    """
    for first, lines in _documents(path):
        with noted(f"{path}:{first}", left_out and left_out.documents):
            yield _read(path, first, lines, left_out)


def _documents(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines of each document, and the number of the first."""
    lines = read_text(path).split("\n")
    starts = [place for place, line in enumerate(lines) if line.startswith(START)]
    for number, line in enumerate(lines[: starts[0] if starts else None], start=1):
        if line.strip():
            raise ValueError(f"{path}:{number}: found {line[:40]!r}; wanted {START} before the first token")
    for start, end in pairwise([*starts, len(lines)]):
        yield start + 1, lines[start:end]


def _read(path: Path, first: int, lines: list[str], left_out: Skipped | None) -> Document:
    """The document of these lines, the first of which has that number."""
    text, opened, is_open = "", list[_Opened](), False
    for number, line in enumerate(lines[1:], start=first + 1):
        columns, where = line.split("\t"), f"{path}:{number}"
        is_blank = not any(column.strip() for column in columns)
        if text and text[-1] != "\n":
            text += "\n" if is_blank else " "
        word, tag = ("", "O") if is_blank else _token(columns, where)
        text += word
        if tag == "I" and is_open and columns[2] == opened[-1].columns[2]:
            opened[-1] = opened[-1]._replace(end=len(text))
        elif tag != "O":
            opened.append(_Opened(len(text) - len(word), len(text), columns, where))
        is_open = tag != "O"
    mentions = list[Mention]()
    for each in opened:
        with mention_noted(left_out):
            mentions.append(Mention(each.start, each.end, _title(each.columns, each.where)))
    beginning, text = lines[0].split("\t")[0], text.rstrip("\n")
    found = re.search(r"\((.*)\)", beginning)
    name = found[1] if found else beginning.removeprefix(START).strip() or str(first)
    return Document(f"{path}:{first}", name, text, tuple(mentions), (0, len(text)))


def _token(columns: list[str], where: str) -> tuple[str, str]:
    """A token with its tag, which is O where it has none."""
    word, tag = columns[0], columns[1] if len(columns) > 1 else "O"
    if not word or tag not in ("B", "I", "O"):
        raise ValueError(f"{where}: found the token {word!r} with {tag!r}; wanted a token, and behind it B, I or O")
    if tag != "O" and len(columns) < 4:
        raise ValueError(
            f"{where}: {len(columns)} columns; wanted the token, {tag}, the mention, and its entity or --NME--"
        )
    return word, tag


def _title(columns: list[str], where: str) -> str | None:
    """The title by the address or, where there is none, by YAGO's name, in which signs are \\u and four digits."""
    entity, address = columns[3], columns[4] if len(columns) > 4 else ""
    if entity in NO_ENTITY:
        return None
    if not address:
        name = re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), entity)
        try:  # signs beyond four digits are two
            return page_title(name.encode("utf-16", "surrogatepass").decode("utf-16"))
        except UnicodeDecodeError:
            raise ValueError(f"{where}: {entity!r} has half of a sign, \\ud800 to \\udfff; wanted both") from None
    page = re.search(r"/wiki/([^?]+)", address)
    if not (title := page_title(unquote(page[1])) if page else ""):
        raise ValueError(f"{where}: the address is {address!r}; wanted one of Wikipedia, with /wiki/ and a title")
    return title
