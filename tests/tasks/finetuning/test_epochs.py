"""Training of tasks: batches in parts, going on after any interruption to the byte, and what is refused."""

import json
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model.training.signals import Stopped
from tasks.finetuning import epochs as training
from tasks.finetuning.epochs import EpochTraining, loss_of_part, parts_of_step
from tasks.finetuning.inference import collate, logits_of
from tasks.finetuning.prepare import Prepared
from tasks.finetuning.registry import TASKS
from tasks.task import Hyperparameters
from tests.support.fine_tuned import EXAMPLES, THREE, contents, finetune, prepared
from tests.support.killed import run_killed


@pytest.fixture(scope="module")
def whole(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of an unbroken run."""
    output = tmp_path_factory.mktemp("whole")
    finetune(folder, output)
    return contents(output)


def visit(monkeypatch: pytest.MonkeyPatch, *, stop_at: int | None = None) -> list[int]:
    """Notes the steps that are computed; the run is interrupted before the step `stop_at`."""
    visited: list[int] = []

    def parts(run: Prepared, step: int) -> Any:
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


@pytest.mark.parametrize(("step", "minutes"), [(0, 0.0), (1, 1e-9), (5, 0.0), (11, 1e-9)])
def test_interrupted_run_goes_on_with_the_same_bytes(
    folder: Path, whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, minutes: float
) -> None:
    """With a checkpoint after each epoch (0 minutes), and with one after every step."""
    interrupt(monkeypatch, step, folder, tmp_path, checkpoint_minutes=minutes)
    torch.manual_seed(99)
    visited = visit(monkeypatch)
    finetune(folder, tmp_path, checkpoint_minutes=minutes)
    assert visited == list(range(step if minutes else step - step % 4, 12))
    assert contents(tmp_path) == whole


KILLED = """
from tests.support.fine_tuned import finetune
finetune(source, output)
"""


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


def test_a_finished_run_is_not_done_again(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = finetune(folder, tmp_path)
    before = contents(tmp_path)
    assert not any("checkpoint" in name for name in before)
    visited = visit(monkeypatch)
    assert finetune(folder, tmp_path) == json.loads(json.dumps(metrics))
    assert visited == []
    assert contents(tmp_path) == before
    finetune(folder, tmp_path, seed=2)
    assert visited == list(range(12))
    visited.clear()
    monkeypatch.setattr("tasks.finetuning.finetune.VERSION", -1)  # what other code has written
    finetune(folder, tmp_path, seed=2)
    assert visited == list(range(12))


def test_another_configuration_is_refused(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt(monkeypatch, 5, folder, tmp_path)
    for given, message in (
        ({"seed": 2}, "seed is 1 in this checkpoint, but 2 is asked for"),
        ({"variant": "roberta"}, "variant is 'luke' in this checkpoint, but 'roberta'"),
        ({"changes": {"precision": "bf16"}}, "precision is 'float32' in this checkpoint, but 'bf16'"),
    ):
        with pytest.raises(ValueError, match=message):
            finetune(folder, tmp_path, **given)


def test_other_inputs_are_refused(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "in"
    shutil.copytree(folder, source)
    shutil.copytree(EXAMPLES / "ner", source / "data")
    interrupt(monkeypatch, 5, source, tmp_path / "out", data=source / "data")
    for name in ("data/train.txt", "weights/model.safetensors", "tokenizer/vocab.json"):
        content = (source / name).read_bytes()
        is_binary = name.endswith("safetensors")
        (source / name).write_bytes(content[:-4] + b"\x00\x00\x80\x41" if is_binary else content.rstrip(b"\n") + b" \n")
        what = name.split("/")[0]
        with pytest.raises(ValueError, match=rf"{what}[\w.]* is '[0-9a-f]{{64}}' in this .* '[0-9a-f]{{64}}"):
            finetune(source, tmp_path / "out", data=source / "data")
        (source / name).write_bytes(content)


def literal_steps(orders: list[list[int]], micro: int, accumulation: int, epochs: float) -> list[list[list[int]]]:
    """The micro-batches whose gradients each update of the authors' trainer adds up, from its loop's counters."""
    batches = [[order[i : i + micro] for i in range(0, len(order), micro)] for order in orders]
    num_train_steps = int(len(batches[0]) // accumulation * epochs)
    updates: list[list[list[int]]] = []
    gradients: list[list[int]] = []
    epoch = 0
    while True:
        for step, batch in enumerate(batches[epoch]):
            gradients.append(batch)
            if (step + 1) % accumulation == 0:
                updates.append(gradients)
                gradients = []
                if len(updates) == num_train_steps:
                    return updates
        epoch += 1


def in_batches_of(micro: int, batch: int) -> Hyperparameters:
    return replace(THREE, micro_batch_size=micro, batch_size=batch)


@pytest.mark.parametrize(("micro", "batch"), [(2, 8), (1, 16), (7, 7), (4, 28)])
def test_steps_of_the_paper_are_those_of_the_authors_loop(folder: Path, micro: int, batch: int) -> None:
    """Whole batches of whole micro-batches are counted, and gradients that are left wait for the next epoch.

    In the other profile an epoch shows every feature once, in the same order.
    """
    run = prepared(folder, in_batches_of(micro, batch), profile="paper", seed=5)
    count = len(run.features["train"].items)
    assert count == 60
    orders = [np.random.default_rng([5, epoch]).permutation(count).tolist() for epoch in range(3)]
    literal = literal_steps(orders, micro, batch // micro, 3)
    assert run.steps_per_epoch * 3 == len(literal)
    assert -(-count // batch) * 3 > len(literal) or micro == batch
    number = {id(item): index for index, item in enumerate(run.features["train"].items)}
    found = [
        [[number[id(item)] for item in group] for group in training.groups_of_step(run, step)]
        for step in range(len(literal))
    ]
    assert found == literal
    fixed = prepared(folder, in_batches_of(micro, batch), seed=5)
    number = {id(item): index for index, item in enumerate(fixed.features["train"].items)}
    shown = [group for step in range(fixed.steps_per_epoch) for group in training.groups_of_step(fixed, step)]
    assert len(shown) == fixed.steps_per_epoch == -(-count // batch), "a step is a group, the last one smaller"
    assert [number[id(item)] for group in shown for item in group] == orders[0]


@pytest.mark.parametrize("tokens", [0, 40])
@pytest.mark.parametrize("task", sorted(TASKS))
def test_the_paper_s_loss_is_the_mean_of_micro_batches_means(folder: Path, task: str, tokens: int) -> None:
    """The formula: of each micro-batch its own mean, by the number that makes a batch; whatever is computed at once."""
    hyperparameters = replace(in_batches_of(3, 6), tokens_per_batch=tokens)
    run = prepared(folder, hyperparameters, task=task, profile="paper", seed=5)
    run.module.eval()
    for step in (1, run.steps_per_epoch):
        groups = training.groups_of_step(run, step)
        assert [len(group) for group in groups[-2:]] == [3, 3]
        means = [run.task.loss(run.module, collate(run, group)) for group in groups]
        literal = {name: sum(float(mean[name].detach()) for mean in means) / 2 for name in means[0]}
        parts = [loss_of_part(run, part) for part in parts_of_step(run, step)]
        assert len(parts) > len(groups) or not tokens
        for name, loss in literal.items():
            found = sum(float(part[name].detach()) for part in parts)
            assert found == pytest.approx(loss, rel=1e-5), (step, name)


def test_micro_batches_that_make_no_batch_are_refused_in_the_paper_s_profile(folder: Path) -> None:
    for batch, message in ((6, "batch_size is 6, but profile paper computes 4"), (64, "train has 60 inputs, too few")):
        with pytest.raises(ValueError, match=message):
            prepared(folder, in_batches_of(4, batch), profile="paper")
    prepared(folder, in_batches_of(4, 6))
    assert prepared(folder, in_batches_of(4, 60), profile="paper").steps_per_epoch == 1
    with pytest.raises(ValueError, match="micro_batch_size is -1, but must be at least 0"):
        in_batches_of(-1, 6)


@pytest.mark.parametrize("step", [4, 6])
def test_the_paper_s_run_goes_on_with_the_same_bytes(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Also where gradients are left of an epoch: 60 features are 20 parts, 18 of them the parts of three batches."""
    settings = {"profile": "paper", "changes": {"micro_batch_size": 3, "batch_size": 18}}
    finetune(folder, tmp_path / "whole", **settings)
    interrupt(monkeypatch, step, folder, tmp_path / "broken", checkpoint_minutes=1e-9, **settings)
    visited = visit(monkeypatch)
    finetune(folder, tmp_path / "broken", checkpoint_minutes=1e-9, **settings)
    assert visited == list(range(step, 9))
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")


def test_checkpointed_layers_change_no_bit(
    folder: Path, whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The layers were run twice, and what is written is the same but for the setting itself."""
    from model.luke import encoder

    calls: list[int] = []
    original = encoder.checkpoint

    def counted(*arguments: Any, **named: Any) -> Any:
        calls.append(1)
        return original(*arguments, **named)

    monkeypatch.setattr(encoder, "checkpoint", counted)
    finetune(folder, tmp_path, changes={"gradient_checkpointing": True})
    assert len(calls) == 12, "a layer in each of 12 steps, and none where dev is scored"
    found = contents(tmp_path)
    assert found["model.safetensors"] == whole["model.safetensors"]
    assert found["training.jsonl"] == whole["training.jsonl"]
    assert b'"gradient_checkpointing": true' in found["config.json"]
    assert b'"gradient_checkpointing": false' in whole["config.json"]


def test_bf16_is_in_products_alone(
    folder: Path, whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights, gradients and moments stay float32; dev is scored as training computes."""
    seen: list[tuple[str, torch.dtype]] = []
    finish = EpochTraining.finish_step

    def finish_step(self: EpochTraining, end: int, step: int, figures: dict[str, float]) -> None:
        module = self.run.module
        seen.extend(("weight", parameter.dtype) for parameter in module.parameters())
        seen.extend(("gradient", each.grad.dtype) for each in module.parameters() if each.grad is not None)
        seen.extend(("moment", each["exp_avg"].dtype) for each in self.optimizer.state.values())
        finish(self, end, step, figures)

    monkeypatch.setattr(EpochTraining, "finish_step", finish_step)
    forward = torch.nn.Linear.forward

    def product(self: torch.nn.Linear, inputs: torch.Tensor) -> torch.Tensor:
        output = forward(self, inputs)
        if self.training or seen:  # how words begin is found before the first step, in float32
            seen.append(("training" if self.training else "scoring", output.dtype))
        return output

    monkeypatch.setattr(torch.nn.Linear, "forward", product)
    finetune(folder, tmp_path / "narrow", changes={"precision": "bf16"})
    kinds = {name: {dtype for kind, dtype in seen if kind == name} for name, _ in seen}
    assert kinds == {
        **{kind: {torch.float32} for kind in ("weight", "gradient", "moment")},
        **{kind: {torch.bfloat16} for kind in ("training", "scoring")},
    }
    monkeypatch.undo()
    losses = [
        [json.loads(line)["loss"] for line in lines.decode().splitlines()]
        for lines in (contents(tmp_path / "narrow")["training.jsonl"], whole["training.jsonl"])
    ]
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.05)


def test_batches_are_collated_one_ahead_and_in_order() -> None:
    made: list[int] = []
    stream = training.ahead(lambda number: made.append(number) or number * 10, 3, 7)  # type: ignore[func-returns-value]
    assert next(stream) == 30
    assert next(stream) == 40
    stream.close()
    assert made == [3, 4, 5], "the next one, and no more"
    assert list(training.ahead(lambda number: number, 3, 7)) == [3, 4, 5, 6]
    assert list(training.ahead(lambda number: number, 7, 7)) == []

    def fail(number: int) -> int:
        raise ValueError(f"no {number}")

    with pytest.raises(ValueError, match="no 3"):
        next(training.ahead(fail, 3, 7))


def test_a_tracker_gets_steps_and_scores(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "another_tracker.py").write_text("seen = []\ndef log(*given): seen.append(given)\n")
    monkeypatch.syspath_prepend(tmp_path)
    finetune(folder, tmp_path / "out", tracker="another_tracker:log")
    import another_tracker

    steps = [(figures, step) for figures, step in another_tracker.seen if "training/loss" in figures]
    scores = [(figures, step) for figures, step in another_tracker.seen if "dev/f1" in figures]
    history = [json.loads(line) for line in contents(tmp_path / "out")["training.jsonl"].splitlines()]
    assert [step for _, step in steps] == list(range(1, 13))
    assert [figures["training/loss"] for figures, _ in steps] == [record["loss"] for record in history]
    assert [step for _, step in scores] == [4, 8, 12]


@pytest.mark.parametrize("variant", ["luke", "roberta"])
@pytest.mark.parametrize("task", sorted(TASKS))
def test_parts_of_a_batch_have_its_loss_and_gradients(folder: Path, task: str, variant: str) -> None:
    results, counts = [], []
    for tokens in (0, 200):
        run = prepared(folder, replace(THREE, tokens_per_batch=tokens), task=task, variant=variant, seed=5)
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
    run = prepared(folder, THREE, task=task, seed=5)
    items = run.features["dev"].items
    found = [
        logits_of(run.task, run.module, items, entities=True, device="cpu", **amounts)
        for amounts in ({"batch_size": len(items)}, {"batch_size": 3}, {"batch_size": 1, "tokens_per_batch": 150})
    ]
    for rows in zip(*found, strict=True):
        assert all(np.abs(rows[0] - row).max() < 1e-4 for row in rows)
