"""Properties of pages from a wiki's table `page_props`, as a dumper of MySQL or MariaDB writes it: gzip or plain.

Dumpers begin each statement on a line of its own, and write the ends of lines in values as escapes. So all lines up to
one that inserts rows into the table are skipped, whatever they are; from there on rows are read strictly.
"""

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import IO, NoReturn, cast

TABLE = "page_props"
_CHUNK = 1 << 20
_LONGEST = 1 << 18  # bytes of a row: a value has 64 KiB at most, its escapes or digits as much again
_LONGEST_HEAD = 1 << 12  # bytes of a statement before its rows

# Values: quoted text, with the name of its encoding before it; bytes as digits; numbers and NULL.
_QUOTED = r"""(?:'(?>(?:[^'\\]++|\\.|'')*)'|"(?>(?:[^"\\]++|\\.|"")*)")"""
_HEX = "(?>(?:[0-9A-Fa-f]{2})*)"
_TEXT = rf"(?>(?:_\w++\s*+)?)(?:{_QUOTED}|0x{_HEX}|[xX]'{_HEX}')"
_COMMA = r"\s*+,\s*+"
# Behind a row: another one, or the end of the statement and of its line.
_END = r"(,|;[ \t\r]*+(?=\n))"


def _compiled(pattern: str, flags: int = re.NOFLAG) -> re.Pattern[bytes]:
    return re.compile(pattern.encode("latin-1"), flags | re.DOTALL)


# Almost all rows are so plain that a shorter pattern reads them.
_PLAIN_ROW = _compiled(rf"\((-?\d{{1,99}}+),('[^'\\]*+'),('(?>(?:[^'\\]++|\\.|'')*)')(?>(?:,[\w.+-]++)?)\){_END}")
_ROW = _compiled(
    rf"\s*+\(\s*+(-?\d{{1,99}}+){_COMMA}({_TEXT}){_COMMA}({_TEXT})(?>(?:{_COMMA}(?:{_TEXT}|[\w.+-]++))*)\s*+\)\s*+{_END}"
)
_ESCAPE = {quote: _compiled(rf"\\(.)|{quote}{quote}") for quote in "'\""}
_ESCAPES = {b"0": b"\0", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"Z": b"\x1a"}
# A line that names the database; or the head of a table of that name, which may have a prefix, or of rows of it.
_LINE = _compiled(
    rf"""\n(?:--\ [^\n]{{0,500}}?\bDatabase:\ `?([^`\s]+)(?=[`\s])
    | (?:(INSERT|REPLACE)|CREATE\s+TABLE)\s[^\n(]{{0,500}}?((?<![\w$-])[\w$-]*{TABLE})[`"]?\s*+
    (?(2)(\([^()]{{0,2000}}+\))?\s*+VALUES?\s*+)(?=\())""",
    re.IGNORECASE | re.VERBOSE,
)
_COLUMNS = re.compile(rb"""\([`"\s]*pp_page[`",\s]+pp_propname[`",\s]+pp_value\b""")


