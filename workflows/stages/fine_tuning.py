"""Fine-tuning one task."""

import os
from abc import abstractmethod
from pathlib import Path
from typing import Any

from pipeline import storage
from tasks import finetuning
from tasks.presets import of_task
from workflows.base import terminal
from workflows.base.stage import Result
from workflows.run.kinds import AUTO
from workflows.stages.task_stage import TaskStage

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
            changes={**self.setting(), "patience": self.tuning.patience, **self.computing()},
            device=self.device(),
            negative_label=self.label_of_no_relation(),
            tag_column=self.column_of_tags(),
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
        return {name: value for name, value in values.items() if value not in (AUTO, of_preset.get(name))}

    def bytes_parameters(self) -> dict[str, Any]:
        return super().bytes_parameters() | self.setting()
