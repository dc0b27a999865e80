"""Manifests, atomic visibility, also after a power cut, and blocks."""

import errno
import hashlib
import os
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import storage

SCHEMA = pa.schema([("number", pa.int64())])


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "stage")


def put(folder: str, path: str, content: bytes) -> storage.FileEntry:
    storage.make_folder(os.path.dirname(storage.join(folder, path)))
    storage.write_bytes(storage.join(folder, path), content)
    return storage.describe(folder, path)


def manifest_of(*files: storage.FileEntry) -> storage.Manifest:
    return storage.Manifest(
        files, rows=Counter(kept=2), stage="Stage", version=1, parameters={"b": 1, "a": [2]}, inputs={"Below": "00"}
    )


def test_manifest_round_trip(folder: str) -> None:
    manifest = manifest_of(put(folder, "table/x.bin", b"123"), put(folder, "y.bin", b""))
    storage.write_manifest(folder, manifest)
    assert storage.read_manifest(folder) == manifest
    assert storage.manifest_sha256(folder) == hashlib.sha256(manifest.to_bytes()).hexdigest()
    assert manifest.paths(folder, "table/") == [storage.join(folder, "table/x.bin")]


def test_equal_manifests_have_equal_bytes(tmp_path: Path) -> None:
    entry = put(str(tmp_path), "x", b"1")
    other = storage.Manifest(
        (entry,), rows={"kept": 2}, stage="Stage", version=1, parameters={"a": [2], "b": 1}, inputs={"Below": "00"}
    )
    assert manifest_of(entry).to_bytes() == other.to_bytes()


def test_missing_manifest(folder: str) -> None:
    with pytest.raises(ValueError, match="stage: no such folder; run the stage that makes it first"):
        storage.read_manifest(folder)
    os.makedirs(folder)
    with pytest.raises(ValueError, match=r"manifest\.json: not there"):
        storage.read_manifest(folder)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"{", b'{"files": [{"path": 1}]}', b'{"files": [], "x": 1}'])
def test_broken_manifest(folder: str, content: bytes) -> None:
    put(folder, storage.MANIFEST, content)
    with pytest.raises(ValueError, match="not a manifest"):
        storage.read_manifest(folder)


@pytest.mark.parametrize(("change", "message"), [(b"12", "2 bytes, but the manifest says 3"), (None, "missing")])
def test_manifest_notices_changed_files(folder: str, change: bytes | None, message: str) -> None:
    storage.write_manifest(folder, manifest_of(put(folder, "x.bin", b"123")))
    path = storage.join(folder, "x.bin")
    storage.remove(path)
    if change is not None:
        storage.write_bytes(path, change)
    with pytest.raises(ValueError, match=message):
        storage.read_manifest(folder)


def test_failed_output_leaves_nothing(folder: str) -> None:
    storage.make_folder(folder)
    path = storage.join(folder, "x.bin")

    def fail() -> None:
        with storage.atomic_output(path) as stream:
            stream.write(b"half")
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        fail()
    assert storage.list_files(folder) == []
    storage.write_bytes(path, b"whole")
    with pytest.raises(RuntimeError):
        fail()
    assert storage.read_bytes(path) == b"whole"


