"""Training of tasks: batches in parts, going on after any interruption to the byte, and what is refused."""

import json
import shutil
import signal
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model.pretraining.loader import cut_by_tokens
from model.training.signals import Stopped
from tasks.finetuning import epochs as training
from tasks.finetuning import finetune as finetuning
from tasks.finetuning.epochs import EpochTraining, loss_of_part, parts_of_step
from tasks.finetuning.inference import logits_of
from tasks.finetuning.prepare import Run, prepare
from tasks.finetuning.registry import TASKS
from tasks.finetuning.variants import VARIANTS
from tests.support.fine_tuned import EXAMPLES, THREE, contents, finetune, pretrained
from tests.support.killed import run_killed
from tests.support.properties import given, st


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pretrained")
    pretrained(folder)
    return folder


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> None:
    for task in TASKS.values():
        monkeypatch.setitem(task.PRESETS, "three", THREE)


@pytest.fixture(scope="module")
def whole(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What an unbroken run writes."""
    output = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TASKS["ner"].PRESETS, "three", THREE)
        finetune(folder, output)
    return contents(output)


def visit(monkeypatch: pytest.MonkeyPatch, *, stop_at: int | None = None) -> list[int]:
    """Notes the steps that are computed; the run is interrupted before the step `stop_at`."""
    visited: list[int] = []

    def parts(run: Run, step: int) -> Any:
        if step == stop_at:
            raise KeyboardInterrupt
        visited.append(step)
        return parts_of_step(run, step)

    monkeypatch.setattr(training, "parts_of_step", parts)
    return visited


def interrupt(monkeypatch: pytest.MonkeyPatch, step: int, folder: Path, output: Path, **changes: Any) -> None:
    """Runs until that step."""
    with monkeypatch.context() as patch:
        visit(patch, stop_at=step)
        with pytest.raises(KeyboardInterrupt):
            finetune(folder, output, **changes)


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("step", [0, 1, 4, 7, 8, 11])
@pytest.mark.parametrize("minutes", [0.0, 1e-9])
def test_interrupted_run_goes_on_with_the_same_bytes(
    folder: Path,
    whole: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: int,
    minutes: float,
) -> None:
    """With a checkpoint after each epoch (0 minutes), and with one after every step."""
    interrupt(monkeypatch, step, folder, tmp_path, checkpoint_minutes=minutes)
    torch.manual_seed(99)
    visited = visit(monkeypatch)
    finetune(folder, tmp_path, checkpoint_minutes=minutes)
    assert visited == list(range(step if minutes else step - step % 4, 12))
    assert contents(tmp_path) == whole


KILLED = """
from tests.support.fine_tuned import THREE, finetune
from tasks.ner import task
task.PRESETS["three"] = THREE
finetune(source, output)
"""


@pytest.mark.usefixtures("three")
def test_killed_in_the_middle_of_writing(folder: Path, whole: dict[str, bytes], tmp_path: Path) -> None:
    """A checkpoint is six forced writes (five files and their folder), of which there are three.

    Killed within the second one, within the third one of the run that went on from the first, and while the
    result is written.
    """
    for writes, left in ((9, 4), (9, 8), (9, 12)):
        run_killed(KILLED, folder, tmp_path, writes)
        checkpoints = sorted(tmp_path.glob("checkpoints/step-*"))
        assert [path.name for path in checkpoints][-1:] == [f"step-{left:08d}"]
        assert not (tmp_path / "metrics.json").exists()
    finetune(folder, tmp_path)
    assert contents(tmp_path) == whole


@pytest.mark.usefixtures("three")
def test_stopped_by_sigterm(
    folder: Path, whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an epoch, at its last step (then dev is scored first), and while dev is scored."""
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))
    finish, score = EpochTraining.finish_step, EpochTraining.score_epoch

    def finish_step(self: EpochTraining, end: int, step: int, figures: dict[str, float]) -> None:
        if step in (1, 3):
            signal.raise_signal(signal.SIGTERM)
        finish(self, end, step, figures)

    def score_epoch(self: EpochTraining, number: int) -> None:
        if number == 2:
            signal.raise_signal(signal.SIGTERM)
        score(self, number)

    monkeypatch.setattr(EpochTraining, "finish_step", finish_step)
    monkeypatch.setattr(EpochTraining, "score_epoch", score_epoch)
    try:
        for done in (2, 4, 8):
            with pytest.raises(Stopped, match=f"stopped by SIGTERM after step {done}; the same call goes on"):
                finetune(folder, tmp_path)
        assert came == [signal.SIGTERM] * 3  # with its usual effect, once the checkpoint is there
        finetune(folder, tmp_path)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert contents(tmp_path) == whole


