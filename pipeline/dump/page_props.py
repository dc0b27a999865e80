"""A property of pages from a wiki's table `page_props`, as mysqldump writes it: gzip or plain, read a part at a time.

The file begins with comments and the table's definition. Then come INSERT statements of many rows each, of page,
property's name, value, and a key to sort by. Texts are quoted, with a backslash before what would end them.
"""

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO, NoReturn, cast

TABLE = "page_props"
_CHUNK = 1 << 20
# Bytes of a row, or of a line that has none: a value has 64 KiB at most, its escapes as much again.
_LONGEST = 1 << 18
_QUOTED = rb"'((?:[^'\\]++|\\.|'')*+)'"
_ROW = re.compile(
    rb"\s*+\((\d{1,18}+),"
    + rb",".join([_QUOTED] * 2)
    + rb"(?:,(?:'(?:[^'\\]++|\\.|'')*+'|[^',()]++))*+\)\s*+([,;])",
    re.DOTALL,
)
_INSERT = re.compile(rb"INSERT INTO `(\w+)`\s+VALUES", re.IGNORECASE)
_CREATE = re.compile(rb"CREATE TABLE `(\w+)`[^;]*+;", re.IGNORECASE)
_OTHER = re.compile(rb"(?:--|/\*|DROP |LOCK |UNLOCK |SET )[^\n]*+(?:\n|\Z)|\s++", re.IGNORECASE)
_DATABASE = re.compile(rb"-- .*\bDatabase: (\w+)")
_ESCAPE = re.compile(rb"\\(.)|''", re.DOTALL)
_ESCAPES = {b"0": b"\0", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"Z": b"\x1a"}


class PageProps:
    """The rows of one property, in the order of the file; opened as a context.

    `database` is the wiki's name in the file's head, or empty; `others` counts rows of other properties that were
    read.
    """

    def __init__(self, path: str, wanted: str) -> None:
        """Open a file, and read its head. Raises: ValueError: there is no such file, or it is another one."""
        self.path, self.wanted = path, wanted.encode()
        self.database, self.others = "", 0
        self._buffer, self._position, self._line = b"", 0, 1
        self._has_table = False
        self._files = ExitStack()
        try:
            file = open(path, "rb")  # noqa: SIM115
        except OSError as error:
            raise ValueError(
                f"{path}: cannot be read ({error.strerror or error}); check corpus.page_props"
            ) from None
        self._files.enter_context(file)
        is_gzip = file.peek(2).startswith(b"\x1f\x8b")
        packed = gzip.GzipFile(fileobj=file)
        self._stream = cast(IO[bytes], self._files.enter_context(packed) if is_gzip else file)
        try:
            self._has_rows = self._find_rows()
        except ValueError:
            self._files.close()
            raise

    def __enter__(self) -> "PageProps":
        return self

    def __exit__(self, *error: object) -> None:
        self._files.close()

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Page id and value of each row. Raises: ValueError: the file is damaged, or a row is not as it has to be."""
        while self._has_rows:
            yield from self._rows()
            self._has_rows = self._find_rows()

    def fail(self, found: bytes, wanted: str) -> NoReturn:
        """Raise a ValueError that names the line up to which the file is read."""
        line = self._line + self._buffer.count(b"\n", 0, self._position)
        raise ValueError(
            f"{self.path}: line {line}: found {found[:60]!r}; wanted {wanted}; download it again"
        )

    def _rows(self) -> Iterator[tuple[int, bytes]]:
        """The rows up to the end of the statement."""
        while True:
            buffer, position, wanted, others = self._buffer, self._position, self.wanted, 0
            end = b""
            while end != b";" and (match := _ROW.match(buffer, position)):
                position = match.end()
                page, name, value, end = match.groups()
                if name == wanted:  # mysqldump has no escapes in what needs none
                    self._position = position
                    yield int(page), _unescape(value)
                else:
                    others += 1
            self._position = position
            self.others += others
            if end == b";":
                return
            is_cut = len(self._buffer) - self._position < _LONGEST
            if not (is_cut and self._read_on()):
                self.fail(
                    self._rest(), "a row (page, 'property', 'value', ...) with a comma or semicolon behind"
                )

    def _find_rows(self) -> bool:
        """Go to the rows of the next statement that has some; whether there are any."""
        while True:
            while len(self._buffer) - self._position < _LONGEST and self._read_on():
                pass
            insert = _INSERT.match(self._buffer, self._position)
            create = _CREATE.match(self._buffer, self._position)
            if found := insert or create:
                if found[1] != TABLE.encode():
                    self.fail(found[0], f"the table {TABLE} alone")
                self._has_table = True
            elif not (found := _OTHER.match(self._buffer, self._position)):
                break
            elif database := _DATABASE.match(found[0]):
                self.database = database[1].decode()
            self._position = found.end()
            if insert:
                return True
        if rest := self._rest():
            self.fail(rest, f"INSERT INTO `{TABLE}` VALUES, or another line of mysqldump's")
        if not self._has_table:
            raise ValueError(
                f"{self.path}: has no table {TABLE}; wanted WIKI-DATE-{TABLE}.sql.gz of the dump"
            )
        return False

    def _rest(self) -> bytes:
        return self._buffer[self._position : self._position + _LONGEST]

    def _read_on(self) -> bool:
        """Read another part behind what is left; whether there was one."""
        try:
            chunk = self._stream.read(_CHUNK)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{self.path}: damaged or cut off ({error}); download it again") from None
        self._line += self._buffer.count(b"\n", 0, self._position)
        self._buffer, self._position = self._buffer[self._position :] + chunk, 0
        return bool(chunk)


def _unescape(text: bytes) -> bytes:
    """Return what a quoted text stands for; `\\%` and `\\_` stay, as in MySQL."""
    if b"\\" not in text and b"'" not in text:
        return text
    return _ESCAPE.sub(_meaning, text)


def _meaning(escape: re.Match[bytes]) -> bytes:
    letter = escape[1]
    if letter is None:
        return b"'"
    return escape[0] if letter in b"%_" else _ESCAPES.get(letter, letter)
