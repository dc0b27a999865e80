"""A run of pretraining: its figures, phases and optimisers, and every refusal."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from model import pretrain
from model.data.shards import Corpus
from model.hf.keys import from_transformers
from model.luke.config import PRESETS
from model.luke.heads import LukeForPretraining
from model.pretraining.phases import Execution, PhaseTraining, to_device
from model.pretraining.recipes import PAPER_RECIPE, RECIPES, Configuration, Phase, choose
from model.pretraining.start import begin_with_words, build_model
from model.training.metrics_log import read_lines
from model.training.optimizer import UncorrectedAdamW
from tests.support.models import TINY, flat_of, random_batch, words_of_transformers
from tests.support.pretraining import SHORT, contents, run, run_up_to
from tests.support.shards import random_rows, write_sequences

pytestmark = pytest.mark.usefixtures("short")

FILES = ["config.json", "metrics.csv", "metrics.jsonl", "model.safetensors", "pretraining.json"]


def lines_of(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_result_and_figures(sequences: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        figures = run(sequences, tmp_path)
    assert sorted(contents(tmp_path)) == FILES
    record = json.loads((tmp_path / "pretraining.json").read_text())
    assert record["max_words"] == Corpus(sequences).facts.max_words
    lines = lines_of(tmp_path)
    assert figures == lines[-1]
    assert [(line["phase"], line["step"]) for line in lines] == [(1 if s <= 7 else 2, s) for s in range(1, 14)]
    for line in lines:
        assert 0 <= line["masked_word_accuracy"] <= 1
        assert 0 <= line["masked_entity_accuracy"] <= 1
    assert lines[0]["masked_word_loss"] == pytest.approx(math.log(TINY.vocab_size), abs=0.2)
    assert lines[0]["masked_entity_loss"] == pytest.approx(math.log(TINY.entity_vocab_size), abs=0.2)
    assert lines[-1]["masked_word_loss"] < lines[0]["masked_word_loss"]


def test_batches_are_prepared_beside_a_gpu() -> None:
    found = [
        Execution(workers).workers_on(torch.device(name)) for name in ("cpu", "cuda:1") for workers in (None, 0, 5)
    ]
    assert found == [0, 0, 5, 2, 0, 5]


def test_ways_of_computing(sequences: Path, whole: Callable[..., dict[str, bytes]], tmp_path: Path) -> None:
    """Gradient checkpointing changes no bit; bf16 rounds."""
    run(sequences, tmp_path / "checkpointed", gradient_checkpointing=True)
    plain, checkpointed = whole(), contents(tmp_path / "checkpointed")
    assert plain["metrics.jsonl"] == checkpointed["metrics.jsonl"]
    run(sequences, tmp_path / "narrow", precision="bf16")
    lines = [json.loads(line) for line in plain["metrics.jsonl"].splitlines()]
    for wide, narrow in zip(lines, lines_of(tmp_path / "narrow"), strict=True):
        assert narrow != wide
        assert narrow["masked_word_loss"] == pytest.approx(wide["masked_word_loss"], rel=0.02)


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("word_ids", r"word ids from \d+ to 70, but word_vocab_size is 60"),
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


def begun(sequences: Path, configuration: Configuration) -> dict[str, torch.Tensor]:
    """The weights that a run with seed 1 begins with around a base model."""
    corpus = Corpus(sequences)
    module, _ = build_model(corpus.facts, configuration, seed=1)
    if configuration.entities:
        begin_with_words(module, corpus)
    return module.state_dict()


@pytest.mark.parametrize("with_entities", [True, False])
def test_new_parameters_train_alone_in_a_frozen_phase_and_words_alone_in_the_baseline(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_entities: bool
) -> None:
    frozen, whole = SHORT.phases
    monkeypatch.setitem(RECIPES, "tiny", replace(SHORT, phases=(frozen if with_entities else whole,)))
    theirs = words_of_transformers("RobertaForMaskedLM")
    theirs.save_pretrained(tmp_path / "roberta")
    words = from_transformers(theirs.state_dict(), "", with_heads=True)
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


def test_learning_rates_of_a_run(sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its lines, and of the parameters with decay and without; the first step, at rate 0, changes no bit."""
    used: list[list[float]] = []
    first_weights: list[bool] = []
    original = PhaseTraining.finish_step
    start = build_model(Corpus(sequences).facts, choose("tiny"), seed=1)[0].state_dict()

    def finish(self: PhaseTraining, phase: int, done: int, end: int, rate: float, optimizer: Any) -> None:
        used.append([group["lr"] for group in optimizer.param_groups])
        if done == 1:
            first_weights.extend(torch.equal(tensor, start[name]) for name, tensor in self.module.state_dict().items())
        original(self, phase, done, end, rate, optimizer)

    monkeypatch.setattr(PhaseTraining, "finish_step", finish)
    run(sequences, tmp_path)
    first = [0.0, 1e-2, 2e-2, 1.6e-2, 1.2e-2, 0.8e-2, 0.4e-2]
    second = [0.0, 0.5e-2, 1e-2, 0.75e-2, 0.5e-2, 0.25e-2]
    assert [line["learning_rate"] for line in lines_of(tmp_path)] == pytest.approx(first + second)
    assert all(len(rates) == 2 for rates in used)
    for group in zip(*used, strict=True):
        assert group == pytest.approx(first + second)
    assert first_weights
    assert all(first_weights)


