"""The stage: a Luigi task whose output is a manifest.

A stage's folder is `WORKDIR/<folder>-<hash8>/`, where hash8 is known before anything runs: it comes from the stage's
name, its VERSION, the parameters that change its bytes, and the hashes of its upstream stages.
"""

import contextlib
import functools
import json
import logging
import os
import platform
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from importlib import metadata
from typing import Any, ClassVar, Literal

import luigi

from pipeline import storage
from pipeline.storage import Result, locks
from workflows.base import machine
from workflows.run.file import Run
from workflows.run.kinds import AUTO
from workflows.run.tables import Machine

logger = logging.getLogger("workflows")

RUN_RECORD = "run.json"


class ManifestTarget(luigi.Target):
    """The manifest of a stage's folder."""

    def __init__(self, folder: str) -> None:
        self.path = storage.join(folder, storage.MANIFEST)

    def exists(self) -> bool:
        return storage.file_size(self.path) is not None


class RunParameter(luigi.Parameter[Run]):
    """The run that a stage belongs to; as a text, its values as JSON."""

    def parse(self, text: str) -> Run:
        return Run.from_json(text)

    def serialize(self, run: Run) -> str:
        return run.json


class Step(luigi.Task):
    """A stage, or several of them together: a command names one."""

    settings = RunParameter(default=Run(), description="the run, as JSON, made of the command line")

    # The tables of a run file that the step and its upstream stages read.
    TABLES: ClassVar[tuple[str, ...]] = ("corpus", "machine")

    def to_str_params(self, only_significant: bool = False, only_public: bool = False) -> dict[str, str]:
        """The parameters as texts; those that tell stages apart at a scheduler have nothing of the machine."""
        found: dict[str, str] = super().to_str_params(only_significant, only_public)
        if only_significant:
            found["settings"] = replace(self.settings, machine=Machine()).json
        return found

    @property
    def workdir(self) -> str:
        """The folder of all stages."""
        return str(self.settings.workdir)

    @property
    def processes(self) -> int:
        """Worker processes."""
        found = self.settings.machine.processes
        return machine.processors() if found == AUTO else int(found)

    @property
    def title(self) -> str:
        """The name of the step in a run, for people."""
        return type(self).__name__

    @property
    def where(self) -> str:
        """The place where a user finds what the step made."""
        raise NotImplementedError

    def requires(self) -> dict[str, "Stage"]:
        """The upstream stages, each by a name for its manifest's hash."""
        return {}

    def cloned(self, *stages: "type[Stage]") -> dict[str, "Stage"]:
        """These stages, with the parameters that they share with this one, by their names."""
        return {stage.__name__: self.clone(stage) for stage in stages}

    def values(self, table: str, *names: str) -> dict[str, Any]:
        """These fields of a table of the run with their values."""
        return {name: getattr(getattr(self.settings, table), name) for name in names}

    def upstream(self) -> list["Stage"]:
        """All upstream stages, each once, and each after those that it requires."""
        found: dict[str, Stage] = {}

        def add(step: Step) -> None:
            for stage in step.requires().values():
                if stage.task_id not in found:
                    add(stage)
                    found[stage.task_id] = stage

        add(self)
        return list(found.values())

    def check_machine(self) -> None:
        """Check before anything runs that the needs of the step and its upstream stages are met.

        Raises: ValueError: the dump, the work directory or its locks, Java, the tokenizer, the model or the device is
        not.
        """
        is_new = not os.path.isdir(self.workdir)
        storage.make_folder(self.workdir)
        try:
            locks.check(self.workdir)
        except OSError as error:
            raise ValueError(
                f"--workdir {self.workdir}: cannot be written ({error.strerror or error}); pass another one"
            ) from None
        try:
            for stage in (*self.upstream(), self):
                if isinstance(stage, Stage):
                    stage.check()
        except (ValueError, OSError):
            if is_new:
                with contextlib.suppress(OSError):
                    os.rmdir(self.workdir)
            raise


