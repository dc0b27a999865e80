"""AIDA-CoNLL's columns: a token a line, with tabs B or I, the mention, YAGO's entity and the address in Wikipedia.

A document begins with -DOCSTART- and its name in brackets; an empty line ends a sentence.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tasks.entities.documents.document import NO_ENTITY, Document, Mention, page_title, title_of_address
from tasks.io.records import read_text

START = "-DOCSTART-"


@dataclass
class _Reading:
    """A document up to some line: its text, the mentions that have ended, and the one that has not."""

    where: str
    name: str
    text: str = ""
    mentions: list[Mention] = field(default_factory=list)
    open: Mention | None = None
    words: str = ""  # of the open mention, as its third column has them

    def token(self, word: str) -> None:
        """A token, behind a blank, or behind the end of a sentence."""
        self.text += f"{' ' if self.text and self.text[-1] != chr(10) else ''}{word}"

    def close(self) -> None:
        if self.open:
            self.mentions.append(Mention(self.open.start, self.open.end, self.open.title))
        self.open = None

    def document(self) -> Document:
        self.close()
        text = self.text.rstrip("\n")
        return Document(self.where, self.name, text, tuple(self.mentions), (0, len(text)))


def read_aida(path: Path) -> Iterator[Document]:
    """The documents of a file: tokens between blanks, a sentence a line. Raises: ValueError naming the line."""
    reading: _Reading | None = None
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        where, columns = f"{path}:{number}", line.removesuffix("\r").split("\t")
        if columns[0].startswith(START):
            if reading:
                yield reading.document()
            name = re.search(r"\((.*)\)", columns[0])
            reading = _Reading(
                where, name[1] if name else columns[0].removeprefix(START).strip() or str(number)
            )
        elif reading is None and line.strip():
            raise ValueError(f"{where}: found {line[:40]!r}; wanted {START} before the first token")
        elif reading:
            _read_line(reading, columns, where)
    if reading:
        yield reading.document()


def _read_line(reading: _Reading, columns: list[str], where: str) -> None:
    word, tag = columns[0], columns[1] if len(columns) > 1 else "O"
    if not any(column.strip() for column in columns):
        reading.close()
        if reading.text and reading.text[-1] != "\n":
            reading.text += "\n"
        return
    if not word or tag not in ("B", "I", "O"):
        raise ValueError(
            f"{where}: found the token {word!r} with {tag!r}; wanted a token, and behind it B, I or O"
        )
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
        opened = reading.open or Mention(start, end, _title(columns, where))
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
            raise ValueError(
                f"{where}: {entity!r} has half of a sign, \\ud800 to \\udfff; wanted both"
            ) from None
    if not (title := title_of_address(address)):
        raise ValueError(
            f"{where}: the address is {address!r}; wanted one of Wikipedia, with /wiki/ and a title"
        )
    return title
