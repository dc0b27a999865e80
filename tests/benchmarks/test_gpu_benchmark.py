"""The rehearsal of `benchmarks.model.gpu` on a CPU, its micro-batches, and its limit of time."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.model import gpu as script
from benchmarks.model import gpu_tables, gpu_workloads
from tests.support import ROOT
from tests.support.models import TINY
from tests.support.shards import random_rows, write_sequences


def test_micro_batches_are_full_and_the_longest_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_workloads, "preset", lambda size: TINY)
    sequences = str(write_sequences(tmp_path / "sequences", random_rows(60)))
    case = gpu_workloads.Case("ours", "tiny", "original", 200, "eager", "float32", "cpu", sequences, 40, 2, 1)
    samples = case.samples(gpu_workloads.Corpus(Path(sequences)))
    tokens = [sample.flat.shape.words + sample.flat.shape.entities for sample in samples]
    assert all(200 - 37 < size <= 200 for size in tokens), "not one more sequence fits"
    longest = [max(words + entities for words, entities in sample.flat.shape.lengths) for sample in samples]
    assert longest == sorted(longest, reverse=True)


def test_when_the_minutes_are_over_the_rest_is_left_out(tmp_path: Path) -> None:
    options = argparse.Namespace(device="cuda", threads=1, minutes=0, modes=list(script.MODES))
    options.precision, options.sequences, options.quick = "bf16", tmp_path, False
    found, kept = script.Found(), list[tuple[int, ...]]()

    def keep() -> None:
        kept.append(tuple(len(found.rows[name]) for name in script.WORKLOADS))

    script.measure(options, script.FULL, tmp_path, found, keep)
    wanted = [(1, 0), (10, 0), (10, 1), (10, 4), (29, 4)]
    assert [each for each in kept if each in wanted] == wanted, "nothing waits for the end"
    failures = {row["failure"] for rows in found.rows.values() for row in rows}
    assert failures == {"left out: the 0 minutes were over"}
    micro = found.rows["micro_batch"]
    assert all(row["tokens/s"] is None for row in gpu_tables.speed_rows(micro))
    assert gpu_tables.checks(micro, {}) == []
    assert len({gpu_tables.name_of(row) for row in micro}) == 29, "no row twice"


def test_make_gpu_can_be_rehearsed(tmp_path: Path) -> None:
    """The recipe itself, each measurement in a process of its own, tests of tests/gpu skipped."""
    output = tmp_path / "gpu.json"
    words = ["make", "gpu", "DEVICE=cpu", "TINY=1", "THREADS=1"]
    words += [f"PYTHON={sys.executable}", f"OUTPUT={output}"]
    hidden = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(words, cwd=ROOT, env=hidden, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    record = json.loads(output.read_text(encoding="utf-8"))
    assert [row["passed"] for row in record["checks"]] == [True] * 5
    assert all(row["tokens/s"] > 0 for row in record["micro-batches"])
    assert [row["steps"] for row in record["steps of pretraining"]] == [script.TINY.steps]
