"""A stage about one task and one variant: its data, and the weights that it starts from."""

import os
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import luigi

from model.hf import hub
from model.pretraining.recipes import SCRATCH
from pipeline import storage
from tasks import finetuning
from tasks.finetuning.variants import VARIANTS
from tasks.io.data_folder import SPLIT_NAMES
from workflows.base.stage import Stage, given_manifest
from workflows.run.kinds import AUTO, similar
from workflows.run.tables import SEED, TASKS, FineTuning
from workflows.stages import pretraining
from workflows.stages.pretraining import TorchStage
from workflows.stages.tables import BuildMentionTable

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OWN_WEIGHTS = ("luke", "roberta_extra_training")  # what the run pretrains
BASE_WIDTH, LARGE_WIDTH = 768, 1024  # hidden_size


class Missing(ValueError):
    """A fine-tuning that cannot be done for want of data or weights, which a grid shows as such."""

    def __init__(self, state: Literal["no data", "no weights"], message: str) -> None:
        super().__init__(message)
        self.state = state


class OneOf(luigi.Parameter[str]):
    """A parameter that is one of a few words."""

    def __init__(self, words: Iterable[str], default: str, description: str) -> None:
        self.words = tuple(words)
        super().__init__(default=default, description=f"{description}: {', '.join(self.words)}")

    def parse(self, text: str) -> str:
        return self.normalize(text)

    def normalize(self, text: str) -> str:
        if text not in self.words:
            raise ValueError(f"wanted {', '.join(self.words)}{similar(text, self.words)}")
        return text


