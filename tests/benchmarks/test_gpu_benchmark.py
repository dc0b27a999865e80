"""The rehearsal of `benchmarks.model.gpu` on a CPU, and what decides the meaning of its figures."""

import argparse
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from benchmarks.harness.workloads import Record
from benchmarks.model import estimate, gpu_tables, gpu_workloads, pretrain_workloads, workloads
from benchmarks.model import gpu as script
from benchmarks.model import ranks as ranks_script
from benchmarks.tasks import ner_workloads
from model.luke.config import PRESETS
from model.pretraining.throughput import training_flops, work_of
from tests.support import ROOT
from tests.support.models import TINY
from tests.support.shards import random_rows, write_sequences

COMMAND = ["gpu", "--device", "cpu", "--tiny", "--threads", "1", "--output"]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Workloads run in this process, every preset is a tiny model, and transformers' original attention fails."""
    called: list[str] = []

    def run(module: str, workload: str, arguments: Record, *, seconds: float) -> Record:
        assert (module == script.NER_MODULE, seconds > 0) == (workload == "speed", True)
        called.append(workload)
        if (arguments.get("who"), arguments.get("attention")) == (script.THEIRS, script.ORIGINAL):
            return {"failure": "signal 9"}
        known = {"micro_batch": gpu_workloads.micro_batch, "train": pretrain_workloads.train}
        known |= {"speed": ner_workloads.speed}
        return json.loads(json.dumps(known[workload](**json.loads(json.dumps(arguments)))))

    monkeypatch.setattr(script, "run", run)
    for module in (gpu_workloads, pretrain_workloads, workloads, ner_workloads):
        monkeypatch.setattr(module, "preset", lambda size: TINY)
    return called


