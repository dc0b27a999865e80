"""A document with its mentions, and how it is written as a JSON object."""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

NO_ENTITY = ("", "NIL", "--NME--", "null")  # titles that mean none, in one format or another


@dataclass(frozen=True)
class Mention:
    """Characters of a text (half open, in code points), and the title of what they name; None where it has none."""

    start: int
    end: int
    title: str | None = None


@dataclass(frozen=True)
class Document:
    """A text with its mentions.

    Attributes:
        where: the file and the line, for error messages.
        id: names it within its file.
        mentions: None where the file says nothing of them.
        annotated: the characters in which mentions are annotated, half open; the whole text unless said otherwise.
    """

    where: str
    id: str
    text: str
    mentions: tuple[Mention, ...] | None
    annotated: tuple[int, int]

    def error(self, message: str) -> ValueError:
        return ValueError(f"{self.where}: {message}")


def to_json(document: Document) -> dict[str, Any]:
    """The document in our format: `id`, `text`, `mentions`, and `annotated` where that is not the whole text."""
    mentions = [vars(each) for each in document.mentions or ()]
    found: dict[str, Any] = {"id": document.id, "text": document.text, "mentions": mentions}
    if document.annotated != (0, len(document.text)):
        found["annotated"] = list(document.annotated)
    return found


def page_title(text: str) -> str:
    """A page's title as a dump has it, also where it comes from an address: without underscores and fragment."""
    return " ".join(text.partition("#")[0].replace("_", " ").split())


def title_of_address(address: str) -> str:
    """The title of a page of Wikipedia by its address; empty where that is none."""
    match = re.search(r"/wiki/([^?]+)", address)
    return page_title(unquote(match[1])) if match else ""
