"""How linked documents are written: lines of JSON, AIDA-CoNLL's columns, a page of HTML, wikitext."""

from collections.abc import Mapping
from typing import Any

from tasks.serving.formats import JSON_LINES, Format
from tasks.serving.linking import columns, wikitext
from tasks.serving.linking.addresses import wiki_of
from tasks.serving.linking.page import page

FORMATS = ("json", "conll", "html", "wikitext")


def find_format(name: str, facts: Mapping[str, Any]) -> Format:
    """One of FORMATS, for answers by a mention table with these facts.

    Columns name a document without an id by its line or file. They and wikitext have no place for what is wrong: stderr
    tells it, and nothing is written.
    """
    wiki = wiki_of(facts)
    if name == "html":
        return page(wiki)
    if name == "conll":
        return Format(
            lambda place, values: columns.document({"id": next(iter(place.values())), **values}, wiki),
            lambda *_: "",
            says_errors=False,
        )
    if name == "wikitext":
        return Format(lambda _, values: wikitext.document(values), lambda *_: "", says_errors=False)
    return JSON_LINES
