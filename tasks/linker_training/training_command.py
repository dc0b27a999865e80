"""The command line of training: `python -m tasks.entities train`."""

import argparse
import json
import logging
import sys
from dataclasses import fields
from pathlib import Path

from model.files import CONFIG
from model.pretraining.recipes import PRECISIONS
from tasks.entities.disambiguation.entity_model import model_folder
from tasks.finetuning.finetune import CHECKPOINTS
from tasks.finetuning.results import METRICS
from tasks.io.arguments import positive, share, weight
from tasks.linker_training.training import LinkerSettings, train_linker


def add_training(train: argparse.ArgumentParser) -> None:
    """What a linker is trained on, and how."""
    train.set_defaults(run=run_train)
    defaults = LinkerSettings()
    for name, text in (
        ("train", "documents with titles, in any of the formats"),
        ("dev", "others, by which the best epoch is chosen"),
        ("model", "as that of link; what is written is of its kind"),
        ("output", "folder for the model, which link takes; the same call goes on where it was interrupted"),
    ):
        train.add_argument(f"--{name}", type=Path, required=True, help=text)
    train.add_argument(
        "--tokenizer", type=Path, help="the model's tokenizer, where its folder has none (Pretrain)"
    )
    train.add_argument(
        "--test", type=Path, help="others, which are scored by the model that is kept, and change nothing"
    )
    train.add_argument(
        "--own-links",
        action="store_true",
        help="the documents are pages of the table's dump: what each links itself does not count for it",
    )
    for name, kind, text in (
        ("learning-rate", weight, "peak"),
        ("batch-size", positive, "windows of a step"),
        ("epochs", positive, "passes over the documents"),
        (
            "masked-share",
            share,
            "of a window's mentions, those that are asked for; others show their entities",
        ),
        ("prior-weight", weight, "of the logarithm of the prior; give link the same"),
        (
            "softmax-weight",
            weight,
            "of the loss over all entities of the model, beside that over a mention's candidates",
        ),
    ):
        default = getattr(defaults, name.replace("-", "_"))
        train.add_argument(f"--{name}", type=kind, default=default, help=f"{text} (default: %(default)s)")
    train.add_argument("--tokens-per-batch", type=int, default=0, help="computed at once; 0: a batch")
    train.add_argument(
        "--patience", type=int, default=0, help="epochs without a better score that end training; 0: none do"
    )
    train.add_argument(
        "--gradient-checkpointing", action="store_true", help="less memory: inner states are computed twice"
    )
    train.add_argument("--precision", choices=PRECISIONS, default=defaults.precision)
    train.add_argument("--seed", type=positive, default=42)
    train.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")


def run_train(options: argparse.Namespace) -> int:
    """Fine-tune a linker, and print its metrics."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    options.skips_wrong = options.on_error == "skip"
    values = {field.name: getattr(options, field.name) for field in fields(LinkerSettings)}
    model = model_folder(options.model)
    check_output(options.output)
    metrics = train_linker(
        options.train,
        options.dev,
        options.mentions,
        model,
        options.tokenizer or model,
        options.output,
        LinkerSettings(**values),
        test=options.test,
        seed=options.seed,
        device=options.device,
        progress=sys.stderr.isatty(),
    )
    print(json.dumps(metrics, indent=2))
    return 0


def check_output(output: Path) -> None:
    """Raises: ValueError for a folder with a model that no training of a linker has left there, which would be lost."""
    if (output / CONFIG).exists() and not any((output / name).exists() for name in (METRICS, CHECKPOINTS)):
        raise ValueError(
            f"{output}: holds another model ({CONFIG}); give a new folder for what training writes"
        )
