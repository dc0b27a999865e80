"""BuildMentionTable: every anchor text with its targets and how common they are; names by page; targets by title."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline import schemas, storage
from pipeline.jobs.spark_parts import SparkJob, keep, whole_groups
from pipeline.jobs.tables.occurrences import NO_LINKS, Links, NameKeys, Positions, find_keys, write_keys
from pipeline.lookup import mentions, names, page_names, targets
from pipeline.lookup.entities import EntityVocab

_KEYS = "names"  # what is counted, in files beside the tables until they are written
_COUNTS = f"{_KEYS}.counts"
MAX_CHARACTERS = 100  # of a mention
_AT_ONCE = 1 << 14  # names
_TASKS_PER_CORE = 4
_PAGE_LINKS = pa.schema([("page_id", pa.int64()), ("mention", pa.string()), ("title", pa.string())])
_NAMES_TYPE = "array<struct<mention: string, title: string>>"


def build(job: SparkJob, *, profile: str) -> storage.Result:
    """Write the tables `mentions`, `page_names` and `targets`, and the look-ups by mention, page and title.

    It reads FetchDump, ExtractPages, ResolveRedirects, ResolveLinks, BuildEntityVocab, and FetchQids where QIDs are
    known. Profile `fixed` leaves out mentions of more than 100 characters; `paper` those of more than 20 words. It
    folds case and accents, and counts the pages that hold a mention instead of its occurrences.
    """
    pages, links = job.read("ExtractPages", "pages/"), job.read("ResolveLinks", "links/")
    links = select_mentions(links, profile)

    anchors = keep(count_anchors(links))
    longest = write_names(anchors, job.folder)
    count_names(job.session, job.paths("ExtractPages", "paragraphs/"), job.folder, profile)
    entities = entity_titles(job.read("BuildEntityVocab", "entity_vocab.parquet"), pages)
    table = mention_table(with_occurrences(anchors, job.folder), entities)
    written = job.write(table, schemas.MENTIONS.schema, "mentions", by="mention", order=["mention", "title"])
    for name in ("keys", "table", "shared", "counts"):
        storage.remove(storage.join(job.folder, f"{_KEYS}.{name}"))

    named = names_of_pages(links, pages)
    written |= job.write(
        named, schemas.PAGE_NAMES.schema, page_names.TABLE, by="page", first=job.parts, group_rows=page_names.GROUP_ROWS
    )

    qids = job.read("FetchQids", "qids/") if "FetchQids" in job.inputs else None
    linked = link_targets(anchors, entities, pages, qids)
    written |= job.write(linked, schemas.TARGETS.schema, targets.TABLE, by="title", first=2 * job.parts)

    result = storage.merge_blocks(written)
    mention_files, page_files, target_files = (
        result.paths(job.folder, f"{name}/") for name in ("mentions", page_names.TABLE, targets.TABLE)
    )
    vocab, dump = EntityVocab.load(job.inputs["BuildEntityVocab"]), job.manifest("FetchDump").facts
    title_files = job.paths("ResolveRedirects", "titles/")
    language = dump["site"]["language"]
    lookup = mentions.write_lookup(job.folder, mention_files, language)
    names_of_titles = page_names.write_pages(job.folder, page_files, title_files)
    titles = targets.write_targets(job.folder, target_files, title_files, language)
    drops = {
        "links:no_mention": job.manifest("ResolveLinks").rows["links"]
        - storage.parquet.sum_column(mention_files, "link_count"),
        "names:ambiguous_on_page": storage.parquet.sum_column(page_files, "ambiguous"),
    }
    facts = {
        "longest_mention": longest,
        "dump": [part["name"] for part in dump["parts"]],
        "language": language,
        "entities": len(vocab),
        "entities_sha256": vocab.digest(),
    }
    rows = {**result.rows, "names": lookup[0].rows or 0, "titles_of_pages": names_of_titles.rows or 0}
    return storage.Result((*result.files, *lookup, names_of_titles, *titles), rows, +Counter(drops), facts)


def select_mentions(links: DataFrame, profile: str) -> DataFrame:
    """The links (of `resolve_links`) whose anchor is a mention, with the mention that it counts for."""
    if profile == "paper":
        normalize = F.udf(lambda anchor: names.normalize_mention(anchor), "string")
        links = links.withColumn("mention", normalize("mention"))
    else:
        links = links.where(F.length("mention") <= MAX_CHARACTERS)
    return links.where(F.col("mention").rlike(r"(?U)\S"))


def count_anchors(links: DataFrame) -> DataFrame:
    """Return how often each mention links to each title: `mention`, `title`, `link_count`, `total_links`."""
    pairs = links.groupBy("mention", "title").agg(F.count(F.lit(1)).alias("link_count"))
    totals = pairs.groupBy("mention").agg(F.sum("link_count").alias("total_links"))
    return pairs.join(totals, "mention")


def write_names(anchors: DataFrame, folder: str) -> int:
    """Write the set of mentions, which every worker maps; gives the characters of the longest."""
    found = keep(anchors.select("mention").distinct())
    count, longest = found.agg(F.count(F.lit(1)), F.max(F.length("mention"))).collect()[0]

    def batches() -> Iterator[list[str]]:
        rows = (row["mention"] for row in found.toLocalIterator())
        return iter(lambda: list(islice(rows, _AT_ONCE)), [])

    write_keys(storage.join(folder, _KEYS), batches, count)
    found.unpersist()
    return int(longest or 0)


def count_names(session: SparkSession, paths: Sequence[str], folder: str, profile: str) -> None:
    """Count the names in files of paragraphs, and write how often each occurs, in the order of their keys."""
    count = count_pages if profile == "paper" else count_occurrences

    def scan(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known = NameKeys(storage.join(folder, _KEYS))
        counts = np.zeros(len(known.keys), np.int64)
        for batch in batches:
            for path in batch.column("path").to_pylist():
                rows, found = count(path, known)
                counts[rows] += found
        rows = np.flatnonzero(counts)
        yield pa.record_batch({"row": rows, "n": counts[rows]})

    tasks = min(len(paths), _TASKS_PER_CORE * session.sparkContext.defaultParallelism)
    files = session.createDataFrame([(path,) for path in paths], "path string").repartition(tasks)
    found = files.mapInArrow(scan, "row long, n long").groupBy("row").agg(F.sum("n").alias("n")).toArrow()
    counts = np.zeros(len(NameKeys(storage.join(folder, _KEYS)).keys), np.int64)
    counts[found.column("row").to_numpy()] = found.column("n").to_numpy()
    with storage.atomic_output(storage.join(folder, _COUNTS)) as stream:
        np.save(stream, counts)


def count_occurrences(path: str, known: NameKeys) -> tuple[Positions, Positions]:
    """(rows of names, how often each occurs) in a file of paragraphs."""
    keys = [np.empty(0, np.uint64)]
    for texts, links, _ in _read_texts(path):
        keys += [found for _, found in find_keys(texts, links, known)]
    return known.count(np.concatenate(keys))


def count_pages(path: str, known: NameKeys) -> tuple[Positions, Positions]:
    """(rows of names, on how many pages each occurs) in a file of paragraphs, which has whole pages.

    As the paper counted: without case and accents, and an anchor as `normalize_mention` has it.
    """
    places = [np.empty((0, 2), np.int64)]
    for texts, links, pages in _read_texts(path):
        anchors = [texts[text][start:end] for text, start, end in zip(*map(np.ndarray.tolist, links), strict=True)]
        found = [(links.texts, known.of_names([*map(names.normalize_mention, anchors)]))]
        found += find_keys([names.fold(text) for text in texts], NO_LINKS, known)
        for numbers, keys in found:
            rows = known.rows(keys)
            places.append(np.stack((pages[numbers], rows), axis=1)[rows >= 0])
    once = np.unique(np.concatenate(places), axis=0)
    return np.unique(once[:, 1], return_counts=True)


def _read_texts(path: str) -> Iterator[tuple[list[str], Links, Positions]]:
    """(texts, their links, their pages' ids) of a file of paragraphs, some after others."""
    for batch in storage.read_batches(path, ["page_id", "text", "links.list.element.start", "links.list.element.end"]):
        links = batch.column("links")
        starts, ends = (links.flatten().field(name).to_numpy().astype(np.int64) for name in ("start", "end"))
        texts = np.repeat(np.arange(len(links)), links.value_lengths().to_numpy())
        yield batch.column("text").to_pylist(), Links(texts, starts, ends), batch.column("page_id").to_numpy()


def with_occurrences(anchors: DataFrame, folder: str) -> DataFrame:
    """The anchors with `occurrences`: how often the mention occurs."""

    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known = NameKeys(storage.join(folder, _KEYS))
        counts = np.load(storage.join(folder, _COUNTS), mmap_mode="r")
        for batch in batches:
            rows = known.rows(known.of_names(batch.column("mention").to_pylist()))
            yield pa.record_batch([*batch.columns, pa.array(counts[rows])], [*batch.schema.names, "occurrences"])

    schema = "mention string, title string, link_count long, total_links long, occurrences long"
    return anchors.select("mention", "title", "link_count", "total_links").mapInArrow(add, schema)


def entity_titles(vocab: DataFrame, pages: DataFrame) -> DataFrame:
    """`title` (as annotations have it) and `entity_id` of each entity that is linked.

    By page, since the title of an entity of a given vocabulary can be a redirect in this dump; by title where the
    dump has no page.
    """
    absent = vocab.where("page_id < 0 and link_count > 0")
    found = pages.select("page_id", "title").join(vocab.select("page_id", "entity_id"), "page_id")
    return found.select("title", "entity_id").unionByName(absent.select("title", "entity_id"))


def mention_table(anchors: DataFrame, entities: DataFrame) -> DataFrame:
    """The table `mentions`: `link_probability` = links / occurrences, `commonness` = links to the title / links."""
    probability = F.least(F.col("total_links") / F.col("occurrences"), F.lit(1.0))
    return (
        anchors.join(entities, "title", "left")
        .withColumn("link_probability", probability)
        .withColumn("commonness", F.col("link_count") / F.col("total_links"))
    )


def link_targets(anchors: DataFrame, entities: DataFrame, pages: DataFrame, qids: DataFrame | None = None) -> DataFrame:
    """The table `targets`: each page, entity, and title that a mention links to, once; of two pages the lower id."""
    once = pages.groupBy("title").agg(F.min("page_id").alias("page_id"))
    linked = anchors.select("title").distinct()
    found = once.join(linked, "title", "full").join(entities, "title", "full")
    found = found.withColumn("page_id", F.coalesce("page_id", F.lit(-1)))
    if qids is None:
        return found.withColumn("qid", F.lit(None).cast("string"))
    return found.join(qids, "page_id", "left")


def names_of_pages(links: DataFrame, pages: DataFrame) -> DataFrame:
    """Each page's `names`, those that link to one title from it, and how many are `ambiguous`: link to several.

    The links of a page are one after another; of two pages of one title the one with the lower id counts.
    """

    def by_page(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for whole in whole_groups(batches, _PAGE_LINKS, "page_id"):
            yield from group_names(whole).to_batches()

    names = f"names {_NAMES_TYPE}"
    found = links.select(*_PAGE_LINKS.names).mapInArrow(by_page, f"page_id long, {names}, ambiguous int")
    once = pages.groupBy(F.col("title").alias("page")).agg(F.min("page_id").alias("page_id"))
    return once.join(found, "page_id", "left").select(
        "page", F.coalesce("names", F.array()).alias("names"), F.coalesce("ambiguous", F.lit(0)).alias("ambiguous")
    )


def group_names(links: pa.Table) -> pa.Table:
    """The `names` of each page, and how many are `ambiguous`, of links of whole pages."""
    found = links.group_by(["page_id", "mention"], use_threads=False).aggregate([("title", "min"), ("title", "max")])
    found = found.append_column("is_clear", pc.equal(found.column("title_min"), found.column("title_max")))
    found = found.sort_by([("page_id", "ascending"), ("mention", "ascending")])
    pages = found.group_by("page_id", use_threads=False).aggregate([("is_clear", "sum"), ("is_clear", "count")])
    pages = pages.sort_by("page_id")
    clear = found.filter(pc.field("is_clear")).select(["mention", "title_min"]).rename_columns(["mention", "title"])
    counts = pages.column("is_clear_sum").to_numpy().astype(np.int64)
    offsets = pa.array(np.append(0, np.cumsum(counts)), pa.int32())
    names = pa.ListArray.from_arrays(offsets, clear.combine_chunks().to_struct_array().combine_chunks())
    ambiguous = pc.subtract(pages.column("is_clear_count"), counts).cast(pa.int32())
    return pa.table({"page_id": pages.column("page_id"), "names": names, "ambiguous": ambiguous})
