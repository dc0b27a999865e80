"""Documents as JSON objects, in our format, ZELDA's or ELEVANT's, told apart by their fields."""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tasks.entities.documents.document import NO_ENTITY, Document, Mention
from tasks.io.records import Record, children

CHARACTERS = "characters"


class Found(NamedTuple):
    """A mention as a format has it: where it stands, its place, its title, and what these fields are called."""

    record: Record
    span: Any
    title: Any
    span_field: str
    title_field: str


def read_document(record: Record, number: int, left_out: list[str] | None = None) -> Document:
    """The document of a record, which is the `number`th of its source, and has that as its id where it has no `id`.

    Our format: `text`, and `mentions` of `start`, `end`, `title`. ZELDA's: `text`, `index` of [start, end], and
    `wikipedia_titles`. ELEVANT's: `text`, and `labels` of `span`, `entity_id`, `name`, which is taken for the title
    where the entity is one of Wikidata's. A record with `text` alone says nothing of mentions.

    Raises: ValueError naming the record and the field. Where `left_out` is given, a mention with a wrong place or title
    is left out instead, and what is wrong with it is added there.
    """
    text = record.text("text")
    found = record.values.get("id", number)
    if type(found) not in (str, int):
        raise record.error(f"id is {found!r}; wanted a text or a whole number")
    formats = [read for field, read in FORMATS.items() if field in record.values]
    mentions = _mentions(formats[0](record), text, left_out) if formats else None
    annotated = (0, len(text))
    for name in ("annotated", "evaluation_span"):
        if name in record.values and text:
            annotated = record.span(name, record.values[name], len(text), CHARACTERS)
    return Document(record.where, str(found), text, mentions, annotated)


def _mentions(found: Iterator[Found], text: str, left_out: list[str] | None) -> tuple[Mention, ...]:
    mentions = []
    for each in found:
        try:
            place = each.record.span(each.span_field, each.span, len(text), CHARACTERS)
            if each.title is not None and not isinstance(each.title, str):
                raise each.record.error(f"{each.title_field} is {each.title!r}; wanted a title, or null")
            mentions.append(Mention(*place, None if each.title in NO_ENTITY else each.title))
        except ValueError as error:
            if left_out is None:
                raise
            left_out.append(str(error))
    return tuple(mentions)


def _ours(record: Record) -> Iterator[Found]:
    for each in children(record, "mentions"):
        span = [each.values.get("start"), each.values.get("end")]
        yield Found(each, span, each.values.get("title"), "start, end", "title")


def _zelda(record: Record) -> Iterator[Found]:
    spans = record.field("index", list, "a list of [start, end]")
    titles = record.field("wikipedia_titles", list, "a list of titles")
    if len(spans) != len(titles):
        raise record.error(
            f"index has {len(spans)} places, wikipedia_titles {len(titles)} titles; wanted as many of both"
        )
    for number, (span, title) in enumerate(zip(spans, titles, strict=True)):
        yield Found(record, span, title, f"index[{number}]", f"wikipedia_titles[{number}]")


def _elevant(record: Record) -> Iterator[Found]:
    for each in children(record, "labels"):
        is_known = re.fullmatch(r"Q\d+", each.text("entity_id"))
        yield Found(
            each, each.values.get("span"), each.values.get("name") if is_known else None, "span", "name"
        )


# By the field that tells a format; what `link` answers has our `mentions` beside the fields of the question.
FORMATS: dict[str, Callable[[Record], Iterator[Found]]] = {
    "mentions": _ours,
    "wikipedia_titles": _zelda,
    "labels": _elevant,
}
