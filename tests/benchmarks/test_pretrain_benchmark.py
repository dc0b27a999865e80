"""What decides the meaning of the figures of `benchmarks.model.pretrain`; no speed is measured here."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks.model import pretrain as script
from benchmarks.model import pretrain_workloads
from benchmarks.model import workloads as model_workloads
from tests.support.models import TINY
from tests.support.shards import random_rows, write_sequences

CPU = torch.device("cpu")
SMALL = {"batch_size": 6, "micro_batch_size": 2}


@pytest.fixture(scope="module")
def sequences(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_sequences(tmp_path_factory.mktemp("sequences"), random_rows(40)))


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every preset is a tiny model."""
    for module in (model_workloads, pretrain_workloads):
        monkeypatch.setattr(module, "preset", lambda size: TINY)


def train(sequences: str, who: str, **changes: object) -> dict[str, object]:
    arguments = {"who": who, "size": "base", "phase": "all", "sequences": sequences, "device": "cpu"}
    arguments |= {"recipe": SMALL, "first_step": 2, "warm_steps": 1, "steps": 2, "workers": 0, "threads": 1}
    return pretrain_workloads.train(**(arguments | {"longest": False, "compare": True} | changes))


def test_both_train_the_same_model_on_the_same_batches(
    sequences: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_workloads, "ENTITIES", TINY.entity_vocab_size)
    ours, theirs = train(sequences, "ours"), train(sequences, "transformers")
    assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-5)
    for name in ("tokens", "flops", "micro_batches"):
        assert ours[name] == theirs[name]
    assert ours["micro_batches"] == 3
    assert all(len(ours[name]) == 2 for name in ("seconds", "waits", "tokens", "flops"))
    assert train(sequences, "ours", phase="new", compare=False)["flops"] < ours["flops"]


def test_both_losses_are_of_the_whole_step(sequences: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Transformers' is the mean of the parts' means, ours divides by what all parts hold."""
    monkeypatch.setattr(pretrain_workloads, "DROPOUT", 0.0)
    monkeypatch.setattr(model_workloads, "ENTITIES", TINY.entity_vocab_size)
    recipe = replace(pretrain_workloads.PAPER_RECIPE, **SMALL)
    loader = pretrain_workloads.Loader(
        pretrain_workloads.Corpus(Path(sequences)), recipe, profile="fixed", seed=1, entities=True
    )
    found: dict[str, list[float]] = {}
    for who in ("ours", "transformers"):
        torch.manual_seed(0)
        module = pretrain_workloads.make_module(who, pretrain_workloads.config_of("base", who), CPU, True)
        seen = found.setdefault(who, [])
        loop = pretrain_workloads.Loop(who, module, recipe, CPU)
        loop.run(loader, 1, lambda step, values, seen=seen: seen.append(loss_of(values)))
    assert found["ours"] == pytest.approx(found["transformers"], rel=0.02)


def loss_of(values: dict[str, float]) -> float:
    return sum(values[name] for name in values.keys() & {"loss", "masked_word", "masked_entity"})


def test_the_longest_sequences_come_first(sequences: str) -> None:
    recipe = replace(pretrain_workloads.PAPER_RECIPE, **SMALL)
    corpus = pretrain_workloads.Corpus(Path(sequences))
    loader = model_workloads.LongestLoader(corpus, recipe, profile="fixed", seed=1, entities=True)
    lengths = [len(corpus[index].word_ids) for step in range(7) for _, index in loader.indices(step)]
    assert lengths == sorted((len(corpus[index].word_ids) for index in range(40)), reverse=True) + lengths[:2]


@pytest.mark.parametrize("workers", [0, 2])
def test_loading_counts_every_token_of_its_steps(sequences: str, workers: int) -> None:
    corpus = pretrain_workloads.Corpus(Path(sequences))
    tokens = [len(corpus[index].word_ids) + 2 + len(corpus[index].entity_ids) for index in range(40)]
    recipe = {"batch_size": 40, "micro_batch_size": 8}
    found = pretrain_workloads.load(sequences=sequences, workers=workers, steps=3, recipe=recipe)
    assert found["tokens"] == 3 * sum(tokens)
    assert pretrain_workloads.mask(sequences=sequences, count=99)["tokens"] == sum(tokens) - 2 * 40


def test_a_checkpoint_holds_the_weights_and_two_moments_of_each(tmp_path: Path) -> None:
    found = pretrain_workloads.checkpoint(size="tiny", device="cpu", scratch=str(tmp_path))
    weights = sum(p.numel() for p in model_workloads.LukeForPretraining(TINY).parameters())
    assert 3 * 4 * weights < found["bytes"] < 3 * 4 * weights + 60_000
    assert list(tmp_path.iterdir()) == []


def row(who: str, number: int, seconds: float, **changes: object) -> dict[str, object]:
    return {
        "who": who,
        "size": "base",
        "phase": "all",
        "first_step": number,
        "compare": True,
        "seconds": [seconds],
        "waits": [seconds / 100],
        "tokens": [100],
        "flops": [1e9],
        "matrix_flops": 1e9,
        "micro_batches": 8,
        "loss": 3.0,
        "peak_mb": 10.0,
    } | changes


ROWS = [
    *(row("ours", number, seconds) for number, seconds in enumerate((4.0, 5.0, 10.0))),
    *(row("transformers", number, seconds) for number, seconds in enumerate((10.0, 10.0, 10.0))),
    {
        "who": "ours",
        "size": "large",
        "phase": "all",
        "first_step": 0,
        "compare": False,
        "failure": "signal 9",
    },
]


def test_rows_are_medians_and_ratios_are_of_pairs() -> None:
    ours, theirs, large = script.training_rows(ROWS)
    assert (ours["tokens/s"], ours["seconds a step"], theirs["tokens/s"]) == (20.0, 5.0, 10.0)
    assert ours["share of the product rate"] == 0.2
    assert ours["waiting for the loader"] == pytest.approx(0.01)
    assert (large["steps"], large["tokens/s"], large["peak MB"]) == (0, None, None)
    assert [line["x transformers"] for line in script.ratios(ROWS)] == [2.5, 2.0, 1.0, 2.0]


def test_models_that_disagree_fail_the_check() -> None:
    assert [line["passed"] for line in script.checks(ROWS)] == [True] * 3
    assert [line["passed"] for line in script.checks([*ROWS, row("ours", 1, 1.0, loss=3.1)])] == [
        True,
        False,
        True,
    ]


def test_targets_say_what_was_missed_and_what_was_not_measured() -> None:
    loader = [
        {"what": "masking alone", "tokens/s": 6e5},
        {"what": "Arrow to tensors, 1 workers", "tokens/s": 1e5},
    ]
    for beside, met in ((script.ratios(ROWS), True), ([], None)):
        found = script.targets("cpu", [], beside, loader)
        assert [line["met"] for line in found] == [True, False, met]
    large = script.training_rows([row("ours", 0, 2.0, size="large", waits=[0.05])])
    assert [line["met"] for line in script.targets("cuda", large, [], loader)] == [True, False, True, False]
