"""Tables that Spark computes and whose bytes it does not decide.

Spark computes, pyarrow writes: a fixed number of partitions by key, sorted by a total order, each written as one
file by rename. So the bytes do not depend on the master, the number of cores, or on interruptions. What the tasks say
that they wrote is held against what is found.
"""

import errno
import functools
import os
import re
import socket
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkContext, StorageLevel, TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline import storage
from pipeline.jobs.spark_session import READING
from pipeline.storage.blocks import SHARED

_BLOCKS_PER_PART = 4
_SHOWN = 5  # parts in a message
_OF_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE)
_WRITTEN = "part long, host string, problem string, path string, bytes long, sha256 string, rows long"


def keep(frame: DataFrame) -> DataFrame:
    """The same rows, computed once and kept on disk until `release`: kept in memory they would grow with the dump."""
    return frame.persist(StorageLevel.DISK_ONLY)


def whole_groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema, column: str) -> Iterator[pa.Table]:
    """The rows of batches, in which those of one value of a column follow each other, cut between values alone."""
    pending = schema.empty_table()
    for batch in batches:
        table = pa.concat_tables([pending, pa.Table.from_batches([batch]).cast(schema)])
        values = table.column(column)
        cut = pc.index(values, values[-1]).as_py() if len(values) else 0  # behind it the last value may go on
        yield table.slice(0, cut)
        pending = table.slice(cut)
    yield pending


