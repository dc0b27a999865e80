"""What decides the meaning of the figures of `benchmarks.tasks.grid`; no grid is run here."""

import signal

import pytest

from benchmarks.harness.workloads import Record
from benchmarks.tasks import grid


def a_call(status: int, cells: int, seconds: float = 100.0) -> Record:
    return {
        "call": "a call",
        "exit status": status,
        "seconds": seconds,
        "until its workers had ended": 1.0,
        "finished cells": cells,
        "resumed after steps": [],
        "last lines": [],
    }


def a_report() -> Record:
    """Three calls for four cells, all as it should be."""
    cell = {"task": "ner", "variant": "luke", "seed": 1, "state": "done", "reason": "", "seconds": 2.0}
    return {
        "calls": [a_call(-signal.SIGKILL, 2), a_call(0, 4), a_call(0, 4)],
        "cells": [dict(cell) for _ in range(4)],
        "expected cells": 4,
        "written again": [],
        "changed by the third call": [],
        "page bytes": [5_000],
    }


def failed(report: Record) -> list[int]:
    return [number for number, row in enumerate(grid.checks(report)) if not row["passed"]]


def test_what_was_written_again_or_is_gone_has_changed_and_new_files_have_not() -> None:
    before = {"a/manifest.json": 1, "b/manifest.json": 2, "c/manifest.json": 3}
    after = {"a/manifest.json": 1, "b/manifest.json": 9, "d/manifest.json": 4}
    assert grid.changed(before, after) == ["b/manifest.json", "c/manifest.json"]


def test_steps_of_resumed_cells_are_read_from_the_log() -> None:
    log = (
        "stopped by SIGTERM; the same command goes on from here\n"
        "/w/finetune-68/checkpoints/step-00000011: resumed after step 11\n"
        "FineTune          ner, luke, seed 1: dev F1 0.000, test F1 0.000 | 13.8 s\n"
        "/w/finetune-70/checkpoints/step-00000300: resumed after step 300\n"
    )
    assert grid.resumed(log) == [11, 300]
    assert grid.resumed("resumed after step 3\n") == []


def test_a_run_as_it_should_be_passes_all_checks() -> None:
    assert failed(a_report()) == []


@pytest.mark.parametrize(
    ("check", "change"),
    [
        (0, {"calls": [a_call(0, 2), a_call(0, 4), a_call(0, 4)]}),
        (1, {"calls": [a_call(-signal.SIGKILL, 2), a_call(30, 4), a_call(0, 4)]}),
        (1, {"calls": [a_call(-signal.SIGKILL, 2), a_call(0, 4), a_call(30, 4)]}),
        (2, {"calls": [a_call(-signal.SIGKILL, 0), a_call(0, 4), a_call(0, 4)]}),
        (2, {"calls": [a_call(-signal.SIGKILL, 4), a_call(0, 4), a_call(0, 4)]}),
        (3, {"written again": ["finetune-68/manifest.json"]}),
        (4, {"cells": a_report()["cells"][:3]}),
        (4, {"cells": [*a_report()["cells"][:3], a_report()["cells"][3] | {"state": "failed"}]}),
        (4, {"cells": a_report()["cells"] * 2}),
        (5, {"page bytes": []}),
        (5, {"page bytes": [0]}),
        (6, {"changed by the third call": ["report-68/index.html"]}),
    ],
)
def test_each_fault_fails_its_check_and_no_other(check: int, change: Record) -> None:
    assert failed(a_report() | change) == [check]


@pytest.mark.parametrize(("seconds", "met"), [(298.9, True), (299.1, False)])
def test_the_target_counts_all_three_calls_and_the_end_of_their_workers(seconds: float, met: bool) -> None:
    calls = [a_call(-signal.SIGKILL, 2, seconds), a_call(0, 4, seconds), a_call(0, 4, seconds)]
    (target,) = grid.targets(calls)
    assert target["found"] == pytest.approx((3 * seconds + 3) / 60)
    assert target["met"] is met
