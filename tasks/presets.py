"""The presets of fine-tuning: for each task and preset the values of presets.toml."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

DROPOUT = 0.1  # of all tasks and presets, as in the paper (appendix, Table 12)


@cache
def of_task(task: str) -> Mapping[str, Mapping[str, Any]]:
    """The values of a task by the names of its presets; the paper has one set of them for every size of model."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    found = tomllib.loads(text)[task]
    return {**found, "large": found["base"]}
