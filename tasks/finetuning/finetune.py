"""Fine-tunes a pretrained model on one of the tasks and scores it; `finetune` is all that a caller needs."""

import logging
import shutil
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from model.hf.fine_tuned import TEMPERATURE
from model.hf.load import fingerprint_model
from model.training.checkpoints import CHECKPOINTS, Checkpoints, digest, hold, remove_leftover
from model.training.loop import check_seed
from model.training.metrics_log import find_tracker
from model.training.ranks import Ranks
from pipeline.sequences.tokenizer import tokenizer_contents
from pipeline.sequences.tokenizer_files import tokenizer_files
from pipeline.storage.files import file_sha256
from pipeline.storage.manifests import MANIFEST, read_manifest
from tasks.finetuning import VERSION
from tasks.finetuning.epochs import EpochTraining
from tasks.finetuning.inference import outputs_of
from tasks.finetuning.prepare import FineTuningSettings, Prepared, prepare
from tasks.finetuning.registry import TASKS
from tasks.finetuning.results import configuration, finished_metrics, measure, write
from tasks.finetuning.variants import VARIANTS
from tasks.io.annotations import entities_sha256
from tasks.io.data_folder import split_files
from tasks.io.probabilities import calibration
from tasks.task import PROFILES, Hyperparameters, Outputs

logger = logging.getLogger(__name__)
LITTLE = 0.2  # an F1 below this is said; with less than a ninth of the entities found it is always below

NAMES = ("task", "variant", "preset", "profile", "seed")  # with which metrics and configuration begin

Choice = TypeVar("Choice")


def finetune(task: str, data: Path, output: Path, settings: FineTuningSettings) -> dict[str, Any]:
    """Fine-tune on `data`/{train,dev,test}.*, score dev and test, and return the metrics.

    The classes are those of a file `labels.*` or `rel2id.json` in `data` (names one a line, a JSON list, or a
    JSON object of name -> number), or else what the task makes of the splits.

    Writes model.safetensors, config.json, metrics.json, training.jsonl, predictions-{dev,test} in the task's own
    format and a copy of the tokenizer into `output`: the same bytes for the same arguments on the same machine. Another
    run's result stays in `output` until this one's is written.

    A checkpoint stands in `output` after each epoch and, within one, when it is time or SIGTERM came. The same call
    goes on from it; a finished one is not done again. Raises: ValueError for what is unknown or cannot be read, where
    another run trains in `output` or has left a checkpoint there and, after all is written, for a model that predicts
    nothing at all on dev and test, unless that is allowed; Stopped after SIGTERM.
    """
    check_seed(settings.seed)
    chosen = _choose("task", task, TASKS)
    row = _choose("variant", settings.variant, VARIANTS)
    _choose("profile", settings.profile, dict.fromkeys(PROFILES))
    hyperparameters = changed(_choose("preset", settings.preset, chosen.PRESETS), settings.changes)
    identity = identity_of(task, data, hyperparameters, settings)
    if metrics := finished_metrics(output, identity):
        logger.info("%s: this fine-tuning is finished already", output)
        remove_leftover(output / CHECKPOINTS)
    else:
        kept = tokenizer_contents(settings.tokenizer)  # one that cannot be kept is refused before the work
        track = find_tracker(settings.tracker)
        run = prepare(chosen, row, hyperparameters, data, settings)
        ranks = Ranks(device=torch.device(run.device))
        checkpoints = Checkpoints(output, identity, settings.checkpoint_minutes, ranks)
        training = EpochTraining(run, checkpoints, track)
        with hold(checkpoints.folder):
            metrics = train_and_write(training, output, kept)
            shutil.rmtree(checkpoints.folder, ignore_errors=True)
    name = f"{task}, variant {settings.variant}"
    report(name, metrics, hyperparameters, allowed=settings.allow_no_predictions)
    return metrics


def identity_of(
    task: str, data: Path, hyperparameters: Hyperparameters, settings: FineTuningSettings
) -> dict[str, Any]:
    """Return what a run is recognised by: all that decides its bytes, of files the SHA-256."""
    if settings.mentions:
        read_manifest(str(settings.mentions))  # which says what is wrong with another folder
    words = tokenizer_files(settings.tokenizer)
    return {
        "version": VERSION,
        "task": task,
        **{name: getattr(settings, name) for name in NAMES[1:]},
        "negative_label": settings.negative_label,
        "hyperparameters": asdict(hyperparameters),
        **({} if settings.keeps_weights else {"keeps_weights": False}),
        **({"tag_column": settings.tag_column} if settings.tag_column else {}),
        "data": {name: file_sha256(str(path)) for name, path in split_files(data).items()},
        "weights": fingerprint_model(str(settings.weights)),
        "tokenizer": {name: file_sha256(str(path)) for name, path in words.items()},
        **({"mentions": file_sha256(str(settings.mentions / MANIFEST))} if settings.mentions else {}),
    }


