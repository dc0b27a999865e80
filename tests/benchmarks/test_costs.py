"""Costs of stages are the lines through what was measured."""

import tomllib
from typing import Any

import pytest

from benchmarks.corpus.costs import DRIVERS, costs, tables
from workflows.planning.costs import Cost, Sample, estimate

SAMPLE = Sample(file=2e6, text=5e6, links=6e4, titles=1e3, seconds=4)
RISE = 3.0  # CPU seconds for a million of a driver


def record() -> dict[str, Any]:
    """A dump, and another of eight times its size; half of each stage's work is done by one process alone."""
    runs, dumps = [], []
    # The real one takes a second less wherever Java has other settings for it, and so everywhere here.
    for name, copies, less in (("wiki", 1, 1), ("wiki-linked-1x", 1, 0), ("wiki-linked-8x", 8, 0)):
        size = copies * 2e6
        dumps.append({"name": name, "xml_bytes": size, "file_bytes": size, "copies": copies})
        has = {"file": size, "text": 2.5 * size, "links": size, "titles": size / 10}
        has["sample"] = min(has["text"], 100e6)
        stages: dict[str, Any] = {}
        for stage, driver in DRIVERS.items():
            work = RISE * has[driver] / 1e6
            stages[stage] = {
                "seconds": 5 - less + work * 0.75,
                "cpu_seconds": 7 - 2 * less + work,
                "bytes": 2 * has[driver],
                "scratch_mb": has[driver] / 1e6,
                "rss_mb": {"main": 100, "runner": 50, "jvm": 900, "worker": 70},
            }
        stages["ExtractPages"] |= {"rows": {"links": has["links"]}, "text_bytes": has["text"]}
        stages["ResolveRedirects"] |= {"rows": {"titles": has["titles"]}}
        runs.append({"dump": name, "failure": "", "stages": stages})
    return {"runs": runs, "dumps": dumps, "processes": 2}


def test_costs_give_back_what_was_measured() -> None:
    found = costs(record(), SAMPLE)
    assert set(found) == set(DRIVERS)
    memory = {"process": 150e6, "worker": 70e6}
    saved = {"saved_start": 2, "saved_begin": 1}
    wanted = Cost("links", start=7, begin=5, **saved, seconds=RISE, alone=0.5, **memory, disk=2, scratch=1)
    assert found["ResolveLinks"] == wanted
    # A second of the sample stands for half a million bytes of the file.
    assert found["ExtractPages"] == Cost(
        "file", start=7, begin=5, sampled=1.5, alone=0.5, **memory, disk=2, scratch=1
    )
    for stage in ("ExtractPages", "BuildSequences"):
        told = estimate(found[stage], SAMPLE.of(16_000_000), 1, 2, characters=1)
        measured = record()["runs"][2]["stages"][stage]
        assert told.cpu_seconds == pytest.approx(measured["cpu_seconds"])
    small = estimate(found["ResolveLinks"], SAMPLE.of(2_000_000), 1, 2, characters=1, is_small=True)
    large = estimate(found["ResolveLinks"], SAMPLE.of(2_000_000), 1, 2, characters=1)
    assert (large.cpu_seconds - small.cpu_seconds, large.seconds - small.seconds) == (2, 1)


def test_the_file_has_what_is_read() -> None:
    stages = costs(record(), SAMPLE)
    values = tomllib.loads(tables(0.25, SAMPLE, stages))
    assert values["work_seconds"] == 0.25
    assert Sample(**values["dump"]) == SAMPLE
    assert {name: Cost(**cost) for name, cost in values["stages"].items()} == stages
