"""Linking over HTTP: documents as JSON in, their links as JSON out; what is wrong is told in one line.

POST /link      {"documents": [{"text", "id", "mentions"}, ...], "candidates": false} -> {"documents": [...]}
GET /health     whether it answers, and by what
GET /openapi.json   all of this for programs
"""

import argparse
import asyncio
import contextlib
import importlib.util
import os
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

from tasks.io.arguments import positive
from tasks.io.records import children, parse_line
from tasks.linking.documents.json_lines import read_document
from tasks.linking.linker import Linker
from tasks.linking.service.batching import Answer, Batches, LinkRequest

PORT = 8765
MOST_BYTES, MOST_DOCUMENTS, MOST_REQUESTS = 1 << 20, 64, 64
SHUTDOWN = 30  # seconds that requests have which are not answered yet
READING = 20.0  # seconds that a request's body may take
FIELDS = ("documents", "candidates")
EXAMPLE = {"documents": [{"id": "a", "text": "He rode from China to Athens."}], "candidates": False}
# For programs and people, on the page of OpenAPI.
RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The documents with their `mentions`: `mention`, `start`, `end`, `title`, `page_id`, `qid`, "
        "`entity_id`, `probability`, `link_probability` and `step`; of a model of entity recognition also `label` and "
        "`label_probability`; where they are asked for, `candidates`"
    },
    400: {"description": "The request is wrong, as `error` says"},
    408: {"description": "The request did not come in time"},
    413: {"description": "The request is too long, or has too many documents"},
    500: {"description": "The service failed"},
    503: {"description": "Too many requests are being answered, or the service ends"},
}


@dataclass(frozen=True)
class Limits:
    """Of a request's body, its documents and its seconds; of open requests; of documents computed at once."""

    bytes: int = MOST_BYTES
    documents: int = MOST_DOCUMENTS
    requests: int = MOST_REQUESTS
    at_once: int = 256
    reading: float = READING


