"""Scores without a model: `python -m tasks.score TASK GOLD PREDICTIONS` prints JSON."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from tasks.finetuning.registry import TASKS
from tasks.io.arguments import run

# The flags of each task, whose names are those of the keywords of its scores, with their help.
OPTIONS = {
    "ner": {
        "--tag-column": "where the gold file has its tags: a column's number (from 1, or -1 for the last) or its name "
        "in the first line, a field of JSON or a table, or a key in MISC of CoNLL-U (default: the last column, "
        "ner_tags or NER)",
        "--predicted-column": "where the predictions have their tags, likewise",
    },
    "entity_typing": {"--labels": "file with types to score (default: the nine general ones)"},
    "relation_classification": {
        "--negative-label": "class that is not scored (default: no_relation, Other, NA or None)"
    },
}


def parser() -> argparse.ArgumentParser:
    """Return the command line, with a subcommand for each task."""
    whole = argparse.ArgumentParser(prog="python -m tasks.score", description="Score predictions without a model.")
    commands = whole.add_subparsers(dest="task", required=True)
    for task in TASKS:
        command = commands.add_parser(task, help=f"compare predictions of {task} with gold labels")
        command.add_argument("gold", type=Path, help="file with the right answers")
        command.add_argument("predictions", type=Path, help="file with the answers to score")
        for flag, text in OPTIONS.get(task, {}).items():
            command.add_argument(flag, default="", help=text)
    return whole


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the scores; an error is one line and status 1."""
    values = vars(parser().parse_args(arguments))
    score_files = TASKS[values.pop("task")].score_files

    def print_scores() -> None:
        scores = score_files(values.pop("gold"), values.pop("predictions"), **values)
        print(json.dumps(scores, indent=2, ensure_ascii=False), flush=True)

    run(print_scores)


if __name__ == "__main__":
    main()