@pytest.mark.parametrize("sweep", [lambda folder: storage.blocks.sweep(folder, {}), storage.files.sweep_temporary])
def test_output_killed_in_the_middle_is_not_there(tmp_path: Path, sweep: Callable[[str], object]) -> None:
    """SIGKILL while writing: the name does not exist, and the sweep takes what was begun."""
    code = (
        "import os, signal\n"
        "from pipeline import storage\n"
        f"with storage.atomic_output({str(tmp_path / 'x.bin')!r}) as stream:\n"
        "    stream.write(b'half'); stream.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    left = storage.list_files(str(tmp_path))
    assert len(left) == 1
    assert left[0] != "x.bin"
    sweep(str(tmp_path))
    assert storage.list_files(str(tmp_path)) == []


def test_only_what_writers_leave_is_swept(tmp_path: Path) -> None:
    for name in ("x.bin", ".y.tmp", f".z.{'0' * 32}.tmp", f".folder.{'0' * 32}.tmp/x.bin"):
        storage.write_bytes(str(tmp_path / name), b"")
    storage.files.sweep_temporary(str(tmp_path))
    assert storage.list_files(str(tmp_path)) == [".y.tmp", "x.bin"]


def test_two_writers_of_one_path_never_share_a_file(tmp_path: Path) -> None:
    """Processes of two machines can have the same id."""
    target = str(tmp_path / "x.bin")
    with storage.files.atomic_path(target) as first, storage.files.atomic_path(target) as second:
        Path(first).write_text("first")
        Path(second).write_text("second")
    assert Path(target).read_text() == "first"
    assert storage.list_files(str(tmp_path)) == ["x.bin"]


def test_names_are_on_disk_before_the_record_that_lists_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut leaves no record without its files, where a file system keeps no order between renames."""
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


def test_a_folder_is_there_as_a_whole(tmp_path: Path) -> None:
    """A new one takes the place of the old one with all its files; one that fails leaves the old one."""
    target = tmp_path / "model"

    def fill(name: str, *, fail: bool = False) -> None:
        with storage.atomic_folder(str(target)) as aside:
            (Path(aside) / name).write_text(name)
            if fail:
                raise RuntimeError

    fill("old")
    fill("new")
    with pytest.raises(RuntimeError):
        fill("failed", fail=True)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["new"]


def commit(folder: str, number: int, content: bytes, key: str = "key") -> None:
    entry = put(folder, f"table/{storage.block_name(number)}.bin", content)
    record = storage.Result((entry,), Counter(rows=len(content)), Counter({"x:bad": 1}), {"words": number})
    storage.blocks.commit_block(folder, key, number, record)


def test_blocks_are_kept_swept_and_merged(folder: str) -> None:
    for number in (2, 0, 1):
        commit(folder, number, b"x" * number)
    put(folder, "table/block-00009.bin", b"written, not committed")
    put(folder, storage.MANIFEST, b"{}")
    blocks = storage.blocks.finished_blocks(folder, "key")
    assert sorted(blocks) == [0, 1, 2]
    assert storage.blocks.sweep(folder, blocks) == 2
    merged = storage.merge_blocks(blocks)
    assert [entry.path for entry in merged.files] == [f"table/block-0000{number}.bin" for number in range(3)]
    assert (merged.rows, merged.drops, merged.facts) == ({"rows": 3}, {"x:bad": 3}, {"words": 3})


def test_blocks_of_other_inputs_or_sizes_do_not_count(folder: str) -> None:
    commit(folder, 0, b"good")
    commit(folder, 1, b"other input", key="other")
    commit(folder, 2, b"cut")
    storage.write_bytes(storage.join(folder, "table/block-00002.bin"), b"cu")
    commit(folder, 3, b"gone")
    storage.remove(storage.join(folder, "table/block-00003.bin"))
    put(folder, "blocks/block-00004.json", b"{half")
    assert list(storage.blocks.finished_blocks(folder, "key")) == [0]


def test_claim_removes_what_was_made_from_something_else(folder: str) -> None:
    storage.make_folder(folder)
    storage.blocks.clear_if_changed(folder, "one")
    put(folder, "checkpoint", b"1")
    storage.blocks.clear_if_changed(folder, "one")
    assert "checkpoint" in storage.list_files(folder)
    storage.blocks.clear_if_changed(folder, "two")
    assert storage.list_files(folder) == [storage.blocks.KEY]


class Clock:
    """Time that goes by when somebody sleeps, and what happens at a time."""

    def __init__(self, **events: Callable[[], object]) -> None:
        self.now = 0.0
        self.events = {float(name.removeprefix("at_")): event for name, event in events.items()}

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for due in [time for time in self.events if time <= self.now]:
            self.events.pop(due)()


def awaited(folder: str, clock: Clock) -> list[int]:
    with mock.patch("pipeline.storage.blocks.time", clock):
        return list(storage.blocks.await_blocks(folder, "key", [0, 1], 60))


def test_what_shows_late_is_waited_for(folder: str, tmp_path: Path) -> None:
    for number in range(2):
        commit(folder, number, b"x" * 9)
    late = Path(folder, "table/block-00001.bin")
    elsewhere = late.rename(tmp_path / "elsewhere")
    clock = Clock(at_20=lambda: elsewhere.rename(late))
    assert awaited(folder, clock) == [0, 1]
    assert 20 <= clock.now < 21
    record = Path(folder, "blocks/block-00000.json")
    elsewhere = record.rename(tmp_path / "elsewhere")
    assert awaited(folder, Clock(at_59=lambda: elsewhere.rename(record))) == [0, 1]


def test_what_does_not_show_within_a_minute_is_left_out(folder: str) -> None:
    for number in range(2):
        commit(folder, number, b"x" * 9)
    Path(folder, "table/block-00001.bin").write_bytes(b"cut")
    clock = Clock()
    assert awaited(folder, clock) == [0]
    assert 60 <= clock.now < 61
    storage.blocks.forget_blocks(folder, [0, 1, 2])
    assert storage.blocks.finished_blocks(folder, "key") == {}


def test_a_worker_knows_the_folder_by_its_key(folder: str) -> None:
    """A folder that is not seen is not created, and a line says where, what and what to do."""
    host = socket.gethostname()
    assert storage.blocks.unseen(folder, "key", 0) == f"{host}: {folder}/key.txt is not there; {storage.blocks.SHARED}"
    assert not Path(folder).exists()
    storage.blocks.clear_if_changed(folder, "other")
    assert f"{folder}/key.txt is that of another folder" in storage.blocks.unseen(folder, "key", 0)
    storage.blocks.clear_if_changed(folder, "key")
    assert storage.blocks.unseen(folder, "key", 0) == ""
    (Path(folder) / "key.txt").unlink()
    (Path(folder) / "key.txt").symlink_to("key.txt")  # an error as a dead mount gives one
    line = f"{host}: {folder}/key.txt cannot be read ({os.strerror(errno.ELOOP)}); {storage.blocks.SHARED}"
    assert storage.blocks.unseen(folder, "key", 0) == line


def test_a_worker_waits_for_the_folder(folder: str) -> None:
    timer = threading.Timer(0.2, storage.blocks.clear_if_changed, (folder, "key"))
    timer.start()
    assert storage.blocks.unseen(folder, "key", 60) == ""
    timer.join()


@settings(max_examples=20)
@given(st.lists(st.integers(0, 2 * storage.parquet.ROW_GROUP_ROWS), max_size=4))
def test_parquet_bytes_do_not_depend_on_how_rows_come(
    tmp_path_factory: pytest.TempPathFactory, portions: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    numbers = iter(range(sum(portions)))
    with storage.parquet_rows(str(folder / "portions.parquet"), SCHEMA) as rows:
        for size in portions:
            rows.extend([(number,) for number in islice(numbers, size)])
    with storage.parquet_rows(str(folder / "at-once.parquet"), SCHEMA) as rows:
        rows.extend([(number,) for number in range(sum(portions))])
    assert rows.count == sum(portions)
    file = pq.ParquetFile(folder / "portions.parquet")
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    assert all(size == storage.parquet.ROW_GROUP_ROWS for size in sizes[:-1])
    rows_read = storage.read_rows(str(folder / "portions.parquet"))
    assert [row["number"] for row in rows_read] == list(range(sum(portions)))
    assert (folder / "portions.parquet").read_bytes() == (folder / "at-once.parquet").read_bytes()


def test_corrupt_parquet_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1 this is no table PAR1")
    with pytest.raises(ValueError, match=r"x\.parquet: not readable as Parquet"):
        list(storage.read_rows(str(path)))


def test_unwritable_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"file/below: cannot be created .*--workdir"):
        storage.make_folder(str(tmp_path / "file" / "below"))


def test_columns_are_added_up_and_counted(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("a.parquet", "b.parquet")]
    for path, texts in zip(paths, (["é", "b", "b"], ["b", "日本", "a"]), strict=True):
        pq.write_table(pa.table({"text": texts, "number": [1, 2, None]}), path)
    assert storage.parquet.sum_column(paths, "number") == 6
    assert storage.parquet.count_values(paths, "text") == {"a": 1, "b": 3, "é": 1, "日本": 1}