def part_count(paths: Sequence[str], block_bytes: int) -> int:
    """Number of partitions for these files: a function of their sizes alone."""
    total = sum(storage.file_size(path) or 0 for path in paths)
    return max(1, min(4096, -(-total // (_BLOCKS_PER_PART * block_bytes))))


@dataclass(frozen=True)
class SparkJob:
    """The work of one stage: the stages that it reads, and the folder that it fills."""

    session: SparkSession
    inputs: Mapping[str, str]  # the folder of each stage that is read
    folder: str
    key: str  # the digest of all that decides the stage's bytes
    parts: int  # files of a table; joins and counts use as many partitions
    patience: float = storage.blocks.PATIENCE_SECONDS

    def check_workers(self) -> None:
        """Find out before hours of work whether the executors see the stage's folder; one that comes later will say so.

        Raises: ValueError: one does not.
        """
        context = self.session.sparkContext
        if str(context.master).startswith("local"):
            return
        look = functools.partial(storage.blocks.unseen, self.folder, self.key, self.patience)
        raise_problem(run_on_executors(context, look))

    def manifest(self, stage: str) -> storage.Manifest:
        return storage.read_manifest(self.inputs[stage])

    def paths(self, stage: str, table: str) -> list[str]:
        """The files of a table, which is a folder or one file of the stage."""
        return self.manifest(stage).paths(self.inputs[stage], table)

    def read(self, stage: str, table: str) -> DataFrame:
        """A table as a DataFrame, a file of which is a partition: rows that lie together stay together."""
        for name, value in {**READING, "spark.sql.shuffle.partitions": str(self.parts)}.items():
            self.session.conf.set(name, value)
        # Spark takes paths for patterns.
        urls = (f"file://{os.path.abspath(path)}" for path in self.paths(stage, table))
        return self.session.read.parquet(*(re.sub(r"([][{}*?\\])", r"\\\1", url) for url in urls))

    def write(
        self,
        frame: DataFrame,
        schema: pa.Schema,
        table: str,
        *,
        by: str,
        order: Sequence[str] = (),
        first: int = 0,
        group_rows: int = storage.parquet.ROW_GROUP_ROWS,
    ) -> dict[int, storage.Result]:
        """Write a DataFrame as Parquet files, each committed as a block; committed ones are kept.

        A row's file follows from the column `by`, its place there from `order`, a total one; empty: `by` alone. Blocks
        are numbered from `first` on, behind those of the stage's other tables. Return the table's blocks, by number.
        Raises: ValueError: a worker's machine does not see the folder, or a part or a row is lost.
        """
        # The workers get these, and not the session.
        folder, key, patience = self.folder, self.key, self.patience
        storage.blocks.clear_if_changed(folder, key)  # by it they know the folder
        kept = storage.blocks.finished_blocks(folder, key)
        kept_numbers = set(kept)

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            context = TaskContext.get()
            assert context is not None
            number = first + context.partitionId()
            written = Written(number, socket.gethostname(), storage.blocks.unseen(folder, key, patience))
            if not written.problem and number not in kept_numbers:
                path = f"{table}/{storage.block_name(number)}.parquet"
                try:
                    ours = _while_ours(batches, folder, key)
                    count = _write_part(ours, schema, storage.join(folder, path), group_rows)
                    entry = storage.describe(folder, path, count)
                    storage.blocks.commit_block(folder, key, number, storage.Result((entry,), {table: count}))
                    written = written._replace(path=path, bytes=entry.bytes, sha256=entry.sha256, rows=count)
                except OSError as error:
                    if error.errno not in _OF_DISK:
                        raise
                    problem = (
                        f"{written.host}: {folder}/{path} cannot be written ({error.strerror}); "
                        "mend that, and the same command goes on from here"
                    )
                    written = written._replace(problem=problem)
            yield pa.RecordBatch.from_pylist([written._asdict()])

        frame = frame.select(*schema.names)
        # Counted in the JVM before the shuffle: a pass of its own would compute the table twice.
        observed = frame.observe("rows", F.count(F.lit(1)).alias("rows"))
        ordered = observed.repartition(self.parts, by).sortWithinPartitions(*(order or (by,)))
        done = ordered.mapInArrow(write, _WRITTEN)
        written = [Written(*row) for row in done.collect()]
        found = check_parts(folder, key, range(first, first + self.parts), written, kept, patience)
        self._check_rows(table, found, frame, done)
        return found

    def _check_rows(self, table: str, found: Mapping[int, storage.Result], frame: DataFrame, done: DataFrame) -> None:
        """Check whether the files of a table have the rows of the frame. Raises: ValueError: they have not."""
        count = sum(record.rows[table] for record in found.values())
        observed = done._jdf.queryExecution().observedMetrics().get("rows")
        if observed.isDefined() and observed.get().getLong(0) == count:
            return
        # Where an executor was lost, Spark does its work again and counts it twice: only a pass of its own is sure.
        if (wanted := frame.count()) != count:
            storage.blocks.forget_blocks(self.folder, found)
            raise ValueError(
                f"{self.folder}/{table}: has {count:,} rows in {len(found)} files, of {wanted:,} that were to be "
                "written; run its stage again"
            )


def _while_ours(batches: Iterator[pa.RecordBatch], folder: str, key: str) -> Iterator[pa.RecordBatch]:
    """The batches. Raises: OSError behind the last: the folder is of another key; the driver was killed meanwhile."""
    yield from batches
    if problem := storage.blocks.unseen(folder, key, patience=0):
        raise OSError(errno.ESTALE, problem)


def _write_part(batches: Iterator[pa.RecordBatch], schema: pa.Schema, path: str, group_rows: int) -> int:
    """Write the batches as one file; the number of rows."""
    count = 0
    pending: list[pa.RecordBatch] = []
    with storage.atomic_output(path) as stream, storage.parquet.parquet_writer(stream, schema) as writer:
        # Spark's batches differ in size from run to run: row groups are cut anew.
        for batch in batches:
            pending.append(batch.cast(schema))
            count += batch.num_rows
            table = pa.Table.from_batches(pending, schema)
            while table.num_rows >= group_rows:
                # In one piece: a page of Parquet never spans two.
                writer.write_table(table.slice(0, group_rows).combine_chunks())
                table = table.slice(group_rows)
            pending = table.to_batches()
        writer.write_table(pa.Table.from_batches(pending, schema).combine_chunks())
    return count


# What the tasks say


Records = Mapping[int, storage.Result]  # of parts, by their numbers


class Written(NamedTuple):
    """A task's words about its part: the file that it wrote, or why it did not; none of one that is kept."""

    part: int
    host: str
    problem: str = ""
    path: str = ""
    bytes: int = 0
    sha256: str = ""
    rows: int = 0


def check_parts(
    folder: str, key: str, numbers: Sequence[int], written: Iterable[Written], kept: Records, patience: float
) -> dict[int, storage.Result]:
    """Hold what tasks say that they wrote against what is found: record, size, rows and SHA-256 of every part.

    `kept` are the records of the parts that were there before; what shows late is waited for. Return the record of
    each part. Raises: ValueError: names the parts that are not there or not the same, and their hosts. They are made
    again by the next run.
    """
    said = {each.part: each for each in written}
    raise_problem(each.problem for each in said.values())
    found = storage.blocks.await_blocks(folder, key, numbers, patience)

    def problem(number: int) -> str:
        if number not in said:
            return "no task wrote it"
        each, record = said[number], found.get(number)
        wanted = kept.get(number) or storage.Result((storage.FileEntry(each.path, each.bytes, each.sha256, each.rows),))
        (entry,) = wanted.files
        path = storage.join(folder, entry.path)
        if record is None:
            size = storage.file_size(path)
            state = "its record is missing" if size == entry.bytes else f"{size} of {entry.bytes} bytes"
            return f"{each.host}: {'missing' if size is None else state}"
        if record.files != wanted.files or storage.file_sha256(path) != entry.sha256:
            return f"{each.host}: other content"
        return ""

    with ThreadPoolExecutor() as pool:
        problems = dict(zip(numbers, pool.map(problem, numbers), strict=True))
    if wrong := [number for number in numbers if problems[number]]:
        storage.blocks.forget_blocks(folder, wrong)
        shown = ", ".join(f"part {number} ({problems[number]})" for number in wrong[:_SHOWN])
        raise ValueError(
            f"{folder}: {len(wrong)} of {len(numbers)} parts are not found as they were written within {patience:g} s: "
            f"{shown}{', ...' * (len(wrong) > _SHOWN)}; {SHARED}; run the stage again, the others are kept"
        )
    return found


def raise_problem(problems: Iterable[str]) -> None:
    """Raise a ValueError with what a worker says of a folder that it does not see or cannot write, if one does."""
    if lines := sorted(set(problems) - {""}):
        others = f" (and {len(lines) - 1} more such lines)" if len(lines) > 1 else ""
        raise ValueError(lines[0] + others)


def unreadable_file(error: BaseException) -> str | None:
    """The file that Spark says it cannot read. Raises: ValueError: it is here, and a worker does not see it."""
    text = str(error)
    if own := re.search(r"ValueError: (.+\.parquet): not readable as Parquet", text):  # our own reader's
        return own[1]
    found = re.search(r"reading file:?\s+file:/+(\S+\.parquet)", text)
    path = f"/{urllib.parse.unquote(found[1])}" if found else None
    if path and "FILE_NOT_EXIST" in text and os.path.exists(path):

        def look() -> str:
            problem = f"{socket.gethostname()}: {path} is not there; {SHARED}"
            return "" if os.path.exists(path) else problem

        raise_problem(run_on_executors(SparkContext.getOrCreate(), look))
        raise ValueError(f"{path}: was not there for a worker, and now is; {SHARED}; run the stage again")
    return path


def run_on_executors(context: SparkContext, look: Callable[[], str]) -> list[str]:
    """Return what a function finds on each executor. Of as many tasks as there are cores, each free core gets one."""
    cores = context.defaultParallelism

    def run(numbers: Iterable[int]) -> Iterable[str]:
        yield look()

    return context.parallelize(range(cores), cores).mapPartitions(run).collect()
