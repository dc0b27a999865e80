"""AIDA-CoNLL's columns: a token a line, with tabs B or I, the mention, YAGO's entity and the address in Wikipedia.

A document begins with -DOCSTART- and its name in brackets; an empty line ends a sentence.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.lookup.names import page_title
from tasks.io.records import read_text
from tasks.linking.documents.document import NO_ENTITY, Document, Mention, Skipped, noted, title_of_address

START = "-DOCSTART-"


@dataclass
class _Reading:
    """A document up to some line: its text, the mentions that have ended, and the one that has not.

    Where titles may be wrong, `wrong` has what is wrong with each, whose mention is left out; None: it is an error.
    """

    wrong: list[str] | None
    text: str = ""
    mentions: list[Mention] = field(default_factory=list)
    open: Mention | None = None
    words: str = ""  # of the open mention, as its third column has them
    is_wrong: bool = False  # the open mention

    def token(self, word: str) -> None:
        """A token, behind a blank, or behind the end of a sentence."""
        self.text += f"{' ' if self.text and self.text[-1] != chr(10) else ''}{word}"

    def close(self) -> None:
        if self.open and not self.is_wrong:
            self.mentions.append(self.open)
        self.open, self.is_wrong = None, False

    def title(self, columns: list[str], where: str) -> str | None:
        """The title of the mention that is opened."""
        try:
            return _title(columns, where)
        except ValueError as error:
            if self.wrong is None:
                raise
            self.wrong.append(str(error))
            self.is_wrong = True
            return None


def read_aida(path: Path, left_out: Skipped | None = None) -> Iterator[Document]:
    """The documents of a file: tokens between blanks, a sentence a line.

    Raises: ValueError naming the line. Where `left_out` is given, what is wrong is added there instead. A wrong title
    costs its mention; any other wrong line its document, whose text and mentions it would change.
    """
    for first, lines in _documents(path):
        with noted(f"{path}:{first}", left_out and left_out.documents):
            document, wrong = _read(path, first, lines, skips=left_out is not None)
            if left_out:
                left_out.mentions.extend(wrong)
            yield document


def _documents(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines of each document, and the number of the first."""
    first, lines = 0, list[str]()
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.startswith(START):
            if lines:
                yield first, lines
            first, lines = number, [line]
        elif lines:
            lines.append(line)
        elif line.strip():
            raise ValueError(f"{path}:{number}: found {line[:40]!r}; wanted {START} before the first token")
    if lines:
        yield first, lines


def _read(path: Path, first: int, lines: list[str], *, skips: bool) -> tuple[Document, list[str]]:
    """The document of these lines, the first of which has that number; what is wrong with the mentions left out."""
    reading, beginning = _Reading([] if skips else None), lines[0].split("\t")[0]
    for number, line in enumerate(lines[1:], start=first + 1):
        _read_line(reading, line.split("\t"), f"{path}:{number}")
    reading.close()
    found = re.search(r"\((.*)\)", beginning)
    name = found[1] if found else beginning.removeprefix(START).strip() or str(first)
    text = reading.text.rstrip("\n")
    document = Document(f"{path}:{first}", name, text, tuple(reading.mentions), (0, len(text)))
    return document, reading.wrong or []


def _read_line(reading: _Reading, columns: list[str], where: str) -> None:
    word, tag = columns[0], columns[1] if len(columns) > 1 else "O"
    if not any(column.strip() for column in columns):
        reading.close()
        if reading.text and reading.text[-1] != "\n":
            reading.text += "\n"
        return
    if not word or tag not in ("B", "I", "O"):
        raise ValueError(f"{where}: found the token {word!r} with {tag!r}; wanted a token, and behind it B, I or O")
    if tag != "O" and len(columns) < 4:
        raise ValueError(
            f"{where}: {len(columns)} columns; wanted the token, {tag}, the mention, and its entity or --NME--"
        )
    if tag == "O" or tag == "B" or columns[2] != reading.words:
        reading.close()
    reading.token(word)
    start, end = len(reading.text) - len(word), len(reading.text)
    if tag != "O":
        reading.words = columns[2]
        opened = reading.open or Mention(start, end, reading.title(columns, where))
        reading.open = Mention(opened.start, end, opened.title)


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
    if not (title := title_of_address(address)):
        raise ValueError(f"{where}: the address is {address!r}; wanted one of Wikipedia, with /wiki/ and a title")
    return title
