"""The functions that give the figures of `benchmarks.model.pretrain` their meaning; no speed is measured here."""

from pathlib import Path

import pytest

from benchmarks.model import pretrain as script
from benchmarks.model import pretrain_workloads, workloads
from tests.support.models import TINY
from tests.support.shards import random_rows, write_sequences


def test_both_train_the_same_model_on_the_same_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
