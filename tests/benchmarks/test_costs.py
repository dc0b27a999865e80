"""Costs of stages are the lines through what was measured."""

import tomllib
from typing import Any

import pytest

from benchmarks.corpus.costs import costs, tables
from benchmarks.corpus.stages import STAGES
from workflows.planning.plan import Cost

RISE = 3.0  # CPU seconds for a MB


def record() -> dict[str, Any]:
    """Two dumps, one of eight times the other's size; half of each stage's work is done by one process alone."""
    runs, dumps = [], []
    for name, size in (("wiki", 1e6), ("wiki-linked-1x", 2e6), ("wiki-linked-8x", 16e6)):
        work = RISE * size / 1e6
        figures = {"seconds": 5 + work * 0.75, "cpu_seconds": 7 + work, "bytes": 2 * size, "scratch_mb": size / 1e6}
        dumps.append({"name": name, "file_bytes": size})
        runs.append({"dump": name, "failure": "", "stages": dict.fromkeys(STAGES, figures)})
    return {"runs": runs, "dumps": dumps, "processes": 2}


def test_costs_give_back_what_was_measured() -> None:
    found = costs(record())
    assert set(found) == set(STAGES)
    assert found["ResolveLinks"] == Cost(start=7, begin=5, seconds=RISE, alone=0.5, disk=2, scratch=1)
    assert found["ExtractPages"].estimate(16e6, 2, 1).cpu_seconds == pytest.approx(7 + 16 * RISE)
    # A tokenizer learns from a sample, which does not grow.
    assert found["TrainTokenizer"].estimate(16e9, 2, 1).cpu_seconds == pytest.approx(7 + 16 * RISE)


def test_the_file_has_what_is_read() -> None:
    stages = costs(record())
    values = tomllib.loads(tables(0.25, stages))
    assert values.pop("work_seconds") == 0.25
    assert {name: Cost(**cost) for name, cost in values.items()} == stages
