"""NIF 2.0: texts with their mentions as RDF, which GERBIL sends and which ELEVANT and others read.

Offsets are code points, as the specification says. Where the end of a text is that of its UTF-16 units, as in Java,
its mentions and the answer have those.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Self
from urllib.parse import quote

from rdflib import RDF, XSD, Graph, Literal, Namespace, URIRef
from rdflib.term import Node

from tasks.io.records import Record
from tasks.linking.formats.links import LinkedMention, address, wiki_of

NIF = Namespace("http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#")
ITSRDF = Namespace("http://www.w3.org/2005/11/its/rdf#")
WIKIDATA = "http://www.wikidata.org/entity/"
MOST_TRIPLES = 1 << 15


class Text(NamedTuple):
    """A text of a graph: its resource, the places of its code points and its end, and resources of its mentions."""

    context: URIRef
    text: str
    places: Sequence[int]
    mentions: Mapping[tuple[int, int], Node]

    def record(self) -> Record:
        """The document; without mentions they are to be found."""
        values: dict[str, Any] = {"id": str(self.context), "text": self.text}
        if self.mentions:
            values["mentions"] = [{"start": start, "end": end} for start, end in self.mentions]
        return Record(str(self.context), values)


class SmallGraph(Graph):
    """A graph that refuses to grow large."""

    def add(self, triple: Any) -> Self:
        if len(self) >= MOST_TRIPLES:
            raise ValueError(f"request: more than {MOST_TRIPLES:,} triples; send fewer documents at once")
        return super().add(triple)


def read_graph(data: bytes) -> Graph:
    """Return the graph of a request in Turtle. Raises: ValueError for what is none."""
    graph = SmallGraph()
    try:
        graph.parse(data=data, format="turtle", publicID="urn:request:")
    except RecursionError:
        raise ValueError("request: nested too deeply; wanted NIF") from None
    except Exception as error:  # rdflib's parsers raise what they like
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise ValueError(reason if reason.startswith("request: ") else f"request: no Turtle ({reason})") from None
    return graph


def texts_of(graph: Graph) -> list[Text]:
    """Return the texts of a graph, by their resources. Raises: ValueError for a wrong one, and where there is none."""
    found = sorted({each for each in graph.subjects(RDF.type, NIF.Context) if isinstance(each, URIRef)})
    if not found:
        raise ValueError("request: no resource of the type nif:Context; wanted one for each text")
    return [_text(graph, context) for context in found]


def _text(graph: Graph, context: URIRef) -> Text:
    values = list(graph.objects(context, NIF.isString))
    if len(values) != 1 or not isinstance(values[0], Literal):
        raise ValueError(f"<{context}>: {len(values)} nif:isString; wanted one, the text")
    text = str(values[0])
    places: Sequence[int] = range(len(text) + 1)
    if _offset(graph, context, NIF.endIndex) == len(text.encode("utf-16-le")) // 2 != len(text):
        places = [*accumulate((1 + (sign > "\uffff") for sign in text), initial=0)]  # in units of UTF-16
    mentions: dict[tuple[int, int], Node] = {}
    for phrase in sorted(graph.subjects(NIF.referenceContext, context), key=str):
        if phrase != context:
            mentions.setdefault(_span(graph, phrase, text, places), phrase)
    return Text(context, text, places, dict(sorted(mentions.items())))


def _offset(graph: Graph, node: Node, name: URIRef) -> int | None:
    value = str(graph.value(node, name))
    return int(value) if value.isascii() and value.isdecimal() and len(value) < 10 else None


def _span(graph: Graph, phrase: Node, text: str, places: Sequence[int]) -> tuple[int, int]:
    """The span of a phrase in code points. Raises: ValueError where the text has none such."""
    given = [_offset(graph, phrase, name) for name in (NIF.beginIndex, NIF.endIndex)]
    found = [bisect_left(places, -1 if each is None else each) for each in given]
    if any(at == len(places) or places[at] != each for at, each in zip(found, given, strict=True)):
        raise ValueError(f"<{phrase}>: nif:beginIndex and nif:endIndex {given}; wanted 0 to {places[-1]}")
    start, end = found
    if start >= end:
        raise ValueError(f"<{phrase}>: spans {start} to {end}; wanted a start below the end")
    anchor = graph.value(phrase, NIF.anchorOf)
    if anchor is not None and str(anchor) != text[start:end]:
        raise ValueError(
            f"<{phrase}>: nif:anchorOf is {str(anchor)[:40]!r}, the text has {text[start:end][:40]!r} there"
        )
    return start, end


def graph_of(identity: str, text: str) -> tuple[Graph, Text]:
    """Return a graph with a text that has no mention."""
    graph = Graph()
    context = URIRef(f"urn:document:{quote(identity, safe='')}#char=0,{len(text)}")
    _describe(graph, context, 0, len(text))
    for predicate, value in ((RDF.type, NIF.Context), (NIF.isString, Literal(text, datatype=XSD.string))):
        graph.add((context, predicate, value))
    return graph, Text(context, text, range(len(text) + 1), {})


def add_links(graph: Graph, of: Text, mentions: Iterable[LinkedMention], wiki: str | None) -> None:
    """Add what mentions of a text link to; those without a page that the graph lacks are not added.

    Raises: ValueError for a page without an address.
    """
    for each in mentions:
        phrase = of.mentions.get((each["start"], each["end"]))
        if phrase is not None:
            graph.remove((phrase, ITSRDF.taIdentRef, None))
        if each["title"] is None:
            continue
        if phrase is None:
            start, end = of.places[each["start"]], of.places[each["end"]]
            whole, _, place = of.context.partition("#")
            # Named in the other way than the text: a mention of all of it is another resource.
            name = f"offset_{start}_{end}" if place.startswith("char=") else f"char={start},{end}"
            phrase = URIRef(f"{whole}#{name}")
            _describe(graph, phrase, start, end)
            graph.add((phrase, RDF.type, NIF.Phrase))
            graph.add((phrase, NIF.anchorOf, Literal(each["mention"], datatype=XSD.string)))
            graph.add((phrase, NIF.referenceContext, of.context))
        for page in pages_of(each, wiki):
            graph.add((phrase, ITSRDF.taIdentRef, URIRef(page)))
        graph.add((phrase, ITSRDF.taConfidence, Literal(each["confidence"], datatype=XSD.double)))


def _describe(graph: Graph, node: URIRef, start: int, end: int) -> None:
    graph.add((node, RDF.type, NIF.RFC5147String if "#char=" in node else NIF.OffsetBasedString))
    for name, place in ((NIF.beginIndex, start), (NIF.endIndex, end)):
        graph.add((node, name, Literal(place, datatype=XSD.nonNegativeInteger)))


def pages_of(mention: LinkedMention, wiki: str | None) -> list[str]:
    """Return the addresses of a mention's page, of the wiki and of Wikidata. Raises: ValueError where there is none."""
    if own := mention.get("own_id"):
        return [f"urn:own:{quote(own, safe='')}"]
    found = [address(wiki, mention["title"])] if wiki else []
    found += [WIKIDATA + mention["qid"]] if mention["qid"] else []
    if not found:
        raise ValueError(
            f"{mention['title']!r} has no address: the dump's file name tells no wiki, and its QID is not known"
        )
    return found


def write(graph: Graph) -> bytes:
    """Return a graph as Turtle, with the usual prefixes."""
    graph.bind("nif", NIF)
    graph.bind("itsrdf", ITSRDF)
    return graph.serialize(format="turtle", encoding="utf-8")


def document(values: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """A document with its links as Turtle."""
    graph, text = graph_of(str(values["id"]), values["text"])
    add_links(graph, text, values["mentions"], wiki_of(facts))
    return f"{write(graph).decode()}\n"
