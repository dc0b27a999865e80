"""The presets: run files that the project ships. Each has a file here, and may begin from another one.

[corpus]       size of the entity vocabulary
[sequences]    words of a sequence, tokens of a new tokenizer
[pretraining]  sizes of the model, and its recipe: the names of LukeConfig and of Recipe
[linking]      documents of an evaluation
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Tables = dict[str, dict[str, Any]]


def over(below: Mapping[str, Mapping[str, Any]], tables: Mapping[str, Mapping[str, Any]]) -> Tables:
    """Tables with the values of others over their own."""
    return {name: {**below.get(name, {}), **tables.get(name, {})} for name in {**below, **tables}}


def _read(name: str) -> Tables:
    tables = tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))
    return over(_read(tables.pop("preset")), tables) if "preset" in tables else tables


PRESET_TABLES: Mapping[str, Tables] = {
    name: _read(name) for name in ("tiny", "demo", "small", "base", "large")
}
