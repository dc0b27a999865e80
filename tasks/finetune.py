"""Fine-tunes a pretrained model on one of the tasks and scores it; `finetune` is all that a caller needs."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer
from tqdm import tqdm

from model.checkpoint import load_luke
from model.train import fit, linear_schedule, make_optimizer, parameter_groups
from pipeline.storage import atomic_path, write_bytes
from pipeline.tokens import WordTokenizer
from tasks import ner
from tasks.task import PROFILES, SPLITS, Classifier, Features, Hyperparameters, Task, split_file
from tasks.variants import VARIANTS, Variant

logger = logging.getLogger(__name__)

TASKS: Mapping[str, Task[Any, Any]] = {"ner": ner}

Choice = TypeVar("Choice")


@dataclass(frozen=True)
class Run:
    """Everything that training and scoring need, resolved: nothing below looks at names or files."""

    task: Task[Any, Any]
    variant: Variant
    hyperparameters: Hyperparameters
    profile: str
    labels: tuple[str, ...]
    datasets: Mapping[str, Any]
    features: Mapping[str, Features[Any]]
    module: Classifier
    pad_id: int
    seed: int
    device: str
    progress: bool

    @property
    def steps_per_epoch(self) -> int:
        return -(-len(self.features["train"].items) // self.hyperparameters.batch_size)

    @property
    def keeps_best_epoch(self) -> bool:
        return self.profile == "fixed" or self.task.BEST_EPOCH_IN_PAPER


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
) -> dict[str, Any]:
    """Fine-tunes `weights` on `data`/{train,dev,test}.*, scores dev and test, and returns the metrics.

    `weights` is our pretraining folder or a transformers LUKE or RoBERTa directory, as the variant wants;
    `tokenizer` is the folder with its vocab.json and merges.txt. Writes model.safetensors, config.json,
    metrics.json, training.jsonl and predictions-{dev,test}.txt into `output`: the same bytes for the same
    arguments on the same machine. The profile `fixed` uses AdamW with bias correction and keeps the best
    epoch on dev; `paper` does what the authors' code did. Raises: ValueError for what is unknown or
    cannot be read.
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


def prepare(
    task: Task[Any, Any],
    variant: Variant,
    hyperparameters: Hyperparameters,
    data: Path,
    weights: Path,
    tokenizer: Path,
    *,
    seed: int,
    device: str,
    profile: str,
    progress: bool,
) -> Run:
    """Reads the data and the weights, and builds the model and its inputs."""
    datasets = {split: task.read(split_file(data, split)) for split in SPLITS}
    labels = task.label_names(datasets["train"])
    words = WordTokenizer.load(tokenizer)
    torch.manual_seed(seed)
    luke = load_luke(str(weights), use_entity_aware_attention=variant.entity_aware_attention)
    if words.vocab_size > luke.config.vocab_size:
        raise ValueError(
            f"{tokenizer}: vocabulary of {words.vocab_size}, but {weights} has {luke.config.vocab_size} word "
            "embeddings; give the tokenizer that the weights were trained with"
        )
    luke.keep_entities(task.ENTITY_ROWS)
    hyperparameters = replace(
        hyperparameters, max_words=min(hyperparameters.max_words, luke.config.max_words)
    )
    features = {
        split: task.featurize(dataset, words, labels, max_words=hyperparameters.max_words, profile=profile)
        for split, dataset in datasets.items()
    }
    return Run(
        task=task,
        variant=variant,
        hyperparameters=hyperparameters,
        profile=profile,
        labels=labels,
        datasets=datasets,
        features=features,
        module=task.head(luke, len(labels), entities=variant.entities).to(device),
        pad_id=words.pad_id,
        seed=seed,
        device=device,
        progress=progress,
    )


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
            dev_f1 = run.task.score(run.datasets["dev"], predict(run, "dev"))["f1"]
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


def collate(run: Run, items: Sequence[Any]) -> Any:
    """A batch of features on the run's device."""
    return run.task.collate(items, entities=run.variant.entities, pad_id=run.pad_id).to(run.device)


@torch.inference_mode()
def predict(run: Run, split: str) -> Sequence[Any]:
    """The predictions for a split, one for each example; features of like size share a batch."""
    items = run.features[split].items
    order = sorted(range(len(items)), key=lambda index: run.task.feature_size(items[index]))
    logits: dict[int, np.ndarray] = {}
    run.module.eval()
    for start in range(0, len(order), run.hyperparameters.batch_size):
        chosen = order[start : start + run.hyperparameters.batch_size]
        batch = collate(run, [items[index] for index in chosen])
        logits.update(zip(chosen, run.task.logits(run.module, batch), strict=True))
    in_order = [logits[index] for index in range(len(items))]
    return run.task.decode(run.datasets[split], items, in_order, run.labels)


def measure(
    run: Run, epochs: Sequence[Mapping[str, Any]], predictions: Mapping[str, Sequence[Any]]
) -> dict[str, Any]:
    """The scores of the kept epoch, how dev went epoch by epoch, and what the data sets hold."""
    scores = {split: run.task.score(run.datasets[split], found) for split, found in predictions.items()}
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
        texts[f"predictions-{split}.txt"] = "\n".join(lines) + "\n"
    for name, text in texts.items():
        write_bytes(str(output / name), text.encode())
