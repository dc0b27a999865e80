"""The options of all tables by their names, and that of the preset, which stands in no table."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from model.presets import PRESET_TABLES
from workflows.run.kinds import Option, one_of
from workflows.run.tables import RECIPE, TABLES

HELP = tomllib.loads(Path(__file__).with_name("help.toml").read_text(encoding="utf-8"))
PRESET = Option(one_of(*PRESET_TABLES), "--preset", help=HELP["preset"])


@cache
def options(name: str) -> Mapping[str, Option]:
    """The options of a table by the names of their fields."""
    declared = {field.name: field.metadata["option"] for field in fields(TABLES[name]) if "option" in field.metadata}
    own = {key: replace(option, help=HELP[name][key]) for key, option in declared.items()}
    return {**own, **RECIPE} if name == "pretraining" else own


def defaults(name: str) -> dict[str, Any]:
    """The default of each option of a table; none of a recipe's, which are the preset's."""
    table = TABLES[name]()
    return {key: getattr(table, key) for key in options(name) if hasattr(table, key)}


def all_options() -> Iterator[tuple[str, str, Option]]:
    """Every option of every table, with the names of both."""
    for name in TABLES:
        yield from ((name, key, option) for key, option in options(name).items())


def option_of(table: str, field: str) -> Option:
    """The declaration of a field; that of the preset stands in no table."""
    return options(table)[field] if table else PRESET


def homes(key: str) -> list[str]:
    """The tables that have a field of this name."""
    return [name for name in TABLES if key in options(name)]


def elsewhere(key: str) -> str:
    """A hint at the tables that have a field of this name; empty where none has."""
    found = homes(key)
    return f"; it is in {' and '.join(f'[{name}]' for name in found)}" if found else ""
