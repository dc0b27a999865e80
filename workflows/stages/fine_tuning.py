"""Fine-tuning one task, and the search for the best setting of a task and a variant."""

import itertools
import json
import os
from abc import abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline import storage
from tasks import finetuning
from tasks.presets import of_task
from workflows.base import terminal
from workflows.base.stage import Result, Stage, logger
from workflows.engines import workers
from workflows.run.kinds import AUTO
from workflows.run.tables import SEED
from workflows.stages.task_stage import TaskStage

BEST = "best.json"
TRIALS = "trials.jsonl"
SETTING = ("learning_rate", "batch_size", "epochs")


class FineTuningStage(TaskStage):
    """A fine-tuned task: weights, metrics and predictions."""

    FOLDER = "finetune"
    VERSION = finetuning.VERSION
    KEEPS = "unfinished"  # checkpoints

    @property
    def is_listed(self) -> bool:
        """The trials of a search keep no weights, and are nobody's result."""
        return not self.tuning.drop_weights

    def headline(self, manifest: storage.Manifest) -> str:
        scores = manifest.facts["metrics"]
        name = f"{self.task}, {self.variant}, seed {self.seed}"
        dev, test = (scores[split]["f1"] for split in ("dev", "test"))
        data = os.path.basename(os.path.normpath(self.data_folder()))
        folder = os.path.join(self.workdir, os.path.basename(self.folder))
        return f"{name}, on {data}: dev F1 {dev:.3f}, test F1 {test:.3f}, in {folder}"

    @abstractmethod
    def setting(self) -> dict[str, Any]:
        """The hyperparameters that replace the preset's."""

    def bytes_parameters(self) -> dict[str, Any]:
        optional = self.values("fine_tuning", "patience", "drop_weights")
        return super().bytes_parameters() | {name: value for name, value in optional.items() if value}

    def work(self) -> Result:
        from tasks.finetuning.finetune import finetune
        from tasks.finetuning.prepare import FineTuningSettings

        settings = FineTuningSettings(
            Path(self.weights_folder()),
            Path(self.tokenizer_folder()),
            **self.values("machine", "checkpoint_minutes", "tracker"),
            variant=self.variant,
            seed=self.seed,
            profile=self.corpus.profile,
            preset=self.preset_name(),
            changes={**self.setting(), **self.values("fine_tuning", "patience", "dropout"), **self.computing()},
            device=self.device(),
            **self.of_data(),
            mentions=self.mentions_folder(),
            allow_no_predictions=self._allows_no_predictions(),
            keeps_weights=not self.tuning.drop_weights,
            progress=terminal.on_terminal(),
        )
        figures = finetune(self.task, Path(self.data_folder()), Path(self.folder), settings)
        chosen = self.read_json("config.json")["hyperparameters"]
        return Result(self.described(), facts={"hyperparameters": chosen, "metrics": figures})


class FineTune(FineTuningStage):
    """A task fine-tuned with the preset's hyperparameters, or with those that are given."""

    def setting(self) -> dict[str, Any]:
        values = self.values("fine_tuning", *SETTING, "head_learning_rate")
        # What the preset has anyway is no other fine-tuning.
        is_open = self._is_at_hub(self.given_weights())
        of_preset = {} if is_open else of_task(self.task)[self.preset_name()]
        changes = {name: value for name, value in values.items() if value not in (AUTO, of_preset.get(name))}
        # Which would change in proportion.
        if "learning_rate" in changes and values["head_learning_rate"] != AUTO:
            changes["head_learning_rate"] = values["head_learning_rate"]
        return changes

    def bytes_parameters(self) -> dict[str, Any]:
        return super().bytes_parameters() | self.setting()


class RetriesFailures(Stage):
    """A stage that runs others: it is complete where none failed, or in the very run in which some did.

    So the stages downstream of it run, too, and the next run tries the failed ones again. `work` sets `_has_run`, and
    leaves the number of failures in the fact `failed`.
    """

    _has_run = False

    def is_done(self) -> bool:
        return self.is_current() and (self._has_run or not self.manifest().facts["failed"])


