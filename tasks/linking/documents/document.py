"""A document with its mentions, how it is written as a JSON object, and what is left out of wrong ones."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, final

from pipeline.lookup.names import page_title
from tasks.io.records import Errors

NO_ENTITY = ("", "NIL", "--NME--", "null")  # titles that mean none, in one format or another


@dataclass(frozen=True)
class Mention:
    """Characters of a text (half open, in code points), and the page that they name.

    The title is None where the file names none; Wikidata's label may stand for it where there is a QID. An optional
    mention is not asked: it need not be found, and an answer to it does not count. An answer may tell its probability,
    and the reason for no page.
    """

    start: int
    end: int
    title: str | None = None
    qid: str | None = None
    optional: bool = False
    probability: float | None = field(default=None, compare=False)
    reason: str = field(default="", compare=False)

    @property
    def page(self) -> str | None:
        """Return what tells the page: the QID or, where there is none, the title; None for a mention of no page."""
        return self.qid or (page_title(self.title) if self.title else None)

    @property
    def page_label(self) -> str | None:
        """The page for people to read: the title, with the QID behind it, or one of them."""
        return f"{self.title} ({self.qid})" if self.title and self.qid else self.page


@dataclass(frozen=True)
class Document:
    """A text with its mentions."""

    where: str  # the file and the line, for error messages
    id: str  # names it within its file
    text: str
    mentions: tuple[Mention, ...] | None  # None where the file says nothing of them
    annotated: tuple[int, int]  # the characters in which mentions are annotated, half open

    def error(self, message: str) -> ValueError:
        return ValueError(f"{self.where}: {message}")


@final
@dataclass(frozen=True)
class Skipped:
    """Wrong parts of annotated documents, which are left out. Documents and answers are left out as a whole."""

    mentions: list[str] = field(default_factory=list)
    documents: Errors = field(default_factory=Errors)
    answers: Errors = field(default_factory=Errors)

    def lines(self) -> list[str]:
        """A line for each mention, and one for each reason to leave documents or answers out."""
        return [*self.mentions, *self.documents.lines(), *self.answers.lines()]


@contextmanager
def noted(where: str, errors: Errors | None) -> Iterator[None]:
    """Note what is wrong with the document at `where` in `errors` instead of raising it, unless they are None."""
    try:
        yield
    except ValueError as error:
        if errors is None:
            raise
        # In files of columns the line that is wrong is not the first one of the document.
        line = re.match(rf"{re.escape(where.rpartition(':')[0])}:\d+(?=: )", str(error))
        place = line[0] if line else where
        errors.note(str(error).removeprefix(f"{place}: "), place)


@contextmanager
def mention_noted(left_out: Skipped | None) -> Iterator[None]:
    """Note what is wrong with a mention in `left_out` instead of raising it, unless that is None."""
    try:
        yield
    except ValueError as error:
        if left_out is None:
            raise
        left_out.mentions.append(str(error))


def to_json(document: Document) -> dict[str, Any]:
    """The document in our format: `id`, `text`, `mentions`, and `annotated` where that is not the whole text.

    A mention has `start`, `end` and `title`; `qid` and `optional` where it has a QID, and where it is optional.
    """
    mentions = [
        {"start": each.start, "end": each.end, "title": each.title}
        | ({"qid": each.qid} if each.qid else {})
        | ({"optional": True} if each.optional else {})
        for each in document.mentions or ()
    ]
    found: dict[str, Any] = {"id": document.id, "text": document.text, "mentions": mentions}
    if document.annotated != (0, len(document.text)):
        found["annotated"] = list(document.annotated)
    return found
