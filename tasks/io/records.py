"""JSON data files: an array of objects or an object a line; every record knows where it stands, and so do examples."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from tasks.io.tables import is_table, read_rows, shards

JSON_ERRORS = (ValueError, RecursionError)
GZIP = b"\x1f\x8b"
WANTED = "a JSON array of objects or a JSON object a line"

Example = TypeVar("Example")


class Errors(Counter[str]):
    """Counts of reasons; `first` has the place where it was found first."""

    def __init__(self) -> None:
        super().__init__()
        self.first: dict[str, str] = {}

    def note(self, reason: str, where: str) -> None:
        self[reason] += 1
        self.first.setdefault(reason, where)

    def lines(self) -> list[str]:
        """A line for each reason, the most frequent first."""
        counted = self.most_common()
        return [f"{count}: {reason} (the first at {self.first[reason]})" for reason, count in counted]


@dataclass(frozen=True)
class Record:
    """One object of a file; `where` names the file and the line for error messages (of a table the row, of an array
    the number of the example).

    `line` is that number, 0 for an object inside of another.
    """

    where: str
    values: Mapping[str, Any]
    line: int = 0

    def error(self, message: str) -> ValueError:
        return ValueError(f"{self.where}: {message}")

    def field(self, name: str, kind: type, wanted: str) -> Any:
        """The value of a field of this type. Raises: ValueError where it is missing or of another type."""
        if name not in self.values:
            found = f"; found {shown([*self.values])}" if self.values else ""
            raise self.error(f"no field {name!r}; wanted {wanted}{found}")
        value = self.values[name]
        if type(value) is not kind:
            raise self.error(f"{name} is {shown(value)}; wanted {wanted}")
        return value

    def identifier(self) -> str:
        """Return the value of `id`, which is a text or a whole number."""
        number = self.values.get("id")
        return str(number) if type(number) is int else self.text("id")

    def first_of(self, *names: str) -> str:
        """Return the first of these fields that there is, or else the last of them."""
        return next((name for name in names if name in self.values), names[-1])

    def text(self, name: str) -> str:
        value: str = self.field(name, str, "a text")
        return value

    def texts(self, name: str) -> list[str]:
        values: list[str] = self.field(name, list, "a list of texts")
        for value in values:
            if not isinstance(value, str):
                raise self.error(f"{name} holds {shown(value)}; wanted texts alone")
        return values

    def span(self, name: str, value: object, length: int, what: str) -> tuple[int, int]:
        """`value` as a half-open span of a sequence of this length, which is not empty."""
        if not isinstance(value, list | tuple) or [type(part) for part in value] != [int, int]:
            raise self.error(f"{name} is {shown(value)}; wanted two whole numbers [start, end]")
        start, end = value
        if not 0 <= start < end <= length:
            raise self.error(
                f"{name} spans {start} to {end}; wanted a start below the end, within 0 to {length} {what}"
            )
        return start, end


def shown(value: object) -> str:
    """A value as an error shows it: as JSON, its beginning. Tables hold values that JSON has not, such as dates."""
    return json.dumps(value, default=str)[:80]


def read_records(path: Path) -> list[Record]:
    """The objects of a JSON array, of JSON lines or of a table (Parquet, Arrow), told apart by the first bytes.

    Raises: ValueError naming file and place for what is no JSON, no object, or empty.
    """
    records = [read() for _, read in record_readers(path)]
    if not records:
        raise ValueError(f"{path}: no examples; wanted {WANTED}")
    return records


def record_readers(path: Path) -> Iterator[tuple[str, Callable[[], Record]]]:
    """Yield the place of each of these records, and its reader: a broken one is its reader's error alone."""
    if is_table(path):
        for shard in shards(path):
            for number, row in enumerate(read_rows(shard), start=1):
                where = f"{shard}: row {number}"
                yield where, partial(Record, where, row, number)
        return
    text = read_text(path, WANTED)
    if text.lstrip().startswith("["):
        for number, value in enumerate(parse_file(path, text), start=1):
            where = f"{path}: example {number}"
            yield where, partial(as_record, where, value, number)
        return
    # Not splitlines(): characters such as U+2028 may stand inside a JSON text.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            where = f"{path}:{number}"
            yield where, partial(parse_line, where, line, number)


def read_text(path: Path, wanted: str = "a text file", *, keeps_ends: bool = False) -> str:
    """The text of a UTF-8 file; its lines end in \\n, or with `keeps_ends` as they do in the file.

    Raises: ValueError naming it, and what is `wanted` where there is none.
    """
    try:
        content = path.read_bytes()
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file; expected {wanted}") from None
    except IsADirectoryError:
        raise ValueError(f"{path}: a folder; expected {wanted}; give a file in it") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror}); expected {wanted}") from None
    except UnicodeDecodeError as error:
        if content.startswith(GZIP):
            raise ValueError(f"{path}: packed (gzip); unpack it") from None
        raise ValueError(f"{path}: byte {error.start} is not UTF-8; convert the file to UTF-8") from None
    if (place := content.find(0)) >= 0:
        raise ValueError(f"{path}: byte {place} is 0, as in UTF-16; convert the file to UTF-8")
    return text if keeps_ends else text.replace("\r\n", "\n").replace("\r", "\n")


