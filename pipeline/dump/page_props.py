"""Properties of pages from a wiki's table `page_props`, as a dumper of MySQL or MariaDB writes it: gzip or plain.

The file is read a part at a time. What inserts rows into the table is read strictly; every other statement is skipped
up to its end, those of other tables among them.
"""

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import lru_cache
from typing import IO, NoReturn, cast

TABLE = "page_props"
_CHUNK = 1 << 20
# Bytes of a row, or of a statement's beginning: a value has 64 KiB at most, its escapes or digits as much again.
_LONGEST = 1 << 18
_LONGEST_SKIPPED = 1 << 26  # bytes of one value in a statement that is skipped

# Values: quoted text, with the name of its encoding before it; bytes as digits; numbers and NULL.
_QUOTED = r"""(?:'(?>(?:[^'\\]++|\\.|'')*)'|"(?>(?:[^"\\]++|\\.|"")*)")"""
_HEX = "(?>(?:[0-9A-Fa-f]{2})*)"
_TEXT = rf"(?>(?:_\w++\s*+)?)(?:{_QUOTED}|0x{_HEX}|[xX]'{_HEX}')"
_VALUE = rf"(?:{_TEXT}|[\w.+-]++)"
_PATTERNS = {"pp_page": r"-?\d{1,99}+", "pp_propname": _TEXT, "pp_value": _TEXT}
# Between statements, and the beginnings of statements.
_COMMENT = r"/\*(?>(?:[^*]++|\*(?!/))*)\*/"
_BLANKS = rf"(?>(?:\s|{_COMMENT})*)"
_NAME = r"""(?:[`"]?[\w$-]+[`"]?\s*\.\s*)?[`"]?([\w$-]+)[`"]?"""


def _compiled(pattern: str, flags: int = re.IGNORECASE) -> re.Pattern[bytes]:
    return re.compile(pattern.encode("latin-1"), flags | re.DOTALL)


# Almost all rows are so plain that a shorter pattern reads them.
_PLAIN_ROW = _compiled(
    r"\((-?\d{1,99}+),('[^'\\]*+'),('(?>(?:[^'\\]++|\\.|'')*)')(?>(?:,[\w.+-]++)?)\)([,;])", re.NOFLAG
)
_NO_ROW = _compiled("(?!)")
_LITERAL = _compiled(_QUOTED)
_ESCAPE = {quote: _compiled(rf"\\(.)|{quote}{quote}") for quote in "'\""}
_ESCAPES = {b"0": b"\0", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"Z": b"\x1a"}
_BETWEEN = _compiled(rf"\xef\xbb\xbf|\s++|{_COMMENT}|(?:--|#|DELIMITER\b)[^\n]*+(?:\n|\Z)")
_DATABASE = _compiled(r"-- [^\n]*\bDatabase: (\S+)|USE\s+`?([^`;]+)")
_INSERT = _compiled(rf"(?:INSERT|REPLACE)\b(?>(?:\s|{_COMMENT}|\b(?:LOW_PRIORITY|DELAYED|IGNORE|INTO)\b)*){_NAME}")
_ROWS = _compiled(rf"{_BLANKS}(\([^()]*+\))?{_BLANKS}VALUES?\b{_BLANKS}(?=\()")
_CREATE = _compiled(rf"CREATE\s+TABLE\b(?>(?:\s|{_COMMENT}|\bIF\s+NOT\s+EXISTS\b)*){_NAME}")
_STATEMENT = _compiled("(?=[A-Z(;])")
# What a statement holds beside the `;` that ends it; what may go on behind the bytes at hand is no match.
_SKIPPED = _compiled(
    rf"""(?>(?:[^;'"`/#-]++|{_QUOTED}|`[^`]*+`|{_COMMENT}|(?:--\s|\#)[^\n]*+\n|/(?=[^*])|-(?=[^-]|-\S))*)"""
)


