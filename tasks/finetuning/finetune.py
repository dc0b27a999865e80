"""Fine-tunes a pretrained model on one of the tasks and scores it; `finetune` is all that a caller needs."""

import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from model.exchange.fine_tuned import TEMPERATURE
from model.exchange.load import fingerprint_model
from model.training.checkpoints import hold, remove_leftover
from model.training.loop import resolve_device
from model.training.metrics_log import find_tracker
from pipeline.sequences.tokenizer import tokenizer_contents
from pipeline.sequences.tokenizer_files import tokenizer_files
from pipeline.storage.files import file_sha256
from pipeline.storage.manifests import MANIFEST, read_manifest
from tasks.entities.annotations import entities_sha256
from tasks.finetuning import VERSION
from tasks.finetuning.calibration import calibration
from tasks.finetuning.epochs import EpochTraining
from tasks.finetuning.inference import decode, logits_of_split, predict
from tasks.finetuning.prepare import Run, prepare
from tasks.finetuning.registry import TASKS
from tasks.finetuning.results import configuration, digest, finished_metrics, measure, write
from tasks.finetuning.variants import VARIANTS
from tasks.io.data_folder import split_files
from tasks.task import PROFILES, Hyperparameters

logger = logging.getLogger(__name__)
LITTLE = 0.2  # an F1 below this is said; with less than a ninth of the entities found it is always below
CHECKPOINTS = "checkpoints"

Choice = TypeVar("Choice")


def finetune(
    task: str,
    data: Path,
    weights: Path,
    tokenizer: Path,
    output: Path,
    *,
    variant: str = "luke",
    preset: str = "base",
    seed: int = 42,
    device: str = "auto",
    profile: str = "fixed",
    progress: bool = False,
    negative_label: str = "",
    tokens_per_batch: int = 0,
    checkpoint_minutes: float = 30.0,
    allow_no_predictions: bool = False,
    mentions: Path | None = None,
    tag_column: str = "",
    changes: Mapping[str, Any] | None = None,
    keeps_weights: bool = True,
    tracker: str = "",
) -> dict[str, Any]:
    """Fine-tunes `weights` on `data`/{train,dev,test}.*, scores dev and test, and returns the metrics.

    The classes are those of a file `labels.*` or `rel2id.json` in `data` (names one a line, a JSON list, or a
    JSON object of name -> number), or else what the task makes of the splits. `negative_label` names the class
    of a relation data set that is not scored, where the task does not know it. `mentions` is the folder of a mention
    table, by which the entities are found that extractive question answering takes. `tag_column` says where files of
    entity recognition have the tags, where the format does not (`tasks.ner.task.read`).

    `weights` is our folder of a pretraining or a fine-tuning, or a transformers LUKE, RoBERTa or BERT directory, as the
    variant wants; `tokenizer` is the folder with its tokenizer's files. RoBERTa and BERT have no entities: these start
    as the word [MASK] (`model.luke.new_entities.start_entities_as_words`), and those of `mentions` as what their titles
    say. Writes model.safetensors, config.json, metrics.json, training.jsonl, predictions-{dev,test} in the task's own
    format and a copy of the tokenizer into `output`: the same bytes for the same arguments on the same machine. The
    profile `fixed` uses AdamW with bias correction, keeps the best epoch on dev, and moves the classifier's bias as
    `Task.bias_shift` says; `paper` does what the authors' code did.
    `Hyperparameters` says what `tokens_per_batch` means; `changes` replace more of the preset's values. `tracker` is
    the module:function that gets figures as they come. Without `keeps_weights` there is no model.safetensors: a
    search of hyperparameters needs the scores alone. Another run's result stays in `output` until this one's is
    written.

    A checkpoint stands in `output` after each epoch and, within one, when so many minutes have passed (0: none)
    or SIGTERM came; the same call goes on from it, and a finished one is not done again. Raises: ValueError for
    what is unknown or cannot be read, where another run trains in `output` or has left a checkpoint there and, after
    all is written, for a model that predicts nothing at all on dev and test, unless `allow_no_predictions`; Stopped
    after SIGTERM.
    """
    chosen = _choose("task", task, TASKS)
    row = _choose("variant", variant, VARIANTS)
    _choose("profile", profile, dict.fromkeys(PROFILES))
    hyperparameters = changed(_choose("preset", preset, chosen.PRESETS), changes or {}, tokens_per_batch)
    names = {"task": task, "variant": variant, "preset": preset, "profile": profile, "seed": seed}
    values = {**names, "negative_label": negative_label, "hyperparameters": asdict(hyperparameters)}
    values |= {} if keeps_weights else {"keeps_weights": False}
    values |= {"tag_column": tag_column} if tag_column else {}
    identity = {"version": VERSION, **values, **fingerprints(data, weights, tokenizer, mentions)}
    if metrics := finished_metrics(output, identity):
        logger.info("%s: this fine-tuning is finished already", output)
        remove_leftover(output / CHECKPOINTS)
    else:
        kept = tokenizer_contents(tokenizer)  # one that cannot be kept is refused before the work
        track = find_tracker(tracker)
        run = prepare(
            chosen, row, hyperparameters, data, weights, tokenizer, seed=seed, device=str(resolve_device(device)),
            profile=profile, progress=progress, negative_label=negative_label,
            mentions=mentions, tag_column=tag_column,
        )  # fmt: skip
        training = EpochTraining(run, output / CHECKPOINTS, identity, checkpoint_minutes, track)
        table = {"entities_sha256": entities_sha256(mentions)} if mentions else {}
        with hold(output / CHECKPOINTS):
            metrics = train_and_write(
                training, output, names, table, tokenizer=kept, keeps_weights=keeps_weights
            )
            shutil.rmtree(output / CHECKPOINTS, ignore_errors=True)
    report_little(f"{task}, variant {variant}", metrics, hyperparameters)
    report_silence(f"{task}, variant {variant}", metrics, hyperparameters, allowed=allow_no_predictions)
    return metrics


