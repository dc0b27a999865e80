"""A short pretraining of a tiny model, as tests run, interrupt and compare it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from model.luke.batch import Batch
from model.pretraining import run as pretraining
from model.pretraining.configuration import choose
from model.pretraining.loader import Loader, MicroBatch
from model.pretraining.recipes import RECIPE_NAMES, Phase, Recipe

SHORT = Recipe(
    phases=(Phase(7, 2e-2, 2, "new"), Phase(6, 1e-2, 2, "all")),
    batch_size=5,
    micro_batch_size=2,
    log_every=1,
    checkpoint_every=2,
)


def run(sequences: Path, output: Path, preset: str = "demo", **changes: Any) -> dict[str, float]:
    """Pretrain; `changes` are values of the recipe, what `choose` takes, and what `pretrain` does."""
    flags = {name: changes.pop(name) for name in list(changes) if name in RECIPE_NAMES}
    of_configuration = {
        name: changes.pop(name) for name in ("base_model", "entities", "file") if name in changes
    }
    configuration = choose(preset, flags=flags, **of_configuration)
    arguments = {"profile": "fixed", "seed": 1, "device": "cpu", "progress": False}
    return pretraining.pretrain(sequences, output, configuration, **(arguments | changes))


def contents(folder: Path) -> dict[str, bytes]:
    """What a run repeats to the byte: the files, not the folder log/, which holds times."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def interrupt_at(monkeypatch: pytest.MonkeyPatch, step: int) -> Callable[[], None]:
    """Make the loader fail at a step; the result undoes it."""
    original = Loader.__call__

    def call(self: Loader, at: int) -> Any:
        if at == step:
            raise KeyboardInterrupt
        return original(self, at)

    monkeypatch.setattr(Loader, "__call__", call)
    return lambda: monkeypatch.setattr(Loader, "__call__", original)


def rows_of(parts: list[MicroBatch]) -> list[bytes]:
    """All that a model is given of each sequence, as it is masked, without padding."""
    return [
        b"|".join(fields_of(part.batch, number))
        for part in parts
        for number in range(len(part.batch.word_ids))
    ]


def fields_of(batch: Batch, number: int) -> list[bytes]:
    """The words of a batch's sequence, and its entities where the batch has any."""
    words = batch.word_mask[number]
    fields = [batch.word_ids[number][words], batch.word_labels[number][words]]
    if batch.entity_mask is not None and batch.entity_mask[number].any():
        entities = batch.entity_mask[number]
        positions = batch.entity_positions[number][entities]
        fields += [batch.entity_ids[number][entities], batch.entity_labels[number][entities]]
        fields += [(positions >= 0).sum(dim=1), positions[positions >= 0]]
    return [field.numpy().tobytes() for field in fields]