class Stage(Step):
    """A step with a folder. Subclasses say what they require and what changes their bytes, and do the work."""

    VERSION: ClassVar[int] = 1
    FOLDER: ClassVar[str]
    # What the work takes over from an earlier attempt: nothing; all that an attempt left which was not finished; or the
    # blocks of any attempt.
    KEEPS: ClassVar[Literal["nothing", "unfinished", "blocks"]] = "nothing"
    # The stages that it requires in any case, and the fields ("table.field") that change its bytes by their values.
    UPSTREAM: ClassVar[tuple["type[Stage]", ...]] = ()
    FIELDS: ClassVar[tuple[str, ...]] = ()

    _is_complete = False
    _problem = ""  # the last one that was logged

    # What subclasses say

    def bytes_parameters(self) -> dict[str, Any]:
        """The parameters that change this stage's bytes, beside those of its upstream stages."""
        names = (full.split(".") for full in self.FIELDS)
        return {name: self.values(table, name)[name] for table, name in names}

    def requires(self) -> dict[str, "Stage"]:
        return self.cloned(*self.UPSTREAM)

    def parts(self) -> Sequence["Stage"]:
        """The stages that the work itself runs."""
        return ()

    def work(self) -> Result:
        """Write the stage's files into `self.folder` and say what they are."""
        raise NotImplementedError

    # What follows from it

    @functools.cached_property
    def hash8(self) -> str:
        upstream = {name: stage.hash8 for name, stage in self.requires().items()}
        return storage.digest([type(self).__name__, self.VERSION, self.bytes_parameters(), upstream])[:8]

    @property
    def folder(self) -> str:
        # A cluster's workers have other working folders.
        return storage.join(os.path.abspath(self.workdir), f"{self.FOLDER}-{self.hash8}")

    @property
    def where(self) -> str:
        return self.folder

    @property
    def is_listed(self) -> bool:
        """Return whether the folder is one that users look for by the stage's name."""
        return True

    def output(self) -> ManifestTarget:
        return ManifestTarget(self.folder)

    def manifest(self) -> storage.Manifest:
        return storage.read_manifest(self.folder)

    def read_json(self, name: str) -> Any:
        """The content of one of the stage's files."""
        return json.loads(storage.read_bytes(storage.join(self.folder, name)))

    def write_texts(self, texts: Mapping[str, str]) -> None:
        """Write files of these names."""
        for name, text in texts.items():
            storage.write_bytes(storage.join(self.folder, name), text.encode("utf-8", "replace"))

    def identity(self) -> dict[str, Any]:
        """All that decides the stage's bytes; only to be asked when its inputs are there."""
        own = {"stage": type(self).__name__, "version": self.VERSION, "parameters": self.bytes_parameters()}
        return {**own, "inputs": {name: storage.manifest_sha256(each.folder) for name, each in self.requires().items()}}

    def is_current(self) -> bool:
        """Return whether the folder holds what this stage would write now.

        Raises: ValueError: it was made within limits that were laxer than they are now.
        """
        if not self.output().exists():
            return False
        try:
            manifest = self.manifest()
            is_same = all(getattr(manifest, name) == value for name, value in self.identity().items())
        except (ValueError, FileNotFoundError) as problem:
            if str(problem) != self._problem:
                self._problem = str(problem)
                logger.warning("%s", problem)
            return False
        if is_same:
            self.check_limits(manifest)
        return is_same

    def check_limits(self, made: Result) -> None:
        """Check what was made against the limits of the run. Raises: ValueError: one is passed."""

    def is_done(self) -> bool:
        """Current, and nothing in it is to be tried again."""
        return self.is_current()

    def complete(self) -> bool:
        """Done, and all that it requires complete; once found so, it stays so for this run."""
        if not self._is_complete:
            self._is_complete = all(stage.complete() for stage in self.requires().values()) and self.is_done()
        return self._is_complete

    def run(self) -> None:
        """Do the work, unless what is there came out the same, and commit it with the manifest.

        What it is made from is held meanwhile, so that nobody makes that anew.

        Raises: ValueError: an upstream stage is not what it was when the run began, or another run is in the way.
        """
        self._is_complete = False
        storage.make_folder(self.folder)
        if self._came_out_the_same():  # and others may read it
            return
        with contextlib.ExitStack() as held:
            held.enter_context(locks.hold(self.folder))
            if self._came_out_the_same():  # another run has made it while this one waited
                return
            for stage in self.upstream():
                held.enter_context(locks.hold(stage.folder, reads=True))
            for stage in self.requires().values():
                if not stage.is_current():
                    raise ValueError(f"{stage.folder}: has changed since this run began; run it again")
            self._build()

    def _came_out_the_same(self) -> bool:
        if is_done := self.is_done():
            logger.info("%-17s unchanged", type(self).__name__)
        return is_done

    def _build(self) -> None:
        started = time.time()
        was_finished = self.output().exists()
        if was_finished:
            storage.remove(self.output().path)
        if self.KEEPS == "nothing" or (self.KEEPS == "unfinished" and was_finished):
            storage.blocks.sweep(self.folder, {})
        # Before the work: what changes upstream meanwhile must not pass for its input.
        identity = self.identity()
        storage.blocks.clear_if_changed(self.folder, storage.digest(identity))
        result = self.work()
        self.check_limits(result)
        # A cluster's worker may have been killed, and others have done its work.
        storage.files.sweep_temporary(self.folder)
        manifest = storage.Manifest(**identity, **vars(result))
        storage.write_bytes(storage.join(self.folder, RUN_RECORD), _run_record(self, started))
        storage.write_manifest(self.folder, manifest)
        self._list()
        logger.info("%-17s %s | %.1f s", type(self).__name__, self.headline(manifest), time.time() - started)

    def _list(self) -> None:
        """Enter the folder into the list of the work directory's finished stages."""
        if self.is_listed:
            names = {self.title, self.title.partition(" (")[0]}
            storage.record_finished(self.workdir, [(name, self.folder) for name in sorted(names)])

    def headline(self, manifest: storage.Manifest) -> str:
        """A line of the stage's rows and drops."""
        rows = ", ".join(f"{count:,} {name}" for name, count in sorted(manifest.rows.items()))
        drops = ", ".join(f"{count:,} {reason}" for reason, count in sorted(manifest.drops.items()))
        return f"{rows or f'{len(manifest.files)} files'}{f' | dropped: {drops}' if drops else ''}"

    def check(self) -> None:
        """Check that the stage can run, unless it is complete."""
        _ = self.hash8
        if self.complete():
            self._list()
        else:
            self.check_needs()

    def check_needs(self) -> None:
        """Check the needs of this stage alone, beside its inputs."""


