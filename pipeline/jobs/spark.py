"""Spark as this project uses it: one session a process, and tables whose bytes it does not decide.

Spark computes, pyarrow writes: a fixed number of partitions by key, sorted by a total order, each written as one
file by rename. So the bytes do not depend on the master, the number of cores, or on interruptions. What the tasks say
that they wrote is held against what is found.
"""

import errno
import functools
import logging
import os
import re
import socket
import socketserver
import sys
import traceback
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext, StorageLevel, TaskContext, accumulators
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline import storage
from pipeline.storage.parts import Written, check_parts, raise_problem

_BLOCKS_PER_PART = 4
_OF_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE)
_WHOLE_FILES = str(1 << 40)  # bytes; no file is larger
_WRITTEN = "part long, host string, problem string, path string, bytes long, sha256 string, rows long"
# Whatever a user's configuration says, what cannot be read is an error. And the driver alone lists files: an executor
# that does not see one would leave it out without a word.
_READING = {
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": str((1 << 31) - 1),
    "spark.sql.files.maxPartitionBytes": _WHOLE_FILES,
    "spark.sql.files.openCostInBytes": _WHOLE_FILES,
}
# One compiler and one collector, which keeps the heap close to what is alive instead of growing into its bound.
_SHORT_WORK = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmn96m -XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=20"
)


# What tables have to be computed with: the settings of a user give way.
FIXED = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
}
# Spark reads these from the environment, too.
_VARIABLES = {
    "spark.driver.memory": "SPARK_DRIVER_MEMORY",
    "spark.executor.memory": "SPARK_EXECUTOR_MEMORY",
    "spark.local.dir": "SPARK_LOCAL_DIRS",
}
OWN_CONF = Path(__file__).with_name("spark_conf")
_PROPERTY = re.compile(r"([^\s=:]+)\s*[\s=:]\s*(.*)")


def users_settings() -> dict[str, str]:
    """What the user has set for Spark outside of this project, in spark-defaults.conf and the environment."""
    path = Path(_conf_folder(), "spark-defaults.conf")
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    lines = (line.strip() for line in re.sub(r"\\\n\s*", "", text).splitlines())
    found = (_PROPERTY.match(line) for line in lines if not line.startswith(("#", "!")))
    variables = {key: os.environ[name] for key, name in _VARIABLES.items() if name in os.environ}
    return {match[1]: match[2] for match in found if match} | variables


def _conf_folder() -> str:
    """Where Spark looks for its configuration; ours only says that Spark is to be silent."""
    installed = os.path.join(os.environ.get("SPARK_HOME", ""), "conf")
    return os.environ.get("SPARK_CONF_DIR") or (installed if os.path.isdir(installed) else str(OWN_CONF))


def running() -> SparkSession | None:
    """The session of this process, if one was started."""
    return SparkSession.builder.getOrCreate() if SparkContext._active_spark_context is not None else None


def session(
    master: str,
    memory_bytes: int,
    *,
    is_short: bool = False,
    defaults: Mapping[str, str] = MappingProxyType({}),
    wanted: Mapping[str, str] = MappingProxyType({}),
) -> SparkSession:
    """Start the Spark session of this process.

    Args:
        master: a Spark master URL.
        memory_bytes: bound of the driver's heap (in local mode, of all work).
        is_short: whether the work takes seconds; then Java does without what pays off in minutes.
        defaults: further settings. Those of `users_settings` come before them and before our own.
        wanted: settings that come before all but `FIXED`.
    """
    users = users_settings()
    os.environ.setdefault("PYSPARK_PYTHON", users.get("spark.pyspark.python", sys.executable))
    if re.match(
        r"local|spark://(localhost|127\.)", master
    ):  # others have to find the driver by its real name
        os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
    os.environ["SPARK_CONF_DIR"] = _conf_folder()
    settings = {
        "spark.driver.memory": f"{memory_bytes >> 20}m",
        "spark.driver.maxResultSize": "0",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **({"spark.driver.extraJavaOptions": _SHORT_WORK} if is_short else {}),
        **defaults,
        **users,
        **wanted,
        **FIXED,
        "spark.master": master,
    }
    builder = SparkSession.builder.appName("luke")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


# What Python's end of a connection to Java says when the other one is gone.
_ENDINGS = (ConnectionError, EOFError, Py4JNetworkError)


def is_own(error: BaseException) -> bool:
    """Whether Spark, or Java below it, raised this."""
    return isinstance(error, PySparkException | Py4JError) or has_ended(error)