class TaskStage(TorchStage):
    """A stage about one task and one variant."""

    TABLES = (*TorchStage.TABLES, "fine_tuning")

    task = OneOf(TASKS, "ner", "the task")
    variant = OneOf(VARIANTS, "luke", "weights, entities and attention, by tasks/finetuning/variants.py")
    seed = luigi.IntParameter(default=SEED, description="seed of fine-tuning")

    @property
    def tuning(self) -> FineTuning:
        """The values of the run for fine-tuning."""
        return self.settings.fine_tuning

    @property
    def title(self) -> str:
        return f"{type(self).__name__} ({self.task}, {self.variant}, seed {self.seed})"

    def preset_name(self) -> str:
        """The preset of fine-tuning. Raises: ValueError where weights are given and their width cannot be read."""
        if self.tuning.preset != AUTO:
            return self.tuning.preset
        if self._named_weights():
            from model.hf.load import read_any_config

            config, _ = read_any_config(self.weights_folder(), with_heads=False)
            if config.hidden_size < BASE_WIDTH:
                return "small-encoder"
            return "base" if config.hidden_size < LARGE_WIDTH else "large"
        return "small-encoder" if self.settings.preset == "small" else self.settings.preset

    def _is_at_hub(self, weights: str) -> bool:
        """Return whether the weights have to be fetched before their width is known, which decides the preset."""
        return bool(self._named_weights()) and not os.path.isdir(weights)

    def data_folder(self) -> str:
        """The folder of the task's data; the project's examples where none is named. Raises: Missing without data."""
        folder = self.tuning.data.get(self.task, "")
        if folder == "none":
            raise Missing("no data", f"[fine_tuning] data.{self.task} is none: the task has no data")
        return folder or str(EXAMPLES / self.task)

    def given_weights(self) -> str:
        """The weights that are given, or empty where they are the pipeline's. Raises: Missing without any."""
        kind = VARIANTS[self.variant].weights
        given = self._named_weights()
        if not given and kind == "roberta_extra_training" and self.corpus.update_from:
            raise Missing(
                "no weights",
                f"variant {self.variant} starts from the baseline of a pretraining, and --update-from makes none; give "
                f"fine_tuning.weights.{kind}",
            )
        if given or kind in OWN_WEIGHTS:
            return given
        if self.base_model == SCRATCH:
            raise Missing(
                "no weights",
                f"variant {self.variant} starts from RoBERTa, and without a base model there is none but the one that "
                "the run trains (roberta_extra_training); give pretraining.base_model or fine_tuning.weights.roberta",
            )
        return self.base_model

    def _named_weights(self) -> str:
        return self.tuning.weights.get(VARIANTS[self.variant].weights, "")

    def _weights_parameter(self) -> str:
        kind = VARIANTS[self.variant].weights
        return f"fine_tuning.weights.{kind}" if self._named_weights() else "pretraining.base_model"

    def given_mentions(self) -> str:
        """The mention table that is given, if the task and the variant take one."""
        return self.tuning.mentions if self._takes_mentions() else ""

    def _takes_mentions(self) -> bool:
        return self.task == "extractive_qa" and VARIANTS[self.variant].entities

    def requires(self) -> dict[str, Stage]:
        if self.given_weights():
            return {}
        is_luke = VARIANTS[self.variant].weights == "luke"
        own = pretraining.own_model(self) if is_luke else self.clone(pretraining.PretrainRoberta)
        stages = {"Pretrain": own, **self.tokenizer_requires()}
        if self._takes_mentions() and not self.tuning.mentions:
            stages["BuildMentionTable"] = self.clone(BuildMentionTable)
        return stages

    def check_needs(self) -> None:
        """The weights and the mention table can be used, where they are given."""
        super().check_needs()
        if given := self.given_weights():
            hub.check_weights(given, self._weights_parameter())
        if mentions := self.given_mentions():
            from tasks.io.annotations import open_annotator

            open_annotator(Path(mentions), Path(given))

    def mentions_folder(self) -> Path | None:
        """The mention table that finds the entities of extractive_qa."""
        own = self.requires().get("BuildMentionTable")
        folder = own.folder if own else self.given_mentions()
        return Path(folder) if folder else None

    def given_tokenizer(self) -> str:
        if self.sequences.tokenizer or not (weights := self.given_weights()):
            return super().given_tokenizer()
        from model.hf.load import read_fine_tuned

        return os.path.join(weights, finetuning.TOKENIZER) if read_fine_tuned(Path(weights)) else weights

    def of_data(self) -> dict[str, Any]:
        """The values by which the task's data are read: the label of no relation, the column of tags."""
        table = {"relation_classification": "negative_label", "ner": "tag_column"}
        return {name: getattr(self.tuning, name) if table.get(self.task) == name else "" for name in table.values()}

    def bytes_parameters(self) -> dict[str, Any]:
        weights, mentions = self.given_weights(), self.given_mentions()
        if mentions:
            given_manifest("fine_tuning.mentions", mentions, "")  # an annotator wants more
        optional = {
            "weights": pretraining.base_model_identity(weights, self._weights_parameter()) if weights else None,
            **self.of_data(),
            **self.computing(),
            "mentions": mentions and storage.manifest_sha256(mentions),
        }
        return {
            **{"task": self.task, "variant": self.variant, "seed": self.seed, "profile": self.corpus.profile},
            "preset": self.tuning.preset if self._is_at_hub(weights) else self.preset_name(),
            "data": data_identity(self.data_folder()),
            "tokenizer": self.tokenizer_identity(),
            **self.values("fine_tuning", "dropout"),
            **{name: value for name, value in optional.items() if value},
        }

    def computing(self) -> dict[str, Any]:
        """The settings of the computation that differ from the defaults."""
        said = self.values("fine_tuning", "tokens_per_batch", "precision", "gradient_checkpointing")
        return {name: value for name, value in said.items() if value and value not in (AUTO, "float32")}

    def _allows_no_predictions(self) -> bool:
        # Tiny weights have learnt for some seconds: they show that everything works, not what LUKE can do.
        return self.tuning.allow_no_predictions or self.preset_name() == "tiny"

    def weights_folder(self) -> str:
        if given := self.given_weights():
            return hub.model_folder(given, self._weights_parameter())
        return self.requires()["Pretrain"].folder


def data_identity(folder: str) -> dict[str, str]:
    """SHA-256 of each file of a data folder, and of the tables in its splits' folders, which `save_to_disk` makes."""
    found = pretraining.folder_identity(folder, "fine_tuning.data")
    for split in chain.from_iterable(SPLIT_NAMES.values()):
        inside = os.path.join(folder, split)
        if os.path.isdir(inside):
            tables = pretraining.folder_identity(inside, "fine_tuning.data").items()
            found |= {f"{split}/{name}": digest for name, digest in tables if name.endswith(".arrow")}
    return found
