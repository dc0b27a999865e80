"""Logits, predictions and scores of features, batch by batch."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from model.data.batches import cut_by_tokens
from model.training.precision import autocast
from tasks.finetuning.prepare import Prepared
from tasks.task import Classifier, Outputs, Task


def score(run: Prepared, split: str, predictions: Sequence[Any]) -> dict[str, Any]:
    """The scores of predictions for a split."""
    return run.task.score(run.datasets[split], predictions, run.labels, run.negative)


def collate(run: Prepared, items: Sequence[Any]) -> Any:
    """A batch of features, on the CPU."""
    return checked(run.module, run.task.collate(items, entities=run.variant.entities))


def checked(module: Classifier, batch: Any) -> Any:
    """The batch, once its ids are found in the model's tables: on a GPU a wrong one would end the process."""
    batch.inputs.check(module.luke.config)
    return batch


def predict(run: Prepared, split: str) -> Sequence[Any]:
    """The predictions for a split, one for each example."""
    return run.task.decode(outputs_of(run, split))


def outputs_of(run: Prepared, split: str) -> Outputs[Any, Any]:
    """The outputs of the model for a split."""
    logits = logits_of(
        run.task,
        run.module,
        run.features[split].items,
        entities=run.variant.entities,
        device=run.device,
        batch_size=run.hyperparameters.batch_size,
        tokens_per_batch=run.hyperparameters.tokens_per_batch,
        precision=run.hyperparameters.precision,
    )
    return Outputs(run.datasets[split], run.features[split].items, logits, run.labels)


@torch.inference_mode()
def logits_of(
    task: Task[Any, Any],
    module: Classifier,
    items: Sequence[Any],
    *,
    entities: bool,
    device: str,
    batch_size: int,
    tokens_per_batch: int = 0,
    precision: str = "float32",
) -> list[np.ndarray]:
    """The logits of each feature; what is computed at once is said as in `Hyperparameters`.

    Features keep their order: a batch has no padding, and neighbours may share their words. With the
    `precision` bf16 matrix products are narrow.
    """
    module.eval()
    logits: list[np.ndarray] = []
    with autocast(device, precision):
        for part in batches(task, items, batch_size, tokens_per_batch):
            batch = task.collate(part, entities=entities)
            logits += task.logits(module, checked(module, batch).to(device))
    return logits


def batches(
    task: Task[Any, Any], items: Sequence[Any], batch_size: int, tokens_per_batch: int
) -> Iterator[Sequence[Any]]:
    """Consecutive features, `batch_size` at a time or, where it is not 0, `tokens_per_batch` words and entities."""
    if tokens_per_batch:
        return cut_by_tokens(items, task.feature_size, tokens_per_batch)
    return (items[start : start + batch_size] for start in range(0, len(items), batch_size))
