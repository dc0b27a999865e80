"""Formats of linked documents: lines of JSON, a page of HTML, wikitext, NIF."""

import importlib.util
from collections.abc import Mapping
from typing import Any

from tasks.linking.formats import wikitext
from tasks.linking.formats.links import wiki_of
from tasks.linking.formats.page import page
from tasks.serving.formats import JSON_LINES, Format, Place, Values

FORMATS = ("json", "html", "wikitext", "nif")


def find_format(name: str, facts: Mapping[str, Any]) -> Format:
    """One of FORMATS, for answers by a mention table with these facts.

    A document without an id is named by its line or file. Other formats than JSON and HTML have no place for what is
    wrong: stderr tells it, and nothing is written. Raises: ValueError where NIF is asked for without rdflib.
    """
    if name == "html":
        return page(wiki_of(facts))
    if name == "json":
        return JSON_LINES

    if name == "nif" and importlib.util.find_spec("rdflib") is None:
        raise ValueError("--format nif is written with rdflib; pip install rdflib")

    def answer(place: Place, values: Values) -> str:
        values = {"id": next(iter(place.values())), **values}
        if name == "nif":
            from tasks.linking.formats import nif

            return nif.document(values, facts)
        return wikitext.document(values)

    return Format(answer, lambda *_: "", says_errors=False)