class PageProps:
    """The rows of some properties, in the order of the file; opened as a context.

    `database` is the wiki's name in the file, or empty; `others` counts rows of other properties, and of pages
    whose number can be none.
    """

    def __init__(self, path: str, wanted: Iterable[str]) -> None:
        """Open a file, and read its head. Raises: ValueError: there is no such file, or it is another one."""
        self.path, self.wanted = path, frozenset(wanted)
        self.database, self.others = "", 0
        self._buffer, self._position, self._line = b"", 0, 1
        self._table = ""
        self._plain, self._row = _PLAIN_ROW, _row_pattern(tuple(_PATTERNS))
        self._files = ExitStack()
        try:
            file = open(path, "rb")  # noqa: SIM115
        except OSError as error:
            raise ValueError(f"{path}: cannot be read ({error.strerror or error}); check corpus.page_props") from None
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

    def __iter__(self) -> Iterator[tuple[int, str, bytes]]:
        """Page id, property and value of each row. Raises: ValueError: the file is damaged, or a row is not as it has
        to be.
        """
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
            buffer, position, wanted, others = self._buffer, self._position, self.wanted, 0
            match_plain, match_any, end = self._plain.match, self._row.match, b""
            while end != b";":
                if match := match_plain(buffer, position):
                    page, literal, value, end = match.groups()
                elif match := match_any(buffer, position):
                    page, literal, value, end = match.group(*_PATTERNS, "end")
                else:
                    break
                position = match.end()
                if (name := _read_name(literal)) in wanted and 0 <= (number := int(page)) < 2**63:
                    self._position = position
                    yield number, name, _read(value)
                else:
                    others += 1
            self._position = position
            self.others += others
            if end == b";":
                return
            is_cut = len(self._buffer) - self._position < _LONGEST
            if not (is_cut and self._read_on()):
                self.fail(self._rest(), "a row (page, 'property', 'value', ...) and a comma or semicolon")

    def _find_rows(self) -> bool:
        """Go to the rows of the next statement that has some; whether there are any."""
        while True:
            while len(self._buffer) - self._position < _LONGEST and self._read_on():
                pass
            if database := _DATABASE.match(self._buffer, self._position):
                self.database = (database[1] or database[2]).decode("utf-8", "replace").strip("` ")
            if between := _BETWEEN.match(self._buffer, self._position):
                self._position = between.end()
            elif (insert := _INSERT.match(self._buffer, self._position)) and self._is_ours(insert):
                self._position = insert.end()
                if not (rows := _ROWS.match(self._buffer, self._position)):
                    self.fail(insert[0] + self._rest(), f"INSERT INTO `{TABLE}` VALUES (...)")
                if rows[1] and not self._read_columns(rows[1]):
                    self.fail(rows[1], f"the columns {', '.join(_PATTERNS)}")
                self._position = rows.end()
                return True
            elif _STATEMENT.match(self._buffer, self._position):
                if (create := _CREATE.match(self._buffer, self._position)) and self._is_ours(create):
                    self._read_columns(_LITERAL.sub(b"", self._rest()))
                self._skip()
            elif rest := self._rest():
                self.fail(rest, "a statement of SQL, as mysqldump and mariadb-dump write it")
            elif not self._table:
                raise ValueError(f"{self.path}: no table {TABLE}; wanted the dump's WIKI-DATE-{TABLE}.sql.gz")
            else:
                return False

    def _is_ours(self, statement: re.Match[bytes]) -> bool:
        """Return whether a statement is about the table, which may have a prefix."""
        if not statement[1].endswith(TABLE.encode()):
            return False
        name = f"{self.database}.{statement[1].decode()}".lstrip(".")
        if self._table not in ("", name):
            self.fail(statement[0], f"the table {self._table} alone")
        self._table = name
        return True

    def _read_columns(self, names: bytes) -> bool:
        """Read rows from here on with their columns in this order; False where one is missing."""
        columns = tuple(dict.fromkeys(name.decode() for name in re.findall(rb"\bpp_\w+", names)))
        if not set(_PATTERNS) <= set(columns):
            return False
        self._plain = _PLAIN_ROW if columns[: len(_PATTERNS)] == tuple(_PATTERNS) else _NO_ROW
        self._row = _row_pattern(columns)
        return True

    def _skip(self) -> None:
        """Go behind the end of a statement."""
        while True:
            match = _SKIPPED.match(self._buffer, self._position)
            self._position = match.end() if match else self._position
            if self._buffer.startswith(b";", self._position):
                self._position += 1
                return
            if len(self._buffer) - self._position > _LONGEST_SKIPPED or not self._read_on():
                self.fail(self._rest(), "a semicolon that ends the statement")

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


def _row_pattern(columns: tuple[str, ...]) -> re.Pattern[bytes]:
    """The pattern of a row and of the sign behind it; further columns may follow."""
    last = max(columns.index(name) for name in _PATTERNS)
    fields = (f"(?P<{name}>{_PATTERNS[name]})" if name in _PATTERNS else _VALUE for name in columns[: last + 1])
    comma = r"\s*+,\s*+"
    return _compiled(rf"\s*+\(\s*+{comma.join(fields)}(?>(?:{comma}{_VALUE})*)\s*+\)\s*+(?P<end>[,;])", re.NOFLAG)


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