def has_ended(error: BaseException) -> bool:
    """Whether nobody answers any more: Java was killed, or has ended for want of memory."""
    frames = traceback.walk_tb(error.__traceback__)
    modules = [str(frame.f_globals.get("__name__")).partition(".")[0] for frame, _ in frames]
    if isinstance(error, UnboundLocalError):
        # Java ended between a job and its rows: Spark then closes a socket that it had not opened yet.
        before = error.__context__
        return modules[-1:] == ["pyspark"] and before is not None and is_own(before)
    return isinstance(error, _ENDINGS) and any(name in ("pyspark", "py4j") for name in modules)


def _tell_errors(server: Any, request: Any, address: Any) -> None:
    """For Spark's server of accumulators, which would print a traceback beside our line when Java has ended."""
    error = sys.exc_info()[1]
    if error is None or not has_ended(error):
        socketserver.BaseServer.handle_error(server, request, address)


accumulators.AccumulatorTCPServer.handle_error = _tell_errors  # type: ignore[assignment,method-assign]


def _is_news(record: logging.LogRecord) -> bool:
    """For Py4J's errors, which it logs by the root logger, with a traceback, whoever handles them."""
    error = record.exc_info[1] if record.exc_info else None
    return error is None or not has_ended(error)


logging.getLogger().addFilter(_is_news)  # of records that the root logger itself was given, and no others


def _tell_unraisable(about: Any, tell: Callable[[Any], object] = sys.unraisablehook) -> None:
    """For what Spark's iterators cannot raise when they are forgotten and Java has ended."""
    is_sparks = str(getattr(about.object, "__module__", "")).startswith("pyspark.")
    if not (is_sparks and isinstance(about.exc_value, _ENDINGS)):
        tell(about)


sys.unraisablehook = _tell_unraisable


def unreadable_file(error: BaseException) -> str | None:
    """The file that Spark could not read, where that is what it complains of.

    Raises:
        ValueError: the file is here, and a worker does not see it.
    """
    text = str(error)
    if own := re.search(r"ValueError: (.+\.parquet): not readable as Parquet", text):  # our own reader's
        return own[1]
    found = re.search(r"reading file:?\s+file:/+(\S+\.parquet)", text)
    path = f"/{urllib.parse.unquote(found[1])}" if found else None
    if path and "FILE_NOT_EXIST" in text and os.path.exists(path):

        def look() -> str:
            return (
                ""
                if os.path.exists(path)
                else f"{socket.gethostname()}: {path} is not there; {storage.SHARED}"
            )

        raise_problem(ask_workers(SparkContext.getOrCreate(), look))
        raise ValueError(
            f"{path}: was not there for a worker, and now is; {storage.SHARED}; run the stage again"
        )
    return path


def ask_workers(context: SparkContext, look: Callable[[], str]) -> list[str]:
    """What a function finds on each executor. Of as many tasks as there are cores, each free core gets one."""
    cores = context.defaultParallelism

    def run(numbers: Iterable[int]) -> Iterable[str]:
        yield look()

    return context.parallelize(range(cores), cores).mapPartitions(run).collect()


def last_job() -> int:
    """The number of the last job that this process's session has begun; -1 before the first."""
    return next((int(job.jobId()) for job in _jobs()), -1)


def tasks(after: int) -> tuple[int, int]:
    """How many tasks are done, and how many there are, of the jobs that were begun after this one."""
    done = total = 0
    for job in takewhile(lambda job: job.jobId() > after, _jobs()):
        done += job.numCompletedTasks()
        total += job.numTasks() - job.numSkippedTasks()
    return done, total


def _jobs() -> Iterator[Any]:
    """Spark's records of its jobs, the last first; it keeps those of the last thousand."""
    if context := SparkContext._active_spark_context:
        records: Any = context._jsc.sc().statusStore().jobsList(None)
        yield from (records.apply(at) for at in range(records.size()))


def keep(frame: DataFrame) -> DataFrame:
    """The same rows, computed once and kept on disk until `release`: kept in memory they would grow with the dump."""
    return frame.persist(StorageLevel.DISK_ONLY)


def release() -> None:
    """Forget the tables that this process's session keeps, if there is a session."""
    if session := running():
        session.catalog.clearCache()
        java: Any = session.sparkContext._jvm
        java.System.gc()  # Spark removes the files of a shuffle when Java has forgotten it


def stop() -> None:
    """End this process's Spark session and its JVM, so that their memory is free; a later session starts anew."""
    context, gateway = SparkContext._active_spark_context, SparkContext._gateway
    if context is None or gateway is None:
        return
    SparkSession.builder.getOrCreate().stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # the JVM lives as long as it can read from us
    gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = None