class PageProps:
    """The rows of some properties, in the order of the file; opened as a context.

    `database` is the wiki's name in the file, or empty; `others` counts rows of other properties, and of pages
    whose number can be none.
    """

    def __init__(self, path: str, wanted: Iterable[str]) -> None:
        """Open a file, and read its head. Raises: ValueError: there is no such file, or it is another one."""
        self.path, self.wanted = path, frozenset(wanted)
        self.database, self.others = "", 0
        self._buffer, self._position, self._line = b"\n", 0, 0
        self._table = ""
        try:
            with open(path, "rb") as file:
                is_gzip = file.read(2) == b"\x1f\x8b"
            self._stream = cast(IO[bytes], gzip.open(path) if is_gzip else open(path, "rb"))  # noqa: SIM115
        except OSError as error:
            raise ValueError(f"{path}: cannot be read ({error.strerror or error}); check corpus.page_props") from None
        try:
            self._has_rows = self._find_rows()
        except ValueError:
            self._stream.close()
            raise

    def __enter__(self) -> "PageProps":
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.close()

    def __iter__(self) -> Iterator[tuple[int, str, bytes]]:
        """Page id, property and value of each row. Raises: ValueError: the file is damaged, or a row is not right."""
        while self._has_rows:
            yield from self._rows()
            self._has_rows = self._find_rows()

    def fail(self, found: bytes, wanted: str) -> NoReturn:
        """Raise a ValueError that names the line up to which the file is read."""
        line = self._line + self._buffer.count(b"\n", 0, self._position)
        raise ValueError(
            f"{self.path}: line {line}: found {found[:60]!r}; wanted {wanted}; make or download the file again, or "
            "go on without it: --set corpus.page_props=none"
        )

    def _rows(self) -> Iterator[tuple[int, str, bytes]]:
        """The rows up to the end of the statement."""
        while True:
            buffer, position, wanted, others, end = self._buffer, self._position, self.wanted, 0, b","
            while end == b"," and (match := _PLAIN_ROW.match(buffer, position) or _ROW.match(buffer, position)):
                page, literal, value, end = match.groups()
                position = match.end()
                if (name := _read_name(literal)) in wanted and 0 <= (number := int(page)) < 2**63:
                    self._position = position
                    yield number, name, _read(value)
                else:
                    others += 1
            self._position = position
            self.others += others
            if end != b",":
                return
            is_cut = len(self._buffer) - self._position < _LONGEST
            if not (is_cut and self._read_on()):
                rest = self._buffer[self._position :]
                self.fail(rest, "a row (page, 'property', 'value', ...) and a comma, or a semicolon that ends its line")

    def _find_rows(self) -> bool:
        """Go to the rows of the next statement that has some; whether there are any."""
        while True:
            while found := _LINE.search(self._buffer, self._position):
                self._position = found.end()
                if found[1]:
                    self.database = found[1].decode("utf-8", "replace")
                    continue
                name = f"{self.database}.{found[3].decode()}".lstrip(".")
                if self._table not in ("", name):
                    self.fail(found[0].strip(), f"the table {self._table} alone")
                self._table = name
                if found[4] and not _COLUMNS.match(found[4]):
                    self.fail(found[4], "the columns pp_page, pp_propname and pp_value, in this order")
                if found[2]:
                    return True
            self._position = max(self._position, len(self._buffer) - _LONGEST_HEAD)
            if not self._read_on():
                break
        if not self._table:
            raise ValueError(f"{self.path}: no table {TABLE}; wanted the dump's WIKI-DATE-{TABLE}.sql.gz")
        return False

    def _read_on(self) -> bool:
        """Read another part behind what is left; whether there was one. The last line ends as all others do."""
        try:
            chunk = self._stream.read(_CHUNK)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{self.path}: damaged or cut off ({error}); download it again") from None
        is_end = not chunk and not self._buffer.endswith(b"\n")
        self._line += self._buffer.count(b"\n", 0, self._position)
        self._buffer, self._position = self._buffer[self._position :] + (b"\n" if is_end else chunk), 0
        return bool(chunk) or is_end


def _read(literal: bytes) -> bytes:
    """Return what a literal stands for; `\\%` and `\\_` stay, as in MySQL."""
    if literal[0] == ord("'") and b"\\" not in literal and literal.count(b"'") == 2:  # as almost all are
        return literal[1:-1]
    pattern = _ESCAPE.get(chr(literal[-1]))
    if not pattern:
        return bytes.fromhex(literal.partition(b"0x")[2].decode())
    prefix, _, text = literal[:-1].partition(literal[-1:])
    return bytes.fromhex(text.decode()) if prefix[-1:] in (b"x", b"X") else pattern.sub(_meaning, text)


@lru_cache(1 << 12)
def _read_name(literal: bytes) -> str:
    return _read(literal).decode("utf-8", "replace")


def _meaning(escape: re.Match[bytes]) -> bytes:
    letter = escape[1]
    if letter is None:
        return escape[0][:1]
    return escape[0] if letter in b"%_" else _ESCAPES.get(letter, letter)
