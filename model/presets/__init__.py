"""The presets: run files that the project ships. Each may begin from another one.

tiny.toml   from nothing, to see that everything works
demo.toml   a minute and a half around a small base model
small.toml  an hour of one core around a small base model
base.toml   the paper's recipe, with the sizes of RoBERTa-base
large.toml  the paper's

[corpus] has the size of the entity vocabulary; [sequences] the words of a sequence and the tokens of a new tokenizer;
[pretraining] the sizes of the model and its recipe; [linking] the documents of an evaluation.
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


PRESET_TABLES: Mapping[str, Tables] = {name: _read(name) for name in ("tiny", "demo", "small", "base", "large")}
