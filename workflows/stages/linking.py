"""Entity linking: documents of one's own linked, a dump's pages as annotated documents, and scores of a model."""

import functools
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pipeline import storage
from workflows.base import terminal
from workflows.base.fine_tuning_settings import LinkerSettings
from workflows.base.parameters import AUTO
from workflows.base.settings import (
    DocumentSettings,
    EvaluationSettings,
    LinkingSettings,
    LukeSettings,
    PeakSettings,
)
from workflows.base.stage import Result, Stage, given_manifest
from workflows.engines import beam, devices
from workflows.engines.disk import Need
from workflows.stages.pages import CorpusStage, ExtractPages
from workflows.stages.pretraining import ExportHuggingFace, Pretrain, TorchStage
from workflows.stages.tables import BuildContexts, BuildMentionTable

TRAIN_DOCUMENTS, HELD_OUT_DOCUMENTS = "train.jsonl", "held_out.jsonl"  # of BuildDocuments
DISAMBIGUATION = "entity_disambiguation"  # a task of FineTune
LINKER_ALONE = ("masked_share", "prior_weight", "softmax_weight", "own_links")
SCORES = "scores.json"


class LinkDocuments(LinkingSettings, CorpusStage, beam.BeamStage):
    """Documents of one's own as pages and paragraphs, with links to the entities that they name."""

    FOLDER = "linked"
    VERSION = 4
    NEED = Need(written=1.5)
    KEEPS = "blocks"

    def requires(self) -> dict[str, Stage]:
        return {} if self.mentions else self.cloned(BuildMentionTable)

    def mentions_folder(self) -> str:
        return os.path.abspath(self.mentions) if self.mentions else self.clone(BuildMentionTable).folder

    def bytes_parameters(self) -> dict[str, Any]:
        """What every file of the documents and of the model holds decides the bytes, as what else is given does."""
        given = {"contexts": storage.manifest_sha256(self.contexts)} if self.contexts else {}
        if self.calibration:
            given["calibration"] = storage.file_sha256(self.calibration)
        return {
            **self.values("min_probability", "min_link_probability"),
            "block_bytes": self.block_bytes(),
            "documents": _digests(self.documents, self._names()),
            "mentions": storage.manifest_sha256(self.mentions) if self.mentions else "",
            "model": _digests(self.model, storage.list_files(self.model)) if self.model else {},
            **given,
        }

    def _names(self) -> list[str]:
        from workflows.corpora.documents import find_files

        return find_files(self.documents) if self.documents else []

    def block_bytes(self) -> int:
        """`--block-size`; auto: 1/64 of the documents between 256 KiB and 4 MiB, as a power of two."""
        if self.block_size != AUTO:
            return int(self.block_size)
        size = sum(storage.file_size(storage.join(self.documents, name)) or 0 for name in self._names())
        return min(4 << 20, max(256 << 10, 1 << (size // 64).bit_length()))

    def check(self) -> None:
        if not self.documents:
            raise ValueError(
                "--documents: names no folder; wanted one of files .jsonl or .parquet with id and text"
            )
        if self.mentions:
            given_manifest("--mentions", self.mentions, "BuildMentionTable")
        if self.model and not os.path.isdir(self.model):
            raise ValueError(
                f"--model {self.model}: no such folder; wanted ExportHuggingFace's with model/ at its end"
            )
        if self.contexts:
            given_manifest("--contexts", self.contexts, "BuildContexts")
        if self.calibration and not os.path.isfile(self.calibration):
            raise ValueError(
                f"--calibration {self.calibration}: no such file; wanted one that calibrate wrote"
            )
        super().check()

    def work(self) -> Result:
        from workflows.corpora import linking

        settings = linking.Settings(
            documents=os.path.abspath(self.documents),
            mentions=self.mentions_folder(),
            model=os.path.abspath(self.model) if self.model else "",
            contexts=os.path.abspath(self.contexts) if self.contexts else "",
            calibration=os.path.abspath(self.calibration) if self.calibration else "",
            min_probability=self.min_probability,
            min_link_probability=self.min_link_probability,
        )
        return linking.build(
            functools.partial(beam.run_beam, self),
            self.folder,
            settings,
            block_bytes=self.block_bytes(),
            max_rejected=self.max_rejected,
        )


def _digests(folder: str, names: Sequence[str]) -> dict[str, str]:
    """The SHA-256 of each of a folder's files."""
    found = {}
    for name in names:
        status = os.stat(path := storage.join(folder, name))
        found[name] = _sha256(path, status.st_size, status.st_mtime_ns)
    return found


@functools.cache
def _sha256(path: str, size: int, changed: int) -> str:
    """The SHA-256 of a file, read once for each size and time of its last change."""
    return storage.file_sha256(path)


class BuildDocuments(DocumentSettings, CorpusStage):
    """Pages of the dump as annotated documents: `train.jsonl`, to fine-tune a linker on, and `held_out.jsonl`, of pages
    that pretraining never sees.
    """

    FOLDER = "documents"

    def requires(self) -> dict[str, Stage]:
        return self.cloned(ExtractPages, BuildMentionTable)

    def bytes_parameters(self) -> dict[str, Any]:
        return self.values("held_out", "train_documents", "held_out_documents")

    def work(self) -> Result:
        from pipeline.lookup.mentions import MentionTable
        from workflows.corpora import pages

        extracted = self.clone(ExtractPages)
        manifest = extracted.manifest()
        with terminal.progress_bar(self.title, unit="page") as show:
            return pages.build(
                manifest.paths(extracted.folder, "paragraphs/"),
                self.folder,
                MentionTable(self.clone(BuildMentionTable).folder).targets,
                pages.Choice(self.held_out, self.train_documents, self.held_out_documents),
                pages=manifest.rows["pages"],
                progress=show,
            )


class EvaluateLinking(EvaluationSettings, PeakSettings, LukeSettings, TorchStage):
    """How well the pretrained model links the mentions of held-out pages, and of annotated documents of one's own.

    `scores.json` has the figures of four methods: the commonest page (`prior`), that and the words of the document
    (`contexts`), both and the model with each mention for itself (`local`), and with one mention answered after the
    other (`global`), whose answers are kept. Held-out pages that are not asked choose a calibration for each.
    The model is the exported one, so that they are for it; one that cannot be exported is taken as it was pretrained.
    """

    FOLDER = "linking"
    VERSION = 4
    KEEPS = "unfinished"  # answers and calibrations

    def requires(self) -> dict[str, Stage]:
        model = self.model_stage()
        stages = self.cloned(BuildDocuments, BuildMentionTable, BuildContexts)
        return stages | {type(model).__name__: model} | self.tokenizer_requires()

    def model_stage(self) -> Pretrain | ExportHuggingFace:
        """What makes the model."""
        pretrain = self.clone(Pretrain)
        return self.clone(ExportHuggingFace, lite=False) if pretrain.has_released_head() else pretrain

    def most_documents(self) -> int:
        """`--linking-documents`; auto: few for the presets tiny and demo."""
        if self.linking_documents != AUTO:
            return int(self.linking_documents)
        return 20 if self.named_preset in ("tiny", "demo") else 200

    def check_needs(self) -> None:
        super().check_needs()
        if self.leave_out_pages and not self.linking_gold:
            raise ValueError(
                "--leave-out-pages: of --linking-gold, which names no file; give one, or leave it out"
            )

    def bytes_parameters(self) -> dict[str, Any]:
        gold = {}
        if self.linking_gold:
            gold = {"gold": _gold_identity(self.linking_gold), **self.values("leave_out_pages")}
        return {"documents": self.most_documents(), "tokenizer": self.tokenizer_identity(), **gold}

    def work(self) -> Result:
        from pipeline.sequences.tokenizer import WordTokenizer
        from tasks.entities.disambiguation.entity_model import model_folder
        from workflows.corpora import evaluation

        model = model_folder(Path(self.model_stage().folder))
        linker = evaluation.open_linker(
            Path(self.clone(BuildMentionTable).folder),
            Path(self.clone(BuildContexts).folder),
            model,
            WordTokenizer.load(self.tokenizer_folder()),
            device=devices.torch_device(self.device),
        )
        questions = evaluation.Questions(
            held_out=Path(self.clone(BuildDocuments).folder) / HELD_OUT_DOCUMENTS,
            gold=Path(self.linking_gold) if self.linking_gold else None,
            most=self.most_documents(),
            leaves_out_pages=self.leave_out_pages,
        )
        with terminal.progress_bar(self.title, unit="document") as show:
            return evaluation.build(self.folder, linker, model, questions, progress=show)

    def headline(self, manifest: storage.Manifest) -> str:
        scores = json.loads(storage.read_bytes(storage.join(self.folder, SCORES)))
        return "; ".join(map(_told, scores["sets"])) or "no held-out document"


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
            {split: _gold_identity(path, "--data") for split, path in self.documents().items()}
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


def _told(of: dict[str, Any]) -> str:
    """What a line says of a set of documents."""
    shares = (
        f"{method} {figures['disambiguation']['overall']['accuracy']:.1%}"
        for method, figures in of["methods"].items()
    )
    mentions = of["methods"]["global"]["mentions"]["in_knowledge_base"]
    return f"{of['documents']:,} of {of['name']}, {mentions:,} mentions: {', '.join(shares)}"


def _gold_identity(path: str, flag: str = "--linking-gold") -> list[str]:
    """The name of a file of annotated documents, and a digest of what is in it, whatever its format.

    Raises: ValueError where it cannot be read, naming the flag.
    """
    try:
        return [os.path.basename(path), _read_digest(path, os.stat(path).st_mtime_ns)]
    except OSError as error:
        raise ValueError(f"{flag} {path}: cannot be read ({error.strerror or error})") from None
    except ValueError as error:
        raise ValueError(f"{flag} {error}") from None


@functools.cache
def _read_digest(path: str, changed: int) -> str:
    """The digest, read once for each time of the file's last change."""
    from tasks.entities.documents.document import to_json
    from tasks.entities.documents.reading import read_documents

    return storage.digest(list(map(to_json, read_documents(Path(path)))))