@pytest.mark.usefixtures("three")
def test_a_finished_run_is_not_done_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = finetune(folder, tmp_path)
    before = contents(tmp_path)
    assert not any("checkpoint" in name for name in before)
    visited = visit(monkeypatch)
    assert finetune(folder, tmp_path) == json.loads(json.dumps(metrics))
    assert visited == []
    assert contents(tmp_path) == before
    finetune(folder, tmp_path, seed=2)
    assert visited == list(range(12))


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 2}, "seed is 1 in this checkpoint, but 2 is asked for"),
        ({"variant": "roberta"}, "variant is 'luke' in this checkpoint, but 'roberta' is asked for"),
        ({"tokens_per_batch": 300}, "tokens_per_batch is 0 in this checkpoint, but 300 is asked for"),
    ],
)
def test_another_configuration_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], message: str
) -> None:
    interrupt(monkeypatch, 5, folder, tmp_path)
    with pytest.raises(ValueError, match=message):
        finetune(folder, tmp_path, **changes)


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("what", ["data", "weights", "tokenizer"])
def test_other_inputs_are_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    shutil.copytree(folder, tmp_path / "in")
    shutil.copytree(EXAMPLES / "ner", tmp_path / "in" / "data")
    given = {"data": tmp_path / "in" / "data"}
    interrupt(monkeypatch, 5, tmp_path / "in", tmp_path / "out", **given)
    changed = {
        "data": "data/train.txt",
        "weights": "weights/model.safetensors",
        "tokenizer": "tokenizer/vocab.json",
    }[what]
    path = tmp_path / "in" / changed
    content = path.read_bytes()
    path.write_bytes(
        content[:-4] + b"\x00\x00\x80\x41" if what == "weights" else content.rstrip(b"\n") + b" \n"
    )
    with pytest.raises(ValueError, match=rf"{what}[\w.]* is '[0-9a-f]{{64}}' in this .* '[0-9a-f]{{64}}' is"):
        finetune(tmp_path / "in", tmp_path / "out", **given)


def prepared(folder: Path, task: str, variant: str, tokens: int) -> Run:
    return prepare(
        TASKS[task], VARIANTS[variant], replace(THREE, tokens_per_batch=tokens), EXAMPLES / task,
        folder / "weights", folder / "tokenizer", seed=5, device="cpu", profile="fixed", progress=False,
    )  # fmt: skip


@pytest.mark.parametrize("variant", ["luke", "roberta"])
@pytest.mark.parametrize("task", sorted(TASKS))
def test_parts_of_a_batch_have_its_loss_and_gradients(folder: Path, task: str, variant: str) -> None:
    results, counts = [], []
    for tokens in (0, 200):
        run = prepared(folder, task, variant, tokens)
        run.module.eval()  # without dropout, which is drawn anew for each part
        losses = [loss_of_part(run, part) for part in parts_of_step(run, 1)]
        total = torch.stack([loss for part in losses for loss in part.values()]).sum()
        total.backward()
        counts.append(len(losses))
        gradients = {name: value.grad for name, value in run.module.named_parameters()}
        results.append((float(total.detach()), gradients))
    assert counts[0] == 1
    assert counts[1] > 2
    (loss, expected), (parts_loss, found) = results
    assert parts_loss == pytest.approx(loss, rel=1e-6)
    assert max(float(grad.abs().max()) for grad in expected.values() if grad is not None) > 1e-3
    for name, gradient in expected.items():
        if gradient is None:
            assert found[name] is None
        else:
            torch.testing.assert_close(found[name], gradient, atol=1e-6, rtol=1e-5, msg=name)


@pytest.mark.parametrize("task", sorted(TASKS))
def test_predictions_do_not_depend_on_what_is_computed_at_once(folder: Path, task: str) -> None:
    run = prepared(folder, task, "luke", 0)
    items = run.features["dev"].items
    found = [
        logits_of(run.task, run.module, items, entities=True, pad_id=run.pad_id, device="cpu", **amounts)
        for amounts in (
            {"batch_size": len(items)},
            {"batch_size": 3},
            {"batch_size": 1, "tokens_per_batch": 150},
        )
    ]
    for rows in zip(*found, strict=True):
        assert all(np.abs(rows[0] - row).max() < 1e-4 for row in rows)


@given(st.lists(st.integers(1, 9), max_size=30), st.integers(1, 20))
def test_parts_are_as_large_as_the_budget_allows(sizes: list[int], budget: int) -> None:
    parts = [list(part) for part in cut_by_tokens(sizes, int, budget)]
    assert sum(parts, []) == sizes  # noqa: RUF017
    assert all(sum(part) <= budget or len(part) == 1 for part in parts)
    assert all(sum(part) + following[0] > budget for part, following in pairwise(parts))


def test_what_is_not_said_is_as_for_the_stage(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TASKS["ner"].PRESETS, "base", replace(THREE, epochs=1))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    places = (EXAMPLES / "ner", folder / "weights", folder / "tokenizer")
    finetuning.finetune("ner", *places, tmp_path / "unsaid", allow_no_predictions=True)
    settings = {"variant": "luke", "preset": "base", "profile": "fixed", "seed": 42}
    finetune(folder, tmp_path / "said", **settings)
    assert contents(tmp_path / "said") == contents(tmp_path / "unsaid")
    with pytest.raises(ValueError, match=r"device 'gpu' is unknown; use auto, cpu, cuda or cuda:N"):
        finetune(folder, tmp_path / "other", preset="base", device="gpu")
