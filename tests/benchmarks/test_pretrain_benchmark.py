"""What decides the meaning of the figures of `benchmarks.model.pretrain`; no speed is measured here."""

from pathlib import Path

import pytest

from benchmarks.model import pretrain as script
from benchmarks.model import pretrain_workloads, workloads
from tests.support.models import TINY
from tests.support.shards import random_rows, write_sequences


def test_both_train_the_same_model_on_the_same_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (workloads, pretrain_workloads):
        monkeypatch.setattr(module, "preset", lambda size: TINY)
    monkeypatch.setattr(workloads, "ENTITIES", TINY.entity_vocab_size)
    arguments = {"sequences": str(write_sequences(tmp_path / "sequences", random_rows(40))), "size": "base"}
    arguments |= {"device": "cpu", "recipe": {"batch_size": 6, "micro_batch_size": 2}, "first_step": 2}
    arguments |= {"warm_steps": 1, "steps": 2, "workers": 0, "threads": 1, "compare": True}
    ours, theirs = (pretrain_workloads.train(who=who, **arguments) for who in (script.OURS, script.THEIRS))
    assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-5)
    for name in ("tokens", "flops", "micro_batches"):
        assert ours[name] == theirs[name]
    assert ours["micro_batches"] == 3
    assert all(len(ours[name]) == 2 for name in ("seconds", "waits", "tokens", "flops"))


def row(who: str, number: int, seconds: float, loss: float = 3.0) -> dict[str, object]:
    kind = {"who": who, "size": "base", "first_step": number, "compare": True, "loss": loss}
    measured = {"seconds": [seconds], "waits": [seconds / 100], "tokens": [100], "flops": [1e9]}
    return kind | measured | {"matrix_flops": 1e9, "micro_batches": 8, "peak_mb": 10.0}


ROWS = [
    *(row("ours", number, seconds) for number, seconds in enumerate((4.0, 5.0, 10.0))),
    *(row("transformers", number, seconds) for number, seconds in enumerate((10.0, 10.0, 10.0))),
    {"who": "ours", "size": "large", "first_step": 0, "compare": False, "failure": "signal 9"},
]


def test_rows_are_medians_and_ratios_are_of_pairs() -> None:
    ours, theirs, large = script.training_rows(ROWS)
    assert (ours["tokens/s"], ours["seconds a step"], theirs["tokens/s"]) == (20.0, 5.0, 10.0)
    assert ours["share of the product rate"] == 0.2
    assert ours["waiting for the loader"] == pytest.approx(0.01)
    assert (large["steps"], large["tokens/s"], large["peak MB"]) == (0, None, None)
    assert [line["x transformers"] for line in script.ratios(ROWS)] == [2.5, 2.0, 1.0, 2.0]
