"""From sequences to a model: pretraining and export."""

import functools
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import luigi

from model import pretraining
from model.hf import hub
from model.pretraining.recipes import SCRATCH, Configuration, choose
from pipeline import storage
from workflows.base import terminal
from workflows.base.stage import RUN_RECORD, Result, Stage, digests
from workflows.engines import spark
from workflows.stages.pages import FetchDump
from workflows.stages.sequences import BuildSequences, TokenizedStage, own_sequences
from workflows.stages.tables import BuildEntityVocab, BuildMentionTable, DiffDumps, MergeEntities, ResolveLinks

# The figures of a pretraining, or of an update, that its line shows.
HEADLINE = (
    *("new", "mentioned", "step", "masked_word_loss", "masked_entity_loss", "held_out_masked_word_perplexity"),
    *(f"held_out_known_entity_{name}top_1" for name in ("", "commonest_", "title_", "new_", "earlier_")),
)


class TorchStage(TokenizedStage):
    """A stage whose work is done by torch, in a local folder."""

    wiki = 0

    def process_resources(self) -> dict[str, int]:
        """The resources that luigid gives to one run at a time, unless its configuration says more."""
        return {} if self.settings.machine.device == "cpu" else {"gpu": 1}

    def check_needs(self) -> None:
        self.device()
        if tracker := self.settings.machine.tracker:
            from model.training.metrics_log import find_tracker

            find_tracker(tracker)

    def device(self) -> str:
        """The torch device of the work. Raises: ValueError where this machine has none such."""
        from model.training.devices import resolve_device

        return str(resolve_device(self.settings.machine.device))

    def run(self) -> None:
        spark.stop_spark()  # torch needs the memory, and Spark's stages come before (their priority)
        super().run()

    def write_commonest(self, name: str, wiki: int = 0) -> Path:
        """Write the labels that a wiki's mention table gives to its held-out mentions, into a file of this name."""
        from pipeline.sequences.commonest import write_commonest

        stages = {"sequences": BuildSequences, "links": ResolveLinks, "mentions": BuildMentionTable}
        folders = {of: self.clone(stage, wiki=wiki).folder for of, stage in stages.items()}
        path = storage.join(self.folder, name)
        write_commonest(path, **folders, tokenizer=self.tokenizer_folder())
        return Path(path)

    def described(self) -> tuple[storage.FileEntry, ...]:
        """Every data file of the stage's folder, for the manifest."""
        storage.files.sweep_temporary(self.folder)  # what a kill at the end of an earlier run has left
        unlisted = {storage.MANIFEST, storage.blocks.KEY, RUN_RECORD}
        names = [path for path in storage.list_files(self.folder) if path not in unlisted]
        return tuple(storage.describe(self.folder, name) for name in names)


