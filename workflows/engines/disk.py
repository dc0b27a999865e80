"""Disk: a folder for what a run sets aside while it works, and whether there is room for a stage's work."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline import storage
from pipeline.storage.locks import one_at_a_time
from workflows.base.stage import Stage

_LOCK, _ROOT_LOCK = "owner.lock", ".lock"
_SLACK = 64 << 20  # bytes that the smallest stage may take


@dataclass(frozen=True)
class Need:
    """Bytes on disk for each byte of the dump, as bzip2 packs it; for stages that read none, of ExtractPages' files."""

    written: float  # by the stage
    scratch: float = 0.0  # what Spark sets aside meanwhile


@contextlib.contextmanager
def scratch_folder(root: str, flag: str) -> Iterator[str]:
    """A new folder below the root, which goes at the end; those whose processes were killed go at once.

    Raises: ValueError: the root cannot be written, or its file system has no locks.
    """
    try:
        os.makedirs(root, exist_ok=True)
        with one_at_a_time(os.path.join(root, _ROOT_LOCK)):
            _remove_abandoned(root)
            folder = tempfile.mkdtemp(prefix="run-", dir=root)
            lock = open(os.path.join(folder, _LOCK), "a")  # noqa: SIM115 - held until the end
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise ValueError(
            f"{flag} {root}: cannot be written or locked ({error.strerror or error}); pass another folder"
        ) from None
    try:
        yield folder
    finally:
        lock.close()
        shutil.rmtree(folder, ignore_errors=True)


def own_scratch(workdir: str) -> str:
    """The folder for what runs set aside, where the user names none."""
    return os.path.join(os.path.abspath(workdir), ".scratch")


def sweep_scratch(workdir: str) -> None:
    """Remove what killed runs have left in the work directory, as far as this run may.

    For runs that set nothing aside themselves, and so need not be able to.
    """
    root = own_scratch(workdir)
    with contextlib.suppress(OSError), one_at_a_time(os.path.join(root, _ROOT_LOCK)):
        _remove_abandoned(root)


def _remove_abandoned(root: str) -> None:
    """Remove the folders that nobody holds any more."""
    for entry in os.scandir(root):
        if entry.is_dir() and entry.name.startswith("run-"):
            path = os.path.join(entry.path, _LOCK)
            with contextlib.suppress(BlockingIOError, FileNotFoundError), open(path, "a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(entry.path, ignore_errors=True)


def check_stage(stage: Stage, need: Need, input_bytes: float, scratch: str = "") -> None:
    """Check that there is room for a stage's work; what its folder already holds is not wanted again.

    `scratch` is the folder for what Spark sets aside; empty where that is not known. Raises: ValueError: there is not.
    """
    names = storage.list_files(stage.folder)
    held = sum(storage.file_size(storage.join(stage.folder, name)) or 0 for name in names)
    wanted = {stage.workdir: ("--workdir", max(0.0, need.written * input_bytes - held))}
    if scratch:
        wanted[scratch] = ("machine.scratch", need.scratch * input_bytes)
    check_room(type(stage).__name__, wanted)


def check_room(name: str, wanted: Mapping[str, tuple[str, float]]) -> None:
    """Check that there is room for the work of a stage of that name.

    `wanted` has for each folder, which need not be there yet, the flag that chooses it and the bytes that go there.
    Raises: ValueError: a file system has less; those that lie on one are added up.
    """
    by_device: dict[int, list[str]] = {}
    for folder in wanted:
        by_device.setdefault(os.stat(_existing(folder)).st_dev, []).append(folder)
    for folders in by_device.values():
        total = sum(wanted[folder][1] for folder in folders) + _SLACK
        free = shutil.disk_usage(_existing(folders[0])).free
        if free < total:
            places = " and ".join(f"{wanted[folder][0]} {folder}" for folder in folders)
            flags = " or ".join(dict.fromkeys(wanted[folder][0] for folder in folders))
            raise ValueError(
                f"{places}: {free / 1e9:.2f} GB are free, and {name} wants {total / 1e9:.2f} GB there; "
                f"make room, or pass another {flags}"
            )


def _existing(folder: str) -> Path:
    """The folder, or the nearest around it that is there."""
    path = Path(folder).absolute()
    return next(each for each in (path, *path.parents) if each.is_dir())
