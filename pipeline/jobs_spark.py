"""Joins and counts on Spark: redirects, entity vocabulary, mention table.

Spark computes, pyarrow writes: a fixed number of partitions by key, sorted by a total order, each written as one
file by rename. So the bytes do not depend on the master, the number of cores, or on interruptions.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import SparkContext, TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline import mentions, storage
from pipeline.entities import ALIASES, EntityVocab, alias_rows, write_aliases
from pipeline.storage import BlockRecord

TITLES_SCHEMA = pa.schema(
    [("title", pa.string()), ("canonical", pa.string()), ("hops", pa.int32()), ("status", pa.string())]
)
_BLOCKS_PER_PART = 4


def session(master: str, memory_bytes: int) -> SparkSession:
    """The Spark session of this process, started at the first call.

    Args:
        master: a Spark master URL.
        memory_bytes: bound of the driver's heap (in local mode, of all work).
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
    os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).with_name("spark_conf")))
    builder = SparkSession.builder.master(master).appName("luke")
    settings = {
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.memory": f"{memory_bytes >> 20}m",
        "spark.driver.maxResultSize": "0",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


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


def read(spark: SparkSession, paths: Sequence[str], parts: int) -> DataFrame:
    """Local Parquet files as a DataFrame; joins and counts on it use `parts` partitions."""
    spark.conf.set("spark.sql.shuffle.partitions", str(parts))
    # Spark takes paths for patterns.
    urls = (f"file://{os.path.abspath(path)}" for path in paths)
    return spark.read.parquet(*(re.sub(r"([][{}*?\\])", r"\\\1", url) for url in urls))


def write_parts(
    frame: DataFrame,
    schema: pa.Schema,
    folder: str,
    table: str,
    key: str,
    *,
    parts: int,
    by: str,
    order: Sequence[str],
) -> dict[int, BlockRecord]:
    """Write a DataFrame as `parts` Parquet files, each committed as a block; committed ones are kept.

    Args:
        frame: rows with the schema's columns.
        schema: of the files.
        folder: the stage's folder.
        table: folder of the files within it.
        key: digest of all that decides the stage's bytes.
        parts: number of files.
        by: column that decides a row's file.
        order: columns of the order within a file; a total one.

    Returns:
        Every part's record, by number.
    """
    finished = set(storage.finished_blocks(folder, key))

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        number = context.partitionId()
        if number not in finished:
            _write_part(batches, schema, folder, f"{table}/{storage.block_name(number)}.parquet", key, number)
        yield pa.record_batch({"part": [number]})

    ordered = frame.select(*schema.names).repartition(parts, by).sortWithinPartitions(*order)
    ordered.mapInArrow(write, "part long").collect()
    return storage.finished_blocks(folder, key)


def _write_part(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, folder: str, path: str, key: str, number: int
) -> None:
    count = 0
    pending: list[pa.RecordBatch] = []
    with (
        storage.atomic_output(storage.join(folder, path)) as stream,
        pq.ParquetWriter(stream, schema, compression="zstd") as writer,
    ):
        # Spark's batches differ in size from run to run: row groups are cut anew.
        for batch in batches:
            pending.append(batch.cast(schema))
            count += batch.num_rows
            table = pa.Table.from_batches(pending, schema)
            whole = table.num_rows - table.num_rows % storage.ROW_GROUP_ROWS
            if whole:
                writer.write_table(table.slice(0, whole), row_group_size=storage.ROW_GROUP_ROWS)
                pending = table.slice(whole).to_batches()
        writer.write_table(pa.Table.from_batches(pending, schema), row_group_size=storage.ROW_GROUP_ROWS)
    record = BlockRecord((storage.describe(folder, path, count),), {table_name(path): count})
    storage.commit_block(folder, key, number, record)


def table_name(path: str) -> str:
    return path.split("/", 1)[0]


# Redirects


def find_duplicate(pages: DataFrame) -> str | None:
    """The title of a page that is there twice, or None."""
    twice = pages.groupBy("page_id").agg(F.min("title").alias("title"), F.count(F.lit(1)).alias("n"))
    found = twice.where(F.col("n") > 1).orderBy("page_id").first()
    return None if found is None else str(found["title"])


def resolve_redirects(pages: DataFrame, redirects: DataFrame, *, max_hops: int | None = None) -> DataFrame:
    """Follow every redirect to its end.

    Args:
        pages: with column `title`.
        redirects: with columns `source`, `target`.
        max_hops: give up behind this many hops (profile `paper`: 1); None follows all.

    Returns:
        One row a page or redirect: `title`, `canonical` (the page it ends at; for `missing` the title where the
        chain ends; null for `loop`), `hops`, `status` (`page`, `redirect`, `loop`, `missing`).
    """
    titles = pages.select("title").distinct()
    # A title can be written as a page and as a redirect only in a damaged dump: the page wins.
    steps = (
        redirects.groupBy(F.col("source").alias("title"))
        .agg(F.min("target").alias("at"))
        .join(titles, "title", "left_anti")
        .withColumn("hops", F.lit(1))
    )
    ends = _follow(steps) if max_hops is None else steps
    is_page = titles.withColumn("is_page", F.lit(True)).withColumnRenamed("title", "at")
    ends = ends.join(is_page, "at", "left").join(
        steps.select(F.col("title").alias("at"), F.lit(True).alias("goes_on")), "at", "left"
    )
    status = F.when(F.col("is_page"), "redirect").when(F.col("goes_on") & F.lit(max_hops is None), "loop")
    followed = ends.withColumn("status", status.otherwise("missing")).select(
        "title", F.when(F.col("status") != "loop", F.col("at")).alias("canonical"), "hops", "status"
    )
    unmoved = titles.select(
        "title", F.col("title").alias("canonical"), F.lit(0).alias("hops"), F.lit("page").alias("status")
    )
    return unmoved.unionByName(followed)


def _follow(steps: DataFrame) -> DataFrame:
    """Pointer doubling: after k rounds every chain of up to 2^k hops has ended.

    A round in which no chain ends leaves only chains that lead into a loop, so it is the last.
    """
    current = steps.persist()
    going = None
    while True:
        nexts = current.select(
            F.col("title").alias("at"), F.col("at").alias("next"), F.col("hops").alias("more")
        )
        joined = current.join(nexts, "at", "left")
        still = joined.where(F.col("next").isNotNull()).count()
        if still in (0, going):
            return current
        going = still
        # Hops around a loop would double without end; they mean nothing there.
        hops = F.least(F.col("hops").cast("long") + F.coalesce("more", F.lit(0)), F.lit(2**31 - 1)).cast(
            "int"
        )
        current = joined.select("title", F.coalesce("next", "at").alias("at"), hops.alias("hops")).persist()


# Links


def links(paragraphs: DataFrame, titles: DataFrame) -> DataFrame:
    """Every annotation as (`mention`, `title`, `status`): its anchor, and its target after redirects.

    A target that is neither page nor redirect keeps its title and has the status `missing`.
    """
    exploded = paragraphs.select("text", F.explode("links").alias("link")).select(
        F.expr("substring(text, link.start + 1, link.end - link.start)").alias("mention"),
        F.col("link.target").alias("target"),
    )
    resolved = exploded.join(titles.withColumnRenamed("title", "target"), "target", "left")
    return resolved.select(
        "mention",
        F.coalesce("canonical", "target").alias("title"),
        F.coalesce("status", F.lit("missing")).alias("status"),
    )


def link_coverage(annotations: DataFrame) -> dict[str, int]:
    """Number of annotations by the status of their target."""
    counts = annotations.groupBy("status").count().collect()
    return {row["status"]: row["count"] for row in sorted(counts, key=lambda row: row["status"])}


def build_vocab(annotations: DataFrame, pages: DataFrame, size: int) -> tuple[EntityVocab, int]:
    """The vocabulary of the most linked pages, and how many linked pages there are in all."""
    reached = annotations.where(F.col("status").isin("page", "redirect"))
    counted = reached.groupBy("title").agg(F.count(F.lit(1)).alias("link_count"))
    ids = pages.groupBy("title").agg(F.min("page_id").alias("page_id"))
    counted = counted.join(ids, "title").persist()
    top = counted.orderBy(F.desc("link_count"), "title").limit(size - 3).collect()
    vocab = EntityVocab.rank(((row["title"], row["link_count"], row["page_id"]) for row in top), size)
    return vocab, counted.count()


def write_vocab(vocab: EntityVocab, folder: str, titles: Sequence[str]) -> list[storage.FileEntry]:
    """Write the vocabulary and its aliases; `titles` are the files of the titles table."""
    rows = (row for path in titles for row in storage.read_rows(path))
    count = write_aliases(storage.join(folder, ALIASES), alias_rows(rows, vocab.ids()))
    return [*vocab.write(folder), storage.describe(folder, ALIASES, count)]


# Mentions


def count_mentions(
    paragraphs: DataFrame,
    annotations: DataFrame,
    vocab: DataFrame,
    names_path: str,
    *,
    profile: str,
    min_links: int,
) -> DataFrame:
    """The mention table.

    Args:
        paragraphs: with `page_id`, `text`, `links`.
        annotations: of `links`.
        vocab: with `title`, `entity_id`.
        names_path: local file for the set of names that are counted; every worker maps it.
        profile: `paper` folds case and accents, and counts pages that hold the name instead of its occurrences.
        min_links: mentions that are linked less often are left out.
    """
    normalize = F.udf(lambda anchor: mentions.normalize_mention(anchor, profile), "string")
    named = annotations.withColumn("mention", normalize("mention")).where(F.col("mention") != "")
    pairs = named.groupBy("mention", "title").agg(F.count(F.lit(1)).alias("link_count"))
    totals = pairs.groupBy("mention").agg(F.sum("link_count").alias("total_links"))
    totals = totals.where(F.col("total_links") >= min_links).persist()
    mentions.write_names(names_path, (row["mention"] for row in totals.select("mention").toLocalIterator()))
    occurrences = _occurrences(paragraphs, names_path, profile)
    probability = F.least(F.col("total_links") / F.col("occurrences"), F.lit(1.0))
    return (
        pairs.join(totals, "mention")
        .join(occurrences, "mention")
        .join(vocab, "title", "left")
        .withColumn("link_probability", probability)
        .withColumn("commonness", F.col("link_count") / F.col("total_links"))
    )


def _occurrences(paragraphs: DataFrame, names_path: str, profile: str) -> DataFrame:
    by_page = profile == "paper"

    def scan(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = mentions.Names(names_path)
        for batch in batches:
            yield from _scan_batch(batch, names, by_page)

    found = paragraphs.select("page_id", "text", "links").mapInArrow(
        scan, "page_id long, mention string, n long"
    )
    if by_page:
        return found.groupBy("mention").agg(F.countDistinct("page_id").alias("occurrences"))
    return found.groupBy("mention").agg(F.sum("n").alias("occurrences"))


def _scan_batch(batch: pa.RecordBatch, names: mentions.Names, by_page: bool) -> Iterator[pa.RecordBatch]:
    rows: list[Mapping[str, Any]] = []
    for row in batch.to_pylist():
        text, anchors = row["text"], [(link["start"], link["end"]) for link in row["links"]]
        if by_page:
            linked = {mentions.fold(text[start:end]).strip() for start, end in anchors}
            counts = dict.fromkeys(
                mentions.names_in_text(text, names) | {name for name in linked if name in names}, 1
            )
        else:
            counts = dict(mentions.count_occurrences(text, anchors, names))
        rows += [{"page_id": row["page_id"], "mention": name, "n": count} for name, count in counts.items()]
    if rows:
        schema = pa.schema([("page_id", pa.int64()), ("mention", pa.string()), ("n", pa.int64())])
        yield pa.RecordBatch.from_pylist(rows, schema)
