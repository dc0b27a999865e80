"""Pretraining: phases, figures, resuming to the bit after any interruption, and every refusal."""

import itertools
import json
import math
import os
import random
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from model import pretrain
from model.data.shards import Corpus, epoch_order
from model.luke.config import PRESETS
from model.luke.heads import ENTITY_LOSS, WORD_LOSS, LukeForPretraining
from model.pretraining.configuration import Configuration, choose
from model.pretraining.loader import Loader, MicroBatch, Step
from model.pretraining.phases import Execution, PhaseTraining, to_device
from model.pretraining.recipes import PAPER_RECIPE, RECIPES, Phase
from model.pretraining.start import begin_with_words, build_model
from model.training.checkpoints import hold
from model.training.metrics_log import read_lines
from model.training.optimizer import UncorrectedAdamW, linear_schedule
from model.training.ranks import Ranks
from model.training.signals import Stopped
from tests.support import forked
from tests.support.killed import run_killed
from tests.support.models import TINY, flat_of, random_batch, transformers_values, words_of_transformers
from tests.support.pretraining import SHORT, contents, interrupt_at, rows_of, run
from tests.support.shards import random_rows, write_sequences

FILES = ["config.json", "metrics.csv", "metrics.jsonl", "model.safetensors", "pretraining.json"]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the preset "tiny" a model that is trained for 13 steps."""
    monkeypatch.setitem(PRESETS, "tiny", TINY)
    monkeypatch.setitem(RECIPES, "tiny", SHORT)


@pytest.fixture(scope="module")
def sequences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eleven sequences: an epoch ends within a batch, several times a run."""
    return write_sequences(tmp_path_factory.mktemp("sequences"), random_rows(11))


@pytest.fixture(scope="module")
def whole(sequences: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, bytes]]:
    """What a run with these changes writes that nothing comes between, made once."""

    @cache
    def made(**changes: Any) -> dict[str, bytes]:
        output = tmp_path_factory.mktemp("whole")
        run(sequences, output, **changes)
        return contents(output)

    return made


