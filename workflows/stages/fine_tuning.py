"""Fine-tuning one task."""

import os
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from pipeline import storage
from tasks import finetuning
from workflows.base import parameters, terminal
from workflows.base.experiment_file import TASKS
from workflows.base.parameters import AUTO
from workflows.base.stage import Result
from workflows.engines import devices
from workflows.settings.fine_tuning import WeightSettings
from workflows.stages.linking.training import DISAMBIGUATION, LinkerTraining
from workflows.stages.task_stage import TaskStage

SETTING = ("learning_rate", "batch_size", "epochs")


class FineTuning(WeightSettings, TaskStage):
    """A fine-tuned task: weights, metrics and predictions."""

    FOLDER = "finetune"
    VERSION = finetuning.VERSION
    KEEPS = "unfinished"  # checkpoints

    patience = parameters.WholeNumber(
        default=0, description="epochs in a row without a better score on dev that end training; 0: none do"
    )

    def headline(self, manifest: storage.Manifest) -> str:
        scores = manifest.facts["metrics"]
        name = f"{self.task}, {self.variant}, seed {self.seed}"
        dev, test = (scores[split]["f1"] for split in ("dev", "test"))
        data = os.path.basename(os.path.normpath(self.data_folder()))
        return f"{name}, on {data}: dev F1 {dev:.3f}, test F1 {test:.3f}, in {os.path.relpath(self.folder)}"

    @abstractmethod
    def setting(self) -> dict[str, Any]:
        """The hyperparameters that replace the preset's."""

    def bytes_parameters(self) -> dict[str, Any]:
        optional = {"patience": self.patience, "drop_weights": self.drop_weights}
        return super().bytes_parameters() | {name: value for name, value in optional.items() if value}

    def work(self) -> Result:
        from tasks.finetuning.finetune import finetune

        figures = finetune(
            self.task,
            Path(self.data_folder()),
            Path(self.weights_folder()),
            Path(self.tokenizer_folder()),
            Path(self.folder),
            variant=self.variant,
            preset=self.preset_name(),
            seed=self.seed,
            device=devices.torch_device(self.device),
            profile=self.profile,
            progress=terminal.on_terminal(),
            negative_label=self.the_negative_label(),
            tag_column=self.the_tag_column(),
            checkpoint_minutes=self.checkpoint_minutes,
            mentions=self.mentions_folder(),
            allow_no_predictions=self._may_be_silent(),
            changes={**self.setting(), "patience": self.patience, **self.computing()},
            keeps_weights=not self.drop_weights,
            tracker=self.tracker,
        )
        return Result(self.described(), facts={"metrics": figures})


class FineTune(LinkerTraining, FineTuning):
    """A task fine-tuned with the preset's hyperparameters, or with those that are given.

    The task entity_disambiguation is trained on documents with titles, in any of their formats or, without --data, on
    pages of the dump.
    """

    ELSEWHERE: ClassVar[dict[str, str]] = {"--tuned": "TunedFineTune"}

    task = parameters.OneOf(*TASKS, DISAMBIGUATION, default="ner", description="the fine-tuning task")
    learning_rate = parameters.PositiveNumber(
        or_auto=True,
        default=AUTO,
        description="peak learning rate; the classifier's changes in proportion, unless it is given",
    )
    head_learning_rate = parameters.PositiveNumber(
        or_auto=True,
        default=AUTO,
        description="peak learning rate of the classifier; entity_disambiguation trains none",
    )
    batch_size = parameters.WholeNumber(least=1, or_auto=True, default=AUTO, description="examples of a step")
    epochs = parameters.WholeNumber(
        least=1, or_auto=True, default=AUTO, description="passes over the training data"
    )

    def check_needs(self) -> None:
        if self.is_linker and self.head_learning_rate != AUTO:
            raise ValueError(
                f"--head-learning-rate {self.head_learning_rate:g}: {DISAMBIGUATION} trains no classifier; leave it out"
            )
        super().check_needs()

    def setting(self) -> dict[str, Any]:
        values = self.values(*SETTING, "head_learning_rate")
        return {name: value for name, value in values.items() if value != AUTO}

    def data_identity(self) -> dict[str, Any]:
        if not self.is_linker:
            return super().data_identity()
        own = {"own_links": True} if self.own_links and self.data else {}
        return {
            "data": self.document_identity(),
            **self.values("masked_share", "prior_weight", "softmax_weight"),
            **own,
        }

    def bytes_parameters(self) -> dict[str, Any]:
        found = super().bytes_parameters() | self.setting()
        if self.is_linker:
            del found["profile"]  # it tells how the paper's five tasks are trained
        return found

    def work(self) -> Result:
        if not self.is_linker:
            return super().work()
        figures = self.train(Path(self.folder), self.setting(), keeps_weights=not self.drop_weights)
        return Result(self.described(), facts={"metrics": figures})

    def headline(self, manifest: storage.Manifest) -> str:
        if not self.is_linker:
            return super().headline(manifest)
        dev = manifest.facts["metrics"]["dev"]
        figures = dev["disambiguation"]["ambiguous"]
        return (
            f"{self.task}, seed {self.seed}: accuracy {dev['accuracy']:.1%} where the page is a candidate; of "
            f"{figures['mentions']:,} ambiguous mentions {figures['accuracy']:.1%}, by the prior {figures['prior']:.1%}"
        )
