"""The files of the service, `page/`: a page to type into, which asks for its answers alone, and their description."""

from functools import partial
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("page")
FILES = {
    "/": ("index.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
    "/openapi.json": ("openapi.json", "application/json"),
}
HEADERS = {
    # Texts come from anywhere: should markup of theirs ever get into the page, it does nothing.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def page_routes() -> list[Any]:
    """Return Starlette's routes to the page, at /, and to the other files."""
    from starlette.routing import Route

    files = {path: ((FOLDER / name).read_bytes(), kind) for path, (name, kind) in FILES.items()}
    return [Route(path, partial(_get_file, *file)) for path, file in files.items()]


async def _get_file(content: bytes, kind: str, _: Any) -> Any:
    from starlette.responses import Response

    return Response(content, media_type=kind, headers=HEADERS)
