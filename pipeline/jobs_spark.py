"""Joins and counts on Spark: redirects, entity vocabulary, mention table."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline import mentions, storage
from pipeline.entities import ALIASES, SECOND_MASK, SPECIAL_ENTITIES, EntityVocab, alias_rows
from pipeline.spark import keep
from pipeline.tries import write_numbers, write_texts

TITLES_SCHEMA = pa.schema(
    [("title", pa.string()), ("canonical", pa.string()), ("hops", pa.int32()), ("status", pa.string())]
)
_ENTITIES_SCHEMA = pa.schema([("entity_id", pa.int32()), ("entity", pa.string())])
_REACHED = ("page", "redirect")


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
        chain ends), `hops`, `status` (`page`, `redirect`, `loop`, `missing`); both are null for a `loop`.
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
    is_loop = F.col("status") == "loop"
    followed = ends.withColumn("status", status.otherwise("missing")).select(
        "title",
        F.when(~is_loop, F.col("at")).alias("canonical"),
        F.when(~is_loop, F.col("hops")).alias("hops"),
        "status",
    )
    unmoved = titles.select(
        "title", F.col("title").alias("canonical"), F.lit(0).alias("hops"), F.lit("page").alias("status")
    )
    return unmoved.unionByName(followed)


def _follow(steps: DataFrame) -> DataFrame:
    """Pointer doubling: after k rounds every chain of up to 2^k hops has ended.

    A round in which no chain ends leaves only chains that lead into a loop, so it is the last.
    """
    current = keep(steps)
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
        current = keep(joined.select("title", F.coalesce("next", "at").alias("at"), hops.alias("hops")))


# Links


def links(paragraphs: DataFrame, titles: DataFrame) -> DataFrame:
    """Every annotation as (`page_id`, `mention`, `title`, `status`): its anchor, and its target after redirects.

    A target that is neither page nor redirect keeps its title and has the status `missing`.
    """
    exploded = paragraphs.select("page_id", "text", F.explode("links").alias("link")).select(
        "page_id",
        F.expr("substring(text, link.start + 1, link.end - link.start)").alias("mention"),
        F.col("link.target").alias("target"),
    )
    resolved = exploded.join(titles.withColumnRenamed("title", "target"), "target", "left")
    return resolved.select(
        "page_id",
        "mention",
        F.coalesce("canonical", "target").alias("title"),
        F.coalesce("status", F.lit("missing")).alias("status"),
    )


def link_coverage(annotations: DataFrame) -> dict[str, int]:
    """Number of annotations by the status of their target."""
    counts = annotations.groupBy("status").count().collect()
    return {row["status"]: row["count"] for row in sorted(counts, key=lambda row: row["status"])}


# Entities


@dataclass(frozen=True)
class Entities:
    """A vocabulary for a corpus.

    Attributes:
        vocab: the vocabulary.
        ids: title of each page of the corpus that is one of its entities -> id.
        drops: pages, or entities, that were left out, by reason.
    """

    vocab: EntityVocab
    ids: Mapping[str, int]
    drops: Mapping[str, int]


def count_links(annotations: DataFrame, pages: DataFrame, *, missing: bool = False) -> DataFrame:
    """Every page with its `link_count`: the annotations that end at it, after redirects.

    With `missing`, linked titles that have no page are rows, too; their `page_id` is -1.
    """
    pages = pages.select("title", "page_id", "is_disambiguation")
    if missing:
        absent = annotations.where("status = 'missing'").select(
            "title", F.lit(-1).cast("long").alias("page_id"), F.lit(False).alias("is_disambiguation")
        )
        pages = pages.unionByName(absent)
    reached = annotations.where("status != 'loop'")
    counts = reached.groupBy("title").agg(F.count(F.lit(1)).alias("link_count"))
    # Titles of special entities are none in MediaWiki; a title can stand twice in a damaged dump.
    nameable = pages.where(~F.col("title").isin(*SPECIAL_ENTITIES, SECOND_MASK))
    once = nameable.groupBy("title").agg(
        F.min("page_id").alias("page_id"), F.min("is_disambiguation").alias("is_disambiguation")
    )
    return once.join(counts, "title", "left").fillna(0, "link_count")


def choose_entities(
    counted: DataFrame,
    size: int,
    *,
    min_count: int = 1,
    forced: Collection[str] = (),
    disambiguation: bool = True,
) -> Entities:
    """The vocabulary of the most linked pages.

    Args:
        counted: of `count_links`.
        size: entities of the vocabulary, the three special ones included.
        min_count: pages that are linked less often are left out.
        forced: titles of pages that are taken all the same.
        disambiguation: whether disambiguation pages may be entities.
    """
    spark = counted.sparkSession
    wanted = spark.createDataFrame([(title,) for title in sorted(forced)], "title string")
    taken = counted.join(wanted, "title", "left_semi").collect()
    others = counted.join(wanted, "title", "left_anti").where("link_count > 0")
    is_rare = F.col("link_count") < min_count
    is_left_out = F.col("is_disambiguation") & ~is_rare if not disambiguation else F.lit(False)
    rare, left_out, linked = others.agg(
        F.count_if(is_rare), F.count_if(is_left_out), F.count(F.lit(1))
    ).collect()[0]
    room = max(size - 3 - len(taken), 0)
    top = others.where(~is_rare & ~is_left_out).orderBy(F.desc("link_count"), "title").limit(room).collect()
    rows = ((row["title"], row["link_count"], row["page_id"]) for row in [*taken, *top])
    vocab = EntityVocab.rank(rows, size, forced)
    drops = {
        "entities:below_min_count": rare,
        "entities:disambiguation": left_out,
        "entities:below_vocab_size": linked - rare - left_out - len(top),
    }
    ids = {title: number for title, number in vocab.ids().items() if title not in SPECIAL_ENTITIES}
    return Entities(vocab, ids, drops)


def fit_entities(counted: DataFrame, titles: DataFrame, vocab: EntityVocab) -> Entities:
    """A vocabulary that was made elsewhere, with this corpus's link counts and page ids; its ids stay.

    An entity whose title is a redirect here stands for the page that it ends at. Where two end at one page, the
    one with the page's title, or else the lower id, has it.
    """
    spark = counted.sparkSession
    first = len(SPECIAL_ENTITIES)
    columns = [range(first, len(vocab)), vocab.titles[first:]]
    entries = spark.createDataFrame(pa.table(columns, schema=_ENTITIES_SCHEMA))
    found = _resolve(entries, titles, "entity").join(counted, "title").collect()
    ids: dict[str, int] = {}
    link_counts, page_ids = [0] * len(vocab), [-1] * len(vocab)
    for row in sorted(found, key=lambda row: (row["entity"] != row["title"], row["entity_id"])):
        if ids.setdefault(row["title"], row["entity_id"]) == row["entity_id"]:
            link_counts[row["entity_id"]] = row["link_count"]
            page_ids[row["entity_id"]] = row["page_id"]
    drops = {
        "entities:not_in_dump": len(vocab) - first - len(found),
        "entities:same_page": len(found) - len(ids),
    }
    return Entities(EntityVocab(vocab.titles, tuple(link_counts), tuple(page_ids)), ids, drops)


def pages_of(spark: SparkSession, names: Iterable[str], titles: DataFrame) -> dict[str, str]:
    """The page that each of these titles ends at, after redirects; titles that end at none are left out."""
    wanted = spark.createDataFrame([(name,) for name in sorted(set(names))], "name string")
    return {row["name"]: row["title"] for row in _resolve(wanted, titles, "name").collect()}


def _resolve(frame: DataFrame, titles: DataFrame, column: str) -> DataFrame:
    """The rows whose title in `column` ends at a page, with that page's `title`."""
    reached = titles.where(F.col("status").isin(*_REACHED))
    return frame.join(reached.select(F.col("title").alias(column), F.col("canonical").alias("title")), column)


def entity_titles(vocab: DataFrame, pages: DataFrame) -> DataFrame:
    """`title` (as annotations have it) and `entity_id` of each entity that is linked.

    By page, since the title of an entity of a given vocabulary can be a redirect in this dump; by title where the
    dump has no page.
    """
    absent = vocab.where("page_id < 0 and link_count > 0")
    found = pages.select("page_id", "title").join(vocab.select("page_id", "entity_id"), "page_id")
    return found.select("title", "entity_id").unionByName(absent.select("title", "entity_id"))


def write_vocab(entities: Entities, folder: str, titles: Sequence[str]) -> list[storage.FileEntry]:
    """Write the vocabulary and its aliases; `titles` are the files of the titles table."""
    rows = (row for path in titles for row in storage.read_rows(path))
    page_ids = entities.vocab.page_ids
    absent = ((title, number) for title, number in entities.ids.items() if page_ids[number] < 0)
    aliases = chain(alias_rows(rows, entities.ids), absent)
    count = write_numbers(storage.join(folder, ALIASES), aliases)
    return [*entities.vocab.write(folder), storage.describe(folder, ALIASES, count)]


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
