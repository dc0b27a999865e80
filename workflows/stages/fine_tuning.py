"""Fine-tuning one task."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import luigi

from pipeline import storage
from tasks.finetuning.variants import VARIANTS
from workflows.base import parameters, terminal
from workflows.base.experiment_file import TASKS, Missing, Sources, read_sources
from workflows.base.parameters import AUTO
from workflows.base.settings import SCRATCH, MentionSettings
from workflows.base.stage import Result, Stage
from workflows.engines import devices, hub
from workflows.stages.pretraining import (
    Pretrain,
    Pretraining,
    PretrainRoberta,
    TorchStage,
    base_model_identity,
    folder_identity,
)
from workflows.stages.tables import BuildMentionTable

if TYPE_CHECKING:
    from workflows.stages.tuning import Tune

OWN_WEIGHTS: dict[str, type[Pretraining]] = {"luke": Pretrain, "roberta_extra_training": PretrainRoberta}
SETTING = ("learning_rate", "batch_size", "epochs")
BEST = "best.json"
BASE_WIDTH, LARGE_WIDTH = 768, 1024  # hidden_size


class TuningSettings:
    """What a user can set for the search of hyperparameters, wherever its result is used."""

    learning_rates = parameters.ListOf(
        parameters.NumberParameter(default=1, description=""),
        default="1e-5,2e-5,3e-5",
        description="peak learning rates to try",
    )
    batch_sizes = parameters.ListOf(
        parameters.PositiveParameter(default=1, description=""),
        default="4,8,16,32,64",
        description="batch sizes to try",
    )
    epoch_counts = parameters.ListOf(
        parameters.PositiveParameter(default=1, description=""),
        default="2,3,5",
        description="numbers of epochs to try",
    )
    tuning_seed = parameters.IntegerParameter(
        default=42, description="seed of the fine-tunings that the search compares"
    )
    tuning_patience = parameters.IntegerParameter(
        default=2,
        description="epochs in a row without a better score on dev that end a fine-tuning of the search; 0: none do",
    )
    tuned = luigi.BoolParameter(
        description="take the learning rate, batch size and epochs that the stage Tune finds (a grid for each task but "
        "extractive_qa, which the paper did not tune, and each variant)"
    )

    def check_tuning(self) -> None:
        """Raises: ValueError where the search is described and its result is not asked for."""
        for name in ("learning_rates", "batch_sizes", "epoch_counts", "tuning_seed", "tuning_patience"):
            given, default = getattr(self, name), getattr(type(self), name)
            if not self.tuned and given != default.normalize(default._default):
                flag = f"--{name.replace('_', '-')} {default.serialize(given)}"
                raise ValueError(f"{flag}: says what the search tries; pass --tuned, too, or leave it out")


class FineTune(TuningSettings, MentionSettings, TorchStage):
    """A fine-tuned task: weights, metrics and predictions."""

    FOLDER = "finetune"
    VERSION = 6
    KEEPS = "unfinished"  # checkpoints

    pretraining_seed = parameters.IntegerParameter(
        default=42, description="seed of the pretraining that --seed, here of fine-tuning, starts from"
    )
    task = parameters.OneOf(*TASKS, default="ner", description="the fine-tuning task")
    variant = parameters.OneOf(*VARIANTS, default="luke", description="a row of tasks/finetuning/variants.py")
    experiments = luigi.Parameter(
        default="",
        description="TOML file that names the folders of data and weights for all tasks and variants; empty: the "
        "project's examples and the pipeline's weights",
    )
    data = luigi.Parameter(
        default="",
        description="folder of the task's train, dev and test files; empty: what --experiments says",
    )
    negative_label = luigi.Parameter(
        default="",
        description="the relation that means none and is not scored; empty: no_relation or Other, if there",
    )
    weights = luigi.Parameter(
        default="",
        description="folder or name of pretrained weights (ours, or transformers' LUKE, RoBERTa or BERT); empty: what "
        "--experiments says, or the pipeline's",
    )
    task_preset = parameters.OneOf(
        AUTO,
        "demo",
        "small-encoder",
        "base",
        "large",
        default=AUTO,
        description="hyperparameters of fine-tuning; auto: those for the width of given weights (from 768 on base, "
        "from 1024 on large, below small-encoder), or else those of --preset",
    )
    learning_rate = parameters.RateParameter(
        default=AUTO, description="peak learning rate; the classifier's changes in proportion"
    )
    batch_size = parameters.CountParameter(default=AUTO, description="examples of a step")
    epochs = parameters.CountParameter(default=AUTO, description="passes over the training data")
    patience = parameters.IntegerParameter(
        default=0, description="epochs in a row without a better score on dev that end training; 0: none do"
    )
    drop_weights = luigi.BoolParameter(description="keep scores and predictions, not the fine-tuned weights")
    mentions = luigi.Parameter(
        default="",
        description="folder of the mention table that finds the entities of extractive_qa; empty: what --experiments "
        "says, or BuildMentionTable's beside Pretrain's weights",
    )
    allow_no_predictions = luigi.BoolParameter(
        significant=False,
        description="let a model pass that predicts nothing on dev and test, as --preset demo does",
    )

    @property
    def title(self) -> str:
        return f"{type(self).__name__} ({self.task}, {self.variant}, seed {self.seed})"

    def headline(self, manifest: storage.Manifest) -> str:
        scores = manifest.facts["metrics"]
        name = f"{self.task}, {self.variant}, seed {self.seed}"
        return f"{name}: dev F1 {scores['dev']['f1']:.3f}, test F1 {scores['test']['f1']:.3f}"

    def sources(self) -> Sources:
        return read_sources(self.experiments)

    def preset_name(self) -> str:
        """The preset of fine-tuning. Raises: ValueError where weights are given and their width cannot be read."""
        if self.task_preset != AUTO:
            return self.task_preset
        if self._named_weights():
            from model.exchange.load import read_any_config

            return preset_of_width(read_any_config(self.weights_folder())[0].hidden_size)
        return "small-encoder" if self.preset == "small" else self.preset

    def data_folder(self) -> str:
        """Raises: Missing without data."""
        return self.data or self.sources().data_folder(self.task)

    def given_weights(self) -> str:
        """The weights that are given, or empty where they are the pipeline's. Raises: Missing without any."""
        kind = VARIANTS[self.variant].weights
        given = self._named_weights()
        if given or kind in OWN_WEIGHTS:
            return given
        if self.base_model == SCRATCH:
            raise Missing(
                "no weights",
                f"--variant {self.variant} starts from RoBERTa, and with --base-model scratch there is none but the "
                "one that the pipeline trains (roberta_extra_training); pass --base-model, or name it in --experiments",
            )
        return self.base_model

    def _named_weights(self) -> str:
        return self.weights or self.sources().weights.get(VARIANTS[self.variant].weights, "")

    def _weights_parameter(self) -> str:
        """Where the user gave the weights, as an error says it."""
        kind = VARIANTS[self.variant].weights
        in_file = (
            f"{self.experiments}: [weights] {kind}" if kind in self.sources().weights else "--base-model"
        )
        return "--weights" if self.weights else in_file

    def given_mentions(self) -> str:
        """The mention table that is given, if the task and the variant take one."""
        return self.mentions or (self.sources().mentions if self._takes_mentions() else "")

    def _takes_mentions(self) -> bool:
        return self.task == "extractive_qa" and VARIANTS[self.variant].entities

    def _takes_our_mentions(self) -> bool:
        return self._takes_mentions() and not self.given_mentions() and not self.given_weights()

    def tune(self) -> "Tune":
        """The search whose best setting `--tuned` takes."""
        from workflows.stages.tuning import Tune  # which stands on this module

        auto = dict.fromkeys(SETTING, AUTO)
        return self.clone(Tune, tuned=False, drop_weights=False, seed=self.tuning_seed, patience=0, **auto)

    def requires(self) -> dict[str, Stage]:
        stages: dict[str, Stage] = {"Tune": self.tune()} if self.tuned else {}
        if self.given_weights():
            return stages
        own = self.clone(OWN_WEIGHTS[VARIANTS[self.variant].weights], seed=self.pretraining_seed)
        stages |= {"Pretrain": own, **self.tokenizer_requires()}
        return stages | (
            {"BuildMentionTable": self.clone(BuildMentionTable)} if self._takes_our_mentions() else {}
        )

    def check_needs(self) -> None:
        """The mention table, where one is given, can be used, and --tuned has nothing against it."""
        super().check_needs()
        if self.mentions and self.task != "extractive_qa":
            raise ValueError(
                f"--mentions {self.mentions}: entities of Wikipedia are for extractive_qa alone, not for {self.task}; "
                "leave it out"
            )
        if self.tuned and (given := [name for name in SETTING if getattr(self, name) != AUTO]):
            raise ValueError(
                f"--{given[0].replace('_', '-')} {getattr(self, given[0])}: --tuned finds it; pass one of them"
            )
        if mentions := self.given_mentions():
            from tasks.entities.annotations import open_annotator

            weights = self.given_weights()
            open_annotator(Path(mentions), Path(weights) if os.path.isdir(weights) else None)

    def mentions_folder(self) -> Path | None:
        """The mention table that finds the entities of extractive_qa."""
        if self._takes_our_mentions():
            return Path(self.clone(BuildMentionTable).folder)
        return Path(mentions) if (mentions := self.given_mentions()) else None

    def given_tokenizer(self) -> str:
        weights = self.given_weights()
        if not weights:
            return super().given_tokenizer()
        return self.tokenizer or hub.model_folder(weights, self._weights_parameter())

    def the_negative_label(self) -> str:
        is_relation = self.task == "relation_classification"
        return self.negative_label or (self.sources().negative_label if is_relation else "")

    def bytes_parameters(self) -> dict[str, Any]:
        weights, mentions = self.given_weights(), self.given_mentions()
        optional = {
            "weights": base_model_identity(weights) if weights else None,
            "negative_label": self.the_negative_label(),
            "tokens_per_batch": self.tokens_per_batch,
            "mentions": _sha256_of_table(mentions) if mentions else None,
            **{name: getattr(self, name) for name in SETTING if getattr(self, name) != AUTO},
            "patience": self.patience,
            "drop_weights": self.drop_weights,
        }
        return {
            **{"task": self.task, "variant": self.variant, "seed": self.seed, "profile": self.profile},
            "preset": self.preset_name(),
            "data": folder_identity(self.data_folder(), "--data"),
            "tokenizer": self.tokenizer_identity(),
            **{name: value for name, value in optional.items() if value},
        }

    def changes(self) -> dict[str, Any]:
        """What of the preset is replaced."""
        if self.tuned:
            best: dict[str, Any] = json.loads(storage.read_bytes(storage.join(self.tune().folder, BEST)))
            setting = best["setting"]
        else:
            setting = {name: getattr(self, name) for name in SETTING if getattr(self, name) != AUTO}
        return {**setting, "patience": self.patience}

    def _may_be_silent(self) -> bool:
        # The demo's weights have learnt for a minute: it shows that everything works, not what LUKE can do.
        return self.allow_no_predictions or self.preset_name() == "demo"

    def weights_folder(self) -> str:
        if given := self.given_weights():
            return hub.model_folder(given, self._weights_parameter())
        return self.requires()["Pretrain"].folder

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
            tokens_per_batch=self.tokens_per_batch,
            checkpoint_minutes=self.checkpoint_minutes,
            mentions=self.mentions_folder(),
            allow_no_predictions=self._may_be_silent(),
            changes=self.changes(),
            keeps_weights=not self.drop_weights,
        )
        return Result(self.described(), facts={"metrics": figures})


def preset_of_width(hidden_size: int) -> str:
    """The preset for weights that are given: the paper's from the width of its models on."""
    if hidden_size < BASE_WIDTH:
        return "small-encoder"
    return "base" if hidden_size < LARGE_WIDTH else "large"


def _sha256_of_table(folder: str) -> str:
    path = storage.join(folder, storage.MANIFEST)
    if storage.file_size(path) is None:
        raise ValueError(f"--mentions {folder}: no folder of the stage BuildMentionTable")
    return storage.file_sha256(path)
