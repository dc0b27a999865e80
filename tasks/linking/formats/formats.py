"""Formats of linked documents: lines of JSON, AIDA-CoNLL's columns, a page of HTML, wikitext."""

from collections.abc import Mapping
from typing import Any

from tasks.linking.formats import columns, wikitext
from tasks.linking.formats.links import wiki_of
from tasks.linking.formats.page import page
from tasks.serving.formats import JSON_LINES, Format, Place, Values

FORMATS = ("json", "conll", "html", "wikitext")


def find_format(name: str, facts: Mapping[str, Any]) -> Format:
    """One of FORMATS, for answers by a mention table with these facts.

    A document without an id is named by its line or file. Columns and wikitext have no place for what is wrong: stderr
    tells it, and nothing is written.
    """
    wiki = wiki_of(facts)
    if name == "html":
        return page(wiki)
    if name == "json":
        return JSON_LINES

    def answer(place: Place, values: Values) -> str:
        named = {"id": next(iter(place.values())), **values}
        return columns.document(named, wiki) if name == "conll" else wikitext.document(named)

    return Format(answer, lambda *_: "", says_errors=False)
