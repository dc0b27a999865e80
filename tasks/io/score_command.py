"""The command line that all tasks share: `python -m tasks.<task> score GOLD PREDICTIONS` prints JSON."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


def score_command(
    program: str,
    score_files: Callable[..., dict[str, Any]],
    options: Mapping[str, tuple[str, str]],
    arguments: Sequence[str] | None,
) -> None:
    """Prints what `score_files(gold, predictions, **options)` gives; an error is one line and status 1.

    `options` are texts, empty unless given: the flag with the keyword's name and the help.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description="Scores without a model.")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("score", help="compare a file of predictions with a file of gold labels")
    command.add_argument("gold", type=Path)
    command.add_argument("predictions", type=Path)
    for flag, (name, help_text) in options.items():
        command.add_argument(flag, dest=name, default="", help=help_text)
    values = vars(parser.parse_args(arguments))
    try:
        scores = score_files(values.pop("gold"), values.pop("predictions"), **values)
        print(json.dumps(scores, indent=2, ensure_ascii=False))
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
