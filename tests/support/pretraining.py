"""A short pretraining of a tiny model, as tests run, interrupt and compare it."""

from pathlib import Path
from typing import Any

import pytest

from model.luke.batch import FlatBatch
from model.pretraining import run as pretraining
from model.pretraining.loader import Loader, MicroBatch
from model.pretraining.recipes import HELP, Phase, Recipe, choose

SHORT = Recipe(
    phases=(Phase(7, 2e-2, 2, "new"), Phase(6, 1e-2, 2, "all")),
    batch_size=5,
    micro_batch_size=2,
    log_every=1,
    checkpoint_every=2,
    precision="float32",
)


def run(sequences: Path, output: Path, preset: str = "tiny", **changes: Any) -> dict[str, float]:
    """Pretrain; `changes` are values of the recipe, what `choose` takes, and what `pretrain` does."""
    flags = {name: changes.pop(name) for name in list(changes) if name in HELP}
    of_configuration = {name: changes.pop(name) for name in ("base_model", "entities") if name in changes}
    configuration = choose(preset, flags, **of_configuration)
    arguments = {"profile": "fixed", "seed": 1, "device": "cpu", "progress": False}
    return pretraining.pretrain(sequences, output, configuration, **(arguments | changes))


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a run, which repeat to the byte; not the folder log/, which holds times."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def interrupt_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Make the loader fail at a step."""
    original = Loader.__call__

    def call(self: Loader, at: int) -> Any:
        if at == step:
            raise KeyboardInterrupt
        return original(self, at)

    monkeypatch.setattr(Loader, "__call__", call)


def run_up_to(step: int, sequences: Path, output: Path, **changes: Any) -> None:
    """A run that is interrupted where a step would begin."""
    with pytest.MonkeyPatch.context() as patch:
        interrupt_at(patch, step)
        with pytest.raises(KeyboardInterrupt):
            run(sequences, output, **changes)


def rows_of(parts: list[MicroBatch]) -> list[bytes]:
    """All that a model is given of each sequence, as it is masked."""
    return [
        b"|".join(fields_of(part.batch, number)) for part in parts for number in range(len(part.batch.shape.lengths))
    ]


def fields_of(batch: FlatBatch, number: int) -> list[bytes]:
    """The words of a batch's sequence, its entities, and the labels of both, each by its place in the sequence."""
    layout = batch.layout
    (first, last), (start, end) = (
        offsets[number : number + 2].tolist() for offsets in (layout.word_offsets, layout.entity_offsets)
    )
    fields = [batch.word_ids[first:last], batch.entity_ids[start:end]]
    fields += [batch.mention_starts[start:end], batch.mention_lengths[start:end]]
    for places, labels, span in (
        (batch.masked_words, batch.word_labels, (first, last)),
        (batch.masked_entities, batch.entity_labels, (batch.shape.words + start, batch.shape.words + end)),
    ):
        is_here = (places >= span[0]) & (places < span[1])
        fields += [places[is_here] - span[0], labels[is_here]]
    return [field.numpy().tobytes() for field in fields]
