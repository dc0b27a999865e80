"""Requests of the service: their limits, what they ask for, and its links."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tasks.io.records import Record, children, parse_line
from tasks.linking.documents.json_lines import read_document
from tasks.linking.formats.links import TURTLE, wiki_of
from tasks.linking.linker import Linker
from tasks.linking.service.batching import Answer, Check, LinkRequest
from tasks.linking.service.places import Refused

MOST_BYTES, MOST_DOCUMENTS = 1 << 20, 64
FIELDS = ("documents", "candidates")


@dataclass(frozen=True)
class Limits:
    """Limits of a request and of all together."""

    bytes: int = MOST_BYTES  # of a request's body
    nif: int = 1 << 18  # bytes of a request in NIF, of which rdflib reads some 40 KB a second
    documents: int = MOST_DOCUMENTS  # of a request
    mentions: int = 4096  # that a request's documents bring, or that are found in them
    characters: int = 6000  # of a request's texts in which a model of entity recognition finds names, which is slow
    short: int = 1 << 14  # bytes of requests that do not wait for longer ones, and that are computed together
    reading: float = 20.0  # seconds that a body may take to come, and that a client may let the service wait otherwise
    answering: float = 60.0  # seconds that an answer may take, waiting included
    connections: int = 900  # at the same time, of the 1,024 files that a process usually may have open
    bodies: int = 128  # that come at the same time
    requests: int = 64  # short ones that wait for their answers
    long_requests: int = 16  # the others


def read_request(body: bytes, *, limits: Limits, finds_names: bool = False) -> LinkRequest:
    """The documents of a request, with `finds_names` for a model of entity recognition.

    Raises: ValueError for what is none, Refused where they are too much work.
    """
    try:
        request = parse_line("request", body.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"request: byte {error.start} is not UTF-8; send JSON in UTF-8") from None
    if unknown := sorted(request.values.keys() - {*FIELDS}):
        raise request.error(f"unknown field {unknown[0]!r}; wanted {' and '.join(FIELDS)}")
    records = children(request, "documents")
    check_amount(records, limits, finds_names)
    candidates = "candidates" in request.values and request.field("candidates", bool, "true or false")
    return LinkRequest(records, candidates)


def check_amount(records: Sequence[Record], limits: Limits, finds_names: bool) -> None:
    """Raises: ValueError for a wrong document, Refused where they are too much work."""
    sums = {"documents": len(records), "mentions": 0, "characters": 0}
    for record in records if len(records) <= limits.documents else ():
        document = read_document(record, 0)
        spans = [(each.start, each.end) for each in document.mentions or ()]
        if len(set(spans)) < len(spans):
            raise record.error("mentions: has a span twice; wanted each once")
        sums["mentions"] += len(spans)
        sums["characters"] += len(document.text) if finds_names and document.mentions is None else 0
    for what, count in sums.items():
        if count > (most := getattr(limits, what)):
            raise Refused(413, f"request: {count:,} {what}; wanted {most:,} at most")


def read_nif(linker: Linker, limits: Limits, media: str, body: bytes) -> LinkRequest:
    """The texts of a request in NIF, whose answer is its graph with links.

    Raises: ValueError for what is none, Refused where they are too much work.
    """
    if media not in TURTLE:
        raise Refused(415, f"content type {media[:40]!r}; wanted {' or '.join(TURTLE)}")
    if len(body) > limits.nif:
        raise Refused(413, f"request: {len(body):,} bytes of NIF; wanted {limits.nif:,} at most")
    try:
        from tasks.linking.formats import nif
    except ImportError:
        raise ValueError("NIF is read with rdflib; pip install rdflib where the service runs") from None
    graph = nif.read_graph(body)
    texts = nif.texts_of(graph)
    records = [each.record() for each in texts]
    check_amount(records, limits, linker.recognize is not None)

    def write(answers: Sequence[Answer]) -> bytes:
        wiki = wiki_of(linker.finder.table.manifest.facts)
        for text, answer in zip(texts, answers, strict=True):
            nif.add_links(graph, text, answer["mentions"], wiki)
        return nif.write(graph)

    return LinkRequest(records, write=write)


def link(linker: Linker, limits: Limits, request: LinkRequest, check: Check) -> list[Answer]:
    """The links of documents. Raises: Refused where they have too many names."""

    def check_found(count: int) -> None:
        if count > limits.mentions:
            raise Refused(413, f"request: {count:,} mentions are found; wanted {limits.mentions:,} at most")

    own = replace(linker, shows_candidates=request.candidates, check=check, check_found=check_found)
    return own.answer(request.records)
