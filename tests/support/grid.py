"""Tiny weights for every kind that a variant starts from, and stages that run in this process."""

from collections.abc import Sequence
from pathlib import Path

from tasks.finetuning.variants import WEIGHTS
from tests.support.fine_tuned import EXAMPLES, pretrained
from workflows.base.experiment_file import TASKS
from workflows.base.stage import Stage


def experiments(folder: Path, tasks: Sequence[str] = TASKS, weights: Sequence[str] = WEIGHTS) -> str:
    """A TOML file of the examples and of tiny weights, each in a folder with its tokenizer."""
    for kind in WEIGHTS:
        pretrained(folder / kind)
        for path in (folder / kind / "tokenizer").iterdir():
            path.rename(folder / kind / "weights" / path.name)
    path = folder / "experiments.toml"
    path.write_text(
        "[data]\n"
        + "".join(f'{task} = "{EXAMPLES / task}"\n' for task in tasks)
        + "[weights]\n"
        + "".join(f'{kind} = "{kind}/weights"\n' for kind in weights)
    )
    return str(path)


def run_here(stages: Sequence[Stage], devices: Sequence[str]) -> dict[Stage, str]:
    """What `workflows.engines.workers.run` does, plainly and in this process, whose patches hold."""
    failures = {}
    for stage in dict.fromkeys(stages):
        if not stage.complete():
            try:
                stage.run()
            except (ValueError, OSError) as error:
                failures[stage] = str(error)
    return failures