class PretrainingStage(TorchStage):
    """A pretraining, with or without entities."""

    VERSION = pretraining.VERSION
    KEEPS = "unfinished"  # checkpoints
    entities: ClassVar[bool]

    def requires(self) -> dict[str, Stage]:
        return self.cloned(type(own_sequences(self)))

    @functools.cached_property
    def configuration(self) -> Configuration:
        """The model and the recipe of the pretraining. Raises: ValueError for a recipe that is impossible."""
        recipe = self.settings.pretraining.recipe
        try:
            return choose(self.settings.preset, recipe, base_model=self.base_model, entities=self.entities)
        except ValueError as error:
            raise ValueError(f"[pretraining] {error}") from None

    def bytes_parameters(self) -> dict[str, Any]:
        chosen = {"preset": self.settings.preset, "profile": self.corpus.profile}
        base_model = base_model_identity(self.base_model, "pretraining.base_model")
        started = {"base_model": base_model, "recipe": self.configuration.table()}
        return {**chosen, **self.values("pretraining", "seed"), **started}

    def check_needs(self) -> None:
        """The model that pretraining starts from has weights."""
        super().check_needs()
        if self.base_model != SCRATCH:
            hub.check_weights(self.base_model, "pretraining.base_model")

    def work(self) -> Result:
        from model.files import ANSWERS, EVALUATION, PRETRAINING
        from model.pretraining.phases import Execution
        from model.pretraining.run import pretrain
        from model.training.metrics_log import METRICS, TABLE

        is_new = self.base_model == SCRATCH
        base_model = SCRATCH if is_new else hub.model_folder(self.base_model, "pretraining.base_model")
        commonest = self.commonest()
        figures = pretrain(
            Path(own_sequences(self).folder),
            Path(self.folder),
            replace(self.configuration, base_model=base_model),
            profile=self.corpus.profile,
            seed=self.settings.pretraining.seed,
            device=self.device(),
            progress=terminal.on_terminal(),
            base_name=self.base_model,
            execution=Execution(**self.values("machine", "checkpoint_minutes", "tracker")),
            commonest=commonest,
        )
        # What a kill may have left beside the result (a checkpoint, a file half-written) is not part of it, nor is
        # log/, which holds times.
        names = ["config.json", "model.safetensors", PRETRAINING, METRICS, TABLE]
        names += [name for name in (EVALUATION, ANSWERS) if (Path(self.folder) / name).is_file()]
        names += [commonest.name] if commonest else []
        files = tuple(storage.describe(self.folder, name) for name in sorted(names))
        left_out = self.read_json(PRETRAINING)["left_out"]
        return Result(files, drops={"sequences:few_entities": left_out} if left_out else {}, facts={"last": figures})

    def commonest(self) -> Path | None:
        """A file that evaluation compares the entities with, where there are entities."""
        return None

    def headline(self, manifest: storage.Manifest) -> str:
        last = manifest.facts["last"]
        figures = {name: last[name] for name in HEADLINE if name in last}
        forms = {name: "," if isinstance(value, int) else ".3g" for name, value in figures.items()}
        return ", ".join(f"{name} {value:{forms[name]}}" for name, value in figures.items())


class Pretrain(PretrainingStage):
    """LUKE, pretrained on masked words and masked entities in two phases (paper, section 3.3 and appendix A)."""

    FOLDER = "pretrain"
    entities = True

    def requires(self) -> dict[str, Stage]:
        labels = self.cloned(*((MergeEntities,) if self.is_of_several() else (ResolveLinks, BuildMentionTable)))
        return super().requires() | labels | self.tokenizer_requires()

    def has_released_head(self) -> bool:
        """Return whether the entity head is that of the public checkpoints: transformers' LUKE has no other."""
        return bool(self.configuration.sizes["entity_head"] != "paper")

    def commonest(self) -> Path | None:
        """The labels that the mention table gives to the held-out mentions; EvaluateLanguages has those of several."""
        if self.is_of_several():
            return None
        from pipeline.sequences.commonest import COMMONEST

        return self.write_commonest(COMMONEST)


class UpdateEntities(Pretrain):
    """An earlier model with this dump's new entities, whose rows are computed without training; earlier rows stay."""

    FOLDER = "updated"
    VERSION = 2

    def requires(self) -> dict[str, Stage]:
        return super().requires() | self.cloned(DiffDumps)

    @functools.cached_property
    def configuration(self) -> Configuration:
        """That of the earlier model."""
        from model.files import PRETRAINING, read_json

        record = read_json(Path(self.earlier_model) / PRETRAINING)
        return choose(record["preset"], record["changes"], base_model=record["base_model"])

    def bytes_parameters(self) -> dict[str, Any]:
        return {"earlier": folder_identity(self.earlier_model, "--update-from") if self.earlier_model else ""}

    def work(self) -> Result:
        from model.files import CONFIG, EVALUATION, PRETRAINING, WEIGHTS
        from model.pretraining.update import update

        commonest, known = self.commonest(), self.clone(DiffDumps).manifest().facts["first_new"]
        folders = map(Path, (own_sequences(self).folder, self.earlier_model, self.folder))
        with terminal.progress_bar(self.title, unit="sequence") as show:
            last = update(*folders, known=known, device=self.device(), commonest=commonest, progress=show)
        names = sorted([CONFIG, EVALUATION, PRETRAINING, WEIGHTS, *([commonest.name] if commonest else [])])
        return Result(tuple(storage.describe(self.folder, name) for name in names), facts={"last": last})