def lines_of(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def make_roberta(folder: Path, **changes: Any) -> torch.nn.Module:
    import transformers

    values = transformers_values(TINY) | changes
    for name in ("entity_vocab_size", "entity_emb_size", "use_entity_aware_attention"):
        del values[name]
    torch.manual_seed(4)
    module = transformers.RobertaForMaskedLM(transformers.RobertaConfig(**values))
    module.save_pretrained(folder)
    return module


@pytest.mark.usefixtures("short")
def test_two_runs_in_one_folder_are_refused(sequences: Path, tmp_path: Path) -> None:
    with (
        hold(tmp_path / "checkpoints"),
        pytest.raises(ValueError, match=f"{tmp_path}: another run trains there"),
    ):
        run(sequences, tmp_path)
    run(sequences, tmp_path)
    assert sorted(contents(tmp_path)) == FILES
    (tmp_path / "checkpoints").mkdir()  # as of a run that was killed when it was done
    run(sequences, tmp_path)
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.usefixtures("short")
def test_result_and_figures(sequences: Path, tmp_path: Path) -> None:
    figures = run(sequences, tmp_path)
    assert sorted(contents(tmp_path)) == FILES
    record = json.loads((tmp_path / "pretraining.json").read_text())
    assert record["max_words"] == Corpus(sequences).facts.max_words
    lines = lines_of(tmp_path)
    assert figures == lines[-1]
    assert [(line["phase"], line["step"]) for line in lines] == [
        (1 if s <= 7 else 2, s) for s in range(1, 14)
    ]
    for line in lines:
        phase, start = SHORT.phases[int(line["phase"]) - 1], 0 if line["phase"] == 1 else 7
        share = linear_schedule(line["step"] - 1 - start, warmup_steps=2, total_steps=phase.steps)
        assert line["learning_rate"] == pytest.approx(phase.learning_rate * share)
        assert 0 <= line["masked_word_accuracy"] <= 1
        assert 0 <= line["masked_entity_accuracy"] <= 1
    assert lines[0]["masked_word_loss"] == pytest.approx(math.log(TINY.vocab_size), abs=0.2)
    assert lines[0]["masked_entity_loss"] == pytest.approx(math.log(TINY.entity_vocab_size), abs=0.2)
    assert lines[-1]["masked_word_loss"] < lines[0]["masked_word_loss"]


@pytest.mark.usefixtures("short")
def test_the_same_again_is_done_already(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = run(sequences, tmp_path)
    before = contents(tmp_path)
    interrupt_at(monkeypatch, 0)
    assert run(sequences, tmp_path) == figures
    assert contents(tmp_path) == before
    with pytest.raises(KeyboardInterrupt):
        run(sequences, tmp_path, seed=2)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("step", [0, 1, 2, 3, 6, 7, 8, 9, 12])
@pytest.mark.parametrize("profile", ["fixed", "paper"])
def test_resumed_run_has_the_same_bits(
    sequences: Path,
    whole: Callable[..., dict[str, bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: int,
    profile: str,
) -> None:
    undo = interrupt_at(monkeypatch, step)
    with pytest.raises(KeyboardInterrupt):
        run(sequences, tmp_path / "broken", profile=profile)
    undo()
    torch.manual_seed(99)
    visited: list[int] = []
    original = Loader.__call__
    monkeypatch.setattr(Loader, "__call__", lambda self, at: visited.append(at) or original(self, at))
    run(sequences, tmp_path / "broken", profile=profile)
    # A checkpoint stands at every second step and at the end of a phase.
    first = 7 if step == 7 else step - step % 2
    assert visited == list(range(first, 13))
    assert contents(tmp_path / "broken") == whole(profile=profile)


@pytest.mark.usefixtures("short")
def test_a_resumed_run_does_not_begin_its_entities_again(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words_of_transformers("RobertaModel").save_pretrained(tmp_path / "base")
    options: dict[str, Any] = {"base_model": str(tmp_path / "base"), "entity_start": "titles"}
    run(sequences, tmp_path / "whole", **options)
    undo = interrupt_at(monkeypatch, 5)
    with pytest.raises(KeyboardInterrupt):
        run(sequences, tmp_path / "broken", **options)
    undo()

    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("model.pretraining.run.begin_with_words", fail)
    run(sequences, tmp_path / "broken", **options)
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")


@pytest.fixture
def threads() -> Iterator[None]:
    """What a test sets is undone."""
    count = torch.get_num_threads()
    yield
    torch.set_num_threads(count)


@pytest.mark.usefixtures("short", "threads")
@pytest.mark.parametrize(
    ("workers", "count", "precision"),
    [(0, 1, "float32"), (2, 1, "float32"), (0, 2, "float32"), (0, 1, "bf16")],
)
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


@pytest.mark.usefixtures("short")
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


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("workers", [0, 2])
def test_stopped_by_sigterm_between_checkpoints_and_lines(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """A line of figures stands at every third step, so the figures of half a line are in the checkpoint."""
    monkeypatch.setitem(RECIPES, "tiny", replace(SHORT, log_every=3, checkpoint_every=100))
    run(sequences, tmp_path / "whole")
    execution = Execution(workers=workers)
    original = PhaseTraining.finish_step
    came: list[int] = []
    previous = signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))

    def finish(self: PhaseTraining, phase: int, done: int, *rest: Any) -> None:
        if done in (4, 8):
            signal.raise_signal(signal.SIGTERM)
        original(self, phase, done, *rest)

    try:
        monkeypatch.setattr(PhaseTraining, "finish_step", finish)
        for step in (4, 8):
            with pytest.raises(Stopped, match=f"stopped by SIGTERM after step {step}; the same call goes on"):
                run(sequences, tmp_path / "broken", execution=execution)
        assert came == [signal.SIGTERM] * 2  # with its usual effect, once the checkpoint is there
        monkeypatch.setattr(PhaseTraining, "finish_step", original)
        run(sequences, tmp_path / "broken", execution=execution)
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")


SIGNALLED = """
import sys
from pathlib import Path
from model.luke.config import PRESETS
from model.pretraining.recipes import RECIPES
from model.pretraining.phases import PhaseTraining, Execution
from tests.support.models import TINY
from tests.support.pretraining import SHORT, run
PRESETS["tiny"], RECIPES["tiny"] = TINY, SHORT
loss = PhaseTraining.loss
def first_loss(self, part):
    PhaseTraining.loss = loss
    Path(sys.argv[4]).touch()
    return loss(self, part)
PhaseTraining.loss = first_loss
run(Path(sys.argv[1]), Path(sys.argv[2]), execution=Execution(workers=int(sys.argv[3])))
"""


@pytest.mark.usefixtures("short")
def test_signals_from_outside_at_random_moments(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the process and its workers alike, as a machine that is taken away does it."""
    times: list[float] = []
    original = PhaseTraining.loss

    def loss(self: PhaseTraining, part: MicroBatch) -> Any:
        times.append(time.monotonic())
        return original(self, part)

    monkeypatch.setattr(PhaseTraining, "loss", loss)
    run(sequences, tmp_path / "whole")
    moments = random.Random(seed := random.randrange(10**6))
    ends: list[tuple[signal.Signals, int]] = []
    for sent, workers in [(signal.SIGKILL, 0), (signal.SIGTERM, 2), (signal.SIGKILL, 2), (signal.SIGTERM, 0)]:
        begun = tmp_path / f"begun-{len(ends)}"
        process = forked.start(SIGNALLED, sequences, tmp_path / "broken", workers, begun)
        while process.is_alive() and not begun.exists():  # it may be finished already
            time.sleep(0.002)
        time.sleep(moments.uniform(0, (times[-1] - times[0]) / 4))
        assert process.pid is not None
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sent)
        ends.append((sent, forked.end(process, 60)))
    # Whoever is stopped says so; a run may also have ended before.
    assert all(end in (0, -sent) for sent, end in ends), (seed, ends)
    run(sequences, tmp_path / "broken")
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole"), seed


@pytest.mark.usefixtures("short")
def test_batches_are_prepared_beside_a_gpu() -> None:
    found = [
        Execution(workers).workers_on(torch.device(name))
        for name in ("cpu", "cuda:1")
        for workers in (None, 0, 5)
    ]
    assert found == [0, 0, 5, 2, 0, 5]


@pytest.mark.usefixtures("short")
def test_workers_change_no_bit(sequences: Path, tmp_path: Path) -> None:
    for workers in (0, 1, 3):
        run(sequences, tmp_path / str(workers), execution=Execution(workers=workers))
    assert contents(tmp_path / "0") == contents(tmp_path / "1") == contents(tmp_path / "3")


@pytest.mark.usefixtures("short")
def test_ways_of_computing(sequences: Path, tmp_path: Path) -> None:
    run(sequences, tmp_path / "plain")
    run(sequences, tmp_path / "checkpointed", gradient_checkpointing=True)
    plain, checkpointed = (contents(tmp_path / name) for name in ("plain", "checkpointed"))
    assert plain["metrics.jsonl"] == checkpointed["metrics.jsonl"]
    weights = [load_file(tmp_path / name / "model.safetensors") for name in ("plain", "checkpointed")]
    assert all(torch.equal(tensor, weights[1][name]) for name, tensor in weights[0].items())
    run(sequences, tmp_path / "narrow", precision="bf16")
    for wide, narrow in zip(lines_of(tmp_path / "plain"), lines_of(tmp_path / "narrow"), strict=True):
        assert narrow != wide
        assert narrow["masked_word_loss"] == pytest.approx(wide["masked_word_loss"], rel=0.02)


@pytest.mark.usefixtures("short")
def test_compiled(sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    still = replace(TINY, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    monkeypatch.setitem(PRESETS, "tiny", still)
    monkeypatch.setitem(RECIPES, "tiny", replace(SHORT, phases=(Phase(2, 1e-2, 0, "all"),)))
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    run(sequences, tmp_path / "plain")
    run(sequences, tmp_path / "compiled", compiled=True)
    for plain, compiled in zip(lines_of(tmp_path / "plain"), lines_of(tmp_path / "compiled"), strict=True):
        assert plain == pytest.approx(compiled, rel=1e-4)
    assert contents(tmp_path / "plain").keys() == contents(tmp_path / "compiled").keys()


@pytest.mark.usefixtures("short")
def test_checkpoints_by_the_clock_and_how_many_are_kept(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RECIPES, "tiny", replace(SHORT, checkpoint_every=100))
    undo = interrupt_at(monkeypatch, 6)
    with pytest.raises(KeyboardInterrupt):
        run(sequences, tmp_path, execution=Execution(checkpoint_minutes=1e-9, checkpoints_kept=3))
    undo()
    kept = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert kept == [".lock", "step-00000004", "step-00000005", "step-00000006"]


@pytest.mark.usefixtures("short")
def test_loss_that_is_not_finite_says_what_was_read_and_leaves_the_state_before(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RECIPES, "tiny", replace(SHORT, checkpoint_every=100))
    run(sequences, tmp_path / "whole")
    original = PhaseTraining.loss
    monkeypatch.setattr(
        PhaseTraining,
        "loss",
        lambda self, part: {
            name: loss * (math.nan if json_lines(self.output / "metrics.jsonl") == 3 else 1)
            for name, loss in original(self, part).items()
        },
    )
    loader = Loader(Corpus(sequences), SHORT, profile="fixed", seed=1, entities=True)
    indices = ", ".join(str(index) for _, index in loader.indices(3))
    with pytest.raises(ValueError, match=rf"step 3: the loss is not finite .* its sequences are {indices};"):
        run(sequences, tmp_path / "broken")
    monkeypatch.setattr(PhaseTraining, "loss", original)
    run(sequences, tmp_path / "broken")
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")


def json_lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.is_file() else 0


@pytest.mark.usefixtures("short")
def test_damaged_checkpoint_is_passed_over(
    sequences: Path,
    whole: Callable[..., dict[str, bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    undo = interrupt_at(monkeypatch, 5)
    with pytest.raises(KeyboardInterrupt):
        run(sequences, tmp_path / "broken")
    undo()
    checkpoints = tmp_path / "broken" / "checkpoints"
    assert sorted(path.name for path in checkpoints.iterdir()) == [".lock", "step-00000002", "step-00000004"]
    damaged = checkpoints / "step-00000004" / "optimizer.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:100])
    run(sequences, tmp_path / "broken")
    assert "step-00000004: incomplete, the checkpoint before it is used" in caplog.text
    assert contents(tmp_path / "broken") == whole()


@pytest.mark.usefixtures("short")
def test_full_disk_leaves_the_last_good_checkpoint(
    sequences: Path, whole: Callable[..., dict[str, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from model.training import checkpoints as resume

    original = resume.optimizer_tensors
    calls = iter(range(9))

    def fail(optimizer: torch.optim.Optimizer) -> Any:
        if next(calls) == 2:
            raise OSError("No space left on device")
        return original(optimizer)

    monkeypatch.setattr(resume, "optimizer_tensors", fail)
    with pytest.raises(OSError, match="No space left"):
        run(sequences, tmp_path / "broken")
    assert resume.checkpoint_folders(tmp_path / "broken" / "checkpoints")[0].name == "step-00000004"
    monkeypatch.setattr(resume, "optimizer_tensors", original)
    run(sequences, tmp_path / "broken")
    assert contents(tmp_path / "broken") == whole()


@pytest.mark.usefixtures("short")
def test_a_file_that_cannot_grow_is_an_error_for_people_and_the_last_good_checkpoint_survives(
    sequences: Path,
    whole: Callable[..., dict[str, bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The system refuses to write more than 20 kB of the optimiser's state, as a full disk would."""
    from model.training import checkpoints as resume

    original = resume.optimizer_tensors
    calls = iter(range(9))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(optimizer: torch.optim.Optimizer) -> Any:
        if next(calls) == 2:
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
        return original(optimizer)

    monkeypatch.setattr(resume, "optimizer_tensors", limit)
    call = [str(sequences), str(tmp_path / "broken"), "--preset", "tiny", "--seed", "1", "--device", "cpu"]
    try:
        assert pretrain.main(call) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    error = capsys.readouterr().err
    assert "checkpoints: the checkpoint after step 6 cannot be written (" in error
    assert error.endswith("make room, and the same call goes on from the last one\n")
    kept = sorted(path.name for path in (tmp_path / "broken/checkpoints").iterdir())
    assert kept == [".lock", "step-00000002", "step-00000004"]
    monkeypatch.setattr(resume, "optimizer_tensors", original)
    assert pretrain.main(call) == 0
    assert contents(tmp_path / "broken") == whole()


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 2}, "seed is 1 in this checkpoint, but 2 is asked for"),
        ({"profile": "paper"}, "profile is 'fixed' in this checkpoint, but 'paper' is asked for"),
        ({"entities": False}, "config.entity_vocab_size is 12 in this checkpoint, but 3 is asked for"),
    ],
)
def test_checkpoint_of_another_run_is_refused(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], message: str
) -> None:
    undo = interrupt_at(monkeypatch, 5)
    with pytest.raises(KeyboardInterrupt):
        run(sequences, tmp_path)
    undo()
    with pytest.raises(ValueError, match=rf"step-00000004: {message}"):
        run(sequences, tmp_path, **changes)


