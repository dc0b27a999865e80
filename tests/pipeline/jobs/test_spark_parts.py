"""Tables that Spark computes: it does not decide their bytes, and what its tasks say is held against what is found."""

import contextlib
import functools
import re
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline import storage
from pipeline.jobs import spark_parts
from pipeline.jobs.spark_parts import SparkJob, check_parts
from tests.support.manifests import write_manifest
from workflows.engines import spark as engine

pytestmark = pytest.mark.slow


@pytest.mark.smoke
def test_parts_are_kept_and_have_the_same_bytes(spark: Any, tmp_path: Path) -> None:
    schema = pa.schema([("word", pa.string()), ("number", pa.int64())])
    # Long and many enough that a column of a row group has several pages, which must not follow Spark's batches.
    rows = [(f"word {number % 1000} " + f"{number:07d}" * 40, number) for number in range(30_000)]

    def write(folder: Path, partitions: int) -> dict[int, storage.Result]:
        frame = spark.createDataFrame(rows, "word string, number long").repartition(partitions)
        job = SparkJob(spark, {}, str(folder), "key", parts=3)
        return job.write(frame, schema, "words", by="word", order=["word", "number"])

    whole = write(tmp_path / "whole", 1)
    broken = tmp_path / "broken"
    write(broken, 7)
    (broken / "blocks/block-00001.json").unlink()
    (broken / "words/block-00001.parquet").write_bytes(b"half")
    kept = (broken / "words/block-00000.parquet").stat().st_mtime_ns
    assert write(broken, 5) == whole
    assert (broken / "words/block-00000.parquet").stat().st_mtime_ns == kept
    assert sum(record.rows["words"] for record in whole.values()) == len(rows)
    assert pq.ParquetFile(tmp_path / "whole/words/block-00000.parquet").metadata.row_group(0).num_rows == 8192


@pytest.mark.smoke
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_groups_are_whole_however_their_batches_come(size: int) -> None:
    pages = [3, 3, 1, 2, 2, 2, 2, 7]
    table = pa.table({"page": pages, "row": range(8)})
    nothing = pa.record_batch({"page": pa.array([], pa.int64()), "row": pa.array([], pa.int64())})
    batches = [nothing, *table.to_batches(max_chunksize=size), nothing]
    found = list(spark_parts.whole_groups(batches, table.schema, "page"))
    assert pa.concat_tables(found) == table
    assert sum(len(set(each.column("page").to_pylist())) for each in found) == len(set(pages))


def test_a_task_that_outlives_its_run_writes_into_no_folder_of_another_key(tmp_path: Path) -> None:
    """Its driver was killed, and a run of other inputs has taken the folder over while it computed."""
    path = tmp_path / "words/block-00000.parquet"
    for change in ("other", "removed", ""):
        storage.blocks.clear_if_changed(str(tmp_path), "key")

        def batches(change: str = change) -> Iterator[pa.RecordBatch]:
            yield pa.record_batch({"word": ["a"]})
            if change:
                storage.blocks.clear_if_changed(str(tmp_path), "other")
            if change == "removed":
                (tmp_path / storage.blocks.KEY).unlink()
            yield pa.record_batch({"word": ["b"]})

        options = (spark_parts._while_ours(batches(), str(tmp_path), "key"), SMALL, str(path), 8)
        if change:
            with pytest.raises(OSError, match=r"key\.txt is (that of another folder|not there)") as failure:
                spark_parts._write_part(*options)
            assert failure.value.errno in spark_parts._OF_DISK
            assert storage.list_files(str(tmp_path)) == [storage.blocks.KEY] * (change == "other")
        else:
            assert spark_parts._write_part(*options) == 2
            assert path.is_file()


def test_somebody_who_watches_sees_how_far_spark_is(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tasks of the jobs that begin meanwhile, and of no others."""
    seen: list[tuple[int, int]] = []

    @contextlib.contextmanager
    def bar(name: str, *, unit: str) -> Iterator[Callable[[int, int], None]]:
        yield lambda done, total: seen.append((done, total))

    for name, value in {"on_terminal": lambda: True, "progress_bar": bar, "_LOOK_SECONDS": 0.02}.items():
        monkeypatch.setattr(engine, name, value)

    def work(number: int) -> int:
        time.sleep(0.5)
        return number

    assert spark.range(100).count() == 100
    with engine.shown_tasks("words"):
        for tasks in (6, 4):
            assert sum(spark.sparkContext.parallelize(range(tasks), tasks).map(work).collect()) > 0
    assert (seen[0][0], seen[-1]) == (0, (10, 10))
    assert seen == sorted(seen)
    assert any(0 < done < total == 6 for done, total in seen)


SMALL = pa.schema([("word", pa.string())])


def words(spark: Any, count: int = 40) -> Any:
    return spark.createDataFrame([(f"word {number}",) for number in range(count)], "word string")


def write_words(spark: Any, folder: Path, parts: int = 2, **options: Any) -> dict[int, storage.Result]:
    job = SparkJob(spark, {}, str(folder), "key", parts, **options)
    return job.write(words(spark), SMALL, "words", by="word", order=["word"])


def test_what_was_checked_is_what_counts(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shared file system may list files late that are found by their names."""
    monkeypatch.setattr(storage.blocks, "finished_blocks", lambda *_: {})
    written = write_words(spark, tmp_path)
    assert sum(record.rows["words"] for record in written.values()) == 40


def test_a_worker_that_does_not_see_the_folder_is_named_and_writes_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage.blocks, "clear_if_changed", lambda folder, key: None)
    line = rf"^{socket.gethostname()}: {tmp_path}/stage/key\.txt is not there; {storage.blocks.SHARED}"
    with pytest.raises(ValueError, match=line):
        write_words(spark, tmp_path / "stage", patience=0)
    assert storage.list_files(str(tmp_path)) == []


