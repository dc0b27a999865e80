"""NIF: read and written by rdflib, what comes back is what went, and hostile graphs are refused."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rdflib", reason="NIF is read with it")
pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from rdflib import Graph

from pipeline.lookup.mentions import MentionTable
from tasks.linking.documents.document import Skipped
from tasks.linking.documents.reading import read_documents
from tasks.linking.formats import nif
from tests.support.properties import example, given, st

WIKI = "https://en.wikipedia.org/wiki/"
GERBIL = """@prefix nif: <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> .
<http://a.org/r#char=0,14> a nif:Context ; nif:isString "\U0001d538 Ann met Bob" ; nif:endIndex %s .
<http://a.org/r#char=3,6> a nif:Phrase ; nif:anchorOf "Ann" ; nif:beginIndex %s ; nif:endIndex %s ;
    nif:referenceContext <http://a.org/r#char=0,14> .
"""


def linked(text: str, spans: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
    """Mentions with a page each, as an answer has them."""
    return [
        {"start": start, "end": end, "mention": text[start:end], "title": "A b", "qid": "Q5", "confidence": 0.5}
        for start, end in spans
    ]


def round_trip(text: str, spans: Sequence[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]]:
    """A text and its spans, written and read again."""
    graph, written = nif.graph_of("a/b c", text)
    nif.add_links(graph, written, linked(text, spans), WIKI)
    [read] = nif.texts_of(nif.read_graph(nif.write(graph)))
    return read.text, [*read.mentions]


@given(st.text(max_size=30), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=3))
@example("Ann", [(0, 3)])
@example('"""\\\r\n\x85\u2028\U0001f600', [(0, 3), (7, 8)])
def test_texts_and_places_come_back(text: str, spans: list[tuple[int, int]]) -> None:
    spans = sorted({(start, min(end, len(text))) for start, end in spans if start < min(end, len(text))})
    assert round_trip(text, spans) == (text, spans)


@pytest.mark.data
def test_documents_of_a_public_set_come_back(shared: Path) -> None:
    documents = read_documents(shared / "data/entity-linking/wned-wiki.jsonl", Skipped())  # an end is wrong
    for each in documents:
        spans = sorted({(mention.start, mention.end) for mention in each.mentions or ()})
        assert round_trip(each.text, spans) == (each.text, spans)


@pytest.mark.parametrize(("end", "first", "last"), [(13, 2, 5), (14, 3, 6)])
def test_offsets_are_counted_as_the_end_of_the_text_is(end: int, first: int, last: int) -> None:
    """In code points, or in UTF-16 units; so are those of the answer."""
    graph = nif.read_graph((GERBIL % (end, first, last)).encode())
    [text] = nif.texts_of(graph)
    assert text.record().values["mentions"] == [{"start": 2, "end": 5}]
    answers = linked(text.text, [(2, 5), (10, 13)])
    nif.add_links(graph, text, answers, WIKI)
    again = Graph().parse(data=nif.write(graph), format="turtle")
    found = {
        str(phrase): (int(str(again.value(phrase, nif.NIF.beginIndex))), {*map(str, ends)})
        for phrase in again.subjects(nif.NIF.referenceContext)
        if (ends := again.objects(phrase, nif.ITSRDF.taIdentRef))
    }
    pages = {f"{WIKI}A_b", "http://www.wikidata.org/entity/Q5"}
    assert found == {
        "http://a.org/r#char=3,6": (first, pages),
        f"http://a.org/r#offset_{end - 3}_{end}": (end - 3, pages),
    }


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((13, 2, 6), "nif:anchorOf is 'Ann', the text has 'Ann ' there"),
        ((13, 2, 99), "wanted 0 to 13"),
        ((14, 1, 6), "wanted 0 to 14"),  # in the middle of a pair of units
        ((13, 5, 2), "spans 5 to 2; wanted a start below the end"),
        ((13, '"x"', 2), "nif:beginIndex and nif:endIndex"),
    ],
)
def test_wrong_places_are_named(values: tuple[object, ...], said: str) -> None:
    with pytest.raises(ValueError, match=rf"char=3,6>: .*{said}"):
        nif.texts_of(nif.read_graph((GERBIL % values).encode()))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "no Turtle"),
        (b"\xff", "no Turtle"),
        (b"<a:b> <a:c> <a:d> .", "no resource of the type nif:Context"),
        (b"@prefix n: <%s> . <a:b> a n:Context ." % str(nif.NIF).encode(), "0 nif:isString; wanted one"),
        (b"<a:b> <a:c> " + b"[" * 5000 + b"]" * 5000 + b" .", "nested too deeply"),
        (b"<a:b> <a:c> (" + b"1 " * 40_000 + b") .", "more than 32,768 triples"),
    ],
)  # fmt: skip
def test_hostile_graphs_are_refused(data: bytes, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is fetched, and what would grow large ends early."""
    monkeypatch.setattr("urllib.request.urlopen", lambda *_: pytest.fail("fetched"))
    with pytest.raises(ValueError, match=said):
        nif.texts_of(nif.read_graph(data))


def test_pages_without_an_address_are_told(table: Path) -> None:
    assert MentionTable(str(table)).targets.has_qids
    with pytest.raises(ValueError, match="'A' has no address: the dump's file name tells no wiki"):
        nif.pages_of({"title": "A", "qid": None}, None)
    assert nif.pages_of({"title": "A", "qid": None, "own_id": "a b"}, None) == ["urn:own:a%20b"]


def test_a_line_of_elevant() -> None:
    from tasks.linking.formats.formats import elevant

    [mention] = linked("A b", [(0, 3)])
    answer = {"id": 7, "text": "A b", "mentions": [{**mention, "candidates": [{"qid": "Q6"}, {"qid": None}]}]}
    assert json.loads(elevant(answer)) == {
        "id": 7, "title": "7", "text": "A b",
        "entity_mentions": [
            {"span": [0, 3], "recognized_by": "LUKE", "linked_by": "LUKE", "id": "Q5", "candidates": ["Q6"]}
        ],
    }  # fmt: skip
    with pytest.raises(ValueError, match="the id 'x' is no number"):
        elevant({**answer, "id": "x"})