@pytest.mark.usefixtures("short")
def test_sequences_of_a_larger_vocabulary_than_the_checkpoint_s_are_refused(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undo = interrupt_at(monkeypatch, 5)
    with pytest.raises(KeyboardInterrupt):
        run(sequences, tmp_path / "output")
    undo()
    larger = write_sequences(tmp_path / "larger", random_rows(11), entity_vocab_size=20)
    with pytest.raises(
        ValueError, match=r"config\.entity_vocab_size is 12 in this checkpoint, but 20 is asked"
    ):
        run(larger, tmp_path / "output")


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("word_ids", r"word ids from \d+ to 70, but word_vocab_size is 60: they are another tokenizer's"),
        ("entity_ids", r"entity ids from \d+ to 70, but entity_vocab_size is 12"),
    ],
)
def test_ids_beyond_what_the_manifest_says_are_refused(tmp_path: Path, column: str, message: str) -> None:
    """Shards that were exchanged for those of another tokenizer or vocabulary."""
    rows = random_rows(11)
    for row in rows:
        row[column][0] = 70
    with pytest.raises(ValueError, match=message):
        run(write_sequences(tmp_path / "other", rows), tmp_path / "output")


@pytest.mark.usefixtures("short")
def test_checkpoint_of_other_sequences_is_refused(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undo = interrupt_at(monkeypatch, 5)
    with pytest.raises(KeyboardInterrupt):
        run(sequences, tmp_path / "output")
    undo()
    other = write_sequences(tmp_path / "other", random_rows(11, seed=5))
    first, second = Corpus(sequences).fingerprint, Corpus(other).fingerprint
    with pytest.raises(
        ValueError, match=f"sequences is '{first}' in this checkpoint, but '{second}' is asked"
    ):
        run(other, tmp_path / "output")


def begun(sequences: Path, configuration: Configuration) -> dict[str, torch.Tensor]:
    """The weights that a run with seed 1 begins with around a base model."""
    corpus = Corpus(sequences)
    module, _ = build_model(corpus.facts, configuration, seed=1)
    if configuration.entities:
        begin_with_words(module, corpus)
    return module.state_dict()


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("with_entities", [True, False])
def test_new_parameters_train_alone_in_a_frozen_phase_and_words_alone_in_the_baseline(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_entities: bool
) -> None:
    from model.hf.keys import from_transformers

    frozen, whole = SHORT.phases
    monkeypatch.setitem(RECIPES, "tiny", replace(SHORT, phases=(frozen if with_entities else whole,)))
    words = from_transformers(make_roberta(tmp_path / "roberta").state_dict(), "", with_heads=True)
    base = str(tmp_path / "roberta")
    start = begun(sequences, choose("tiny", base_model=base, entities=with_entities))
    run(sequences, tmp_path / "out", base_model=base, entities=with_entities)
    trained = load_file(tmp_path / "out" / "model.safetensors")
    assert all(torch.equal(start[key], words[key]) for key in words)
    changed = {key for key in trained if not torch.equal(trained[key], start[key])}
    if with_entities:
        assert changed == set(trained) - set(words)
    else:
        assert changed
        assert changed <= set(words)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("profile", ["fixed", "paper"])
def test_learning_rates_of_a_run(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    """Of its lines, and of the parameters with decay and without; the first step, at rate 0, changes no bit."""
    used: list[list[float]] = []
    first_weights: list[bool] = []
    original = PhaseTraining.finish_step
    start = build_model(Corpus(sequences).facts, choose("tiny"), seed=1)[0].state_dict()

    def finish(self: PhaseTraining, phase: int, done: int, end: int, rate: float, optimizer: Any) -> None:
        used.append([group["lr"] for group in optimizer.param_groups])
        if done == 1:
            first_weights.extend(
                torch.equal(tensor, start[name]) for name, tensor in self.module.state_dict().items()
            )
        original(self, phase, done, end, rate, optimizer)

    monkeypatch.setattr(PhaseTraining, "finish_step", finish)
    run(sequences, tmp_path, profile=profile)
    first = [0.0, 1e-2, 2e-2, 1.6e-2, 1.2e-2, 0.8e-2, 0.4e-2]
    second = [0.0, 0.5e-2, 1e-2, 0.75e-2, 0.5e-2, 0.25e-2]
    assert [line["learning_rate"] for line in lines_of(tmp_path)] == pytest.approx(first + second)
    assert all(len(rates) == 2 for rates in used)
    for group in zip(*used, strict=True):
        assert group == pytest.approx(first + second)
    assert first_weights
    assert all(first_weights)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(("profile", "kind"), [("fixed", torch.optim.AdamW), ("paper", UncorrectedAdamW)])
def test_optimisers_of_a_run(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str, kind: type
) -> None:
    """Each phase has the profile's, over the parameters that it trains, with decay on matrices alone."""
    make_roberta(tmp_path / "roberta")
    made: list[tuple[str, torch.optim.Optimizer, dict[int, str], frozenset[str]]] = []
    original = PhaseTraining.make_optimizer

    def make(self: PhaseTraining, phase: Phase) -> torch.optim.Optimizer:
        optimizer = original(self, phase)
        names = {id(parameter): name for name, parameter in self.module.named_parameters()}
        made.append((phase.trainable, optimizer, names, self.new))
        return optimizer

    monkeypatch.setattr(PhaseTraining, "make_optimizer", make)
    run(sequences, tmp_path / "out", base_model=str(tmp_path / "roberta"), profile=profile)
    assert [trainable for trainable, *_ in made] == ["new", "all"]
    for trainable, optimizer, names, new in made:
        assert type(optimizer) is kind
        assert profile == "paper" or optimizer.defaults["fused"]
        found = {
            names[id(parameter)]: group["weight_decay"]
            for group in optimizer.param_groups
            for parameter in group["params"]
        }
        trained = {name for name in names.values() if trainable == "all" or name in new}
        decayed = {"word_head.norm.weight"} if profile == "paper" else set()
        assert found == {
            name: 0.0
            if name not in decayed and (name.endswith("bias") or "norm." in name)
            else SHORT.weight_decay
            for name in trained
        }
        assert profile == "fixed" or optimizer.decays_old  # type: ignore[attr-defined]


@pytest.mark.usefixtures("short")
def test_second_phase_has_a_fresh_optimiser(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_at(monkeypatch, 9)
    with pytest.raises(KeyboardInterrupt):
        run(sequences, tmp_path)
    for step, updates in ((7, 7), (8, 1)):
        state = load_file(tmp_path / f"checkpoints/step-{step:08d}/optimizer.safetensors")
        assert {float(tensor) for name, tensor in state.items() if name.endswith(".step")} == {updates}


@pytest.mark.usefixtures("short")
def test_second_phase_trains_everything(sequences: Path, tmp_path: Path) -> None:
    make_roberta(tmp_path / "roberta")
    base = str(tmp_path / "roberta")
    start = begun(sequences, choose("tiny", base_model=base))
    run(sequences, tmp_path / "out", base_model=base)
    trained = load_file(tmp_path / "out" / "model.safetensors")
    assert {key for key in trained if torch.equal(trained[key], start[key])} == set()


@pytest.mark.usefixtures("short")
def test_baseline_without_entities(sequences: Path, tmp_path: Path) -> None:
    run(sequences, tmp_path, entities=False)
    lines = lines_of(tmp_path)
    assert len(lines) == 13
    assert {line["phase"] for line in lines} == {1}
    assert not any("entity" in name for line in lines for name in line)
    assert max(line["learning_rate"] for line in lines) == pytest.approx(1e-2)
    assert json.loads((tmp_path / "config.json").read_text())["entity_vocab_size"] == 3


@pytest.mark.parametrize(("name", "rows"), [("word_ids", 60), ("entity_labels", 12)])
def test_ids_are_looked_at_before_they_are_moved(name: str, rows: int) -> None:
    batch = flat_of(random_batch())
    getattr(batch, name)[3] = rows
    # On the meta device there are no values: looked at there they would be another error.
    with pytest.raises(ValueError, match=rf"{name} of shape .* has {rows} at \[3\], wanted 0 to {rows - 1}"):
        to_device(batch, LukeForPretraining(TINY), torch.device("meta"))


@pytest.mark.usefixtures("short")
def test_log_says_what_attention_runs_on(
    sequences: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        run(sequences, tmp_path)
    assert caplog.text.count("attention runs on plain products") == 1


@pytest.mark.usefixtures("short")
def test_profiles_differ(sequences: Path, tmp_path: Path) -> None:
    assert run(sequences, tmp_path / "a") != run(sequences, tmp_path / "b", profile="paper")


@pytest.mark.usefixtures("short")
def test_micro_batches_change_nothing_but_rounding(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    still = replace(TINY, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    monkeypatch.setitem(PRESETS, "tiny", still)
    run(sequences, tmp_path / "a")
    monkeypatch.setitem(RECIPES, "tiny", replace(SHORT, micro_batch_size=5))
    run(sequences, tmp_path / "b")
    for one, other in zip(lines_of(tmp_path / "a"), lines_of(tmp_path / "b"), strict=True):
        assert one["masked_word_loss"] == pytest.approx(other["masked_word_loss"], rel=1e-4)
        assert one["masked_entity_loss"] == pytest.approx(other["masked_entity_loss"], rel=1e-4)


@pytest.mark.parametrize("share", [0.15, 0.6, 1.0])
def test_the_recipe_says_how_many_entities_are_hidden(sequences: Path, share: float) -> None:
    recipe = replace(SHORT, masked_entity_share=share)
    corpus = Corpus(sequences)
    loader = Loader(corpus, recipe, profile="fixed", seed=3, entities=True)
    wanted = [max(1, round(share * len(corpus[index].entity_ids))) for _, index in loader.indices(0)]
    assert loader(0)[0].totals[ENTITY_LOSS] == sum(wanted)


@pytest.mark.parametrize("share", [0.15, 0.4])
def test_the_recipe_says_how_many_words_are_hidden(sequences: Path, share: float) -> None:
    """In the profile `paper`, whose words are single tokens."""
    recipe = replace(SHORT, masked_word_share=share)
    corpus = Corpus(sequences)
    loader = Loader(corpus, recipe, profile="paper", seed=3, entities=True)
    wanted = [max(1, round(share * len(corpus[index].word_ids))) for _, index in loader.indices(0)]
    assert sum(part.totals[WORD_LOSS] for part in loader(0)) == sum(wanted)


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(
        ValueError, match=f"masked_entity_share is {share}, but must be at least 0, at most 1"
    ):
        replace(SHORT, masked_entity_share=share)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("kind", ["word", "entity"])
def test_what_is_not_hidden_is_neither_learnt_nor_asked_for(tmp_path: Path, kind: str) -> None:
    folder = write_sequences(tmp_path / "sequences", random_rows(11), held_out=random_rows(8, seed=3))
    run(folder, tmp_path / "out", **{f"masked_{kind}_share": 0.0}, predicts_unknown=False)
    other = {"word": "entity", "entity": "word"}[kind]
    for line in lines_of(tmp_path / "out"):
        assert f"masked_{kind}_loss" not in line
        assert line[f"masked_{other}_loss"] > 0
    held_out = read_lines(tmp_path / "out" / "evaluation.jsonl")[-1]
    assert ("masked_word_loss" in held_out) == (kind == "entity")
    assert "masked_entity_loss" in held_out


def test_loader_visits_each_sequence_once_an_epoch(sequences: Path) -> None:
    loader = Loader(Corpus(sequences), SHORT, profile="fixed", seed=3, entities=True)
    visited = [pair for step in range(11) for pair in loader.indices(step)]
    assert len(visited) == 55
    for epoch in range(5):
        indices = [index for at, index in visited if at == epoch]
        assert indices == epoch_order(11, seed=3, epoch=epoch).tolist()


def test_sequences_with_few_known_entities_are_left_out(sequences: Path) -> None:
    corpus = Corpus(sequences)
    known = [int((corpus[index].entity_ids >= 3).sum()) for index in range(len(corpus))]
    wanted = [index for index, count in enumerate(known) if count >= 2]
    assert 0 < len(wanted) < len(corpus)
    recipe = replace(SHORT, min_entities=2)
    loader = Loader(corpus, recipe, profile="fixed", seed=3, entities=True)
    visited = [index for step in range(len(wanted)) for _, index in loader.indices(step)]
    assert sorted(visited) == sorted(wanted * SHORT.batch_size)
    assert loader.left_out == len(corpus) - len(wanted)
    with pytest.raises(
        ValueError, match=rf"^min_entities is 99, but no sequence of .* more than {max(known)} "
    ):
        Loader(corpus, replace(SHORT, min_entities=99), profile="fixed", seed=3, entities=True)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_all_processes_together_see_exactly_the_epochs(sequences: Path, count: int, workers: int) -> None:
    corpus = Corpus(sequences)
    alone = Loader(corpus, SHORT, profile="fixed", seed=3, entities=True)
    seen: dict[int, list[bytes]] = {}
    for rank in range(count):
        loader = Loader(
            corpus, SHORT, profile="fixed", seed=3, entities=True, ranks=Ranks(rank=rank, count=count)
        )
        for step, parts in zip(range(11), loader.stream(0, 11, workers), strict=True):
            seen.setdefault(step, []).extend(rows_of(parts))
    assert len(seen) * SHORT.batch_size == 5 * len(corpus)  # five whole epochs
    for step, rows in seen.items():
        assert sorted(rows) == sorted(rows_of(alone(step)))
        assert len(rows) == SHORT.batch_size


@pytest.mark.parametrize("budget", [1, 40, 70, 10_000])
def test_micro_batches_by_tokens(sequences: Path, budget: int) -> None:
    corpus = Corpus(sequences)
    by_count, by_tokens = (
        Loader(corpus, replace(SHORT, tokens_per_batch=tokens), profile="fixed", seed=3, entities=True)
        for tokens in (0, budget)
    )
    parts = by_tokens(4)
    sizes = [part.batch.shape.words + part.batch.shape.entities for part in parts]
    assert all(
        size <= budget or len(part.batch.shape.lengths) == 1 for size, part in zip(sizes, parts, strict=True)
    )
    assert all(first + second > budget for first, second in itertools.pairwise(sizes))
    assert sorted(rows_of(parts)) == sorted(rows_of(by_count(4)))
    assert {tuple(part.totals.items()) for part in parts} == {tuple(by_count(4)[0].totals.items())}


def test_more_processes_than_sequences_in_a_batch_are_refused(sequences: Path) -> None:
    with pytest.raises(ValueError, match="a batch of 5 sequences is too small for 6 processes"):
        Loader(Corpus(sequences), SHORT, profile="fixed", seed=3, entities=True, ranks=Ranks(5, 6))


def test_loader_says_what_the_whole_step_holds(sequences: Path) -> None:
    loader = Loader(Corpus(sequences), SHORT, profile="fixed", seed=3, entities=True)
    parts = loader(4)
    assert [len(part.batch.shape.lengths) for part in parts] == [2, 2, 1]
    for name, field in (("masked_word", "word_labels"), ("masked_entity", "entity_labels")):
        assert {part.totals[name] for part in parts} == {
            sum(len(getattr(part.batch, field)) for part in parts)
        }


@pytest.mark.parametrize("count", [1, 2])
def test_the_paper_s_loss_is_the_mean_of_micro_batches_means(sequences: Path, count: int) -> None:
    """Its formula: of each micro-batch of each process the mean over its own labels; their sum by their number."""
    module = LukeForPretraining(TINY).eval()
    loaders = [
        Loader(Corpus(sequences), SHORT, profile="paper", seed=3, entities=True, ranks=Ranks(rank, count))
        for rank in range(count)
    ]
    parts = [loader(4) for loader in loaders]
    sizes = [len(part.batch.shape.lengths) for each in parts for part in each]
    assert sizes == ([2, 2, 1] if count == 1 else [2, 1, 2])

    class Together(Ranks):
        """As if the other processes were there."""

        def sum(self, values: Any) -> dict[str, float]:
            assert list(values) == ["parts"]
            return {"parts": len(sizes)}

    found, literal = [], []
    for loader, mine in zip(loaders, parts, strict=True):
        training = PhaseTraining.__new__(PhaseTraining)
        training.loader, training.ranks = loader, Together()
        for part in training.with_totals(mine):
            found.append(module(part.batch, part.totals).losses)
            literal.append(module(part.batch).losses)
    for name in ("masked_word", "masked_entity"):
        means = [float(losses[name].detach()) for losses in literal]
        loss = sum(float(losses[name].detach()) for losses in found)
        assert loss == pytest.approx(sum(means) / len(means), rel=1e-6)
    fixed = Loader(Corpus(sequences), SHORT, profile="fixed", seed=3, entities=True)(4)
    assert len({tuple(part.totals.values()) for part in fixed}) == 1
    assert len({tuple(part.totals.values()) for part in parts[0]}) > 1


def test_a_step_travels_as_one_tensor(sequences: Path) -> None:
    parts = Loader(Corpus(sequences), SHORT, profile="fixed", seed=3, entities=True)(4)
    assert len(parts) > 1
    found = Step.of(parts).micro_batches()
    assert len({part.batch.numbers.untyped_storage().data_ptr() for part in found}) == 1
    for part, other in zip(parts, found, strict=True):
        assert (part.totals, part.batch.shape) == (other.totals, other.batch.shape)
        assert part.batch.numbers.equal(other.batch.numbers)


FEW_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
from model import pretrain
sys.exit(pretrain.main(sys.argv[1:]))
"""


def test_a_step_of_two_thousand_sequences_takes_few_open_files(sequences: Path, tmp_path: Path) -> None:
    options = [
        "--preset",
        "tiny",
        "--steps",
        "2",
        "--warmup-steps",
        "0",
        "--batch-size",
        "2048",
        "--workers",
        "2",
    ]
    options += ["--layers", "1", "--hidden-size", "64", "--device", "cpu"]
    errors = tmp_path / "errors.txt"
    process = forked.start(FEW_FILES, sequences, tmp_path / "output", *options, errors=errors)
    assert forked.end(process) == 0, errors.read_text()
    assert (tmp_path / "output" / "model.safetensors").is_file()


def test_an_unknown_group_of_parameters_is_refused() -> None:
    with pytest.raises(ValueError, match="trainable is 'entities', but must be one of new, all"):
        Phase(10, 1e-3, 2, "entities")


def test_paper_s_recipe() -> None:
    assert RECIPES["large"] is RECIPES["base"] is PAPER_RECIPE
    first, second = PAPER_RECIPE.phases
    assert first == Phase(steps=100_000, learning_rate=5e-4, warmup_steps=2500, trainable="new")
    assert second == Phase(steps=100_000, learning_rate=1e-5, warmup_steps=2500, trainable="all")
    assert (PAPER_RECIPE.batch_size, PAPER_RECIPE.weight_decay) == (2048, 0.01)
    assert (PAPER_RECIPE.betas, PAPER_RECIPE.epsilon) == ((0.9, 0.999), 1e-6)
    baseline = PAPER_RECIPE.without_entities()
    assert baseline.phases == (Phase(steps=200_000, learning_rate=1e-5, warmup_steps=2500, trainable="all"),)


@pytest.mark.usefixtures("short")
def test_what_does_not_fit_together_is_refused(sequences: Path, tmp_path: Path) -> None:
    models = {
        "few": {"vocab_size": 50},
        "many": {"vocab_size": 60 + 128},
        "short": {"max_position_embeddings": 20},
        "other": {"pad_token_id": 0},
    }
    for name, changes in models.items():
        make_roberta(tmp_path / name, **changes)
    cases = [
        ({"preset": "huge"}, "preset 'huge' is unknown; use one of tiny, demo, small, base, large"),
        ({"profile": "both"}, "profile 'both' is unknown; use one of fixed, paper"),
        ({"device": "gpu"}, "device 'gpu' is unknown"),
        ({"precision": "fp8"}, "precision is 'fp8', but must be one of auto, float32, bf16"),
        ({"tokens_per_batch": -1}, "tokens_per_batch is -1, but must be at least 0"),
        ({"seed": -1}, "seed is -1, but must be at least 0"),
        (
            {"base_model": str(tmp_path / "few")},
            "vocab_size 50, but the sequences were made with 60; make the",
        ),
        (
            {"base_model": str(tmp_path / "many")},
            "vocab_size 188, but the sequences were made with 60; make the",
        ),
        (
            {"base_model": str(tmp_path / "other")},
            "pad_token_id 0, but the sequences were made with 1; make the sequences with the base model's own",
        ),
        ({"base_model": str(tmp_path / "short")}, "positions for 18 words, but sequences have up to 32"),
    ]
    for changes, message in cases:
        with pytest.raises(ValueError, match=message):
            run(sequences, tmp_path / "out", **changes)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("short")
def test_base_model_of_ours_gives_its_words(sequences: Path, tmp_path: Path) -> None:
    run(sequences, tmp_path / "first")
    words = load_file(tmp_path / "first" / "model.safetensors")
    module, new = build_model(
        Corpus(sequences).facts, choose("tiny", base_model=str(tmp_path / "first")), seed=2
    )
    state = module.state_dict()
    assert all("entity" in key for key in new)
    assert all(torch.equal(state[key], words[key]) for key in set(state) - new)
    assert not torch.equal(state["entity_head.dense.weight"], words["entity_head.dense.weight"])


@pytest.mark.usefixtures("short")
def test_the_command_line(sequences: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--preset", "tiny", "--seed", "1", "--device", "cpu", "--workers", "1"]
    assert pretrain.main([str(sequences), str(tmp_path / "a"), *options]) == 0
    assert json.loads(capsys.readouterr().out) == run(sequences, tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert pretrain.main([str(tmp_path), str(tmp_path / "c"), *options]) == 1
    assert "manifest.json: no such file; give the folder that BuildSequences wrote" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        pretrain.main([str(sequences), str(tmp_path / "c"), "--checkpoints-kept", "0"])


def test_new_parameters_without_a_base_model_are_all() -> None:
    facts = type("Facts", (), {"word_vocab_size": 99, "entity_vocab_size": 9, "pad_id": 1, "max_words": 512})
    module, new = build_model(facts, choose("tiny"), seed=0)
    assert isinstance(module, LukeForPretraining)
    assert new == {name for name, _ in module.named_parameters()}
    assert module.config.vocab_size == 99
