"""Linking over HTTP: documents as JSON in, their links as JSON out; what is wrong is told in one line.

GET /           a page to type into
POST /link      {"documents": [{"text", "id", "mentions"}, ...], "candidates": false} -> {"documents": [...]}
POST /nif       texts as NIF, in Turtle -> the same with links
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
import time
import tomllib
from collections.abc import AsyncIterator, Coroutine
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tasks.linking.formats.links import wiki_of
from tasks.linking.linker import Linker
from tasks.linking.service.batching import Batches, Read
from tasks.linking.service.places import Places, Refused
from tasks.linking.service.requests import Limits, link, read_nif, read_request

PAGE = Path(__file__).with_name("page")  # to type into: files that ask for nothing but the service's answers
NAME = 32  # bytes of a text to each of its names: fewer are rare
MOST_GLOBAL = 100  # mentions of a request that are answered one after the other
SHUTDOWN = 30  # seconds that requests have which are not answered yet
MOST_UNREAD = 64 << 20  # bytes of a body that is too long, which are read so that its client reads the answer


def check_packages() -> None:
    """Raises: ValueError where a package is not installed that the service needs."""
    missing = [name for name in ("fastapi", "uvicorn") if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(f"serve needs packages that are not installed; pip install {' '.join(missing)}")


def make_app(linker: Linker, limits: Limits) -> Any:
    """The service as an ASGI application of FastAPI."""
    from fastapi import FastAPI, Request
    from fastapi.responses import JSONResponse, Response
    from starlette.exceptions import HTTPException

    from tasks.linking.service import schema

    bodies = Places(
        limits.bodies, limits.reading, 408,
        f"the request was not there after {limits.reading:g} seconds; send it at once",
    )  # fmt: skip
    if linker.is_global:  # a pass of the model for each mention
        limits = replace(limits, mentions=min(limits.mentions, MOST_GLOBAL))
    # What a model reads takes long beside its bytes: then requests are computed one after the other.
    together = 1 if linker.recognize or linker.is_global else limits.short
    late = f"not answered within {limits.answering:g} seconds; send less at once, or ask again later"
    read = partial(read_request, limits=limits, finds_names=linker.recognize is not None)
    # A thread for short requests and one for the others: no short one waits for a long one.
    lanes = [
        (Batches(partial(link, linker, limits), together), Places(most, limits.answering, 503, late))
        for most in (limits.requests, limits.long_requests)
    ]

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(batches.run()) for batches, _ in lanes]
        yield
        for task in tasks:
            task.cancel()

    app = FastAPI(
        title="Entity linking", description="Wikipedia's pages that texts mention.", version="1", lifespan=lifespan,
        docs_url=None, redoc_url=None,
    )  # fmt: skip

    add_page(app)
    responses: dict[int | str, Any] = {200: {"model": schema.Response}, **schema.PROBLEMS}

    async def reply(request: Request, read_body: Read, media: str) -> Response:
        try:
            async with bodies.place(-time.monotonic()):  # the slowest makes room
                body = await body_of(request, limits)
            batches, waiting = lanes[len(body) > limits.short]
            async with waiting.place(len(body)):
                found = await while_there(request, batches.ask(body, read_body))
                return Response(found, media_type=media)
        except asyncio.CancelledError:
            raise Refused(503, "the service ends; ask again later") from None
        except ValueError as error:
            raise Refused(400, str(error)) from None

    @app.post("/link", openapi_extra=schema.request_body(), responses=responses, summary="Link documents")
    async def post_link(request: Request) -> Response:
        return await reply(request, read, "application/json")

    @app.post("/nif", openapi_extra=schema.NIF_BODY, responses=schema.NIF, summary="Link texts of NIF")
    async def post_nif(request: Request) -> Response:
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        return await reply(request, partial(read_nif, linker, limits, media), media)

    @app.head("/health", include_in_schema=False)
    @app.get("/health", responses={200: {"model": schema.Health}}, summary="Whether it answers")
    async def get_health() -> JSONResponse:
        busy = {
            "waiting": sum(len(waiting.taken) for _, waiting in lanes),
            "busy_seconds": round(max(batches.seconds() for batches, _ in lanes), 3),
        }
        return JSONResponse({**health(linker, limits), **busy})

    @app.exception_handler(Refused)
    async def refuse(_: Request, error: Refused) -> JSONResponse:
        later = {"Retry-After": "1"} if error.status == 503 else None
        return JSONResponse({"error": error.reason}, error.status, later)

    @app.exception_handler(HTTPException)
    async def not_there(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": str(error.detail)}, error.status_code, headers=error.headers)

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": f"{type(error).__name__}; the service's stderr says more"}, 500)

    return app


def add_page(app: Any) -> None:
    """Add the page at /, and the files that it needs."""
    from starlette.responses import Response

    told = tomllib.loads((PAGE / "page.toml").read_text(encoding="utf-8"))
    for path, (name, kind) in told["files"].items():
        file = Response((PAGE / name).read_bytes(), media_type=kind, headers=told["headers"])
        app.add_route(path, file, methods=["GET"], include_in_schema=False)


async def while_there(request: Any, reply: Coroutine[Any, Any, bytes]) -> bytes:
    """The reply, for as long as the client waits. Raises: Refused where it has gone."""
    asked, gone = asyncio.ensure_future(reply), asyncio.ensure_future(request.receive())
    try:
        done, _ = await asyncio.wait({asked, gone}, return_when="FIRST_COMPLETED")
        if asked in done:
            return asked.result()
        raise Refused(400, "the client has gone")
    finally:
        asked.cancel()
        gone.cancel()


async def body_of(request: Any, limits: Limits) -> bytes:
    """The body of a request; of a longer one no more is kept. Raises: Refused for a longer one."""
    from starlette.requests import ClientDisconnect

    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size <= limits.bytes:
                parts.append(part)
            elif size > MOST_UNREAD:
                break
    except ClientDisconnect:
        raise Refused(400, "the request ended before its body") from None
    if size > limits.bytes:
        raise Refused(413, f"the request has more than {limits.bytes:,} bytes; send fewer documents at once")
    return b"".join(parts)


def health(linker: Linker, limits: Limits) -> dict[str, Any]:
    """That it answers, by what, and how long a request may be that is answered soon."""
    table = linker.finder.table
    facts = table.manifest.facts
    found = {name: facts.get(name) for name in ("language", "dump")}
    parts = {"model": linker.model, "contexts": linker.contexts, "ner": linker.recognize}
    uses = {name: part is not None for name, part in parts.items()}
    piece = min(limits.bytes, limits.short, NAME * limits.mentions)
    piece = min(piece, limits.characters) if linker.recognize else piece
    asks = {"wiki": wiki_of(facts), "min_probability": linker.min_detected, "piece_bytes": piece}
    return {"status": "ok", **found, "names": len(table), **uses, **asks}


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


def serve(linker: Linker, options: argparse.Namespace) -> int:
    """Answer until the process is told to end; what it has begun to answer is answered before."""
    import uvicorn

    from tasks.linking.service.connections import Protocol, Server

    limits = Limits(bytes=options.most_bytes, documents=options.most_documents)
    app = make_app(linker, limits)
    config = uvicorn.Config(
        app, http=Protocol, ws="none", log_level="error", access_log=False, lifespan="on",
        timeout_graceful_shutdown=SHUTDOWN,
    )  # fmt: skip
    with listen(options.host, options.port) as listening:
        host, port = listening.getsockname()[:2]
        name = f"[{host}]" if ":" in host else host
        print(f"listening at http://{name}:{port}", file=sys.stderr, flush=True)
        Server(config, limits.reading, limits.connections).run(sockets=[listening])
    return 0
