"""Pretraining that is interrupted goes on to the same bits; the checkpoints of another run are refused."""

import math
import multiprocessing
import os
import resource
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from model import pretrain
from model.data.shards import Corpus
from model.pretraining.loader import Loader
from model.pretraining.phases import Execution, PhaseTraining
from model.pretraining.recipes import RECIPES, choose
from model.pretraining.run import identity
from model.pretraining.start import build_model
from model.training import checkpoints
from model.training.checkpoints import hold
from model.training.metrics_log import METRICS, read_lines
from model.training.signals import Stopped
from tests.support.killed import run_killed
from tests.support.models import words_of_transformers
from tests.support.narrow import narrow_on_cpu
from tests.support.pretraining import SHORT, contents, interrupt_at, run, run_up_to
from tests.support.shards import random_rows, write_sequences

__all__ = ["narrow_on_cpu"]
pytestmark = pytest.mark.usefixtures("short")


def test_two_runs_in_one_folder_are_refused(sequences: Path, tmp_path: Path) -> None:
    with hold(tmp_path / "checkpoints"), pytest.raises(ValueError, match=f"{tmp_path}: another run trains there"):
        run(sequences, tmp_path)
    run(sequences, tmp_path)
    (tmp_path / "checkpoints").mkdir()  # as of a run that was killed when it was done
    run(sequences, tmp_path)
    assert not (tmp_path / "checkpoints").exists()