def test_a_worker_that_cannot_write_is_told_with_its_host(spark: Any, tmp_path: Path) -> None:
    storage.blocks.clear_if_changed(str(tmp_path), "key")
    (tmp_path / "words").symlink_to("/sys/kernel")  # where nobody may write
    line = f"^{socket.gethostname()}: {tmp_path}/words/block-0000[01].parquet cannot be written "
    with pytest.raises(ValueError, match=line + r"\(.+\); mend that, and the same command goes on from here"):
        write_words(spark, tmp_path)


PART = "words/block-00001.parquet"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def spoil(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_parts_that_are_not_as_their_tasks_wrote_them_are_refused(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run makes them again, and them alone."""
    files, records = (tmp_path / "words", ".parquet"), (tmp_path / "blocks", ".json")

    def of(number: int, kind: tuple[Path, str] = files) -> Path:
        return kind[0] / f"{storage.block_name(number)}{kind[1]}"

    def check_after(*arguments: Any) -> Any:
        of(0).unlink()
        cut(of(1))
        spoil(of(2))
        of(3, records).unlink()
        return check_parts(*arguments)

    monkeypatch.setattr(spark_parts, "check_parts", check_after)
    with pytest.raises(ValueError, match="parts are not found as they were written within 0 s") as error:
        write_words(spark, tmp_path, parts=5, patience=0)
    assert str(error.value).startswith(f"{tmp_path}: 4 of 5 parts")
    host = spark_parts.socket.gethostname()
    found = re.findall(r"part (\d) \((\S+): ([^)]+)\)", str(error.value))
    assert [(number, name) for number, name, _ in found] == [(number, host) for number in "0123"]
    size = of(1).stat().st_size
    problems = ["missing", f"{size} of {size + 1} bytes", "other content", "its record is missing"]
    assert [problem for *_, problem in found] == problems
    assert f"; {storage.blocks.SHARED}; run the stage again, the others are kept" in str(error.value)
    kept = of(4).stat().st_mtime_ns
    monkeypatch.undo()
    blocks = write_words(spark, tmp_path, parts=5, patience=0)
    assert sum(record.rows["words"] for record in blocks.values()) == 40
    assert of(4).stat().st_mtime_ns == kept


@pytest.mark.smoke
def test_a_kept_part_has_to_be_the_one_that_was_committed(spark: Any, tmp_path: Path) -> None:
    """Its size is right: only its SHA-256 tells."""
    write_words(spark, tmp_path)
    spoil(tmp_path / PART)
    with pytest.raises(ValueError, match=r"part 1 \(\S+: other content\)"):
        write_words(spark, tmp_path, patience=0)
    assert len(write_words(spark, tmp_path, patience=0)) == 2


@pytest.mark.smoke
def test_lost_rows_are_noticed(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All parts agree with what their tasks say, and have fewer rows than the table."""

    def check_less(*arguments: Any) -> Any:
        found = check_parts(*arguments)
        return {number: replace(record, rows={"words": 1}) for number, record in found.items()}

    monkeypatch.setattr(spark_parts, "check_parts", check_less)
    with pytest.raises(ValueError, match="/words: has 2 rows in 2 files, of 40 that were to be written"):
        write_words(spark, tmp_path)
    assert storage.blocks.finished_blocks(str(tmp_path), "key") == {}


def test_rows_that_spark_counts_twice_are_counted_anew(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does after it has lost an executor."""
    total, one = spark_parts.F.sum, functools.partial(spark_parts.F.lit, 2)
    monkeypatch.setattr(spark_parts.F, "count", lambda _: total(one()))
    assert len(write_words(spark, tmp_path)) == 2


def test_a_file_that_a_worker_alone_does_not_see(spark: Any, tmp_path: Path) -> None:
    """It is not to be deleted."""
    path = tmp_path / "a b.parquet"
    pq.write_table(pa.table({"x": [1]}), path)
    table = spark.read.parquet(f"file://{path}")
    hidden = path.rename(tmp_path / "hidden")
    with pytest.raises(Exception, match="FILE_NOT_EXIST") as failure:
        table.collect()
    assert spark_parts.unreadable_file(failure.value) == str(path)
    hidden.rename(path)
    with pytest.raises(ValueError, match=rf"^{path}: was not there for a worker, and now is; "):
        spark_parts.unreadable_file(failure.value)


def test_reading_leaves_no_file_out(spark: Any, tmp_path: Path) -> None:
    """Of more than 32 files Spark would have its executors look which are there."""
    files = []
    for number in range(40):
        with storage.parquet_rows(str(tmp_path / f"words/{number:02}.parquet"), SMALL) as rows:
            rows.extend([(f"word {number}",)])
        files.append(storage.describe(str(tmp_path), f"words/{number:02}.parquet", 1))
    write_manifest(tmp_path, "Stage", files)
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    before = len(spark.sparkContext.statusTracker().getJobIdsForGroup())
    table = SparkJob(spark, {"Stage": str(tmp_path)}, "", "", parts=1).read("Stage", "words/")
    listings = len(spark.sparkContext.statusTracker().getJobIdsForGroup()) - before
    assert listings <= 1, "the schema's alone"
    (tmp_path / "words/07.parquet").unlink()
    with pytest.raises(Exception, match="FILE_NOT_EXIST"):
        table.collect()