def test_the_rehearsal_measures_everything_and_keeps_what_failed(
    here: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In bf16 and compiled as on a GPU, but for the compiler itself."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    more = ["--precision", "bf16", "--modes", "eager", "compiled"]
    monkeypatch.setattr(sys, "argv", [*COMMAND, str(tmp_path / "gpu.json"), *more])
    script.main()
    assert here == ["micro_batch"] * 3 + ["train", "train", "speed"] + ["micro_batch"] * 4
    record = json.loads((tmp_path / "gpu.json").read_text(encoding="utf-8"))
    rows = record["micro-batches"]
    assert [(row["model"], row["attention"], row["mode"]) for row in rows] == [
        ("ours", "entity-aware", "eager"),
        ("ours", "original", "eager"),
        ("transformers", "entity-aware", "eager"),
        ("ours", "entity-aware", "compiled"),
        ("ours", "original", "compiled"),
        ("transformers", "original", "eager"),
        ("transformers", "entity-aware", "compiled"),
    ]
    failed, speeds = rows.pop(5), rows
    for row in speeds:
        assert row["tokens/s"] > 0
        assert row["peak MB"] > 0
        assert row["share of the product rate"] > 0
        assert row["share of the published rate"] is None, "no maker says what a CPU does"
        assert 0.5 < row["real of padded places"] <= 1
    assert (speeds[0]["x transformers"] is None, speeds[2]["x transformers"]) == (False, 1.0)
    assert (failed["tokens/s"], failed["peak MB"]) == (None, None)
    assert any(note.endswith("original, 256, eager: signal 9") for note in record["notes"])
    assert len(record["where the time goes"]) == 5, "marks would break a compiled model of transformers"
    steps = [(row["mode"], row["steps"]) for row in record["steps of pretraining"]]
    assert steps == [("eager", script.TINY.steps), ("compiled", script.TINY.steps)]
    assert [row["variant"] for row in record["entity recognition"]] == script.NER["bf16"]
    assert [row["passed"] for row in record["checks"]] == [True] * 6
    text = (tmp_path / "gpu.md").read_text(encoding="utf-8")
    assert "signal 9" in text
    assert "Products are in bf16." in text


def make_runner(tmp_path: Path, who: str) -> tuple[gpu_workloads.Runner, list[workloads.Sample]]:
    sequences = write_sequences(tmp_path / "sequences", random_rows(60))
    case = gpu_workloads.Case(
        who, "tiny", "entity-aware", 200, False, "float32", "cpu", str(sequences), 40, 2, 1
    )
    corpus = gpu_workloads.Corpus(sequences)
    return gpu_workloads.Runner(case, case.config(0)), case.samples(corpus)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("who", [script.OURS, script.THEIRS])
def test_shares_are_of_one_step_and_leave_no_trace(who: str, tmp_path: Path) -> None:
    runner, samples = make_runner(tmp_path, who)
    found = gpu_workloads.shares(runner, samples[0])
    assert set(found) == set(gpu_workloads.PARTS)
    assert all(share > 0 for share in found.values())
    assert sum(found.values()) < 1
    marks = gpu_workloads.Marks(torch.device("cpu"))
    with gpu_workloads.marked(runner, marks):
        runner.forward_and_backward(samples[0])
    each = [name for name, _ in marks.named]
    layers = TINY.num_hidden_layers
    assert (each.count("attention begins"), each.count("attention ends")) == (2 * layers, 2 * layers)
    assert each.index("heads end") == each.index("heads begin") + 1, "no layer runs while the heads do"
    runner.forward_and_backward(samples[0])
    assert len(marks.named) == len(each)


@pytest.mark.usefixtures("here")
def test_micro_batches_are_full_and_the_longest_come_first(tmp_path: Path) -> None:
    _, samples = make_runner(tmp_path, script.OURS)
    tokens = [sample.flat.shape.words + sample.flat.shape.entities for sample in samples]
    assert all(200 - 37 < size <= 200 for size in tokens), "not one more sequence fits"
    longest = [max(words + entities for words, entities in sample.flat.shape.lengths) for sample in samples]
    assert longest == sorted(longest, reverse=True)


def test_times_between_marks_add_up() -> None:
    marks = gpu_workloads.Marks(torch.device("cpu"))
    marks.named = [("a", 1.0), ("b", 1.5), ("b", 2.0), ("a", 3.0), ("c", 3.5), ("b", 4.0), ("a", 9.0)]
    assert marks.seconds("a", "b") == 1.5


def test_when_the_minutes_are_over_the_rest_is_left_out(tmp_path: Path) -> None:
    options = argparse.Namespace(
        device="cuda",
        threads=1,
        minutes=0,
        modes=["eager", "compiled"],
        precision="bf16",
        sequences=tmp_path,
        quick=False,
    )
    found, kept = script.Found(), list[tuple[int, int, bool]]()

    def keep() -> None:
        kept.append((len(found.micro), len(found.steps), bool(found.ner)))

    script.measure(options, script.FULL, tmp_path, found, keep)
    wanted = [(1, 0, False), (6, 0, False), (6, 1, False), (6, 4, True), (25, 4, True)]
    assert [each for each in kept if each in wanted] == wanted, "nothing waits for the end"
    rows = [*found.micro, *found.steps, found.ner]
    assert {row["failure"] for row in rows} == {"left out: the 0 minutes were over"}
    assert all(row["tokens/s"] is None for row in gpu_tables.speed_rows(found.micro))
    assert gpu_tables.time_rows(found.micro) == gpu_tables.checks(found.micro) == []
    assert gpu_tables.ner_rows(found.ner) == []
    columns = ("who", "size", "attention", "tokens", "compiled")
    different = {tuple(row[column] for column in columns) for row in found.micro}
    assert len(different) == 25, "no row twice"
    assert [(row["size"], row["compiled"]) for row in found.micro[6:8]] == [("large", True)] * 2


def test_what_tests_say_is_kept(tmp_path: Path) -> None:
    report = tmp_path / "tests.xml"
    cases = (
        '<testcase classname="a" name="good" time="2.5"/>'
        '<testcase classname="a" name="bad" time="0.1"><failure message="1 != 2">trace</failure></testcase>'
        '<testcase classname="a" name="left" time="0"><skipped message="no device"/></testcase>'
    )
    report.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>", encoding="utf-8")
    rows = script.read_tests(report)
    assert [(row["test"], row["outcome"], row["why"]) for row in rows] == [
        ("a.good", "passed", ""),
        ("a.bad", "failed", "1 != 2"),
        ("a.left", "skipped", "no device"),
    ]
    assert gpu_tables.test_checks(rows) == [
        {"check": "tests/gpu: 1 passed, 1 failed, 1 skipped", "passed": False}
    ]
    assert gpu_tables.test_checks([]) == []


HANGING = """
import os, signal, time

def test_ending():
    pass

def test_hanging():
    os.kill(os.getppid(), signal.SIGALRM)  # the limit's own alarm, as if its time were over
    time.sleep(60)
"""


def test_tests_that_do_not_end_are_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = tmp_path / "tests/gpu/test_hanging.py"
    hanging.parent.mkdir(parents=True)
    hanging.write_text(HANGING, encoding="utf-8")
    monkeypatch.setattr(script, "ROOT", tmp_path)
    rows = script.run_tests(tmp_path)
    assert [(row["test"].split(".")[-1], row["outcome"], row["why"]) for row in rows] == [
        ("test_ending", "passed", ""),
        ("tests/gpu", "failed", "exit status 124"),
    ]


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
    assert all(row["sentences/s"] > 0 for row in record["entity recognition"])
    assert {row["outcome"] for row in record["of tests"]} == {"skipped"}


def row(who: str, seconds: float, **changes: object) -> Record:
    each = {"tokens": 1000, "places": 1250, "seconds": seconds, "flops": 4e12, "loss": 3.0}
    measured = {"rows": [each] * 3, "peak_mb": 70.4, "matrix_flops": 8e12, "published_flops": 1e13}
    kind = {"who": who, "size": "base", "attention": "original", "tokens": 16384, "compiled": False}
    return kind | measured | {"kernel": None} | changes


def test_speeds_and_shares() -> None:
    rows = [row("ours", 1.0), row("ours", 0.5, compiled=True), row("transformers", 2.0)]
    found = gpu_tables.speed_rows([*rows, row("transformers", 1.0, compiled=True)])
    assert [line["x transformers"] for line in found] == [2.0, 4.0, 1.0, 2.0]
    assert found[0]["tokens/s"] == 1000
    assert found[0]["share of the product rate"] == 0.5
    assert found[0]["share of the published rate"] == 0.4
    assert found[0]["real of padded places"] == 0.8


def test_targets_are_of_the_best_that_was_measured() -> None:
    rows = [row("ours", 1.0), row("ours", 0.5, compiled=True), row("ours", 1.2, attention="entity-aware")]
    rows += [row("transformers", 2.4, attention="entity-aware"), row("ours", 0.1, size="small")]
    found = gpu_tables.targets(rows, "base")
    assert [line["found"] for line in found] == pytest.approx([1.0, 2.4, 2.0])
    assert [line["met"] for line in found] == [True, False, False]
    failed = [{**each, "rows": []} for each in rows]
    assert [line["met"] for line in gpu_tables.targets(failed, "base")] == [None, None, None]


def test_a_loss_that_is_no_number_fails_the_check() -> None:
    wrong = row("ours", 1.0)
    wrong["rows"] = [{**wrong["rows"][0], "loss": float("nan")}]
    assert [line["passed"] for line in gpu_tables.checks([row("ours", 1.0), wrong])] == [True, False]


def test_sequences_that_are_made_here_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "MADE", 30)
    corpus = gpu_workloads.Corpus(script.make_sequences(tmp_path / "sequences", tiny=False))
    lengths = [len(corpus[index].word_ids) for index in range(len(corpus))]
    assert len(lengths) == 30
    assert max(lengths) > 300
    assert all(len(corpus[index].entity_ids) >= 1 for index in range(30))


def test_work_without_a_gpu_is_counted() -> None:
    """Products of a forward and a backward pass are those of the equations; attention's are counted by its lengths."""
    config = replace(PRESETS["tiny"], use_entity_aware_attention=True)
    found = estimate.count(config, 4096)
    wanted = training_flops(config, work_of(estimate.shape_of(4096)))
    assert math.fsum(row[0] for row in found.values()) == pytest.approx(wanted, rel=0.1)
    assert set(found) == {"input", "layers", "attention kernel", "heads", "backward"}
    assert all(row[1] > 0 and row[2] > 0 for row in found.values())


def test_gradients_of_two_processes_are_the_same_by_every_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "ranks.json"
    call = ["ranks", "--rounds", "1", "--tokens", "300", "--parts", "2", "--output", str(output)]
    monkeypatch.setattr(sys, "argv", call)
    ranks_script.main()
    record = json.loads(output.read_text(encoding="utf-8"))
    assert [row["passed"] for row in record["checks"]] == [True]
    assert [row["exchange"] for row in record["a step"]] == [
        "no message",
        "ours",
        "one by one",
        "DistributedDataParallel",
    ]
