"""BuildEntityVocab: the corpus's most linked pages, or a given vocabulary fitted to the corpus."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline import storage
from pipeline.jobs.spark_parts import SparkJob, keep
from pipeline.lookup.entities import ALIASES, SECOND_MASK, SPECIAL_ENTITIES, SPECIAL_ROWS, EntityVocab, alias_rows
from pipeline.mediawiki.site import SiteInfo
from pipeline.storage.tries import write_numbers

_ENTITIES_SCHEMA = pa.schema([("entity_id", pa.int32()), ("entity", pa.string())])


@dataclass(frozen=True)
class Entities:
    """A vocabulary for a corpus."""

    vocab: EntityVocab
    ids: Mapping[str, int]  # by the title of each page of the corpus that is one of its entities
    drops: Mapping[str, int]  # pages, or entities, that were left out


def build(job: SparkJob, *, dump: str, entity_vocab: str, vocab_size: int, missing_pages: bool) -> storage.Result:
    """Write the vocabulary, and the titles that lead to its entities.

    It reads FetchDump, ExtractPages, ResolveRedirects, ResolveLinks, and FetchQids where QIDs are known. `entity_vocab`
    is one to use instead of building one, whose size then does not matter, or empty. With `missing_pages` linked titles
    without a page can be entities. Raises: ValueError: no entity is left.
    """
    pages, titles = job.read("ExtractPages", "pages/"), job.read("ResolveRedirects", "titles/")
    links = job.read("ResolveLinks", "links/")
    site = SiteInfo.from_dict(job.manifest("FetchDump").facts["site"])
    counted = keep(count_links(links, pages, missing=missing_pages, elsewhere=site.other_prefixes))
    if entity_vocab:
        entities = fit_entities(counted, titles, EntityVocab.load(entity_vocab, site.language))
        if not entities.ids:
            raise ValueError(
                f"corpus.entity_vocab {entity_vocab}: none of its {len(entities.vocab):,} entities is a page of "
                f"--dump {dump}; is it another language's?"
            )
    else:
        entities = choose_entities(counted, vocab_size)
        if not entities.ids:
            left_out = {reason: count for reason, count in entities.drops.items() if count}
            raise ValueError(
                f"--dump {dump}: no entity is left, all were dropped: {left_out}"
                if left_out
                else f"--dump {dump}: no link ends at one of its articles, so there is no entity to learn; take more "
                "of the dump, or let titles without a page be entities (corpus.missing_pages=in)"
            )
    qids = job.paths("FetchQids", "qids/") if "FetchQids" in job.inputs else []
    return finish(job, replace(entities, vocab=with_qids(entities.vocab, qids)))


def finish(job: SparkJob, entities: Entities) -> storage.Result:
    """Write the vocabulary and its aliases, and say what it is."""
    vocab = entities.vocab
    absent = ((title, number) for title, number in entities.ids.items() if vocab.page_ids[number] < 0)
    aliases = chain(alias_rows(job.paths("ResolveRedirects", "titles/"), entities.ids), absent)
    count = write_numbers(storage.join(job.folder, ALIASES), aliases)
    files = (*vocab.write(job.folder), storage.describe(job.folder, ALIASES, count))
    statuses = job.manifest("ResolveLinks").facts["statuses"]
    facts = {"links_by_status": statuses, "links_in_vocab": sum(vocab.link_counts)}
    return storage.Result(files, {"entities": len(vocab), "aliases": count}, +Counter(entities.drops), facts)


def count_links(
    links: DataFrame, pages: DataFrame, *, missing: bool = False, elsewhere: Collection[str] = ()
) -> DataFrame:
    """Every page with its `link_count`: the links that end at it, after redirects.

    With `missing`, linked titles that have no page are rows, too; their `page_id` is -1. Titles with a prefix of
    `elsewhere`, in lower case, are none: redirects can end in another namespace or wiki.
    """
    pages = pages.select("title", "page_id")
    if missing:
        prefix = F.lower(F.trim(F.substring_index("title", ":", 1)))
        is_elsewhere = F.col("title").contains(":") & prefix.isin(*sorted(elsewhere))
        absent = links.where((F.col("status") == "missing") & ~is_elsewhere).select("title")
        pages = pages.unionByName(absent.withColumn("page_id", F.lit(-1).cast("long")))
    # Links to titles without a page count here, too; the join drops them, unless these titles are rows of their own.
    counts = links.where("status != 'loop'").groupBy("title").agg(F.count(F.lit(1)).alias("link_count"))
    # Titles of special entities are none in MediaWiki; a damaged dump can have a title twice.
    nameable = pages.where(~F.col("title").isin(*SPECIAL_ENTITIES, SECOND_MASK))
    once = nameable.groupBy("title").agg(F.min("page_id").alias("page_id"))
    return once.join(counts, "title", "left").fillna(0, "link_count")


def fit_entities(counted: DataFrame, titles: DataFrame, vocab: EntityVocab) -> Entities:
    """A vocabulary that was made elsewhere, with this corpus's link counts and page ids; its ids stay.

    An entity whose title is a redirect here is the page that it ends at. Where two end at one page, the
    one with the page's title, or else the lower id, has it.
    """
    spark = counted.sparkSession
    first = len(SPECIAL_ENTITIES)
    columns = [range(first, len(vocab)), vocab.titles[first:]]
    entries = spark.createDataFrame(pa.table(columns, schema=_ENTITIES_SCHEMA))
    # Where an entity's title ends: at itself, where it is no redirect.
    ends = titles.where("status != 'loop'").select(F.col("title").alias("entity"), "canonical")
    resolved = entries.join(ends, "entity", "left").withColumn("title", F.coalesce("canonical", "entity"))
    found = resolved.join(counted, "title").collect()
    ids: dict[str, int] = {}
    link_counts, page_ids = [0] * len(vocab), [-1] * len(vocab)
    for row in sorted(found, key=lambda row: (row["entity"] != row["title"], row["entity_id"])):
        if ids.setdefault(row["title"], row["entity_id"]) == row["entity_id"]:
            link_counts[row["entity_id"]] = row["link_count"]
            page_ids[row["entity_id"]] = row["page_id"]
    drops = {"entities:not_in_dump": len(vocab) - first - len(found), "entities:same_page": len(found) - len(ids)}
    return Entities(EntityVocab(vocab.titles, tuple(link_counts), tuple(page_ids)), ids, drops)


def choose_entities(counted: DataFrame, size: int) -> Entities:
    """The vocabulary of the most linked pages; one that no link ends at is no candidate, and is not counted as dropped.

    `size` counts the three special entities, too.
    """
    top = [(row["title"], row["link_count"], row["page_id"], None) for row in top_linked(counted, size).collect()]
    vocab = EntityVocab.of_rows([*SPECIAL_ROWS, *top])
    ids = {title: number for title, number in vocab.ids().items() if title not in SPECIAL_ENTITIES}
    return Entities(vocab, ids, {"entities:below_vocab_size": counted.where("link_count > 0").count() - len(top)})


def top_linked(counted: DataFrame, size: int) -> DataFrame:
    """The most linked pages, those of a vocabulary of that size."""
    linked = counted.where("link_count > 0")
    return linked.orderBy(F.desc("link_count"), "title").limit(size - len(SPECIAL_ENTITIES))


def with_qids(vocab: EntityVocab, paths: Sequence[str]) -> EntityVocab:
    """The vocabulary with the QIDs of its pages, from files of the table qids."""
    wanted, qids = pa.array(vocab.page_ids, pa.int64()), dict[int, str]()
    for batch in chain.from_iterable(map(storage.read_batches, paths)):
        known = batch.filter(pc.is_in(batch.column("page_id"), wanted))
        qids.update(zip(*(column.to_pylist() for column in known.columns), strict=True))
    return replace(vocab, qids=tuple(map(qids.get, vocab.page_ids)) if qids else ())