@pytest.mark.parametrize(("profile", "kind"), [("fixed", torch.optim.AdamW), ("paper", UncorrectedAdamW)])
def test_optimisers_of_a_run(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str, kind: type
) -> None:
    """Each phase has the profile's, over the parameters that it trains, with decay on matrices alone."""
    words_of_transformers("RobertaForMaskedLM").save_pretrained(tmp_path / "roberta")
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
            name: 0.0 if name not in decayed and (name.endswith("bias") or "norm." in name) else SHORT.weight_decay
            for name in trained
        }
        assert profile == "fixed" or optimizer.decays_old  # type: ignore[attr-defined]


def test_second_phase_has_a_fresh_optimiser(sequences: Path, tmp_path: Path) -> None:
    run_up_to(9, sequences, tmp_path)
    for step, updates in ((7, 7), (8, 1)):
        state = load_file(tmp_path / f"checkpoints/step-{step:08d}/optimizer.safetensors")
        assert {float(tensor) for name, tensor in state.items() if name.endswith(".step")} == {updates}


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


@pytest.mark.parametrize("kind", ["word", "entity"])
def test_what_is_not_masked_is_not_learnt(tmp_path: Path, kind: str) -> None:
    folder = write_sequences(tmp_path / "sequences", random_rows(11), held_out=random_rows(8, seed=3))
    run(folder, tmp_path / "out", **{f"masked_{kind}_share": 0.0}, predicts_unknown=False)
    other = {"word": "entity", "entity": "word"}[kind]
    for line in lines_of(tmp_path / "out"):
        assert f"masked_{kind}_loss" not in line
        assert line[f"masked_{other}_loss"] > 0
    held_out = read_lines(tmp_path / "out" / "evaluation.jsonl")[-1]
    assert ("masked_word_loss" in held_out) == (kind == "entity")
    assert "masked_entity_loss" in held_out


def test_paper_s_recipe() -> None:
    assert RECIPES["large"] == RECIPES["base"] == PAPER_RECIPE
    first, second = PAPER_RECIPE.phases
    assert first == Phase(steps=100_000, learning_rate=5e-4, warmup_steps=2500, trainable="new")
    assert second == Phase(steps=100_000, learning_rate=1e-5, warmup_steps=2500, trainable="all")
    assert (PAPER_RECIPE.batch_size, PAPER_RECIPE.weight_decay) == (2048, 0.01)
    assert (PAPER_RECIPE.betas, PAPER_RECIPE.epsilon) == ((0.9, 0.999), 1e-6)
    baseline = PAPER_RECIPE.without_entities()
    assert baseline.phases == (Phase(steps=200_000, learning_rate=1e-5, warmup_steps=2500, trainable="all"),)


def test_what_does_not_fit_together_is_refused(sequences: Path, tmp_path: Path) -> None:
    models = {
        "few": {"vocab_size": 50},
        "many": {"vocab_size": 60 + 128},
        "short": {"max_position_embeddings": 20},
        "other": {"pad_token_id": 0},
        "bert": {"max_position_embeddings": 31},
    }
    for name, changes in models.items():
        kind = "BertModel" if name == "bert" else "RobertaForMaskedLM"
        words_of_transformers(kind, **changes).save_pretrained(tmp_path / name)
    cases = [
        ({"preset": "huge"}, "preset 'huge'"),
        ({"profile": "both"}, "profile 'both'"),
        ({"device": "gpu"}, "device 'gpu'"),
        ({"seed": -1}, "seed is -1"),
        ({"base_model": str(tmp_path / "few")}, "vocab_size 50"),
        ({"base_model": str(tmp_path / "many")}, "vocab_size 188"),
        ({"base_model": str(tmp_path / "other")}, "pad_token_id 0"),
        ({"base_model": str(tmp_path / "short")}, "positions for 18 words"),
        ({"base_model": str(tmp_path / "bert")}, "positions for 31 words, but sequences have up to 32"),
    ]
    for changes, message in cases:
        with pytest.raises(ValueError, match=message):
            run(sequences, tmp_path / "out", **changes)
    assert not (tmp_path / "out").exists()


def test_base_model_of_ours_gives_its_words(sequences: Path, tmp_path: Path) -> None:
    run(sequences, tmp_path / "first")
    words = load_file(tmp_path / "first" / "model.safetensors")
    module, new = build_model(Corpus(sequences).facts, choose("tiny", base_model=str(tmp_path / "first")), seed=2)
    state = module.state_dict()
    assert all("entity" in key for key in new)
    assert all(torch.equal(state[key], words[key]) for key in set(state) - new)
    assert not torch.equal(state["entity_head.dense.weight"], words["entity_head.dense.weight"])


def test_the_command_line(
    sequences: Path, whole: Callable[..., dict[str, bytes]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--preset", "tiny", "--seed", "1", "--device", "cpu", "--workers", "2"]
    assert pretrain.main([str(sequences), str(tmp_path / "a"), *options]) == 0
    assert json.loads(capsys.readouterr().out) == lines_of(tmp_path / "a")[-1]
    assert contents(tmp_path / "a") == whole()
    assert pretrain.main([str(tmp_path), str(tmp_path / "c"), *options]) == 1
    assert "manifest.json: no such file" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        pretrain.main([str(sequences), str(tmp_path / "c"), "--workers", "-1"])
