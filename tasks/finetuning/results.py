"""The folder of a finished fine-tuning: its metrics, configuration, predictions and weights."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from model.files import WEIGHTS, read_json, write_aside, write_tensors
from model.training.checkpoints import digest
from tasks.finetuning import TOKENIZER
from tasks.finetuning.epochs import best_epoch
from tasks.finetuning.prepare import Prepared

METRICS = "metrics.json"


def finished_metrics(output: Path, identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """The metrics in `output` where they, which are written last, are those of this very run."""
    if not (output / METRICS).is_file():
        return None
    metrics = read_json(output / METRICS)
    return metrics if metrics.get("run") == digest(identity) else None


def measure(
    run: Prepared, epochs: Sequence[Mapping[str, Any]], predictions: Mapping[str, Sequence[Any]]
) -> dict[str, Any]:
    """The scores of the kept epoch, how dev went epoch by epoch, and what the data sets hold."""
    score = run.task.score
    scores = {name: score(run.datasets[name], each, run.labels, run.negative) for name, each in predictions.items()}
    kept = best_epoch(run, epochs) if run.keeps_best_epoch else epochs[-1]
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


def configuration(run: Prepared) -> dict[str, Any]:
    """All that the run's result depends on besides the files, resolved."""
    return {
        **asdict(run.variant),
        "labels": run.labels,
        "negative_label": run.negative,
        "hyperparameters": asdict(run.hyperparameters),
        "model": asdict(run.module.luke.config),
    }


def write(
    run: Prepared,
    output: Path,
    config: Mapping[str, Any],
    metrics: Mapping[str, Any],
    history: Sequence[Mapping[str, Any]],
    predictions: Mapping[str, Sequence[Any]],
    tokenizer: Mapping[str, bytes],
) -> None:
    """Writes the run's files in place of another run's: each appears complete or not at all, the metrics last.

    `tokenizer` are the files of its copy.
    """
    records = "".join(json.dumps(record) + "\n" for record in history)
    texts = {"config.json": json.dumps(config, indent=2) + "\n", "training.jsonl": records}
    for split, found in predictions.items():
        lines = run.task.prediction_lines(run.datasets[split], found)
        texts[f"predictions-{split}{run.task.PREDICTIONS_SUFFIX}"] = "\n".join(lines) + "\n"
    texts[METRICS] = json.dumps(metrics, indent=2) + "\n"
    files = {f"{TOKENIZER}/{name}": content for name, content in tokenizer.items()}
    files |= {name: text.encode() for name, text in texts.items()}
    for name in (METRICS, WEIGHTS):
        (output / name).unlink(missing_ok=True)  # another run's
    shutil.rmtree(output / TOKENIZER, ignore_errors=True)  # another format's files would go before these
    (output / TOKENIZER).mkdir(parents=True)
    if run.settings.keeps_weights:
        write_tensors(output / WEIGHTS, run.module.state_dict())
    for name, content in files.items():
        write_aside(output / name, partial(Path.write_bytes, data=content))
