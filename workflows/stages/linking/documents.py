"""Texts with links: documents of one's own linked, a dump's pages as annotated documents, and its sentences."""

import functools
import os
from pathlib import Path
from typing import Any

from pipeline import storage
from pipeline.lookup.mentions import MentionTable
from pipeline.storage.failures import check_pages, reasons_of
from tasks.linking.corpora import linking, pages
from tasks.linking.corpora.documents import find_files
from tasks.linking.documents.document import to_json
from tasks.linking.documents.reading import read_documents
from tasks.linking.open import CALIBRATION, LinkerSettings, calibration_of, parts_of
from workflows.base import terminal
from workflows.base.stage import Result, Stage, digests, given_manifest
from workflows.engines import beam
from workflows.engines.disk import Need
from workflows.run.kinds import AUTO
from workflows.run.tables import Linking
from workflows.stages.pages import CorpusStage, ExtractPages
from workflows.stages.tables import BuildMentionTable

# Fields of [linking], and whose folders they name.
GIVEN = {"mentions": "BuildMentionTable", "linker": "BuildLinker"}


class LinkDocuments(CorpusStage, beam.BeamStage):
    """A user's documents as pages and paragraphs, with links to the entities that they name."""

    TABLES = ("corpus", "linking", "machine")

    FOLDER = "linked"
    VERSION = 10
    NEED = Need(written=1.5)
    KEEPS = "blocks"

    @property
    def linking(self) -> Linking:
        """The values of the run for linking."""
        return self.settings.linking

    def requires(self) -> dict[str, Stage]:
        return {} if self.linking.mentions or self.linking.linker else self.cloned(BuildMentionTable)

    def linker_parts(self) -> dict[str, Any]:
        """The parts of the linker: all of `linker`, or a mention table alone."""
        if not self.linking.linker:
            folder = self.linking.mentions or self.clone(BuildMentionTable).folder
            return {"mentions": os.path.abspath(folder)}
        found = parts_of(Path(os.path.abspath(self.linking.linker)))
        calibrations = found.pop(CALIBRATION, None)
        if calibrations and (path := calibration_of(calibrations)):
            found["calibration"] = path
        return {name: str(path) for name, path in found.items()}

    def bytes_parameters(self) -> dict[str, Any]:
        """The content of every file of the documents, and of what is given."""
        folders = self.values("linking", *GIVEN)
        given: dict[str, Any] = {name: storage.manifest_sha256(each) for name, each in folders.items() if each}
        if self.linking.ner:
            given |= {"ner": digests(self.linking.ner), "language": self.linking.language}
        return {
            **self.values("linking", "min_probability", "min_link_probability"),
            "block_bytes": self.block_bytes(),
            "documents": digests(self.linking.documents, self._names()),
            **given,
        }

    def _names(self) -> list[str]:
        return find_files(self.linking.documents) if self.linking.documents else []

    def block_bytes(self) -> int:
        """`block_size`; auto: 1/64 of the documents between 256 KiB and 4 MiB, as a power of two."""
        if self.corpus.block_size != AUTO:
            return int(self.corpus.block_size)
        paths = (storage.join(self.linking.documents, name) for name in self._names())
        size = sum(storage.file_size(path) or 0 for path in paths)
        return min(4 << 20, max(256 << 10, 1 << (size // 64).bit_length()))

    def check(self) -> None:
        if not self.linking.documents:
            raise ValueError(
                "linking.documents: names no folder; wanted one of files .jsonl or .parquet with id and text"
            )
        if self.linking.linker and self.linking.mentions:
            raise ValueError("linking.mentions: linking.linker has a mention table; give one of both")
        for name, folder in self.values("linking", *GIVEN).items():
            if folder:
                given_manifest(f"linking.{name}", folder, GIVEN[name])
        if self.linking.ner:
            check_ner(self.linking.ner)
        super().check()

    def check_limits(self, made: Result) -> None:
        rejected = reasons_of(made.drops)
        check_pages(rejected, made.rows["pages"] + sum(rejected.values()), self.corpus.max_rejected)

    def work(self) -> Result:
        settings = LinkerSettings(
            **self.linker_parts(),
            ner=os.path.abspath(self.linking.ner) if self.linking.ner else "",
            **self.values("linking", "language", "min_probability", "min_link_probability"),
            finds_all=True,
            device="cpu",
        )
        run, documents = functools.partial(beam.run_beam, self), os.path.abspath(self.linking.documents)
        limits = {"block_bytes": self.block_bytes(), **self.values("corpus", "max_rejected")}
        return linking.build(run, self.folder, documents, settings, **limits)


class BuildDocuments(CorpusStage):
    """Pages of the dump that pretraining never sees, as annotated documents: `held_out.jsonl`."""

    FOLDER = "documents"
    VERSION = 2
    UPSTREAM = (ExtractPages, BuildMentionTable)
    FIELDS = ("corpus.held_out",)

    def work(self) -> Result:
        extracted = self.clone(ExtractPages)
        manifest = extracted.manifest()
        paragraphs = manifest.paths(extracted.folder, "paragraphs/")
        targets = MentionTable(self.clone(BuildMentionTable).folder).targets
        share, count = self.corpus.held_out, manifest.rows["pages"]
        with terminal.progress_bar(self.title, unit="page") as show:
            return pages.build(paragraphs, self.folder, targets, share=share, pages=count, progress=show)


def check_ner(folder: str) -> None:
    """Raise a ValueError where the folder of `ner` has no fine-tuned model of ner with entities."""
    from model.files import CONFIG, WEIGHTS, read_json
    from model.hf.fine_tuned import ARCHITECTURES
    from tasks.ner import task as ner

    wanted = "wanted that of a FineTune of ner, or of its export with entities"
    for name in (CONFIG, WEIGHTS):
        if not os.path.isfile(storage.join(folder, name)):
            raise ValueError(f"linking.ner {folder}: no {name} there; {wanted}")
    values = read_json(Path(folder) / CONFIG)
    if (kind := values.get("model_type", "luke")) != "luke":
        raise ValueError(f"linking.ner {folder}: the model is a {kind}, which has no entities; {wanted}")
    found = next((each for each in values.get("architectures") or () if each in ARCHITECTURES), "")
    task = values.get("task") or found
    if task not in ("ner", ner.TASK.ARCHITECTURE):
        tuned = f"was fine-tuned for {task}" if task else "was not fine-tuned"
        raise ValueError(f"linking.ner {folder}: the model {tuned}; {wanted}")


def documents_identity(path: str, flag: str) -> list[str]:
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
    return storage.digest(list(map(to_json, read_documents(Path(path)))))