def train_and_write(
    training: EpochTraining,
    output: Path,
    names: Mapping[str, Any],
    table: Mapping[str, str],
    *,
    tokenizer: Mapping[str, bytes],
    keeps_weights: bool,
) -> dict[str, Any]:
    """Trains, moves the classifier's bias, fits the temperature, scores, writes the files, and returns the metrics.

    `names` are the task, the variant and so on, which metrics and configuration begin with; `table` is what the
    configuration says of the mention table, if there is one.
    """
    training.train()
    run = training.run
    logits = logits_of_split(run, "dev")
    shift = shift_bias(run, logits) if run.profile == "fixed" else {}
    if shift:  # computed again, and not added: bf16 rounds what the classifier gives
        logits = logits_of_split(run, "dev")
    fitted = calibration(run.task, run.datasets["dev"], run.features["dev"].items, logits)
    predictions = {"dev": decode(run, "dev", logits), "test": predict(run, "test")}
    scores = measure(run, training.epochs, predictions)
    metrics = {
        **names,
        **scores,
        "bias_shift": shift,
        "calibration": fitted,
        "run": digest(training.identity),
    }
    config = {**names, TEMPERATURE: fitted["temperature"], **configuration(run), **table}
    write(
        run,
        output,
        config,
        metrics,
        training.history,
        predictions,
        tokenizer=tokenizer,
        keeps_weights=keeps_weights,
    )
    return metrics


@torch.no_grad()
def shift_bias(run: Run, logits: Sequence[np.ndarray]) -> dict[str, float]:
    """Adds to the classifier's bias what the task says of dev's logits; returns it by classes, without zeros."""
    shift = run.task.bias_shift(run.datasets["dev"], run.features["dev"].items, logits, run.labels)
    if shift is None:
        return {}
    bias = run.module.classifier.bias
    bias.add_(torch.from_numpy(shift).to(bias))
    return {label: each for label, each in zip(run.labels, shift.tolist(), strict=True) if each}


def changed(
    preset: Hyperparameters, changes: Mapping[str, Any], tokens_per_batch: int = 0
) -> Hyperparameters:
    """A preset with other values; a learning rate changes that of the classifier in the same proportion."""
    values = {"tokens_per_batch": tokens_per_batch, **changes}
    if "learning_rate" in changes and "head_learning_rate" not in changes:
        ratio = preset.head_learning_rate / preset.learning_rate
        values["head_learning_rate"] = changes["learning_rate"] * ratio
    return replace(preset, **values)


def report_silence(name: str, metrics: Mapping[str, Any], hyper: Hyperparameters, *, allowed: bool) -> None:
    """Warns of each split where nothing is predicted; where that is all of them, raises unless it is allowed."""
    silent = metrics["splits_without_predictions"]
    if (
        not allowed
        and len(silent) == 2
        and any(metrics[split].get("gold", metrics[split].get("questions")) for split in silent)
    ):
        raise ValueError(
            f"{name}: NOTHING is predicted on dev and test: the model has not learnt the task in {hyper.epochs} epochs "
            f"at learning rates {hyper.learning_rate:g} and {hyper.head_learning_rate:g} (classifier); take higher "
            "ones or more epochs (the preset small-encoder for small encoders), or allow it (--allow-no-predictions)"
        )
    for split in silent:
        logger.warning(
            "%s: NOTHING is predicted on %s: the model has not learnt the task; "
            "a higher learning rate or more epochs may help", name, split
        )  # fmt: skip


def report_little(name: str, metrics: Mapping[str, Any], hyper: Hyperparameters) -> None:
    """Warns of each split where what is predicted is hardly better than predicting nothing, with the figures."""
    for split in ("dev", "test"):
        scores = metrics[split]
        if scores.get("gold") and scores.get("predicted") and scores["f1"] < LITTLE:
            logger.warning(
                "%s: on %s the model is hardly better than one that predicts nothing: F1 %.1f %%, %d predicted, "
                "%d of them right, of %d that are there, after %d epochs at learning rates %g and %g (classifier); "
                "more epochs, higher rates or more examples may help",
                name, split, 100 * scores["f1"], scores["predicted"], scores["correct"], scores["gold"],
                hyper.epochs, hyper.learning_rate, hyper.head_learning_rate,
            )  # fmt: skip


def _choose(what: str, name: str, choices: Mapping[str, Choice]) -> Choice:
    if name not in choices:
        raise ValueError(f"{what} {name!r} is unknown; expected one of {', '.join(choices)}")
    return choices[name]


def fingerprints(data: Path, weights: Path, tokenizer: Path, mentions: Path | None) -> dict[str, Any]:
    """What tells the inputs of a run from others: SHA-256 of the data's files, the model and so on."""
    if mentions:
        read_manifest(str(mentions))  # which says what is wrong with another folder
    return {
        "data": {name: file_sha256(str(path)) for name, path in split_files(data).items()},
        "weights": fingerprint_model(str(weights)),
        "tokenizer": {name: file_sha256(str(path)) for name, path in tokenizer_files(tokenizer).items()},
        **({"mentions": file_sha256(str(mentions / MANIFEST))} if mentions else {}),
    }
