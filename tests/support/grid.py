"""Tiny weights for every kind that a variant starts from, and stages that run in this process."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasks.finetuning.variants import WEIGHTS
from tests.support.fine_tuned import EXAMPLES, pretrained
from workflows.base.stage import Stage
from workflows.run.tables import TASKS


def experiments(folder: Path, tasks: Sequence[str] = TASKS, weights: Sequence[str] = WEIGHTS) -> dict[str, Any]:
    """The tables of a run on the examples, and of tiny weights, each in a folder with its tokenizer."""
    for kind in WEIGHTS:
        pretrained(folder / kind)
        for path in (folder / kind / "tokenizer").iterdir():
            path.rename(folder / kind / "weights" / path.name)
    given = {kind: str(folder / kind / "weights") for kind in weights}
    data = {task: str(EXAMPLES / task) if task in tasks else "none" for task in TASKS}
    return {
        "fine_tuning": {"data": data, "weights": given, "preset": "tiny"}, "machine": {"device": "cpu"},
    }  # fmt: skip


def run_here(stages: Sequence[Stage], devices: Sequence[str]) -> dict[Stage, str]:
    """Do as `workflows.engines.workers.run`, plainly and in this process, whose patches hold."""
    failures = {}
    for stage in dict.fromkeys(stages):
        if not stage.complete():
            try:
                stage.run()
            except (ValueError, OSError) as error:
                failures[stage] = str(error)
    return failures
