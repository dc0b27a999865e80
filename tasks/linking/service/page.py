"""The service's page to type into, `page/`: three files that ask for nothing but the service's answers."""

import tomllib
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("page")
PAGE = tomllib.loads((FOLDER / "page.toml").read_text(encoding="utf-8"))


def add_page(app: Any) -> None:
    """Add the page at /, and the files that it needs."""
    from starlette.responses import Response

    for path, (name, kind) in PAGE["files"].items():
        file = Response((FOLDER / name).read_bytes(), media_type=kind, headers=PAGE["headers"])
        app.add_route(path, file, methods=["GET"], include_in_schema=False)