def _run_record(stage: Stage, started: float) -> bytes:
    """The facts of a run that depend on time and machine: beside the manifest, never in it."""
    packages = ["apache-beam", "luigi", "mwparserfromhell", "pyarrow", "pyspark", "regex", "sentencex"]
    packages += ["tokenizers", "torch", "transformers"]
    versions = {}
    for package in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    record = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "seconds": round(time.time() - started, 3),
        "host": platform.node(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "command": sys.argv,
        "run": asdict(stage.settings),
        "versions": versions,
    }
    return (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def given_manifest(flag: str, folder: str, stage: str) -> storage.Manifest:
    """The manifest of a folder that a flag names.

    Raises: ValueError: naming the flag, where `read_manifest` finds that it is no finished folder of this stage.
    """
    try:
        return storage.read_manifest(folder, stage)
    except ValueError as error:
        raise ValueError(f"{flag} {error}") from None


def digests(folder: str, names: Iterable[str] | None = None) -> dict[str, str]:
    """SHA-256 of these files of a folder, or of all, but for those that tell when and where a stage of ours ran."""
    names = storage.list_files(folder) if names is None else names
    paths = {name: storage.join(folder, name) for name in names if name not in (RUN_RECORD, storage.blocks.KEY)}
    return {name: _sha256(path, os.stat(path).st_mtime_ns) for name, path in paths.items()}


@functools.cache
def _sha256(path: str, changed: int) -> str:
    """The SHA-256 of a file, read once for each time of its last change."""
    return storage.file_sha256(path)
