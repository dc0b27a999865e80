"""The service's page to type into, `page/`: three files that ask for nothing but the service's answers."""

from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("page")
FILES = {
    "/": ("index.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
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


def add_page(app: Any) -> None:
    """Add the page at /, and the files that it needs."""
    from starlette.responses import Response

    for path, (name, kind) in FILES.items():
        file = Response((FOLDER / name).read_bytes(), media_type=kind, headers=HEADERS)
        app.add_route(path, file, methods=["GET"], include_in_schema=False)
