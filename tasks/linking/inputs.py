"""Documents as text or JSON lines, of files and of stdin: what is linked."""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tasks.io.records import Record, parse_line
from tasks.serving.streams import Given, files, lines_of, numbered

JSON_LINES, TEXT_LINES, FILES = "json", "lines", "files"
KINDS = JSON_LINES, TEXT_LINES, FILES
STDIN = "-"
# The first line of annotated documents that are neither text nor a JSON object a line: AIDA's, WNED's, an array.
ANNOTATED = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:-DOCSTART-|<\?xml|\[\s*(?:\{|$))")


def check_inputs(names: Sequence[str]) -> None:
    """See that all inputs are there, before any is read. Raises: ValueError naming one that is not, or is a folder."""
    for name in names:
        path = Path(name)
        if name != STDIN and not path.exists():
            raise ValueError(f"{name}: no such file; wanted documents, or - for those on stdin")
        if name != STDIN and path.is_dir():
            raise ValueError(
                f"{name}: a folder; wanted files of documents (do several fit a pattern, such as that of --mentions?)"
            )


def documents_of(names: Sequence[str], kind: str | None) -> Iterator[Given]:
    """The lines of files and of stdin; of the kind `files` each as a whole.

    Raises: ValueError for what cannot be read and, where no kind is given, for what `convert` reads.
    """
    are_files = kind == FILES
    stdin = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
    for name in names:
        if are_files and name != STDIN:
            yield from files([Path(name)])
        elif are_files:
            yield Given("stdin", {"file": "stdin"}, b"".join(iter(lambda: stdin.read(1 << 20), b"")))
        elif name == STDIN:
            yield from numbered(lines(stdin, "stdin", kind))
        else:
            try:
                with Path(name).open("rb", buffering=0) as stream:
                    yield from numbered(lines(stream, name, kind), name)
            except OSError as error:
                raise ValueError(f"{name}: cannot be read ({error.strerror})") from None


def lines(stream: Any, name: str, kind: str | None) -> Iterator[bytes]:
    """The lines of a binary stream. Raises: ValueError where no kind is given, and the first one is no text or JSON."""
    for number, line in enumerate(lines_of(stream)):
        if number == 0 and kind is None and (found := ANNOTATED.match(line)):
            beginning = found[0].decode("utf-8-sig")
            is_array = beginning.lstrip().startswith("[")
            what = "a JSON array does" if is_array else "annotated documents do"
            remedy = "as jq -c '.[]' does" if is_array else "with python -m tasks.linking convert"
            raise ValueError(
                f"{name}: begins with {beginning!r}, as {what}; make JSON lines of it, {remedy}, or give "
                "--input lines if it is text"
            )
        yield line


class Parser:
    """Makes records of lines or files; unless `kind` is given, a file's first line tells whether its lines are JSON."""

    def __init__(self, kind: str | None) -> None:
        self.kind = kind
        self._kinds: dict[str, str] = {}  # of each file

    def __call__(self, where: str, text: str) -> Record:
        """The document at a place, which is the id of a text; of stdin that is the line's number."""
        source, _, line = where.rpartition(":")
        kind = self.kind or self._kinds.setdefault(source, JSON_LINES if text.lstrip().startswith("{") else TEXT_LINES)
        if kind == JSON_LINES:
            try:
                return parse_line(where, text)
            except ValueError as error:
                hint = "" if self.kind else "; wanted an object a line, or --input lines for text"
                raise ValueError(f"{error}{hint}") from None
        identity: str | int = int(line) if source == "stdin" else where
        return Record(where, {"id": identity, "text": text})