class Refused(Exception):
    """A request that is not answered: the status, and why in a line."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


def add_service(serve: argparse.ArgumentParser) -> None:
    """Add where the service listens, and what it takes."""
    serve.add_argument(
        "--host",
        default="127.0.0.1",
        help="to listen at; 0.0.0.0 lets other machines ask, too (default: %(default)s, this machine alone)",
    )
    serve.add_argument(
        "--port", type=int, default=PORT, help="to listen at; 0: one that is free (default: %(default)s)"
    )
    serve.add_argument(
        "--most-bytes",
        type=positive,
        default=MOST_BYTES,
        metavar="N",
        help="of a request (default: %(default)s)",
    )
    serve.add_argument(
        "--most-documents", type=positive, default=MOST_DOCUMENTS, metavar="N",
        help="of a request (default: %(default)s)",
    )  # fmt: skip
    serve.add_argument(
        "--docs",
        action="store_true",
        help="a page at /docs to try it, whose script and style the browser fetches from cdn.jsdelivr.net",
    )


def check_packages() -> None:
    """Raises: ValueError where a package is not installed that the service needs."""
    missing = [name for name in ("fastapi", "uvicorn") if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(f"serve needs packages that are not installed; pip install {' '.join(missing)}")


# The application


def make_app(linker: Linker, limits: Limits, *, docs: bool = False) -> Any:
    """The service as an ASGI application of FastAPI; with `docs` it has Swagger's page, whose script is not ours."""
    from fastapi import FastAPI, Request
    from fastapi.responses import JSONResponse
    from starlette.exceptions import HTTPException

    batches = Batches(lambda request: link(linker, request), limits.at_once)
    open_requests = 0

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        task = asyncio.create_task(batches.run())
        yield
        task.cancel()

    app = FastAPI(
        title="Entity linking", description="Wikipedia's pages that texts mention.", version="1", lifespan=lifespan,
        docs_url="/docs" if docs else None, redoc_url=None,
    )  # fmt: skip

    # The service reads the body by itself, within its limits.
    content = {"application/json": {"schema": {"type": "object"}, "example": EXAMPLE}}
    body = {"requestBody": {"required": True, "content": content}}

    @app.post("/link", openapi_extra=body, responses=RESPONSES, summary="Link documents")
    async def post_link(request: Request) -> JSONResponse:
        nonlocal open_requests
        if open_requests >= limits.requests:
            raise Refused(503, f"{open_requests} requests are being answered; ask again later")
        open_requests += 1
        try:
            links = read_request(await body_of(request, limits), limits.documents)
            answers = await batches.ask(links) if links.records else []
        except asyncio.CancelledError:
            raise Refused(503, "the service ends; ask again later") from None
        except ValueError as error:
            raise Refused(400, str(error)) from None
        finally:
            open_requests -= 1
        documents = [{**each.values, **answer} for each, answer in zip(links.records, answers, strict=True)]
        return JSONResponse({"documents": documents})

    @app.get("/health", summary="Whether it answers, and by what parts")
    async def get_health() -> JSONResponse:
        return JSONResponse(health(linker))

    @app.exception_handler(Refused)
    async def refuse(_: Request, error: Refused) -> JSONResponse:
        return JSONResponse({"error": error.reason}, error.status)

    @app.exception_handler(HTTPException)
    async def not_there(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": str(error.detail)}, error.status_code, headers=error.headers)

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": f"{type(error).__name__}; the service's stderr says more"}, 500)

    return app


async def body_of(request: Any, limits: Limits) -> bytes:
    """The body of a request, of which no more is read than is taken. Raises: Refused for a longer or a slower one."""
    from starlette.requests import ClientDisconnect

    too_long = Refused(413, f"the request has more than {limits.bytes:,} bytes; send fewer documents at once")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > limits.bytes:
        raise too_long
    parts, room = [], limits.bytes
    try:
        async with asyncio.timeout(limits.reading):
            async for part in request.stream():
                room -= len(part)
                if room < 0:
                    raise too_long
                parts.append(part)
    except TimeoutError:
        raise Refused(
            408, f"the request was not there after {limits.reading:g} seconds; send it at once"
        ) from None
    except ClientDisconnect:
        raise Refused(400, "the request ended before its body") from None
    return b"".join(parts)


def read_request(body: bytes, most: int) -> LinkRequest:
    """The documents of a request. Raises: ValueError for what is none, Refused where there are too many."""
    try:
        request = parse_line("request", body.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"request: byte {error.start} is not UTF-8; send JSON in UTF-8") from None
    if unknown := sorted(request.values.keys() - {*FIELDS}):
        raise request.error(f"unknown field {unknown[0]!r}; wanted {' and '.join(FIELDS)}")
    records = children(request, "documents")
    if len(records) > most:
        raise Refused(413, f"request: {len(records):,} documents; wanted {most:,} at most")
    for record in records:
        read_document(record, 0)
    candidates = "candidates" in request.values and request.field("candidates", bool, "true or false")
    return LinkRequest(records, candidates)


def link(linker: Linker, request: LinkRequest) -> list[Answer]:
    """The links of documents."""
    return replace(linker, shows_candidates=request.candidates).answer(request.records)


def health(linker: Linker) -> dict[str, Any]:
    """That it answers, and by what."""
    table = linker.finder.table
    facts = table.manifest.facts
    found = {name: facts.get(name) for name in ("language", "dump")}
    parts = {"model": linker.model, "contexts": linker.contexts, "ner": linker.recognize}
    uses = {name: part is not None for name, part in parts.items()}
    return {"status": "ok", **found, "names": len(table), **uses}


# The process


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises: ValueError where that is not possible."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        # create_server says the address a second time.
        number = error.errno if isinstance(error, OSError) else None
        reason = os.strerror(number) if number and number > 0 else error
        raise ValueError(f"--host {host} --port {port}: {reason}; give others, or --port 0") from None
    # Connections have it from here. asyncio leaves it out, and the body of an answer waits 40 ms behind its head.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def serve(linker: Linker, options: argparse.Namespace, at_once: int) -> int:
    """Answer until the process is told to end; what it has begun to answer is answered before."""
    import uvicorn

    limits = Limits(bytes=options.most_bytes, documents=options.most_documents, at_once=at_once)
    app = make_app(linker, limits, docs=options.docs)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, lifespan="on", timeout_graceful_shutdown=SHUTDOWN
    )
    with listen(options.host, options.port) as listening:
        host, port = listening.getsockname()[:2]
        print(
            f"listening at http://{f'[{host}]' if ':' in host else host}:{port}", file=sys.stderr, flush=True
        )
        uvicorn.Server(config).run(sockets=[listening])
    return 0
