"""Fine-tunes a pretrained model on one of the tasks and scores it; `finetune` is all that a caller needs."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer
from tqdm import tqdm

from model.train import fit, linear_schedule, make_optimizer, parameter_groups
from pipeline.storage import atomic_path, write_bytes
from pipeline.tokens import tokenizer_files
from tasks.run import TASKS, Run, collate, predict, prepare, score
from tasks.task import PROFILES
from tasks.variants import VARIANTS

logger = logging.getLogger(__name__)

TOKENIZER = "tokenizer"
TOKENIZER_FILES = ("vocab.json", "merges.txt")

Choice = TypeVar("Choice")


def finetune(
    task: str,
    data: Path,
    weights: Path,
    tokenizer: Path,
    output: Path,
    *,
    variant: str,
    preset: str,
    seed: int,
    device: str,
    profile: str,
    progress: bool,
    negative_label: str = "",
) -> dict[str, Any]:
    """Fine-tunes `weights` on `data`/{train,dev,test}.*, scores dev and test, and returns the metrics.

    The classes are those of a file `labels.*` or `rel2id.json` in `data` (names one a line, a JSON list, or a
    JSON object of name -> number), or else what the task makes of the splits. `negative_label` names the class
    of a relation data set that is not scored, where the task does not know it.

    `weights` is our pretraining folder or a transformers LUKE or RoBERTa directory, as the variant wants;
    `tokenizer` is the folder with its vocab.json and merges.txt. Writes model.safetensors, config.json,
    metrics.json, training.jsonl, predictions-{dev,test} in the task's own format and a copy of the tokenizer
    into `output`: the same bytes for the same arguments on the same machine. The profile `fixed` uses AdamW
    with bias correction and keeps the best epoch on dev; `paper` does what the authors' code did. Raises:
    ValueError for what is unknown or cannot be read.
    """
    chosen = _choose("task", task, TASKS)
    _choose("profile", profile, dict.fromkeys(PROFILES))
    run = prepare(
        chosen,
        _choose("variant", variant, VARIANTS),
        _choose("preset", preset, chosen.PRESETS),
        data,
        weights,
        tokenizer,
        seed=seed,
        device=device,
        profile=profile,
        progress=progress,
        negative_label=negative_label,
    )
    history, epochs = train(run)
    predictions = {split: predict(run, split) for split in ("dev", "test")}
    names = {"task": task, "variant": variant, "preset": preset, "profile": profile, "seed": seed}
    metrics = {**names, **measure(run, epochs, predictions)}
    for split in metrics["splits_without_predictions"]:
        logger.warning(
            "%s, variant %s: NOTHING is predicted on %s: the model has not learnt the task; "
            "a higher learning rate or more epochs may help", task, variant, split
        )  # fmt: skip
    write(run, output, {**names, **configuration(run)}, metrics, history, predictions)
    return metrics


def _choose(what: str, name: str, choices: Mapping[str, Choice]) -> Choice:
    if name not in choices:
        raise ValueError(f"{what} {name!r} is unknown; expected one of {', '.join(choices)}")
    return choices[name]


def optimizer_of(run: Run) -> Optimizer:
    """AdamW for the pretrained part and the classifier, each with its learning rate."""
    hyper = run.hyperparameters
    head = nn.ModuleList(child for name, child in run.module.named_children() if name != "luke")
    groups = [
        {**group, "lr": learning_rate}
        for part, learning_rate in ((run.module.luke, hyper.learning_rate), (head, hyper.head_learning_rate))
        for group in parameter_groups(part, hyper.weight_decay)
    ]
    return make_optimizer(
        groups,
        learning_rate=hyper.learning_rate,
        betas=hyper.betas,
        epsilon=hyper.epsilon,
        bias_correction=run.profile == "fixed",
    )


def train(run: Run) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Trains, and leaves the weights of the epoch that is kept; returns a record a step and one an epoch."""
    per_epoch, epochs = run.steps_per_epoch, run.hyperparameters.epochs
    warmup = int(run.hyperparameters.warmup_ratio * epochs * per_epoch)
    history: list[dict[str, Any]] = []
    scores: list[dict[str, Any]] = []
    kept: dict[str, Tensor] = {}
    optimizer = optimizer_of(run)
    with tqdm(total=epochs * per_epoch, desc="fine-tuning", disable=not run.progress) as bar:

        def record(step: int, figures: dict[str, float]) -> None:
            history.append({"step": step, **figures})
            bar.update()

        for epoch in range(epochs):
            run.module.train()
            fit(
                run.module,
                partial(run.task.loss, run.module),
                partial(batches_of_step, run),
                optimizer,
                partial(linear_schedule, warmup_steps=warmup, total_steps=epochs * per_epoch),
                first_step=epoch * per_epoch,
                steps=(epoch + 1) * per_epoch,
                seed=run.seed,
                on_step=record,
            )
            dev_f1 = score(run, "dev", predict(run, "dev"))["f1"]
            if not run.keeps_best_epoch or all(dev_f1 > earlier["dev_f1"] for earlier in scores):
                kept = {name: tensor.clone() for name, tensor in run.module.state_dict().items()}
            scores.append({"epoch": epoch + 1, "dev_f1": dev_f1})
            logger.debug("epoch %d of %d: dev F1 %.4f", epoch + 1, epochs, dev_f1)
    run.module.load_state_dict(kept)
    return history, scores


