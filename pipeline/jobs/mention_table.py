"""BuildMentionTable: every anchor text with its targets, link probability and commonness; each page's own names."""

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline import schemas, storage
from pipeline.jobs.redirects import resolve_links
from pipeline.jobs.spark import SparkJob, keep
from pipeline.lookup import mentions, names, page_names
from pipeline.lookup.entities import EntityVocab
from pipeline.storage.tries import write_texts

_NAMES = "names.tries"


def build(job: SparkJob, *, profile: str, min_links: int, max_characters: int) -> storage.Result:
    """Write the tables `mentions` and `page_names`, and the look-ups by mention and by page.

    Args:
        job: reads FetchDump, ExtractPages, ResolveRedirects, BuildEntityVocab.
        profile: `paper` folds case and accents, leaves out anchors of more than 20 words, and counts the pages that
            hold a mention instead of its occurrences.
        min_links: mentions that are linked less often are left out.
        max_characters: mentions that are longer are left out; `paper` has its 20 words instead.
    """
    paragraphs, pages = job.read("ExtractPages", "paragraphs/"), job.read("ExtractPages", "pages/")
    annotations = resolve_links(paragraphs, job.read("ResolveRedirects", "titles/"))
    annotations = keep(select_mentions(annotations, profile, max_characters))

    anchors = keep(count_anchors(annotations, min_links))
    names_path = storage.join(job.folder, _NAMES)
    _, longest = write_names(anchors, names_path)
    count = count_pages if profile == "paper" else count_occurrences
    entities = entity_titles(job.read("BuildEntityVocab", "entity_vocab.parquet"), pages)
    table = mention_table(anchors, count(paragraphs, names_path, longest), entities)
    job.write(table, schemas.MENTIONS.schema, "mentions", by="mention", order=["mention", "title"])
    storage.remove(names_path)

    blocks = job.write(
        names_of_pages(annotations, pages),
        schemas.PAGE_NAMES.schema,
        page_names.TABLE,
        by="page",
        order=["page"],
        first=job.parts,
        group_rows=page_names.GROUP_ROWS,
    )

    result = storage.merge_blocks(blocks)
    mention_files, page_files = (
        [storage.join(job.folder, entry.path) for entry in result.files if entry.path.startswith(f"{name}/")]
        for name in ("mentions", page_names.TABLE)
    )
    lookup = mentions.write_lookup(job.folder, mention_files)
    titles = page_names.write_pages(job.folder, page_files, job.paths("ResolveRedirects", "titles/"))
    links = job.manifest("ExtractPages").rows["links"]
    drops = {
        # Too long for a mention, or linked too rarely.
        "links:no_mention": links - storage.sum_column(mention_files, "link_count"),
        "names:ambiguous_on_page": storage.sum_column(page_files, "ambiguous"),
    }
    vocab, dump = EntityVocab.load(job.inputs["BuildEntityVocab"]), job.manifest("FetchDump").facts
    facts = {
        "longest_mention": longest,
        "dump": [part["name"] for part in dump["parts"]],
        "language": dump["site"]["language"],
        "entities": len(vocab),
        "entities_sha256": vocab.digest(),
    }
    rows = {**result.rows, "names": lookup[-1].rows or 0, "titles_of_pages": titles.rows or 0}
    return storage.Result((*result.files, *lookup, titles), rows, +Counter(drops), facts)


def select_mentions(annotations: DataFrame, profile: str, max_characters: int) -> DataFrame:
    """The annotations (of `resolve_links`) whose anchor is a mention, with the mention that it counts for."""
    if profile == "paper":
        normalize = F.udf(lambda anchor: names.normalize_mention(anchor), "string")
        annotations = annotations.withColumn("mention", normalize("mention"))
    else:
        annotations = annotations.where(F.length("mention") <= max_characters)
    return annotations.where(F.col("mention").rlike(r"(?U)\S"))


