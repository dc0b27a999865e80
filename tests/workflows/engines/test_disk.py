"""Scratch goes with its run, however that ends; and a stage is refused where there is no room for it."""

import re
import shutil
import signal
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from pipeline import storage
from pipeline.jobs.extract_pages import PageExtractor
from pipeline.storage.blocks import Block
from tests.support import DATA, ROOT
from tests.support.manifests import write_manifest
from tests.support.stages import changed, run_of
from workflows import BuildMentionTable, ExtractPages, ResolveRedirects
from workflows.base.stage import Stage
from workflows.engines import beam, disk, spark

DUMP = DATA / "wiki-40.xml"
HOLD = """
import sys, time
from workflows.engines import disk
with disk.scratch_folder(sys.argv[1], "--scratch") as folder:
    print(folder, flush=True)
    time.sleep(60)
"""


def test_scratch_goes_with_its_run(tmp_path: Path) -> None:
    root = tmp_path / "new" / "scratch"
    with disk.scratch_folder(str(root), "--scratch") as first, disk.scratch_folder(str(root), "--scratch") as second:
        assert first != second
        (Path(second) / "blocks").mkdir()
        (Path(second) / "blocks" / "shuffle").write_bytes(b"x")
        assert Path(first).is_dir(), "it has an owner"
    assert [path.name for path in root.iterdir()] == [".lock"]


def test_what_a_killed_run_left_goes_when_the_next_begins(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        (left / "shuffle").write_bytes(b"x")
        with disk.scratch_folder(str(tmp_path), "--scratch"):
            assert (left / "shuffle").exists(), "its owner is alive"
        process.send_signal(signal.SIGKILL)
        process.wait()
    (tmp_path / "run-of-somebody-killed-before-the-lock").mkdir()
    (tmp_path / "not ours").mkdir()
    with disk.scratch_folder(str(tmp_path), "--scratch") as own:
        assert {path.name for path in tmp_path.iterdir()} == {".lock", "not ours", Path(own).name}


def test_a_stage_on_beam_clears_up_after_a_killed_run_too(tmp_path: Path) -> None:
    """All stages on Spark may be done by then."""
    disk.sweep_scratch(str(tmp_path))
    assert not list(tmp_path.iterdir()), "nobody has set anything aside"
    root = Path(disk.own_scratch(str(tmp_path)))
    (root / "run-of-somebody-killed").mkdir(parents=True)
    with disk.scratch_folder(str(root), "--scratch") as own:
        (root / "run-of-another-one-killed").mkdir()
        disk.sweep_scratch(str(tmp_path))
        assert {path.name for path in root.iterdir()} == {".lock", Path(own).name}


def test_scratch_that_cannot_be_cleared_stops_nobody_who_needs_none(tmp_path: Path) -> None:
    (tmp_path / ".scratch").write_text("a file")
    disk.sweep_scratch(str(tmp_path))
    assert (tmp_path / ".scratch").is_file()


def test_scratch_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    message = rf"^--scratch {tmp_path}/file: cannot be written or locked \(File exists\); pass another folder"
    with pytest.raises(ValueError, match=message), disk.scratch_folder(str(tmp_path / "file"), "--scratch"):
        pass


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> int:
    """So many bytes are free everywhere."""
    usage = namedtuple("usage", "total used free")
    size = 3_000_000_000
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(size, 0, size))
    return size


def test_what_lies_on_one_file_system_is_added_up(tmp_path: Path, free: int) -> None:
    work, scratch = str(tmp_path), str(tmp_path / "not" / "yet")
    disk.check_room("Stage", {work: ("--workdir", 0.5 * free), scratch: ("--scratch", 0.4 * free)})
    message = (
        f"--workdir {work} and --scratch {scratch}: 3.00 GB are free, and Stage wants 3.07 GB there; "
        "make room, or pass another --workdir or --scratch"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        disk.check_room("Stage", {work: ("--workdir", 0.5 * free), scratch: ("--scratch", 0.5 * free)})


def finish_upstream(stage: Stage, gigabytes: int) -> None:
    """The files that a stage of Spark needs of those before it: manifests, and paragraphs of a size."""
    for each in stage.upstream():
        path = Path(each.folder) / "paragraphs" / "block-00000.parquet"
        path.parent.mkdir(parents=True)
        with path.open("wb") as file:
            file.truncate(gigabytes * 10**9)
        entry = storage.FileEntry("paragraphs/block-00000.parquet", gigabytes * 10**9, "")
        write_manifest(each.folder, type(each).__name__, [entry], rows={"bytes": 1})


def test_a_stage_of_spark_without_room_is_refused_before_spark_starts(
    tmp_path: Path, free: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark, "session_of", lambda *_: pytest.fail("Spark was started"))
    stage = BuildMentionTable(settings=run_of(tmp_path, corpus={"dump": str(DUMP)}))
    finish_upstream(stage, 2)
    with pytest.raises(ValueError, match=rf"^--workdir {tmp_path} and machine.scratch {tmp_path}/\.scr"):
        stage.job()
    monkeypatch.setattr(BuildMentionTable, "NEED", disk.Need(written=0.1, scratch=1.6))
    elsewhere = stage.clone(settings=changed(stage.settings, machine={"scratch": str(tmp_path / "scratch")}))
    with pytest.raises(ValueError, match=rf"machine.scratch {tmp_path}/scratch: 3.* BuildMentionTable"):
        elsewhere.job()
    # Executors of a cluster have disks of their own.
    with pytest.raises(pytest.fail.Exception, match="Spark was started"):
        stage.clone(settings=changed(stage.settings, machine={"spark_master": "spark://a:7077"})).job()
    with pytest.raises(pytest.fail.Exception, match="Spark was started"):
        ResolveRedirects(settings=run_of(tmp_path, corpus={"dump": str(DUMP)})).job()


def test_what_a_stage_already_holds_is_not_wanted_again(
    tmp_path: Path, free: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beam, "run_blocks", lambda *_, **__: {})
    stage = ExtractPages(settings=run_of(tmp_path / "work", corpus={"dump": str(DUMP)}))
    monkeypatch.setattr(ExtractPages, "identity", lambda self: {})
    for name, head in (("dump.bz2", b"BZh91AY&SY"), ("dump.xml", b"<mediawiki")):
        with (tmp_path / name).open("wb") as file:
            file.write(head)
            file.truncate(3 * 10**9)
    blocks = [Block(number, str(tmp_path / "dump.bz2"), number, number + 1) for number in range(3)]
    with pytest.raises(ValueError, match=rf"^--workdir {tmp_path}/work: 3\.00 GB .* ExtractPages"):
        beam.run_beam(stage, PageExtractor, blocks, {})
    (Path(stage.folder) / "paragraphs").mkdir(parents=True)
    with (Path(stage.folder) / "paragraphs" / "block-00000.parquet").open("wb") as file:
        file.truncate(2 * 10**9)
    assert beam.run_beam(stage, PageExtractor, blocks, {}) == {}
    shutil.rmtree(stage.folder)
    assert beam.run_beam(stage, PageExtractor, [Block(0, str(tmp_path / "dump.xml"), 0, 1)], {}) == {}
