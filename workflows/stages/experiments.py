"""The grid of fine-tunings: task x variant x seed."""

import functools
import itertools
import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from model.pretraining.recipes import values_text
from pipeline import storage
from workflows.base.stage import Result, Stage, logger
from workflows.engines import workers
from workflows.stages.fine_tuning import FineTune, FineTuningStage, RetriesFailures, Tune, TunedFineTune
from workflows.stages.pages import FetchDump
from workflows.stages.pretraining import PretrainingStage, TorchStage, base_model_name
from workflows.stages.task_stage import Missing, TaskStage

EXPERIMENTS = "experiments.json"
NAME = ("task", "variant", "seed")  # of a cell
NOT_TUNED = ("extractive_qa",)  # the paper takes the values of Liu et al.


@dataclass(frozen=True)
class Cell:
    """A task, a variant and a seed: a fine-tuning, or what it lacks."""

    task: str
    variant: str
    seed: int
    stage: FineTuningStage | None = None
    missing: Missing | None = None


class FineTuneGrid(RetriesFailures, TorchStage):
    """Fine-tunes and scores every cell of the grid, on all devices; a cell that fails does not stop the others.

    Each cell is a stage FineTune with a folder of its own; `experiments.json` has a record of each, those without data
    or weights and those that failed included. The next call tries these again.
    """

    FOLDER = "experiments"
    TABLES = TaskStage.TABLES

    @functools.cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The grid in the order task, variant, seed; found once, so that one run has one grid."""
        tuning, cells = self.settings.fine_tuning, list[Cell]()
        for name in itertools.product(tuning.tasks, tuning.variants, tuning.seeds):
            kind = TunedFineTune if tuning.tuned and name[0] not in NOT_TUNED else FineTune
            stage: FineTuningStage = self.clone(kind, **dict(zip(NAME, name, strict=True)))
            try:
                _ = stage.data_folder(), stage.given_weights()
                cells.append(Cell(*name, stage))
            except Missing as missing:
                cells.append(Cell(*name, missing=missing))
        return tuple(cells)

    def stages(self) -> list[FineTuningStage]:
        """The cells that can be fine-tuned."""
        return [cell.stage for cell in self.cells if cell.stage]

    def parts(self) -> list[Stage]:
        return [*_tunes(self.stages()), *self.stages()]

    def requires(self) -> dict[str, Stage]:
        """The stages upstream of the cells, but for the searches: one that fails would stop all others."""
        types = [type(stage) for each in self.stages() for stage in each.requires().values()]
        return self.cloned(*(stage for stage in types if stage is not Tune))

    def bytes_parameters(self) -> dict[str, Any]:
        cells: list[Any] = []
        for cell in self.cells:
            made = (cell.stage.hash8, self.origin(cell.stage)) if cell.stage else (str(cell.missing),)
            cells.append([cell.task, cell.variant, cell.seed, *made])
        return {"cells": cells}

    def check_needs(self) -> None:
        super().check_needs()
        for reason in dict.fromkeys(str(cell.missing) for cell in self.cells if cell.missing):
            logger.warning("left out: %s", reason)
        if not self.stages():
            raise ValueError("no cell of the grid has both data and weights; see above")
        for stage in self.stages():
            if not stage.complete():
                stage.check_needs()

    def is_current(self) -> bool:
        """Return whether every cell that can be done is done, and is the one of the records."""
        if not super().is_current():
            return False
        done = {os.path.basename(stage.folder): stage for stage in self.stages()}
        return all(
            done[folder].complete() and storage.manifest_sha256(done[folder].folder) == sha256
            for folder, sha256 in self.manifest().facts["cells"].items()
        )

    def work(self) -> Result:
        failures: dict[FineTuningStage, str] = {}
        workers.free_device_memory()  # of a pretraining in this process
        for tune in _tunes(self.stages()):
            try:
                tune.run()
            except (ValueError, OSError) as error:
                logger.warning("%s", error)
                tuned = [stage for stage in self.stages() if _tunes([stage]) == [tune]]
                failures |= dict.fromkeys(tuned, f"Tune: {error}")
        ready = [stage for stage in self.stages() if stage not in failures]
        failures |= workers.run(ready, workers.torch_devices(self.settings.machine.device))
        self._has_run = True
        records = [self.record(cell, failures) for cell in self.cells]
        text = json.dumps({"cells": records}, indent=1, ensure_ascii=False) + "\n"
        self.write_texts({EXPERIMENTS: text})
        counts = Counter(record["state"] for record in records)
        finished = [stage for stage in self.stages() if stage not in failures]
        shas = {os.path.basename(stage.folder): storage.manifest_sha256(stage.folder) for stage in finished}
        rows, facts = {"done": counts.pop("done", 0)}, {"failed": len(failures), "cells": shas}
        return Result(self.described(), rows=rows, drops=dict(counts), facts=facts)

    def record(self, cell: Cell, failures: dict[FineTuningStage, str]) -> dict[str, Any]:
        """The record of a cell, as the report reads it."""
        record: dict[str, Any] = {name: getattr(cell, name) for name in NAME}
        record |= {"state": "done", "reason": "", "folder": "", "data": {"name": "", "is_example": False}}
        record |= {"weights": {}, "preset": "", "configuration": {}, "metrics": {}}
        if cell.missing:
            return record | {"state": cell.missing.state, "reason": str(cell.missing)}
        assert cell.stage
        record |= self.origin(cell.stage)
        own = record["weights"]["is_own"]
        parts = self.clone(FetchDump).manifest().facts["parts"] if own else []
        record["weights"]["corpus"] = ", ".join(part["name"] for part in parts)
        if reason := failures.get(cell.stage):
            return record | {"state": "failed", "reason": reason}
        files = {"configuration": "config.json", "metrics": "metrics.json"}
        return record | {key: cell.stage.read_json(name) for key, name in files.items()}

    def origin(self, stage: FineTuningStage) -> dict[str, Any]:
        """The data and the weights of a cell, so that nothing small is taken for the paper's."""
        given = stage.given_weights()
        pretraining = stage.requires().get("Pretrain")
        own = f"{type(pretraining).__name__}, preset {self.settings.preset}"
        if isinstance(pretraining, PretrainingStage) and (changes := pretraining.configuration.changes()):
            own += f" with {values_text(changes)}"
        return {
            "folder": os.path.basename(stage.folder),
            "data": {"name": base_model_name(stage.data_folder()), "is_example": stage.task not in stage.tuning.data},
            "weights": {
                "name": base_model_name(given) or own,
                "is_own": not given,
                "preset": "" if given else self.settings.preset,
                "base_model": "" if given else os.path.basename(os.path.normpath(self.base_model)),
            },
            "preset": "tuned" if isinstance(stage, TunedFineTune) else stage.preset_name(),
        }

    def finished(self) -> list[TaskStage]:
        """The searches and the cells that the last run's results are of."""
        folders = self.manifest().facts["cells"]
        done = [stage for stage in self.stages() if os.path.basename(stage.folder) in folders]
        return [*_tunes(done), *done]


def _tunes(stages: Iterable[FineTuningStage]) -> list[Tune]:
    """The searches that fine-tunings take their settings from, each once."""
    return list(dict.fromkeys(stage.tune() for stage in stages if isinstance(stage, TunedFineTune)))
