"""Manifests: what makes a stage's folder trustworthy.

A stage's folder holds data files and, written last, `manifest.json`, which lists each of them with size and
SHA-256. No file is read that a manifest does not list.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from pipeline.storage.files import file_sha256, file_size, join, read_bytes, sync_folders, write_bytes
from pipeline.storage.locks import one_at_a_time

MANIFEST = "manifest.json"
STAGES = "stages.json"


def as_json(record: Any) -> dict[str, Any]:
    """A manifest's or result's fields; `asdict` alone would break the counters among them."""
    values = {each.name: getattr(record, each.name) for each in fields(record)}
    return {**values, "files": [asdict(entry) for entry in record.files]}


@dataclass(frozen=True)
class FileEntry:
    """One file of a stage: path relative to the stage's folder, size in bytes, rows where it has any."""

    path: str
    bytes: int
    sha256: str
    rows: int | None = None


@dataclass(frozen=True)
class Result:
    """The files and counts of a stage's work, or of one block of it."""

    files: tuple[FileEntry, ...]  # every data file
    rows: Mapping[str, int] = field(default_factory=dict)  # kind of row -> count kept
    drops: Mapping[str, int] = field(default_factory=dict)  # "kind:reason" -> count dropped
    facts: Mapping[str, Any] = field(default_factory=dict)  # what readers need to know (tokenizer, language, ...)

    def paths(self, folder: str, prefix: str = "") -> list[str]:
        """Full paths of the files whose relative path begins with the prefix, in their order here."""
        return [join(folder, entry.path) for entry in self.files if entry.path.startswith(prefix)]


@dataclass(frozen=True, kw_only=True)
class Manifest(Result):
    """The content of a finished stage and its origin. Nothing in it depends on time, place or machine."""

    stage: str
    version: int  # the stage's version of its own code
    parameters: Mapping[str, Any]  # those that change bytes
    inputs: Mapping[str, str]  # upstream stage -> SHA-256 of its manifest

    @property
    def total_bytes(self) -> int:
        """Of all files together."""
        return sum(entry.bytes for entry in self.files)

    def to_bytes(self) -> bytes:
        text = json.dumps(as_json(self), sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
        return (text + "\n").encode("utf-8", "surrogatepass")


def read_manifest(folder: str, stage: str = "") -> Manifest:
    """Read the manifest of a stage, or any if none is named, and check that each file it lists has the size it says.

    Raises: ValueError: no manifest, an unreadable one, another stage's, or a listed file that is missing or has another
    size.
    """
    path = join(folder, MANIFEST)
    try:
        values = json.loads(read_bytes(path))
        files = tuple(FileEntry(**entry) for entry in values.pop("files"))
        manifest = Manifest(files=files, **values)
    except FileNotFoundError:
        missing = f"{path}: not there" if os.path.isdir(folder) else f"{folder}: no such folder"
        raise ValueError(f"{missing}; run the stage that makes it first") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path}: not a manifest ({error}); delete the folder and run its stage again") from None
    if stage and manifest.stage != stage:
        raise ValueError(f"{folder}: made by {manifest.stage}; wanted the folder of {stage}")
    for entry in manifest.files:
        found = file_size(join(folder, entry.path))
        if found != entry.bytes:
            state = "missing" if found is None else f"{found} bytes"
            raise ValueError(
                f"{join(folder, entry.path)}: {state}, but the manifest says {entry.bytes} bytes; "
                f"run {manifest.stage} again"
            )
    return manifest


def manifest_sha256(folder: str) -> str:
    return hashlib.sha256(read_bytes(join(folder, MANIFEST))).hexdigest()


def write_manifest(folder: str, manifest: Manifest) -> None:
    """Commit a stage: from here on it counts as done."""
    sync_folders(folder, (entry.path for entry in manifest.files))
    write_bytes(join(folder, MANIFEST), manifest.to_bytes())


def describe(folder: str, path: str, rows: int | None = None) -> FileEntry:
    """Measure a finished file of the stage's folder for its manifest."""
    full = join(folder, path)
    size = file_size(full)
    assert size is not None, full
    return FileEntry(path, size, file_sha256(full), rows)


def finished_stages(workdir: str) -> dict[str, str]:
    """The newest finished folder of each stage, by its name in a work directory. Raises: ValueError: a broken list."""
    path = join(workdir, STAGES)
    try:
        found = json.loads(read_bytes(path))
        return {str(stage): str(folder) for stage, folder in found.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{path}: no list of stages ({error}); delete it and run a stage again") from None


def finished_folder(workdir: str, stage: str) -> str:
    """The newest finished folder of a stage. Raises: ValueError without one.

    A name's first word is enough, or more of it: "FineTune" or "FineTune (ner" for "FineTune (ner, luke, seed 42)".
    """
    found = finished_stages(workdir)
    names = [name for name in found if name.startswith(stage) and name.split()[0] == stage.partition(" ")[0]]
    if not names:
        known = f"; finished are {', '.join(found)}" if found else "; run it first"
        raise ValueError(f"{workdir}: no finished {stage} there{known}")
    return join(workdir, found[names[-1]])


def record_finished(workdir: str, folders: Iterable[tuple[str, str]]) -> None:
    """Enter stages with their folders into the list of a work directory, which is whole at every moment."""
    entries = {stage: os.path.basename(folder) for stage, folder in folders}
    with one_at_a_time(join(workdir, ".stages.lock")):
        before = finished_stages(workdir)
        after = {stage: folder for stage, folder in before.items() if stage not in entries} | entries
        if list(before.items()) != list(after.items()):
            text = json.dumps(after, indent=1, ensure_ascii=False) + "\n"
            write_bytes(join(workdir, STAGES), text.encode("utf-8", "surrogatepass"))
