"""Formats of linked documents: lines of JSON, a page of HTML, wikitext."""

from collections.abc import Mapping
from typing import Any

from tasks.linking.formats import wikitext
from tasks.linking.formats.links import wiki_of
from tasks.linking.formats.page import page
from tasks.serving.formats import JSON_LINES, Format, Place, Values

FORMATS = ("json", "html", "wikitext")


def find_format(name: str, facts: Mapping[str, Any]) -> Format:
    """One of FORMATS, for answers by a mention table with these facts.

    A document without an id is named by its line or file. Wikitext has no place for what is wrong: stderr tells it, and
    nothing is written.
    """
    if name == "html":
        return page(wiki_of(facts))
    if name == "json":
        return JSON_LINES

    def answer(place: Place, values: Values) -> str:
        return wikitext.document({"id": next(iter(place.values())), **values})

    return Format(answer, lambda *_: "", says_errors=False)
