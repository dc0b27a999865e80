"""The requests and answers of the service, from which FastAPI makes its OpenAPI page."""

from typing import Any, Literal

from pydantic import BaseModel

from tasks.linking.formats.links import TURTLE


class GivenMention(BaseModel):
    """Characters of a text, in code points; the end is excluded."""

    start: int
    end: int


class GivenDocument(BaseModel):
    """A text; its mentions are linked or, where it has none, found."""

    text: str
    id: str | int | None = None
    mentions: list[GivenMention] | None = None


class LinkBody(BaseModel):
    """Documents to link; with `candidates` each mention shows all of its own."""

    documents: list[GivenDocument]
    candidates: bool = False


class Page(BaseModel):
    """A page of Wikipedia, and how probable it is."""

    title: str | None
    page_id: int | None
    qid: str | None
    entity_id: int | None
    own_id: str | None = None
    probability: float | None


class Candidate(Page):
    """A page that a mention can stand for."""

    prior: float
    cosine: float | None
    coherence: float | None
    model: float | None
    step: str


class Mention(GivenMention, Page):
    """A mention with its page; `label` and `label_probability` are those of a model of entity recognition."""

    mention: str
    confidence: float | None
    reason: Literal["no_candidate", "below_threshold"] | None
    link_probability: float | None
    step: str
    label: str | None = None
    label_probability: float | None = None
    candidates: list[Candidate] | None = None


class LinkedDocument(GivenDocument):
    """A document with its links."""

    mentions: list[Mention]  # type: ignore[assignment]


class Response(BaseModel):
    """The documents with their links."""

    documents: list[LinkedDocument]


class Health(BaseModel):
    """The table's language, dump, names and wiki, the parts of the linker and its threshold, and how busy it is.

    A request of up to `piece_bytes` is answered soon.
    """

    status: str
    language: str | None
    dump: list[str]
    names: int
    model: bool
    contexts: bool
    ner: bool
    wiki: str | None
    min_probability: float
    piece_bytes: int
    waiting: int
    busy_seconds: float


class Problem(BaseModel):
    """An error, in a line."""

    error: str


def request_body() -> dict[str, Any]:
    """Return what OpenAPI says of the body of a request, which the service reads by itself, within its limits."""
    schema = LinkBody.model_json_schema()
    nested = schema.pop("$defs")

    def inlined(node: Any) -> Any:
        if isinstance(node, list):
            return [inlined(each) for each in node]
        if not isinstance(node, dict):
            return node
        name = node.get("$ref", "").rpartition("/")[2]
        return inlined(nested[name]) if name else {key: inlined(value) for key, value in node.items()}

    content = {"schema": inlined(schema), "example": EXAMPLE}
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


GRAPH = {"schema": {"type": "string"}}
EXAMPLE = {"documents": [{"id": "a", "text": "He rode from China to Athens."}], "candidates": False}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The request is wrong"},
    408: {"model": Problem, "description": "The request did not come in time"},
    413: {"model": Problem, "description": "The request is too long, or has too many documents"},
    500: {"model": Problem, "description": "The service failed"},
    503: {"model": Problem, "description": "Too many requests are being answered, or the service ends"},
}
NIF_BODY = {"requestBody": {"required": True, "content": dict.fromkeys(TURTLE, GRAPH)}}
NIF: dict[int | str, dict[str, Any]] = {
    200: {"description": "The same graph with links", "content": dict.fromkeys(TURTLE, GRAPH)},
    415: {"model": Problem, "description": "The body is of another type"},
    **PROBLEMS,
}