def own_model(stage: Stage) -> Pretrain:
    """The stage of a run's own LUKE: its pretraining, or that of an earlier one with new entities."""
    return stage.clone(UpdateEntities if stage.settings.corpus.update_from else Pretrain)


class PretrainRoberta(PretrainingStage):
    """The baseline "RoBERTa with extra training": masked words alone, on the same corpus."""

    FOLDER = "pretrain_roberta"
    entities = False


class ExportHuggingFace(TorchStage):
    """The pretrained model as transformers' LukeForMaskedLM and LukeTokenizer load it."""

    FOLDER = "export"
    VERSION = 8

    lite = luigi.BoolParameter(
        parsing=luigi.BoolParameter.EXPLICIT_PARSING, description="leave out all entities but the special ones"
    )

    def requires(self) -> dict[str, Stage]:
        model, data = own_model(self), self.cloned(self.vocab_stage(), type(own_sequences(self)))
        return {type(model).__name__: model, **data, **self.tokenizer_requires()}

    def check_needs(self) -> None:
        """The entity head is one that transformers' LUKE has."""
        super().check_needs()
        if not own_model(self).has_released_head():
            raise ValueError(
                "entity_head paper: transformers' LUKE has the head of the public checkpoints alone; only Pretrain and "
                "FineTune take it; leave it out to export"
            )

    def vocab_stage(self) -> type[Stage]:
        """The stage that has the titles of all entities."""
        return MergeEntities if self.is_of_several() else BuildEntityVocab

    def bytes_parameters(self) -> dict[str, Any]:
        return {"tokenizer": self.tokenizer_identity(), "lite": self.lite}

    def work(self) -> Result:
        from model.hf.export import export
        from pipeline.sequences.shards import STATISTICS
        from pipeline.sequences.tokenizer import copy_tokenizer

        facts = [stage.manifest().facts for stage in self.of_wikis(FetchDump).values()]
        corpus = {
            "dump": ", ".join(part["name"] for each in facts for part in each["parts"]),
            "language": ", ".join(each["site"]["language"] for each in facts),
            "profile": self.corpus.profile,
        }
        with (
            storage.atomic_folder(os.path.join(self.folder, "model")) as folder,
            tempfile.TemporaryDirectory() as tokenizer,
        ):
            copy_tokenizer(self.tokenizer_folder(), tokenizer)
            vocab = Path(self.clone(self.vocab_stage()).folder) / "entity_vocab.json"
            figures = {**own_sequences(self).read_json(STATISTICS), "corpus": corpus}
            made = Path(own_model(self).folder), Path(folder)
            export(*made, tokenizer=Path(tokenizer), entity_vocab=vocab, lite=self.lite, figures=figures)
        return Result(self.described())


def base_model_name(name: str) -> str:
    """The name of a model or of data in the report: the last part of a folder, or the name at Hugging Face.

    Where a folder lies on a machine is nobody's business.
    """
    return os.path.basename(os.path.normpath(name)) if os.path.isdir(name) else name


def base_model_identity(name: str, parameter: str) -> Any:
    """The identity of a base model: the content of a folder, or the revision at Hugging Face."""
    if name == SCRATCH:
        return name
    if os.path.isdir(name):
        return folder_identity(name, parameter)
    return hub.find_model(name, parameter).identity


def folder_identity(folder: str, parameter: str) -> dict[str, str]:
    """SHA-256 of each file directly in the folder."""
    if not os.path.isdir(folder):
        raise ValueError(f"{parameter} {folder}: no such folder")
    files = sorted(path.name for path in Path(folder).iterdir() if path.is_file())
    return digests(folder, (name for name in files if not name.startswith(".")))
