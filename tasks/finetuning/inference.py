"""Logits of features, batch by batch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from model.data.batches import cut
from model.training.precision import autocast
from tasks.finetuning.prepare import Prepared
from tasks.task import Classifier, Outputs, Task


def collate(run: Prepared, items: Sequence[Any]) -> Any:
    """A batch of features, on the CPU."""
    return checked(run.module, run.task.collate(items, entities=run.variant.entities))


def checked(module: Classifier, batch: Any) -> Any:
    """The batch, once its ids are found in the model's tables: on a GPU a wrong one would end the process."""
    batch.inputs.check(module.luke.config)
    return batch


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
        for part in cut(items, task.feature_size, tokens_per_batch, batch_size):
            batch = task.collate(part, entities=entities)
            logits += task.logits(module, checked(module, batch).to(device))
    return logits
