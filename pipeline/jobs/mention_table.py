"""BuildMentionTable: every anchor text with its targets, link probability and commonness; each page's own names."""

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.jobs.spark import keep
from pipeline.lookup import names as mentions
from pipeline.storage.tries import write_texts


def entity_titles(vocab: DataFrame, pages: DataFrame) -> DataFrame:
    """`title` (as annotations have it) and `entity_id` of each entity that is linked.

    By page, since the title of an entity of a given vocabulary can be a redirect in this dump; by title where the
    dump has no page.
    """
    absent = vocab.where("page_id < 0 and link_count > 0")
    found = pages.select("page_id", "title").join(vocab.select("page_id", "entity_id"), "page_id")
    return found.select("title", "entity_id").unionByName(absent.select("title", "entity_id"))


# Mentions


def count_anchors(annotations: DataFrame, *, profile: str, min_links: int, max_characters: int) -> DataFrame:
    """How often each mention links to each title: `mention`, `title`, `link_count`, `total_links`.

    Args:
        annotations: of `links`.
        profile: `paper` folds case and accents, and leaves out anchors of more than 20 words.
        min_links: mentions that are linked less often are left out.
        max_characters: mentions that are longer are left out; `paper` has its 20 words instead.
    """
    named = _named(annotations, profile, max_characters)
    pairs = named.groupBy("mention", "title").agg(F.count(F.lit(1)).alias("link_count"))
    totals = pairs.groupBy("mention").agg(F.sum("link_count").alias("total_links"))
    return pairs.join(totals.where(F.col("total_links") >= min_links), "mention")


def _named(annotations: DataFrame, profile: str, max_characters: int) -> DataFrame:
    """The annotations whose anchor is a mention, with what it counts for."""
    if profile == "paper":
        normalize = F.udf(lambda anchor: mentions.normalize_mention(anchor), "string")
        annotations = annotations.withColumn("mention", normalize("mention"))
    else:
        annotations = annotations.where(F.length("mention") <= max_characters)
    return annotations.where(F.col("mention").rlike(r"(?U)\S"))


def page_names(annotations: DataFrame, pages: DataFrame, *, profile: str, max_characters: int) -> DataFrame:
    """Each page's `names`, those that link to one title from it, and how many are `ambiguous`: link to several.

    Args:
        annotations: of `links`.
        pages: with `page_id`, `title`; here `page`, and of two of one title the one with the lower id.
        profile, max_characters: as in `count_anchors`.
    """
    targets = (
        _named(annotations, profile, max_characters)
        .groupBy("page_id", "mention")
        .agg(F.min("title").alias("title"), F.max("title").alias("other"))
    )
    is_clear = F.col("title") == F.col("other")
    names = targets.groupBy("page_id").agg(
        F.sort_array(F.collect_list(F.when(is_clear, F.struct("mention", "title")))).alias("names"),
        F.count_if(~is_clear).cast("int").alias("ambiguous"),
    )
    once = pages.groupBy(F.col("title").alias("page")).agg(F.min("page_id").alias("page_id"))
    return once.join(names, "page_id", "left").select(
        "page",
        F.coalesce("names", F.array()).alias("names"),
        F.coalesce("ambiguous", F.lit(0)).alias("ambiguous"),
    )


def write_names(anchors: DataFrame, path: str) -> tuple[int, int]:
    """Write the set of mentions for `count_mentions`: (how many, characters of the longest)."""
    names = keep(anchors.select("mention").distinct())
    longest = names.agg(F.max(F.length("mention"))).collect()[0][0] or 0
    count = write_texts(path, (row["mention"] for row in names.toLocalIterator()))
    names.unpersist()
    return count, longest


def count_mentions(
    paragraphs: DataFrame,
    anchors: DataFrame,
    entities: DataFrame,
    *,
    names_path: str,
    longest: int,
    profile: str,
) -> DataFrame:
    """The mention table.

    Args:
        paragraphs: with `page_id`, `text`, `links`.
        anchors: of `count_anchors`.
        entities: with `title`, `entity_id`.
        names_path: of `write_names`; every worker maps it.
        longest: characters of the longest name.
        profile: `paper` counts pages that hold the name instead of its occurrences.
    """
    occurrences = (
        _pages_with_names(paragraphs, names_path, longest)
        if profile == "paper"
        else _occurrences(paragraphs, names_path, longest)
    )
    probability = F.least(F.col("total_links") / F.col("occurrences"), F.lit(1.0))
    return (
        anchors.join(occurrences, "mention")
        .join(entities, "title", "left")
        .withColumn("link_probability", probability)
        .withColumn("commonness", F.col("link_count") / F.col("total_links"))
    )


def _occurrences(paragraphs: DataFrame, names_path: str, longest: int) -> DataFrame:
    def scan(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = mentions.Names(names_path, longest)
        for batch in batches:
            counts: Counter[str] = Counter()
            for text, spans in _texts_with_links(batch):
                counts.update(mentions.occurrences(text, spans, names))
            arrays = [pa.array(counts.keys(), pa.string()), pa.array(counts.values(), pa.int64())]
            yield pa.record_batch(arrays, names=["mention", "n"])

    found = paragraphs.select("text", "links").mapInArrow(scan, "mention string, n long")
    return found.groupBy("mention").agg(F.sum("n").alias("occurrences"))


def _pages_with_names(paragraphs: DataFrame, names_path: str, longest: int) -> DataFrame:
    def scan(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = mentions.Names(names_path, longest)
        for batch in batches:
            places: dict[tuple[int, str], None] = {}
            for page_id, (text, spans) in zip(
                batch.column("page_id").to_pylist(), _texts_with_links(batch), strict=True
            ):
                linked = {mentions.normalize_mention(text[start:end]) for start, end in spans}
                found = mentions.names_in_text(text, names) | {name for name in linked if name in names}
                places.update(dict.fromkeys((page_id, name) for name in sorted(found)))
            page_ids, found_names = zip(*places, strict=True) if places else ((), ())
            yield pa.record_batch(
                {"page_id": pa.array(page_ids, pa.int64()), "mention": pa.array(found_names, pa.string())}
            )

    found = paragraphs.select("page_id", "text", "links").mapInArrow(scan, "page_id long, mention string")
    return found.groupBy("mention").agg(F.countDistinct("page_id").alias("occurrences"))


def _texts_with_links(batch: pa.RecordBatch) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    links = batch.column("links")
    spans = links.flatten()
    starts, ends = (spans.field(name).to_pylist() for name in ("start", "end"))
    first = 0
    for text, count in zip(batch.column("text").to_pylist(), links.value_lengths().to_pylist(), strict=True):
        last = first + count
        yield text, list(zip(starts[first:last], ends[first:last], strict=True))
        first = last
