"""The command that all tasks share: `python -m tasks.<task> score GOLD PREDICTIONS` prints scores as JSON."""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tasks.io.arguments import stop

NO_OPTIONS: Mapping[str, tuple[str, str]] = MappingProxyType({})


def score_command(
    program: str,
    score_files: Callable[..., dict[str, Any]],
    options: Mapping[str, tuple[str, str]] = NO_OPTIONS,
) -> Callable[..., None]:
    """A `main`, called with the command line's words (None: those of the process); an error is one line and status 1.

    It prints what `score_files(gold, predictions, **options)` gives.

    Args:
        program: the module, for the usage.
        score_files: a task's scores of two files.
        options: the flags of the task, each with the keyword of `score_files` that takes it and its help. Their
            values are texts, empty unless given.
    """

    def main(arguments: Sequence[str] | None = None) -> None:
        parser = argparse.ArgumentParser(prog=f"python -m {program}", description="Scores without a model.")
        command = parser.add_subparsers(required=True).add_parser(
            "score", help="compare a file of predictions with a file of gold labels"
        )
        command.add_argument("gold", type=Path, help="file with the right answers")
        command.add_argument("predictions", type=Path, help="file with those to score")
        for flag, (keyword, help_text) in options.items():
            command.add_argument(flag, dest=keyword, default="", help=help_text)
        values = vars(parser.parse_args(arguments))
        try:
            scores = score_files(values.pop("gold"), values.pop("predictions"), **values)
            print(json.dumps(scores, indent=2, ensure_ascii=False), flush=True)
        except (ValueError, OSError) as error:
            stop(error)

    return main