# JSON


def parse_line(where: str, line: str, number: int = 0) -> Record:
    """The record of one line of JSON. Raises: ValueError naming `where`."""
    try:
        value = json.loads(line, parse_constant=_no_constant)
    except JSON_ERRORS as error:
        raise _no_json(where, error) from None
    return as_record(where, value, number)


def parse_file(path: Path, text: str, **hooks: Any) -> Any:
    """The JSON value that fills a file of this text. Raises: ValueError naming the file, and the line where known."""
    try:
        return json.loads(text, parse_constant=_no_constant, **hooks)
    except JSON_ERRORS as error:
        where = f"{path}:{error.lineno}" if isinstance(error, json.JSONDecodeError) else str(path)
        raise _no_json(where, error) from None


def as_record(where: str, value: object, number: int = 0) -> Record:
    """A value of JSON as a record.

    Raises: ValueError where it is no object, or has a text that is none in UTF-8, or a number that is too large.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise ValueError(
            f"{where}: {half} is half of a surrogate pair, in {_place_of_half(value)}; write both or leave it out"
        ) from None
    except RecursionError as error:
        raise _no_json(where, error) from None
    except ValueError:  # 1e999 is read as infinity, which JSON has not
        raise ValueError(
            f"{where}: NaN or a number above 1e308, which JSON has not; correct it or leave it out"
        ) from None
    if not isinstance(value, dict):
        raise ValueError(f"{where}: found {text[:40]}; wanted a JSON object")
    return Record(where, value, number)


def _place_of_half(value: object) -> str:
    """The text in a value of JSON that has half of a surrogate pair, such as documents[1].text, or an object's name."""
    waiting = [("", value)]
    while waiting:
        place, found = waiting.pop()
        if isinstance(found, str) and any("\ud800" <= each <= "\udfff" for each in found):
            break
        if isinstance(found, list):
            waiting += [(f"{place}[{number}]", each) for number, each in reversed([*enumerate(found)])]
        if isinstance(found, dict):
            waiting += [(f"{place}.{name}", each) for name, each in reversed(found.items())]
            waiting += [(f"a name in {place or 'the object'}", name) for name in found]
    return place.removeprefix(".") or "the text"


def _no_json(where: str, error: Exception) -> ValueError:
    if isinstance(error, json.JSONDecodeError):
        return ValueError(f"{where}: not JSON ({error.msg}, column {error.colno})")
    if isinstance(error, RecursionError):
        return ValueError(f"{where}: nested too deep; wanted a JSON object of texts, numbers and lists")
    # A constant that JSON has not, or a number of thousands of digits.
    return ValueError(f"{where}: not JSON ({error})")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no value of JSON")


# Files


def read_object(path: Path) -> Record:
    """The JSON object with a list `data` that fills a file. Raises: ValueError naming the file, and the line."""
    value = parse_file(path, read_text(path))
    if not isinstance(value, dict) or "data" not in value:
        raise ValueError(f"{path}: found no JSON object with a list 'data'; wanted the release's own layout")
    return as_record(str(path), value)


def is_one_object(path: Path) -> bool:
    """Return whether a file is one JSON object with `data`, and not an object a line or an array of objects."""
    if is_table(path):
        return False
    first_line = read_text(path).lstrip().split("\n", 1)[0]
    try:
        value = json.loads(first_line)
    except JSON_ERRORS:
        return first_line.startswith("{")
    return isinstance(value, dict) and "data" in value


def children(record: Record, name: str) -> list[Record]:
    """The objects in a list of a record. Raises: ValueError naming the place of what is none."""
    values = record.field(name, list, "a list of objects")
    for number, value in enumerate(values):
        if not isinstance(value, dict):
            raise record.error(f"{name}[{number}] is {shown(value)}; wanted an object")
    return [Record(f"{record.where}: {name}[{number}]", value) for number, value in enumerate(values)]


@dataclass(frozen=True)
class Examples(Generic[Example]):
    """The examples of a file, in its order; each keeps the `record` that it was made from."""

    path: Path
    examples: tuple[Example, ...]


def check_mention(record: Record, name: str, text: str, span: tuple[int, int]) -> None:
    """Raises: ValueError naming the field where a mention has no characters but blanks."""
    if not text[slice(*span)].strip():
        raise record.error(f"{name} spans blanks alone; wanted a mention with at least one other character")


def check_same_inputs(gold: Sequence[Record], predictions: Sequence[Record], labels: Sequence[str]) -> None:
    """Raises: ValueError naming the first record of `predictions` that differs from that of `gold`.

    What is compared is every field that both have, except those named in `labels`.
    """
    for number, (wanted, found) in enumerate(zip(gold, predictions, strict=False), start=1):
        for name in sorted(set(wanted.values) & set(found.values) - set(labels)):
            if wanted.values[name] != found.values[name]:
                raise found.error(f"{name} is not that of {wanted.where}; example {number} must be the same")
    if len(gold) != len(predictions):
        raise ValueError(
            f"{predictions[-1].where}: {len(predictions)} predictions for {len(gold)} examples "
            f"(the last at {gold[-1].where}); wanted one for each"
        )