def batches_of_step(run: Run, step: int) -> Sequence[Any]:
    """The batch of an optimiser step; each epoch has an order of its own, its last batch may be short."""
    items = run.features["train"].items
    epoch, batch = divmod(step, run.steps_per_epoch)
    order = np.random.default_rng([run.seed, epoch]).permutation(len(items))
    size = run.hyperparameters.batch_size
    chosen = [items[index] for index in order[batch * size : (batch + 1) * size]]
    return [collate(run, chosen)]


def measure(
    run: Run, epochs: Sequence[Mapping[str, Any]], predictions: Mapping[str, Sequence[Any]]
) -> dict[str, Any]:
    """The scores of the kept epoch, how dev went epoch by epoch, and what the data sets hold."""
    scores = {split: score(run, split, found) for split, found in predictions.items()}
    kept = max(epochs, key=lambda epoch: epoch["dev_f1"]) if run.keeps_best_epoch else epochs[-1]
    return {
        **scores,
        "splits_without_predictions": [split for split in scores if not scores[split]["predicted"]],
        "kept_epoch": kept["epoch"],
        "epochs": epochs,
        "data": {
            split: {**run.task.describe(dataset), **run.features[split].counts}
            for split, dataset in run.datasets.items()
        },
    }


def configuration(run: Run) -> dict[str, Any]:
    """All that the run's result depends on besides the files, resolved."""
    return {
        **asdict(run.variant),
        "labels": run.labels,
        "negative_label": run.negative,
        "hyperparameters": asdict(run.hyperparameters),
        "model": asdict(run.module.luke.config),
    }


def write(
    run: Run,
    output: Path,
    config: Mapping[str, Any],
    metrics: Mapping[str, Any],
    history: Sequence[Mapping[str, Any]],
    predictions: Mapping[str, Sequence[Any]],
) -> None:
    """Writes the run's files, each of which appears whole or not at all."""
    weights = {name: tensor.cpu().contiguous() for name, tensor in run.module.state_dict().items()}
    with atomic_path(str(output / "model.safetensors")) as path:
        save_file(weights, path, metadata={"format": "pt"})
    texts = {
        "config.json": json.dumps(config, indent=2) + "\n",
        "training.jsonl": "".join(json.dumps(record) + "\n" for record in history),
        "metrics.json": json.dumps(metrics, indent=2) + "\n",
    }
    for split, found in predictions.items():
        lines = run.task.prediction_lines(run.datasets[split], found)
        texts[f"predictions-{split}{run.task.PREDICTIONS_SUFFIX}"] = "\n".join(lines) + "\n"
    for name, text in texts.items():
        write_bytes(str(output / name), text.encode())
    for source, name in zip(tokenizer_files(run.tokenizer), TOKENIZER_FILES, strict=True):
        write_bytes(str(output / TOKENIZER / name), source.read_bytes())
