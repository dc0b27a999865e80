"""Files that outlast a power cut."""

import os
from pathlib import Path

import pytest

from pipeline import storage


def test_names_are_on_disk_before_the_record_that_lists_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    folder, paths = str(tmp_path), ("a.bin", "pages/a.bin", "pages/b.bin", "x/y/c.bin")
    for record in ("manifest.json", "blocks/block-00007.json"):
        done.clear()
        for path in paths:
            storage.write_bytes(str(tmp_path / path), b"x")
        files = tuple(storage.describe(folder, path) for path in paths)
        if record == "manifest.json":
            storage.write_manifest(folder, storage.Manifest(files, stage="Stage", version=1, parameters={}, inputs={}))
        else:
            storage.blocks.commit_block(folder, "key", 7, storage.Result(files))
        for path in paths:
            between = done[done.index(f"name {path}") : done.index(f"name {record}")]
            assert {"sync .", f"sync {Path(path).parent}"} <= {*between}, (path, done)


def test_a_file_system_without_such_a_call_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "open", lambda *_: (_ for _ in ()).throw(PermissionError("no folder is opened")))
    storage.write_manifest(str(tmp_path), storage.Manifest((), stage="Stage", version=1, parameters={}, inputs={}))
    assert storage.read_manifest(str(tmp_path)).stage == "Stage"
