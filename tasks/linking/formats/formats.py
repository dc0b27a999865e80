"""Formats of linked documents: lines of JSON, a page of HTML, wikitext, NIF, ELEVANT's articles."""

import importlib.util
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tasks.linking.formats import wikitext
from tasks.linking.formats.links import address, ordered, wiki_of
from tasks.serving.formats import JSON_LINES, Format, Place, Values, html_page, json_line, parts_of

FORMATS = ("json", "html", "wikitext", "nif", "elevant")


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
        return elevant(values) if name == "elevant" else wikitext.document(values)

    return Format(answer, lambda *_: "", says_errors=False)


def page(wiki: str | None) -> Format:
    """A page of HTML, whose mentions are links where the address of the wiki is known; documents have ids as headings.

    What a mention stands for is its tooltip. An answer raises ValueError where mentions overlap.
    """
    form = html_page(
        "Linked documents",
        Path(__file__).with_name("links.html"),
        lambda values: parts_of(values["text"], ((each["start"], each["end"], each) for each in ordered(values))),
        wiki=wiki,
        address=address,
    )

    def answer(place: Place, values: Values) -> str:
        return form.answer({"id": str(values["id"])} if "id" in values else place, values)

    return replace(form, answer=answer)


def elevant(values: Values) -> str:
    """A line of ELEVANT's `linked_articles`: mentions with QIDs; those whose page has none are not linked there.

    Raises: ValueError for an id that is no number.
    """
    identity = values["id"]
    if not str(identity).isdecimal():
        raise ValueError(f"the id {identity!r} is no number, as ELEVANT's are; give --format json")
    mentions = []
    for each in values["mentions"]:
        candidates = sorted({one["qid"] for one in each.get("candidates", ()) if one["qid"]})
        mention = {"span": [each["start"], each["end"]], "recognized_by": "LUKE", "candidates": candidates}
        mentions.append(mention | ({"id": each["qid"], "linked_by": "LUKE"} if each["qid"] else {}))
    article = {
        "id": int(identity),
        "title": values.get("title", str(identity)),
        "text": values["text"],
        "entity_mentions": mentions,
    }
    return json_line(article | {name: values[name] for name in ("evaluation_span", "labels") if name in values})
