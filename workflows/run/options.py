"""The options of all tables by their names, and that of the preset, which stands in no table."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from model.presets import PRESET_TABLES
from workflows.run.kinds import Option, one_of
from workflows.run.tables import RECIPE, TABLES

PRESET = Option(
    one_of(*PRESET_TABLES),
    "sizes of model, vocabularies and training; auto: tiny, or base around a base model",
    "--preset",
)


def options(name: str) -> dict[str, Option]:
    """The options of a table by the names of their fields."""
    declared = (field for field in fields(TABLES[name]) if "option" in field.metadata)
    own = {field.name: field.metadata["option"] for field in declared}
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