def train_and_write(training: EpochTraining, output: Path, tokenizer: Mapping[str, bytes]) -> dict[str, Any]:
    """Trains, moves the classifier's bias, fits the temperature, scores, writes the files, and returns the metrics.

    `tokenizer` are the files of the copy of that.
    """
    run, identity = training.run, training.checkpoints.run
    names, mentions = {name: identity[name] for name in NAMES}, run.settings.mentions
    table = {"entities_sha256": entities_sha256(mentions)} if mentions else {}
    training.train()
    outputs = outputs_of(run, "dev")
    shift = shift_bias(run, outputs) if run.settings.profile == "fixed" else {}
    if shift:  # computed again, and not added: bf16 rounds what the classifier gives
        outputs = outputs_of(run, "dev")
    fitted = calibration(run.task, outputs)
    predictions = {"dev": run.task.decode(outputs), "test": run.task.decode(outputs_of(run, "test"))}
    scores = measure(run, training.epochs, predictions)
    metrics = {**names, **scores, "bias_shift": shift, "calibration": fitted, "run": digest(identity)}
    config = {**names, TEMPERATURE: fitted["temperature"], **configuration(run), **table}
    write(run, output, config, metrics, training.history, predictions, tokenizer)
    return metrics


@torch.no_grad()
def shift_bias(run: Prepared, outputs: Outputs[Any, Any]) -> dict[str, float]:
    """Adds to the classifier's bias what the task says of dev's outputs; returns it by classes, without zeros."""
    shift = run.task.bias_shift(outputs)
    if shift is None:
        return {}
    bias = run.module.classifier.bias
    bias.add_(torch.from_numpy(shift).to(bias))
    return {label: each for label, each in zip(run.labels, shift.tolist(), strict=True) if each}


def changed(preset: Hyperparameters, changes: Mapping[str, Any]) -> Hyperparameters:
    """A preset with other values; a learning rate changes that of the classifier in the same proportion."""
    values = dict(changes)
    if "learning_rate" in changes and "head_learning_rate" not in changes:
        ratio = preset.head_learning_rate / preset.learning_rate
        values["head_learning_rate"] = changes["learning_rate"] * ratio
    return replace(preset, **values)


def report(name: str, metrics: Mapping[str, Any], hyper: Hyperparameters, *, allowed: bool) -> None:
    """Warns of each split where nothing can be found, nothing is predicted, or what is predicted is hardly better.

    Raises: ValueError where nothing is predicted on both, unless that is allowed, or neither has anything to be found.
    """
    rates = f"{hyper.learning_rate:g} and {hyper.head_learning_rate:g} (classifier)"
    run = f"{hyper.epochs} epochs at learning rates {rates}"
    splits = {split: metrics[split] for split in ("dev", "test")}
    has_gold = {split: bool(scores.get("gold", scores.get("questions"))) for split, scores in splits.items()}
    if not allowed and any(has_gold.values()) and not any(scores["predicted"] for scores in splits.values()):
        raise ValueError(
            f"{name}: NOTHING is predicted on dev and test: the model has not learnt the task in {run}; take higher "
            "ones or more epochs (the preset small-encoder for small encoders), or allow it "
            "(fine_tuning.allow_no_predictions)"
        )
    for split, scores in splits.items():
        if not has_gold[split]:
            logger.warning(
                "%s: %s has nothing to be found, so that its scores are 0 whatever the model predicts%s",
                name, split, ": they cannot choose an epoch, and the last one is kept" if split == "dev" else "",
            )  # fmt: skip
        elif not scores["predicted"]:
            logger.warning(
                "%s: NOTHING is predicted on %s: the model has not learnt the task; "
                "a higher learning rate or more epochs may help", name, split
            )  # fmt: skip
        elif "gold" in scores and scores["f1"] < LITTLE:
            logger.warning(
                "%s: on %s the model is hardly better than one that predicts nothing: F1 %.1f %%, %d predicted, "
                "%d of them right, of %d that are there, after %s; more epochs, higher rates or more examples may help",
                name, split, 100 * scores["f1"], scores["predicted"], scores["correct"], scores["gold"], run,
            )  # fmt: skip


def _choose(what: str, name: str, choices: Mapping[str, Choice]) -> Choice:
    if name not in choices:
        raise ValueError(f"{what} {name!r} is unknown; expected one of {', '.join(choices)}")
    return choices[name]