def count_anchors(annotations: DataFrame, min_links: int) -> DataFrame:
    """How often each mention links to each title: `mention`, `title`, `link_count`, `total_links`."""
    pairs = annotations.groupBy("mention", "title").agg(F.count(F.lit(1)).alias("link_count"))
    totals = pairs.groupBy("mention").agg(F.sum("link_count").alias("total_links"))
    return pairs.join(totals.where(F.col("total_links") >= min_links), "mention")


def write_names(anchors: DataFrame, path: str) -> tuple[int, int]:
    """Write the set of mentions, which every worker maps: (how many, characters of the longest)."""
    found = keep(anchors.select("mention").distinct())
    longest = found.agg(F.max(F.length("mention"))).collect()[0][0] or 0
    count = write_texts(path, (row["mention"] for row in found.toLocalIterator()))
    found.unpersist()
    return count, int(longest)


def count_occurrences(paragraphs: DataFrame, names_path: str, longest: int) -> DataFrame:
    """How often each of the names occurs: `mention`, `occurrences`."""

    def scan(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known = names.Names(names_path, longest)
        for batch in batches:
            counts: Counter[str] = Counter()
            for text, spans in _texts_with_links(batch):
                counts.update(names.occurrences(text, spans, known))
            arrays = [pa.array(counts.keys(), pa.string()), pa.array(counts.values(), pa.int64())]
            yield pa.record_batch(arrays, names=["mention", "n"])

    found = paragraphs.select("text", "links").mapInArrow(scan, "mention string, n long")
    return found.groupBy("mention").agg(F.sum("n").alias("occurrences"))


def count_pages(paragraphs: DataFrame, names_path: str, longest: int) -> DataFrame:
    """On how many pages each of the names occurs, as the paper counted: `mention`, `occurrences`."""

    def scan(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known = names.Names(names_path, longest)
        for batch in batches:
            places: dict[tuple[int, str], None] = {}
            for page_id, (text, spans) in zip(
                batch.column("page_id").to_pylist(), _texts_with_links(batch), strict=True
            ):
                linked = {names.normalize_mention(text[start:end]) for start, end in spans}
                found = names.names_in_text(text, known) | {name for name in linked if name in known}
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


def entity_titles(vocab: DataFrame, pages: DataFrame) -> DataFrame:
    """`title` (as annotations have it) and `entity_id` of each entity that is linked.

    By page, since the title of an entity of a given vocabulary can be a redirect in this dump; by title where the
    dump has no page.
    """
    absent = vocab.where("page_id < 0 and link_count > 0")
    found = pages.select("page_id", "title").join(vocab.select("page_id", "entity_id"), "page_id")
    return found.select("title", "entity_id").unionByName(absent.select("title", "entity_id"))


def mention_table(anchors: DataFrame, occurrences: DataFrame, entities: DataFrame) -> DataFrame:
    """The table `mentions`: `link_probability` = links / occurrences, `commonness` = links to the title / links."""
    probability = F.least(F.col("total_links") / F.col("occurrences"), F.lit(1.0))
    return (
        anchors.join(occurrences, "mention")
        .join(entities, "title", "left")
        .withColumn("link_probability", probability)
        .withColumn("commonness", F.col("link_count") / F.col("total_links"))
    )


def names_of_pages(annotations: DataFrame, pages: DataFrame) -> DataFrame:
    """Each page's `names`, those that link to one title from it, and how many are `ambiguous`: link to several.

    Args:
        annotations: of `select_mentions`.
        pages: with `page_id`, `title`; here `page`, and of two of one title the one with the lower id.
    """
    targets = annotations.groupBy("page_id", "mention").agg(
        F.min("title").alias("title"), F.max("title").alias("other")
    )
    is_clear = F.col("title") == F.col("other")
    found = targets.groupBy("page_id").agg(
        F.sort_array(F.collect_list(F.when(is_clear, F.struct("mention", "title")))).alias("names"),
        F.count_if(~is_clear).cast("int").alias("ambiguous"),
    )
    once = pages.groupBy(F.col("title").alias("page")).agg(F.min("page_id").alias("page_id"))
    return once.join(found, "page_id", "left").select(
        "page",
        F.coalesce("names", F.array()).alias("names"),
        F.coalesce("ambiguous", F.lit(0)).alias("ambiguous"),
    )
