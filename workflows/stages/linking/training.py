"""What FineTune does for the task entity_disambiguation."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline import storage
from workflows.base import terminal
from workflows.base.stage import Stage, given_manifest
from workflows.engines import devices
from workflows.settings.fine_tuning import LinkerSettings
from workflows.stages.linking.documents import (
    HELD_OUT_DOCUMENTS,
    TRAIN_DOCUMENTS,
    BuildDocuments,
    documents_identity,
)
from workflows.stages.pretraining import TorchStage
from workflows.stages.tables import BuildMentionTable

DISAMBIGUATION = "entity_disambiguation"  # a task of FineTune
LINKER_ALONE = ("masked_share", "prior_weight", "softmax_weight", "own_links")


class LinkerTraining(LinkerSettings, TorchStage):
    """What FineTune does for the task entity_disambiguation; all else it leaves to the next class.

    The documents are files in `--data`, or pages of the dump. The candidates are a mention table's, and the model keeps
    its entities and the head that predicts them.
    """

    task: Any  # of TaskSettings, as all that follow
    variant: Any
    seed: Any
    data: Any
    mentions: Any
    negative_label: Any
    preset_name: Callable[[], str]
    weights_folder: Callable[[], str]
    computing: Callable[[], dict[str, Any]]

    @property
    def is_linker(self) -> bool:
        return bool(self.task == DISAMBIGUATION)

    def requires(self) -> dict[str, Stage]:
        stages = super().requires()
        if self.is_linker:
            missing = [] if self.mentions else [BuildMentionTable]
            stages |= self.cloned(*missing, *([] if self.data else [BuildDocuments]))
        return stages

    def check_needs(self) -> None:
        if not self.is_linker:
            for name in LINKER_ALONE:
                if getattr(self, name) != getattr(type(self), name)._default:
                    flag = f"--{name.replace('_', '-')}"
                    raise ValueError(f"{flag}: of the task {DISAMBIGUATION} alone; leave it out")
        elif self.variant != "luke":
            raise ValueError(
                f"--variant {self.variant}: {DISAMBIGUATION} asks a pretrained LUKE for its entities; wanted luke"
            )
        elif self.negative_label:
            raise ValueError(
                f"--negative-label {self.negative_label}: relations alone have one; leave it out"
            )
        elif self.mentions and not self.data:
            raise ValueError(
                f"--mentions {self.mentions}: without --data the documents are pages of the dump, of which its own "
                "table has counted the links; leave it out, or give --data"
            )
        elif self.mentions:
            given_manifest("--mentions", self.mentions, "BuildMentionTable")
        super().check_needs()

    def documents(self) -> dict[str, str]:
        """The files of documents by their splits. Raises: ValueError where there is none."""
        from tasks.io.data_folder import split_file

        if not self.data:
            folder = self.clone(BuildDocuments).folder
            return {
                "train": storage.join(folder, TRAIN_DOCUMENTS),
                "dev": storage.join(folder, HELD_OUT_DOCUMENTS),
            }
        has_test = any(Path(self.data).glob("test.*"))
        splits = ("train", "dev", "test") if has_test else ("train", "dev")
        return {split: str(split_file(Path(self.data), split)) for split in splits}

    def document_identity(self) -> dict[str, Any]:
        """What tells given documents from others; a stage's are told by its own."""
        return (
            {split: documents_identity(path, "--data") for split, path in self.documents().items()}
            if self.data
            else {}
        )

    def train(self, folder: Path, setting: dict[str, Any], *, keeps_weights: bool) -> dict[str, Any]:
        """Trains the linker with the preset's hyperparameters or those of `setting`, and returns the metrics."""
        from tasks.finetuning.finetune import changed
        from tasks.linker_training import training
        from tasks.task import presets

        paths = {split: Path(path) for split, path in self.documents().items()}
        if not self.data and not paths["dev"].stat().st_size:
            raise ValueError(
                f"--held-out {self.held_out}: no page of the dump is held out, to choose the best epoch; give a larger "
                "share, or --data"
            )
        hyper = changed(presets(DISAMBIGUATION)[self.preset_name()], setting)
        names = ("learning_rate", "batch_size", "epochs")
        settings = training.LinkerSettings(
            **{name: getattr(hyper, name) for name in names},
            **self.values("masked_share", "prior_weight", "softmax_weight", "patience"),
            **self.computing(),
            own_links=self.own_links or not self.data,
        )
        return training.train_linker(
            paths["train"],
            paths["dev"],
            Path(self.mentions or self.clone(BuildMentionTable).folder),
            Path(self.weights_folder()),
            Path(self.tokenizer_folder()),
            folder,
            settings,
            test=paths.get("test"),
            seed=self.seed,
            device=devices.torch_device(self.device),
            checkpoint_minutes=self.checkpoint_minutes,
            progress=terminal.on_terminal(),
            keeps_weights=keeps_weights,
            tracker=self.tracker,
        )