def part_count(paths: Sequence[str], block_bytes: int) -> int:
    """Number of partitions for these files: a function of their sizes alone."""
    total = sum(storage.file_size(path) or 0 for path in paths)
    return max(1, min(4096, -(-total // (_BLOCKS_PER_PART * block_bytes))))


@dataclass(frozen=True)
class SparkJob:
    """The work of one stage: the stages that it reads, and the folder that it fills.

    Attributes:
        session: of this process.
        inputs: the folder of each stage that is read, by the stage's name.
        folder: the stage's own.
        key: digest of all that decides the stage's bytes.
        parts: number of files of a table; joins and counts use as many partitions.
        patience: seconds after which a file that one machine has written is seen by all others.
    """

    session: SparkSession
    inputs: Mapping[str, str]
    folder: str
    key: str
    parts: int
    patience: float = storage.PATIENCE_SECONDS

    def check_workers(self) -> None:
        """Find out before hours of work whether the executors see the stage's folder; one that comes later will say so.

        Raises:
            ValueError: one does not.
        """
        context = self.session.sparkContext
        if str(context.master).startswith("local"):
            return
        look = functools.partial(storage.unseen, self.folder, self.key, self.patience)
        raise_problem(ask_workers(context, look))

    def manifest(self, stage: str) -> storage.Manifest:
        return storage.read_manifest(self.inputs[stage])

    def paths(self, stage: str, table: str) -> list[str]:
        """The files of a table, which is a folder or one file of the stage."""
        return self.manifest(stage).paths(self.inputs[stage], table)

    def read(self, stage: str, table: str) -> DataFrame:
        """A table as a DataFrame, a file of which is a partition: rows that lie together stay together."""
        for name, value in {**_READING, "spark.sql.shuffle.partitions": str(self.parts)}.items():
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
        order: Sequence[str],
        first: int = 0,
        group_rows: int = storage.ROW_GROUP_ROWS,
    ) -> dict[int, storage.Result]:
        """Write a DataFrame as Parquet files, each committed as a block; committed ones are kept.

        Args:
            frame: rows with the schema's columns.
            schema: of the files.
            table: folder of the files within the stage's.
            by: column that decides a row's file.
            order: columns of the order within a file; a total one.
            first: number of the first block, behind those of the stage's other tables.
            group_rows: rows of a row group.

        Returns:
            The table's blocks, by number.

        Raises:
            ValueError: a worker's machine does not see the folder, or a part or a row is lost.
        """
        # The workers get these, and not the session.
        folder, key, patience = self.folder, self.key, self.patience
        storage.clear_if_changed(folder, key)  # by it they know the folder
        kept = storage.finished_blocks(folder, key)
        kept_numbers = set(kept)

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            context = TaskContext.get()
            assert context is not None
            number = first + context.partitionId()
            written = Written(number, socket.gethostname(), storage.unseen(folder, key, patience))
            if not written.problem and number not in kept_numbers:
                path = f"{table}/{storage.block_name(number)}.parquet"
                try:
                    count = _write_part(batches, schema, storage.join(folder, path), group_rows)
                    entry = storage.describe(folder, path, count)
                    storage.commit_block(folder, key, number, storage.Result((entry,), {table: count}))
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
        ordered = observed.repartition(self.parts, by).sortWithinPartitions(*order)
        done = ordered.mapInArrow(write, _WRITTEN)
        written = [Written(*row) for row in done.collect()]
        found = check_parts(folder, key, range(first, first + self.parts), written, kept, patience)
        self._check_rows(table, found, frame, done)
        return found

    def _check_rows(
        self, table: str, found: Mapping[int, storage.Result], frame: DataFrame, done: DataFrame
    ) -> None:
        """Whether the files of a table have the rows of the frame. Raises: ValueError: they have not."""
        count = sum(record.rows[table] for record in found.values())
        observed = done._jdf.queryExecution().observedMetrics().get("rows")
        if observed.isDefined() and observed.get().getLong(0) == count:
            return
        # Where an executor was lost, Spark does its work again and counts it twice: only a pass of its own is sure.
        if (wanted := frame.count()) != count:
            storage.forget_blocks(self.folder, found)
            raise ValueError(
                f"{self.folder}/{table}: has {count:,} rows in {len(found)} files, of {wanted:,} that were to be "
                "written; run its stage again"
            )


def _write_part(batches: Iterator[pa.RecordBatch], schema: pa.Schema, path: str, group_rows: int) -> int:
    """Write the batches as one file; the number of rows."""
    count = 0
    pending: list[pa.RecordBatch] = []
    with storage.atomic_output(path) as stream, storage.parquet_writer(stream, schema) as writer:
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
