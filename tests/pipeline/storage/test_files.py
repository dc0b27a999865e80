"""Files that outlast a power cut."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline import storage


def commit_manifest(folder: str, files: tuple[storage.FileEntry, ...]) -> None:
    storage.write_manifest(folder, storage.Manifest("Stage", 1, {}, {}, files))


def commit_block(folder: str, files: tuple[storage.FileEntry, ...]) -> None:
    storage.commit_block(folder, "key", 7, storage.Result(files))


@pytest.mark.parametrize(
    ("commit", "record"), [(commit_manifest, "manifest.json"), (commit_block, "blocks/block-00007.json")]
)
def test_names_are_on_disk_before_the_record_that_lists_them(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    commit: Callable[[str, tuple[storage.FileEntry, ...]], None],
    record: str,
) -> None:
    """Where a file system keeps no order between renames, a power cut would leave a record without its files."""
    done: list[str] = []
    sync, replace = os.fsync, os.replace

    def fsync(handle: int) -> None:
        done.append(f"sync {Path(os.readlink(f'/proc/self/fd/{handle}')).relative_to(tmp_path)}")
        sync(handle)

    def rename(old: str, new: str) -> None:
        done.append(f"name {Path(new).relative_to(tmp_path)}")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", rename)
    paths = ("a.bin", "pages/a.bin", "pages/b.bin", "x/y/c.bin")
    for path in paths:
        storage.write_bytes(str(tmp_path / path), b"x")
    commit(str(tmp_path), tuple(storage.describe(str(tmp_path), path) for path in paths))
    committed = done.index(f"name {record}")
    for path in paths:
        named, folder = done.index(f"name {path}"), f"sync {Path(path).parent}"
        assert folder in done[named:committed], (path, done)
    assert "sync ." in done[:committed], "where its folders have their names"


def test_a_file_system_without_such_a_call_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "open", lambda *_: (_ for _ in ()).throw(PermissionError("no folder is opened")))
    commit_manifest(str(tmp_path), ())
    assert storage.read_manifest(str(tmp_path)).stage == "Stage"