class Tune(RetriesFailures, TaskStage):
    """The paper's grid search on dev (appendix, "Details of Downstream Experiments"), with early stopping.

    Writes `best.json`, the setting with the best score (of equal ones the first of the grid), and `trials.jsonl`, a
    line for each setting. Test scores are in neither. A fine-tuning that fails does not stop the others, and the next
    call tries it again.
    """

    FOLDER = "tune"
    VERSION = 4

    def headline(self, manifest: storage.Manifest) -> str:
        facts = manifest.facts
        setting = ", ".join(f"{name} {facts['setting'][name]:g}" for name in SETTING)
        return f"{self.task}, {self.variant}: dev {facts['metric']} {facts['dev']:.3f} with {setting}"

    def bytes_parameters(self) -> dict[str, Any]:
        searched = self.values("fine_tuning", "learning_rates", "batch_sizes", "epoch_counts")
        grid = {name: list(values) for name, values in searched.items()}
        trained = {"fine_tune": FineTune.VERSION}  # what the fine-tunings that are compared do
        return super().bytes_parameters() | grid | trained | self.values("fine_tuning", "tuning_patience")

    def grid(self) -> list[dict[str, Any]]:
        """The grid, as rows of learning rate, batch size and epochs."""
        tried = self.tuning.learning_rates, self.tuning.batch_sizes, self.tuning.epoch_counts
        return [dict(zip(SETTING, values, strict=True)) for values in itertools.product(*tried)]

    def trials(self) -> list[FineTune]:
        """A fine-tuning for each setting, whose weights are not kept."""
        common: dict[str, Any] = {
            "drop_weights": True,
            "allow_no_predictions": True,
            "patience": self.tuning.tuning_patience,
            "head_learning_rate": AUTO,  # in proportion to the rate that is tried
        }
        changed = (replace(self.tuning, **setting, **common) for setting in self.grid())
        return [self.clone(FineTune, settings=replace(self.settings, fine_tuning=each)) for each in changed]

    def work(self) -> Result:
        from tasks.finetuning.registry import TASKS as MODULES

        metric = MODULES[self.task].DEV_METRIC
        trials = self.trials()
        failures = workers.run(trials, workers.torch_devices(self.settings.machine.device))
        self._has_run = True
        rows = []
        for setting, trial in zip(self.grid(), trials, strict=True):
            row: dict[str, Any] = {"setting": setting, "folder": os.path.basename(trial.folder)}
            if reason := failures.get(trial):
                rows.append(row | {"failed": reason})
            else:
                figures = trial.manifest().facts["metrics"]
                kept = {"epochs_trained": len(figures["epochs"]), "kept_epoch": figures["kept_epoch"]}
                rows.append(row | {f"dev_{metric}": figures["dev"][metric], **kept})
        finished = [row for row in rows if "failed" not in row]
        if not finished:
            raise ValueError(f"all {len(rows)} fine-tunings failed, the first: {rows[0]['failed']}")
        best = max(finished, key=lambda row: row[f"dev_{metric}"])
        if not best[f"dev_{metric}"] and not self._allows_no_predictions():
            raise ValueError(
                f"{self.task}, variant {self.variant}: no setting has any {metric} on dev, and none is the best; try "
                "higher learning_rates or epoch_counts, or allow it (fine_tuning.allow_no_predictions=true)"
            )
        if failures:
            logger.warning("%d of %d fine-tunings failed; %s says why", len(failures), len(rows), TRIALS)
        chosen = {"metric": metric, "dev": best[f"dev_{metric}"], "setting": best["setting"]}
        facts = {**chosen, "failed": len(failures)}
        best_text = json.dumps({"task": self.task, "variant": self.variant, **chosen}, indent=1) + "\n"
        self.write_texts({BEST: best_text, TRIALS: "".join(json.dumps(row) + "\n" for row in rows)})
        drops = {"failed": len(failures)} if failures else {}
        return Result(self.described(), rows={"finished": len(finished)}, drops=drops, facts=facts)


class TunedFineTune(FineTuningStage):
    """A task fine-tuned with the best setting that Tune finds."""

    def tune(self) -> Tune:
        """The search, one for all seeds of fine-tuning."""
        return self.clone(Tune, seed=SEED)

    def requires(self) -> dict[str, Stage]:
        return {"Tune": self.tune(), **super().requires()}

    def setting(self) -> dict[str, Any]:
        setting: dict[str, Any] = self.tune().read_json(BEST)["setting"]
        return setting
