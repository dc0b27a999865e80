"""What the service takes and answers, as OpenAPI says it."""

from typing import Any


def _object(required: tuple[str, ...] = (), /, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _json(description: str, schema: Any) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


TEXT, NUMBER, WHOLE, YES_NO = ({"type": name} for name in ("string", "number", "integer", "boolean"))
TEXT_OR_NULL, NUMBER_OR_NULL, WHOLE_OR_NULL = (
    {"type": [name, "null"]} for name in ("string", "number", "integer")
)
PLACE = {"start": WHOLE, "end": {**WHOLE, "description": "code points; the end is excluded"}}
GIVEN = _object(
    ("text",),
    id={"type": ["string", "integer"]},
    text=TEXT,
    mentions={
        **_list(_object(("start", "end"), **PLACE)),
        "description": "to be linked; without this field they are found",
    },
)
CANDIDATE = _object(
    title=TEXT,
    page_id=WHOLE_OR_NULL,
    qid=TEXT_OR_NULL,
    entity_id=WHOLE_OR_NULL,
    prior=NUMBER,
    probability=NUMBER,
)
MENTION = _object(
    mention=TEXT, **PLACE, title=TEXT_OR_NULL, page_id=WHOLE_OR_NULL, qid=TEXT_OR_NULL,
    entity_id=WHOLE_OR_NULL, probability=NUMBER_OR_NULL, link_probability=NUMBER_OR_NULL, step=TEXT,
    label={**TEXT, "description": "with --ner: what its model calls the mention"}, label_probability=NUMBER,
    candidates=_list(CANDIDATE),
)  # fmt: skip
ERROR = _object(("error",), error=TEXT)
QUESTION = _object(("documents",), documents=_list(GIVEN), candidates={**YES_NO, "default": False})
EXAMPLE = {"documents": [{"id": "a", "text": "He rode from China to Athens."}], "candidates": False}
LINK = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": QUESTION, "example": EXAMPLE}},
    },
    "responses": {
        "200": _json(
            "The documents with their links", _object(documents=_list(_object(mentions=_list(MENTION))))
        ),
        "400": _json("What is wrong with the request, in a line", ERROR),
        "408": _json("The request did not come in time", ERROR),
        "413": _json("The request is too long, or has too many documents", ERROR),
        "500": _json("The service failed", ERROR),
        "503": _json("Too many requests are being answered, or the service ends", ERROR),
    },
}
HEALTH = {
    "responses": {
        "200": _json(
            "It answers, by this table",
            _object(
                status=TEXT,
                language=TEXT_OR_NULL,
                dump=_list(TEXT),
                names=WHOLE,
                model=YES_NO,
                contexts=YES_NO,
                ner=YES_NO,
            ),
        )
    }
}
