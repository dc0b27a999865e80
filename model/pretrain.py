"""Pretraining without Luigi: `python -m model.pretrain SEQUENCES OUTPUT`."""

import argparse
import json
import logging
import os
import sys
from dataclasses import asdict
from pathlib import Path

from model.data.masking import PROFILES
from model.pretraining.phases import Settings
from model.pretraining.recipes import PRECISIONS, RECIPES
from model.pretraining.run import DEFAULTS, pretrain
from model.pretraining.start import SCRATCH


def read_options(arguments: list[str] | None) -> argparse.Namespace:
    """The command line's options; their names are the parameters' of `pretrain` and `Settings`."""
    parser = argparse.ArgumentParser(
        prog="python -m model.pretrain",
        description="Pretrain on a folder of BuildSequences, or go on where a run of the same options ended. "
        "`torchrun --nproc-per-node N -m model.pretrain ...` shares the work among N processes.",
    )
    add = parser.add_argument
    add("sequences", type=Path, help="folder of BuildSequences")
    add("output", type=Path, help="folder for the weights, the figures and the checkpoints")
    add("--preset", choices=RECIPES, default="base", help="sizes and hyper-parameters (default: %(default)s)")
    add("--base-model", default=SCRATCH, help="a model whose words to start from (default: %(default)s)")
    add("--no-entities", dest="entities", action="store_false", help="the baseline of masked words alone")
    add("--profile", choices=PROFILES, default="fixed", help="paper: as the authors' code (default: fixed)")
    add("--seed", type=int, default=42, help="of weights, order, masks and dropout (default: %(default)s)")
    add("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    add(
        "--tokens-per-batch",
        type=int,
        default=0,
        help="tokens of a micro-batch (0: the preset's number of sequences)",
    )
    add("--precision", choices=PRECISIONS, default="float32", help="of matrix products (default: float32)")
    add("--gradient-checkpointing", action="store_true", help="less memory for more work")
    add("--compile", dest="compiled", action="store_true", help="have torch compile the encoder")
    add(
        "--commonest",
        type=Path,
        help="labels that the mention table gives to held-out mentions, to evaluate beside",
    )
    add("--evaluate-every", type=int, help="steps between evaluations (0: none; default: as checkpoints)")
    add("--workers", type=int, default=0, help="processes that prepare batches (default: %(default)s)")
    add(
        "--checkpoint-minutes",
        type=float,
        default=30.0,
        help="minutes between checkpoints, at most (default: 30)",
    )
    add("--checkpoints-kept", type=int, default=2, help="how many are kept (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.tokens_per_batch < 0 or options.workers < 0 or options.checkpoints_kept < 1:
        parser.error("--tokens-per-batch, --workers: 0 or more; --checkpoints-kept: 1 or more")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Pretrain as the command line says; prints the last figures as JSON."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    options = vars(read_options(arguments))
    settings = Settings(**{name: options.pop(name) for name in asdict(DEFAULTS)})
    try:
        figures = pretrain(
            options.pop("sequences"),
            options.pop("output"),
            **options,
            progress=sys.stderr.isatty(),
            settings=settings,
        )
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    if int(os.environ.get("RANK", 0)) == 0:
        print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
