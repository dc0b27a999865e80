"""Pretraining without Luigi: `python -m model.pretrain SEQUENCES OUTPUT`.

What is trained is a preset's, with the values of a recipe's file and of single options over its own.
"""

import argparse
import json
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from model.data.masking import PROFILES
from model.pretraining.configuration import ENTITY_FLAGS, FLAGS, Flag, choose, flag_of
from model.pretraining.phases import Execution
from model.pretraining.recipes import AUTO, RECIPES, SCRATCH
from model.pretraining.run import DEFAULTS, pretrain
from model.training.precision import PRECISIONS

COMPUTING = ("tokens_per_batch", "precision", "gradient_checkpointing", "compiled")  # values of a recipe, too


def reader(flag: Flag) -> Callable[[str], Any]:
    """Return a function that reads the flag's value, or a list of several, from a text."""
    convert: Any = flag.kind if isinstance(flag.kind, type) else str
    kind = {int: "a whole number", float: "a number"}.get(convert, "a word")

    def read(text: str) -> Any:
        try:
            values = [convert(each.strip()) for each in text.split(",")]
        except ValueError:
            values = []
        if not values or (len(values) > 1 and not flag.each_phase):
            wanted = f"{kind}{', or several with commas between them' * flag.each_phase}"
            raise argparse.ArgumentTypeError(f"{text}: wanted {wanted}")
        return values if flag.each_phase else values[0]

    return read


def add_computing(add: Callable[..., Any]) -> None:
    """Add the options of a run's device, precision and files, which are no part of the recipe."""
    add("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    tokens = "tokens of a micro-batch (0: a number of sequences, or as many as a GPU's memory takes)"
    add("--tokens-per-batch", type=int, help=tokens)
    products = "of matrix products (default: auto, bf16 where the GPU or the processor has it, else float32)"
    add("--precision", choices=(AUTO, *PRECISIONS), help=products)
    switch: dict[str, Any] = {"action": "store_const", "const": True}
    add("--gradient-checkpointing", **switch, help="less memory for more work")
    add("--compile", dest="compiled", **switch, help="have torch compile the layers, but attention")
    labels = "labels that the mention table gives to held-out mentions, to evaluate beside"
    add("--commonest", type=Path, help=labels)
    add("--evaluate-every", type=int, help="steps between evaluations (0: none; default: as checkpoints)")
    add("--workers", type=int, help="processes that prepare batches (default: 2 for a GPU, else none)")
    minutes = "minutes between checkpoints, at most (default: 30)"
    add("--checkpoint-minutes", type=float, default=30.0, help=minutes)
    own = "your own function, which gets (figures, step) as TensorBoard does"
    add("--tracker", default="", metavar="MODULE:FUNCTION", help=own)


def read_options(arguments: list[str] | None) -> argparse.Namespace:
    """The command line's options; their names are those of FLAGS, COMPUTING, and the parameters of `pretrain`."""
    parser = argparse.ArgumentParser(
        prog="python -m model.pretrain",
        usage="%(prog)s SEQUENCES OUTPUT [options]",
        description="Pretrain on a folder of BuildSequences, or go on where a run of the same options ended. "
        "`torchrun --nproc-per-node N -m model.pretrain ...` shares the work among N processes.",
    )
    add = parser.add_argument
    add("sequences", type=Path, help="folder of BuildSequences")
    add("output", type=Path, help="folder for the weights, the figures and the checkpoints")
    add("--preset", choices=RECIPES, default="base", help="sizes and hyper-parameters (default: %(default)s)")
    add("--recipe", default="", metavar="FILE", help="TOML file of values over the preset's")
    for name, flag in FLAGS.items():
        choices = None if isinstance(flag.kind, type) or flag.each_phase else flag.kind
        metavar = "N" if isinstance(flag.kind, type) else "KINDS"
        kind = {"choices": choices} if choices else {"type": reader(flag), "metavar": metavar}
        add(flag_of(name), **kind, help=flag.text)
    add("--base-model", default=SCRATCH, help="a model whose words to start from (default: %(default)s)")
    add("--no-entities", dest="entities", action="store_false", help="the baseline of masked words alone")
    add("--profile", choices=PROFILES, default="fixed", help="paper: as the authors' code (default: fixed)")
    add("--seed", type=int, default=42, help="of weights, order, masks and dropout (default: %(default)s)")
    add_computing(add)
    options = parser.parse_args(arguments)
    if (options.workers or 0) < 0:
        parser.error("--workers: wanted 0 or more")
    if idle := [name for name in ENTITY_FLAGS if getattr(options, name) is not None and not options.entities]:
        parser.error(f"{flag_of(idle[0])}: means nothing with --no-entities; leave one of them out")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Pretrain with the options of the command line; print the last figures as JSON."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    options = vars(read_options(arguments))
    execution = Execution(**{name: options.pop(name) for name in asdict(DEFAULTS)})
    given = {name: options.pop(name) for name in (*FLAGS, *COMPUTING)}
    flags = {name: value for name, value in given.items() if value is not None}
    of_configuration = {name: options.pop(name) for name in ("base_model", "entities")}
    try:
        configuration = choose(
            options.pop("preset"), file=options.pop("recipe"), flags=flags, **of_configuration
        )
        places = options.pop("sequences"), options.pop("output")
        figures = pretrain(
            *places, configuration, **options, progress=sys.stderr.isatty(), execution=execution
        )
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    if int(os.environ.get("RANK", 0)) == 0:
        print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
