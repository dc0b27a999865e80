"""Documents as text or JSON lines, of files and of stdin: what is linked."""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tasks.io.records import Record, parse_line
from tasks.serving.streams import Given, files, lines_of, numbered

JSON_LINES, TEXT_LINES, FILES = "json", "lines", "files"
KINDS = JSON_LINES, TEXT_LINES, FILES
STDIN = "-"


# How files of annotated documents begin that are neither text nor a JSON object a line.
ANNOTATED = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:-DOCSTART-|<\?xml|\[\s*\{)")


def check_inputs(names: Sequence[str], kind: str | None = None) -> None:
    """See that all inputs can be asked about, before any is read; `kind` says what their documents are.

    Raises: ValueError naming one that is not there, is a folder or, where nothing says what it is, is in a format that
    `convert` reads.
    """
    for name in names:
        path = Path(name)
        if name != STDIN and not path.exists():
            raise ValueError(f"{name}: no such file; wanted documents, or - for those on stdin")
        if name != STDIN and path.is_dir():
            raise ValueError(
                f"{name}: a folder; wanted files of documents (do several fit a pattern, such as that of --mentions?)"
            )
        if kind is None and path.is_file() and (found := begins_as_annotated(path)):
            raise ValueError(
                f"{name}: begins with {found!r}, as annotated documents do; make JSON lines of it by "
                "python -m tasks.entities convert, or give --input lines if it is text"
            )


def begins_as_annotated(path: Path) -> str | None:
    """What a file of annotated documents begins with; None for any other file, and for one that cannot be read."""
    try:
        with path.open("rb") as stream:
            match = ANNOTATED.match(stream.read(1 << 10))
    except OSError:
        return None
    return match[0].decode().strip() if match else None


def documents_of(names: Sequence[str], *, are_files: bool) -> Iterator[Given]:
    """The lines of files and of stdin; with `are_files` each as a whole. Raises: ValueError for what cannot be read."""
    stdin = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
    for name in names:
        if are_files and name != STDIN:
            yield from files([Path(name)])
        elif are_files:
            yield Given("stdin", {"file": "stdin"}, b"".join(iter(lambda: stdin.read(1 << 20), b"")))
        elif name == STDIN:
            yield from numbered(lines_of(stdin))
        else:
            try:
                with Path(name).open("rb", buffering=0) as stream:
                    yield from numbered(lines_of(stream), name)
            except OSError as error:
                raise ValueError(f"{name}: cannot be read ({error.strerror})") from None


class Parser:
    """Makes records of lines or files; unless `kind` is given, a file's first line tells whether its lines are JSON."""

    def __init__(self, kind: str | None) -> None:
        self.kind = kind
        self._kinds: dict[str, str] = {}  # of each file

    def __call__(self, where: str, text: str) -> Record:
        """The document at a place, which is the id of a text; of stdin that is the line's number."""
        source, _, line = where.rpartition(":")
        kind = self.kind or self._kinds.setdefault(
            source, JSON_LINES if text.lstrip().startswith("{") else TEXT_LINES
        )
        if kind == JSON_LINES:
            return parse_line(where, text)
        identity: str | int = int(line) if source == "stdin" else where
        return Record(where, {"id": identity, "text": text})
