"""Pretraining without Luigi: `python -m model.pretrain SEQUENCES OUTPUT`.

What is trained is a preset's, with the values of a run file and of single options over its own.
"""

import argparse
import json
import logging
import os
import sys
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from model.data.masking import PROFILES
from model.pretraining.phases import Execution
from model.pretraining.recipes import HELP, RECIPES, SCRATCH, choose
from model.pretraining.run import DEFAULTS, pretrain


def read_value(text: str) -> tuple[str, Any]:
    """A name with its value of TOML; several values have commas between them."""
    name, is_given, value = text.partition("=")
    if not is_given:
        raise argparse.ArgumentTypeError(f"{text}: wanted NAME=VALUE, as steps=200")
    try:
        return name, tomllib.loads(f"value = [{value}]" if "," in value else f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name, value.split(",") if "," in value else value


def read_run(path: str) -> dict[str, Any]:
    """The preset and the table [pretraining] of a run file."""
    try:
        tables = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read as TOML ({error}); wanted a run file") from None
    named = {name: tables[name] for name in ("preset",) if name in tables}
    profile = {name: tables["corpus"][name] for name in ("profile",) if name in tables.get("corpus", {})}
    return named | profile | tables.get("pretraining", {})


def read_options(arguments: list[str] | None) -> argparse.Namespace:
    """The command line's options."""
    parser = argparse.ArgumentParser(
        prog="python -m model.pretrain",
        usage="%(prog)s SEQUENCES OUTPUT [options]",
        description="Pretrain on a folder of BuildSequences, or go on where a run of the same options ended. "
        "`torchrun --nproc-per-node N -m model.pretrain ...` shares the work among N processes.",
    )
    add = parser.add_argument
    add("sequences", type=Path, help="folder of BuildSequences")
    add("output", type=Path, help="folder for the weights, the figures and the checkpoints")
    add("--run", default="", metavar="FILE", help="run file: its preset, profile and table [pretraining]")
    add("--preset", choices=RECIPES, help="sizes and hyper-parameters (default: the run file's, or base)")
    add("--base-model", help=f"a model whose words to start from (default: the run file's, or {SCRATCH})")
    add("--profile", choices=PROFILES, help="paper: as the authors' code (default: the run file's, or fixed)")
    add("--seed", type=int, help="of weights, order, masks and dropout (default: the run file's, or 42)")
    add(
        "--set",
        dest="values",
        action="append",
        default=[],
        type=read_value,
        metavar="NAME=VALUE",
        help=f"a value of the recipe, over the run file's; several, of phases, with commas: {', '.join(HELP)}",
    )
    add("--no-entities", dest="entities", action="store_false", help="the baseline of masked words alone")
    add("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    labels = "labels that the mention table gives to held-out mentions, to evaluate beside"
    add("--commonest", type=Path, help=labels)
    add("--evaluate-every", type=int, help="steps between evaluations (0: none; default: as checkpoints)")
    add("--workers", type=int, help="processes that prepare batches (default: 2 for a GPU, else none)")
    minutes = "minutes between checkpoints, at most (default: 30)"
    add("--checkpoint-minutes", type=float, default=30.0, help=minutes)
    own = "your own function, which gets (figures, step) as TensorBoard does"
    add("--tracker", default="", metavar="MODULE:FUNCTION", help=own)
    options = parser.parse_args(arguments)
    if (options.workers or 0) < 0:
        parser.error("--workers: wanted 0 or more")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Pretrain with the options of the command line; print the last figures as JSON."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    options: dict[str, Any] = vars(read_options(arguments))
    execution = Execution(**{name: options.pop(name) for name in asdict(DEFAULTS)})
    places = options.pop("sequences"), options.pop("output")
    values = dict(options.pop("values"))
    try:
        run = read_run(path) if (path := options.pop("run")) else {}
        of_run = {"preset": "base", "base_model": SCRATCH, "profile": "fixed", "seed": 42}
        chosen = {name: run.pop(name, default) for name, default in of_run.items()}
        chosen |= {name: given for name in of_run if (given := options.pop(name)) is not None}
        preset, base_model = chosen.pop("preset"), chosen.pop("base_model")
        entities = options.pop("entities")
        configuration = choose(preset, {**run, **values}, base_model=base_model, entities=entities)
        figures = pretrain(
            *places, configuration, **{**options, **chosen}, progress=sys.stderr.isatty(), execution=execution
        )
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    if int(os.environ.get("RANK", 0)) == 0:
        print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