def test_the_same_again_is_done_already(sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = run(sequences, tmp_path)
    before = contents(tmp_path)
    interrupt_at(monkeypatch, 0)
    assert run(sequences, tmp_path) == figures
    assert contents(tmp_path) == before
    with pytest.raises(KeyboardInterrupt):
        run(sequences, tmp_path, seed=2)


@pytest.mark.parametrize(
    ("step", "profile"),
    [(3, "fixed"), (7, "fixed"), *(pytest.param(step, "paper", marks=pytest.mark.slow) for step in (0, 8, 12))],
)
def test_resumed_run_has_the_same_bits(
    sequences: Path,
    whole: Callable[..., dict[str, bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: int,
    profile: str,
) -> None:
    run_up_to(step, sequences, tmp_path / "broken", profile=profile)
    torch.manual_seed(99)
    visited: list[int] = []
    original = Loader.__call__
    monkeypatch.setattr(Loader, "__call__", lambda self, at: visited.append(at) or original(self, at))
    run(sequences, tmp_path / "broken", profile=profile)
    # A checkpoint stands at every second step and at the end of a phase.
    first = 7 if step == 7 else step - step % 2
    assert visited == list(range(first, 13))
    assert contents(tmp_path / "broken") == whole(profile=profile)


def test_a_resumed_run_does_not_begin_its_entities_again(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words_of_transformers("RobertaModel").save_pretrained(tmp_path / "base")
    options: dict[str, Any] = {"base_model": str(tmp_path / "base"), "entity_start": "titles"}
    run(sequences, tmp_path / "whole", **options)
    run_up_to(5, sequences, tmp_path / "broken", **options)

    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("model.pretraining.run.begin_with_words", fail)
    run(sequences, tmp_path / "broken", **options)
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")


@pytest.fixture
def threads() -> Iterator[None]:
    """Undo what a test sets."""
    count = torch.get_num_threads()
    yield
    torch.set_num_threads(count)


@pytest.mark.slow
@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(("workers", "count", "precision"), [(2, 1, "float32"), (0, 2, "float32"), (0, 1, "bf16")])
def test_a_run_that_is_broken_after_every_step_has_the_same_bits(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int, count: int, precision: str
) -> None:
    """Each of the 13 steps is made by a run of its own, which goes on from the one before."""
    monkeypatch.setitem(RECIPES, "tiny", replace(SHORT, checkpoint_every=1))
    torch.set_num_threads(count)
    run(sequences, tmp_path / "whole", precision=precision)
    done: list[int] = []
    original = PhaseTraining.finish_step

    def finish(self: PhaseTraining, phase: int, step: int, *rest: Any) -> None:
        original(self, phase, step, *rest)
        done.append(step)
        raise KeyboardInterrupt

    monkeypatch.setattr(PhaseTraining, "finish_step", finish)
    execution = Execution(workers=workers)
    for _ in range(13):
        with pytest.raises(KeyboardInterrupt):
            run(sequences, tmp_path / "broken", precision=precision, execution=execution)
    assert done == list(range(1, 14))
    monkeypatch.setattr(PhaseTraining, "finish_step", original)
    run(sequences, tmp_path / "broken", precision=precision, execution=execution)
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")


KILLED = """
from model.luke.config import PRESETS
from model.pretraining.recipes import RECIPES
from tests.support.models import TINY
from tests.support.pretraining import SHORT, run
PRESETS["tiny"], RECIPES["tiny"] = TINY, SHORT
run(source, output)
"""


@pytest.mark.slow
def test_killed_in_the_middle_of_writing(
    sequences: Path, whole: Callable[..., dict[str, bytes]], tmp_path: Path
) -> None:
    # Forced writes: one for the metrics, five for each of eight checkpoints (four files and their folder), three for
    # the result. Killed within the third checkpoint, just after the fourth is there, and before the weights are.
    for writes in (14, 11, 24):
        run_killed(KILLED, sequences, tmp_path / "broken", writes)
        assert not (tmp_path / "broken" / "model.safetensors").exists()
    run(sequences, tmp_path / "broken")
    assert contents(tmp_path / "broken") == whole()


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_stopped_by_sigterm_between_checkpoints_and_lines(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, workers: int
) -> None:
    """A line of figures stands at every third step, so the figures of half a line are in the checkpoint.

    The signal comes to the run's workers, too, as where a machine is taken away.
    """
    monkeypatch.setitem(RECIPES, "tiny", replace(SHORT, log_every=3, checkpoint_every=100))
    run(sequences, tmp_path / "whole")
    execution = Execution(workers=workers)
    original = PhaseTraining.finish_step
    came: list[int] = []
    previous = signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))
    others = multiprocessing.active_children()  # of other tests, whose work goes on

    def finish(self: PhaseTraining, phase: int, done: int, *rest: Any) -> None:
        if done in (4, 8):
            own = [each for each in multiprocessing.active_children() if each not in others]
            assert len(own) == workers
            for process in own:
                assert process.pid is not None
                os.kill(process.pid, signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)
        original(self, phase, done, *rest)

    try:
        monkeypatch.setattr(PhaseTraining, "finish_step", finish)
        for step in (4, 8):
            with pytest.raises(Stopped, match=f"stopped by SIGTERM after step {step}; the same call goes on"):
                run(sequences, tmp_path / "broken", execution=execution)
            assert f"stopped by SIGTERM after step {step}" in caplog.text, "the signal lets nobody else tell"
        assert came == [signal.SIGTERM] * 2  # with its usual effect, once the checkpoint is there
        monkeypatch.setattr(PhaseTraining, "finish_step", original)
        run(sequences, tmp_path / "broken", execution=execution)
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")


def test_checkpoints_by_the_clock_and_how_many_are_kept(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RECIPES, "tiny", replace(SHORT, checkpoint_every=100))
    run_up_to(6, sequences, tmp_path, execution=Execution(checkpoint_minutes=1e-9))
    kept = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert kept == [".lock", "step-00000005", "step-00000006"]


def test_loss_that_is_not_finite_leaves_the_state_before(
    sequences: Path, whole: Callable[..., dict[str, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = PhaseTraining.loss
    monkeypatch.setattr(
        PhaseTraining,
        "loss",
        lambda self, part: {
            name: loss * (math.nan if len(read_lines(self.checkpoints.output / "metrics.jsonl")) == 3 else 1)
            for name, loss in original(self, part).items()
        },
    )
    loader = Loader(Corpus(sequences), SHORT, profile="fixed", seed=1, entities=True)
    indices = ", ".join(str(index) for _, index in loader.indices(3))
    with pytest.raises(ValueError, match=rf"step 3: the loss is not finite .* its sequences are {indices};"):
        run(sequences, tmp_path / "broken")
    monkeypatch.setattr(PhaseTraining, "loss", original)
    run(sequences, tmp_path / "broken")
    assert contents(tmp_path / "broken") == whole()


def test_damaged_checkpoint_is_passed_over(
    sequences: Path, whole: Callable[..., dict[str, bytes]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_up_to(5, sequences, tmp_path / "broken")
    checkpoints = tmp_path / "broken" / "checkpoints"
    assert sorted(path.name for path in checkpoints.iterdir()) == [".lock", "step-00000002", "step-00000004"]
    damaged = checkpoints / "step-00000004" / "optimizer.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:100])
    run(sequences, tmp_path / "broken")
    assert "step-00000004: incomplete, the checkpoint before it is used" in caplog.text
    assert contents(tmp_path / "broken") == whole()


def test_a_file_that_cannot_grow_is_an_error_for_people_and_the_last_good_checkpoint_survives(
    sequences: Path,
    whole: Callable[..., dict[str, bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The system refuses to write more than 20 kB of the optimiser's state, as a full disk would."""
    original = checkpoints.optimizer_tensors
    calls = iter(range(9))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(optimizer: torch.optim.Optimizer) -> Any:
        if next(calls) == 2:
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
        return original(optimizer)

    monkeypatch.setattr(checkpoints, "optimizer_tensors", limit)
    call = [str(sequences), str(tmp_path / "broken"), "--preset", "tiny", "--seed", "1", "--device", "cpu"]
    try:
        assert pretrain.main(call) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    error = capsys.readouterr().err
    assert "the checkpoint after step 6 cannot be written (" in error
    kept = sorted(path.name for path in (tmp_path / "broken/checkpoints").iterdir())
    assert kept == [".lock", "step-00000002", "step-00000004"]
    monkeypatch.setattr(checkpoints, "optimizer_tensors", original)
    assert pretrain.main(call) == 0
    assert contents(tmp_path / "broken") == whole()


def test_a_checkpoint_of_another_run_is_refused(sequences: Path, tmp_path: Path) -> None:
    run_up_to(3, sequences, tmp_path / "out")
    larger = write_sequences(tmp_path / "larger", random_rows(11), entity_vocab_size=20)
    other = write_sequences(tmp_path / "other", random_rows(11, seed=5))
    for given, name, changes in (
        (sequences, "seed", {"seed": 2}),
        (sequences, "profile", {"profile": "paper"}),
        (sequences, r"config\.entity_vocab_size", {"entities": False}),
        (larger, r"config\.entity_vocab_size", {}),
        (other, "sequences", {}),
    ):
        with pytest.raises(ValueError, match=rf"step-00000002: {name} is .* in this checkpoint, but"):
            run(given, tmp_path / "out", **changes)


def test_deterministic_is_of_a_run_s_identity_only_where_it_is_true(sequences: Path) -> None:
    """A run from before there was such a value goes on."""
    found = []
    for values in ({}, {"deterministic": False}, {"deterministic": True}):
        configuration, corpus = choose("tiny", values), Corpus(sequences)
        module, _ = build_model(corpus.facts, configuration, seed=1)
        found.append(identity(configuration, corpus, module, "fixed", 1))
    assert found[0] == found[1]
    assert "deterministic" not in found[0]["recipe"]
    assert "deterministic" not in choose("tiny").table(), "by which stages name their folders"
    assert found[2]["recipe"] == found[0]["recipe"] | {"deterministic": True}


@pytest.mark.slow
def test_a_run_in_the_form_for_a_gpu_learns_as_in_float32_and_resumes_to_its_bits(
    sequences: Path, narrow_on_cpu: list[str], tmp_path: Path
) -> None:
    """By Triton's interpreter: copies of weights follow the optimiser's steps, and dropout the seed."""
    values = {"phases": ["all"], "steps": 3, "warmup_steps": 0, "learning_rate": 2e-2, "batch_size": 2}
    still = values | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    losses = []
    for precision in ("float32", "bf16"):
        assert not narrow_on_cpu
        run(sequences, tmp_path / precision, **still, precision=precision)
        lines = read_lines(tmp_path / precision / METRICS)
        losses.append([(line["masked_word_loss"], line["masked_entity_loss"]) for line in lines])
    assert len(narrow_on_cpu) > 4
    torch.testing.assert_close(torch.tensor(losses[1]), torch.tensor(losses[0]), rtol=0.02, atol=0)
    run(sequences, tmp_path / "whole", **values, precision="bf16")
    run_up_to(2, sequences, tmp_path / "broken", **values, precision="bf16")
    run(sequences, tmp_path / "broken", **values, precision="bf16")
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")
