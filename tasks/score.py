"""Scores without a model: `python -m tasks.score TASK GOLD PREDICTIONS` prints JSON."""

import argparse
import json
from collections.abc import Sequence

from tasks.finetuning.registry import TASKS
from tasks.io.arguments import OPTIONS, add_options, run


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the scores; an error is one line and status 1. Each task has a subcommand."""
    whole = argparse.ArgumentParser(prog="python -m tasks.score", description="Score predictions without a model.")
    commands = whole.add_subparsers(dest="task", required=True)
    for task in TASKS:
        command = commands.add_parser(task, help=f"compare predictions of {task} with gold labels")
        # Those of the task have the names of the keywords of its scores.
        add_options(command, "score_files", *({task} & OPTIONS.keys()))
    values = vars(whole.parse_args(arguments))
    score_files = TASKS[values.pop("task")].score_files

    def print_scores() -> None:
        scores = score_files(values.pop("gold"), values.pop("predictions"), **values)
        print(json.dumps(scores, indent=2, ensure_ascii=False), flush=True)

    run(print_scores)


if __name__ == "__main__":
    main()
