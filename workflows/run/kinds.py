"""The kinds of values in a run file: each reads a value of TOML or of the command line, and says what it wants."""

import difflib
import functools
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from glob import glob
from math import inf
from typing import Any

AUTO = "auto"


@dataclass(frozen=True)
class Kind:
    """A kind of value."""

    wanted: str  # what a value has to be, for errors
    read: Callable[[Any], Any]  # a value of TOML as a run holds it; ValueError or TypeError where it is of another kind
    of_text: Callable[[str], Any]  # the value of TOML that a word of the command line means
    is_path: bool = False  # whether it may name a file, relative to the folder of the run file
    no_path: str = ""  # a pattern of the words that never do
    is_several: bool = False  # whether it may name several, with commas between them
    of_items: "Kind | None" = None  # of a table or a list, the kind of each value
    keys: tuple[str, ...] = ()  # of a table, those that it may have; none: any


@dataclass(frozen=True)
class Option:
    """A field of a table in a run file."""

    kind: Kind  # of its value
    flag: str = ""  # of the command line; empty where there is `--set` alone
    changes_bytes: bool = True  # whether what a stage writes depends on it
    help: str = ""  # what it is, for people


def option(default: Any, kind: Kind, *, flag: str = "", changes_bytes: bool = True) -> Any:
    """A field of a dataclass, with its default; `auto` is a value where it is the default."""
    metadata = {"option": Option(kind, flag, changes_bytes)}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


unhashed_option = functools.partial(option, changes_bytes=False)  # on which nothing depends that a stage writes


def literal(text: str) -> Any:
    """The value that a text is in TOML; the text itself where it is none."""
    try:
        return tomllib.loads(f"value = {text}")["value"] if "\n" not in text else text
    except tomllib.TOMLDecodeError:
        return text


def _checked(
    wanted: str, accepts: Callable[[Any], object], convert: type | None = None, of_text: Callable[[str], Any] = literal
) -> Kind:
    def read(value: Any) -> Any:
        if not accepts(value):
            raise ValueError(value)
        return convert(value) if convert else value

    return Kind(wanted, read, of_text)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def whole_number(least: int = 0, below: float = inf, limit: str = "") -> Kind:
    """A whole number, `least` or more, and below a limit as people write it."""
    return _checked(
        f"a whole number, {least} or more{limit}",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value < below,
    )


SEED_NUMBER = whole_number(0, 2**63, " and below 2^63")  # of torch's generators


POSITIVE_NUMBER = _checked("a number above 0, as 1e-5", lambda value: _is_number(value) and 0 < value < inf, float)
SHARE = _checked("a share between 0 and 1", lambda value: _is_number(value) and 0 <= value <= 1, float)
DROPOUT_RATE = _checked("a number from 0 to below 1", lambda value: _is_number(value) and 0 <= value < 1, float)
SWITCH = _checked("true or false", lambda value: isinstance(value, bool))


def one_of(*words: str) -> Kind:
    """One of a few words."""
    return matching("|".join(map(re.escape, words)), f"one of {', '.join(words)}")


def matching(pattern: str, wanted: str) -> Kind:
    """A text that matches a regular expression."""
    compiled = re.compile(pattern, re.DOTALL)
    return _checked(wanted, lambda value: isinstance(value, str) and compiled.fullmatch(value), of_text=str)


TEXT = matching(".*", "a text")  # also an empty one


def path(pattern: str = ".*", wanted: str = "a path", *, no_path: str = "", is_several: bool = False) -> Kind:
    """A path, or a name of something that lies elsewhere."""
    return Kind(wanted, matching(pattern, wanted).read, str, is_path=True, no_path=no_path, is_several=is_several)


def _read_size(value: Any) -> int:
    """Bytes, with or without a unit."""
    found = str(value) if isinstance(value, str | int) else ""
    match = re.fullmatch(r"(\d+)\s*(?:([KMG])(I?)B|B?)", found.upper())
    count = int(match[1]) * (1024 if match[3] else 1000) ** " KMG".index(match[2] or " ") if match else 0
    if count < 4096:
        raise ValueError(value)
    return count


SIZE = Kind("a size of 4096 bytes or more as 1000000, 256KiB or 4MiB", _read_size, literal)


def many(item: Kind) -> Kind:
    """A list of values, each once; on the command line with commas between them."""

    def read(value: Any) -> tuple[Any, ...]:
        values = tuple(map(item.read, value)) if isinstance(value, list | tuple) else ()
        if not values or len(set(values)) < len(values):
            raise ValueError(value)
        return values

    def of_text(text: str) -> list[Any]:
        return [item.of_text(word.strip()) for word in text.split(",")]

    return Kind(f"a list, each value once, each {item.wanted}", read, of_text, of_items=item)


def table(item: Kind, keys: Iterable[str] = (), pattern: str = ".+", wanted: str = "") -> Kind:
    """A table of values under these names, or under names that match a pattern."""
    known = tuple(keys)

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise ValueError(value)
        for key in value:
            if key not in known if known else not re.fullmatch(pattern, key):
                raise ValueError(key)
        return {key: item.read(each) for key, each in value.items()}

    names = f"of {', '.join(known)}" if known else wanted
    wants = f"a table {names}, each {item.wanted}"
    return Kind(wants, read, literal, is_path=item.is_path, of_items=item, keys=known)


def resolved(value: Any, kind: Kind, folder: str) -> Any:
    """A value, its paths made absolute where something lies there below a folder; other names stay as they are."""
    if not kind.is_path or not value:
        return value
    if isinstance(value, Mapping):
        return {key: resolved(each, kind.of_items or kind, folder) for key, each in value.items()}
    if isinstance(value, str) and kind.is_several and "," in value:
        return ",".join(resolved(each, kind, folder) for each in value.split(","))
    if not isinstance(value, str) or "://" in value or re.fullmatch(kind.no_path, value):
        return value
    found = os.path.join(folder, os.path.expanduser(value))
    is_there = os.path.exists(found) or bool(glob(found)) or value.startswith((".", "~"))
    return os.path.abspath(found) if is_there else value


def similar(word: str, known: Iterable[str]) -> str:
    """A hint at the known word that is most like this one; empty where none is."""
    names = list(known)
    near = [name for name in names if name.startswith(word)][:1] or difflib.get_close_matches(word, names, 1)
    return f"; did you mean {near[0]}?" if near else ""
