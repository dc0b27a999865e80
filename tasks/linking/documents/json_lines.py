"""Documents as JSON objects, in our format, ZELDA's or ELEVANT's, told apart by their fields."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from tasks.io.records import Record, children, shown
from tasks.linking.documents.document import NO_ENTITY, Document, Mention, Skipped, mention_noted

CHARACTERS = "characters"
QID = re.compile(r"Q[1-9]\d{0,17}")


class Format(NamedTuple):
    """The mentions of a record: the objects that tell them, and the mention of one, in a text of so many characters.

    Raises: ValueError naming the field. The first one is for records that cannot be read at all.
    """

    all: Callable[[Record], Sequence[Any]]
    one: Callable[[Any, int], Mention]


def read_document(record: Record, number: int, left_out: Skipped | None = None, *, is_answer: bool = False) -> Document:
    """The document of a record, which is the `number`th of its source, and has that as its id where it has no `id`.

    Our format: `text`, and `mentions` of `start`, `end`, `title`, and where they are told `qid` and `optional`.
    ZELDA's: `text`, `index` of [start, end], and `wikipedia_titles`. ELEVANT's: `text`, and `labels` of `span`,
    `entity_id`, `name` and `optional`; a label without an entity of Wikidata has no page. A record with `text` alone
    says nothing of mentions. An answer in ELEVANT's format has its mentions as `entity_mentions` of `span` and `id`.

    Raises: ValueError naming the record and the field. Where `left_out` is given, a mention with a wrong field is left
    out instead, and what is wrong with it is added there.
    """
    text = record.text("text")
    found = record.values.get("id", number)
    if type(found) not in (str, int):
        raise record.error(f"id is {shown(found)}; wanted a text or a whole number")
    annotated = (0, len(text))
    for name in ("annotated", "evaluation_span"):
        if name in record.values and text:
            annotated = record.span(name, record.values[name], len(text), CHARACTERS)
    known = ANSWERS if is_answer else FORMATS
    formats = [each for field, each in known.items() if field in record.values]
    mentions = list[Mention]()
    for each in formats[0].all(record) if formats else ():
        with mention_noted(left_out):
            mentions.append(formats[0].one(each, len(text)))
    return Document(record.where, str(found), text, tuple(mentions) if formats else None, annotated)


def _ours(record: Record, size: int) -> Mention:
    values = record.values
    place = record.span("start, end", [values.get("start"), values.get("end")], size, CHARACTERS)
    qid = values.get("qid")
    if qid is not None and not (isinstance(qid, str) and QID.fullmatch(qid)):
        raise record.error(f"qid is {shown(qid)}; wanted one of Wikidata's, such as 'Q42', or null")
    return Mention(*place, _title(record, "title", values.get("title")), qid, _optional(record))


def _our_answer(record: Record, size: int) -> Mention:
    value, reason = record.values.get("probability"), record.values.get("reason")
    if value is not None and (type(value) not in (int, float) or not 0 <= value <= 1):
        raise record.error(f"probability is {value!r}; wanted a number from 0 to 1, or null")
    return replace(_ours(record, size), probability=value, reason=str(reason or ""))


def _zelda_rows(record: Record) -> list[tuple[Record, int, Any, Any]]:
    spans = record.field("index", list, "a list of [start, end]")
    titles = record.field("wikipedia_titles", list, "a list of titles")
    if len(spans) != len(titles):
        raise record.error(
            f"index has {len(spans)} places, wikipedia_titles {len(titles)} titles; wanted as many of both"
        )
    return [(record, number, *pair) for number, pair in enumerate(zip(spans, titles, strict=True))]


def _zelda(row: tuple[Record, int, Any, Any], size: int) -> Mention:
    record, number, span, title = row
    place = record.span(f"index[{number}]", span, size, CHARACTERS)
    return Mention(*place, _title(record, f"wikipedia_titles[{number}]", title))


def _elevant(record: Record, size: int) -> Mention:
    """A label; of one without an entity of Wikidata, such as a date, the name says that there is none.

    One that describes and does not name (`desc`) is optional, as in ELEVANT's own evaluation.
    """
    entity = record.text("entity_id")
    optional = _optional(record) or record.values.get("desc") is True
    place = record.span("span", record.values.get("span"), size, CHARACTERS)
    if not QID.fullmatch(entity):
        return Mention(*place, optional=optional)
    return Mention(*place, _title(record, "name", record.values.get("name")), entity, optional)


def _elevant_answer(record: Record, size: int) -> Mention:
    place = record.span("span", record.values.get("span"), size, CHARACTERS)
    qid = record.text("id") if "id" in record.values else ""
    return Mention(*place, qid=qid if QID.fullmatch(qid) else None)


def _title(record: Record, name: str, value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise record.error(f"{name} is {shown(value)}; wanted a title, or null")
    return None if value in NO_ENTITY else value


def _optional(record: Record) -> bool:
    value = record.values.get("optional")
    if value is not None and type(value) is not bool:
        raise record.error(f"optional is {shown(value)}; wanted true or false")
    return bool(value)


# By the field that tells a format; what `link` answers has our `mentions` beside the fields of the question.
FORMATS = {
    "mentions": Format(partial(children, name="mentions"), _ours),
    "wikipedia_titles": Format(_zelda_rows, _zelda),
    "labels": Format(partial(children, name="labels"), _elevant),
}
_ELEVANT_ANSWERS = Format(  # which lack the field where nothing is found
    lambda record: children(record, "entity_mentions") if "entity_mentions" in record.values else (), _elevant_answer
)
ANSWERS = {
    **FORMATS,
    "mentions": Format(partial(children, name="mentions"), _our_answer),
    "labels": _ELEVANT_ANSWERS,
    "entity_mentions": _ELEVANT_ANSWERS,
}
