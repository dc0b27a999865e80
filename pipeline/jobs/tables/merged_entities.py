"""MergeEntities: one table of the entities of several wikis; and the vocabulary of each of these wikis.

Pages of one item at Wikidata are one entity, or pages that interlanguage links connect; another page is an entity of
its wiki alone.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline import schemas, storage
from pipeline.jobs.spark_parts import SparkJob, keep
from pipeline.jobs.tables.entity_vocab import Entities, count_links, finish
from pipeline.lookup.entities import SPECIAL_ENTITIES, SPECIAL_ROWS, EntityVocab
from pipeline.mediawiki.site import SiteInfo, check_languages
from pipeline.mediawiki.titles import normalize_title

FILE = "entities.parquet"
VOCAB = "entity_vocab.json"  # as transformers' mLUKE has it: titles with their languages
Page = tuple[int, str]  # the number of its wiki, and its title
_QIDS = "page_id long, qid string"
_OTHER = ("other", "other_title", "other_count")
_KEYS = pa.schema([("wiki", pa.int32()), ("title", pa.string()), ("first", pa.int32()), ("first_title", pa.string())])


def build(
    job: SparkJob, *, wikis: int, vocab_size: int, missing_pages: bool, min_languages: int, interlanguage_links: bool
) -> storage.Result:
    """Write the table of entities, the most linked first.

    It reads FetchDump, ExtractPages, ResolveLinks, and FetchQids where QIDs are known, each of every wiki. `vocab_size`
    counts the three special entities, too; an entity has pages in `min_languages` wikis or more. With `missing_pages`
    linked titles without a page can be entities. Raises: ValueError: two wikis are of one language, or no entity is
    left.
    """
    sites = [SiteInfo.from_dict(job.manifest(f"FetchDump {wiki}").facts["site"]) for wiki in range(wikis)]
    languages = [site.language for site in sites]
    check_languages(languages)
    pages = [count_pages(job, wiki, site, missing_pages) for wiki, site in enumerate(sites)]
    counted = keep(reduce(DataFrame.unionByName, pages))
    drops = Counter[str]()
    if interlanguage_links:
        links = reduce(DataFrame.unionByName, [read_language_links(job, wiki, sites) for wiki in range(wikis)])
        keys, drops["language_links:contradict"] = connect(_known_links(links, counted))
        counted = _with_keys(counted, keys)
    of_wikis = keep(one_page_each(counted))
    entities = keep(merge(of_wikis, languages))
    shared = entities.where(F.size("pages") >= min_languages)
    ranked = shared.orderBy(F.desc("link_count"), "key").limit(vocab_size - len(SPECIAL_ENTITIES))
    top = ranked.select("qid", "link_count", "pages").collect()
    if not top:
        raise ValueError(f"corpus.min_languages {min_languages}: no entity is left of {entities.count():,}")
    rows = [(number, *row) for number, row in enumerate(top, len(SPECIAL_ENTITIES))]
    with storage.parquet_rows(storage.join(job.folder, FILE), schemas.MERGED_ENTITIES.schema) as table:
        table.extend(rows)
    ids = {title: number for number, title in enumerate(SPECIAL_ENTITIES)}
    ids |= {f"{page['language']}:{page['title']}": number for number, *_, pages in rows for page in pages}
    text = json.dumps(ids, ensure_ascii=False, indent=0)
    storage.write_bytes(storage.join(job.folder, VOCAB), f"{text}\n".encode())
    drops["pages:same_item"] = of_wikis.agg(F.sum(F.col("count") - 1)).collect()[0][0] or 0
    drops["entities:few_languages"] = entities.count() - shared.count()
    drops["entities:below_vocab_size"] = shared.count() - len(top)
    known = Counter(page["language"] for row in rows for page in row[-1])
    shares = Counter(str(len(row[-1])) for row in rows)
    facts = {"languages": dict(sorted(known.items())), "entities_by_number_of_languages": dict(sorted(shares.items()))}
    files = storage.describe(job.folder, FILE, len(rows)), storage.describe(job.folder, VOCAB, len(ids))
    return storage.Result(files, {"entities": len(rows)}, +drops, facts)


def count_pages(job: SparkJob, wiki: int, site: SiteInfo, missing_pages: bool) -> DataFrame:
    """The linked pages of a wiki, each with its `link_count`, its `qid` or none, and the `key` of its entity."""
    pages, links = job.read(f"ExtractPages {wiki}", "pages/"), job.read(f"ResolveLinks {wiki}", "links/")
    counted = count_links(links, pages, missing=missing_pages, elsewhere=site.other_prefixes)
    has_qids = (name := f"FetchQids {wiki}") in job.inputs
    qids = job.read(name, "qids/") if has_qids else job.session.createDataFrame([], _QIDS)
    counted = counted.join(qids, "page_id", "left")
    key = F.coalesce("qid", F.concat(F.lit(f"{site.language}:"), "title"))
    return counted.select("*", F.lit(wiki).alias("wiki"), key.alias("key"))


def read_language_links(job: SparkJob, wiki: int, sites: Sequence[SiteInfo]) -> DataFrame:
    """The links of a wiki's pages to pages of the others, after redirects: `wiki`, `title`, `other`, `other_title`."""
    links = job.read(f"ExtractPages {wiki}", "language_links/")
    found = []
    for other, site in enumerate(sites):
        normalize = F.udf(lambda title, site=site: normalize_title(title, site)[0], "string")
        codes = {site.language.lower(), site.dbname.removesuffix("wiki").replace("_", "-"), *site.own_prefixes}
        of_other = links.where(F.col("language").isin(*codes)).select("title", normalize("other_title").alias("name"))
        ends = job.read(f"ResolveRedirects {other}", "titles/").select(F.col("title").alias("name"), "canonical")
        end = F.coalesce("canonical", "name").alias("other_title")
        numbers = F.lit(wiki).alias("wiki"), F.lit(other).alias("other")
        found.append(of_other.join(ends, "name", "left").select(numbers[0], "title", numbers[1], end))
    return reduce(DataFrame.unionByName, found).where("wiki != other").distinct()


def _known_links(links: DataFrame, counted: DataFrame) -> list[tuple[int, Page, Page]]:
    """The number of links that end at both pages, with the pages; each has to be one that can be an entity."""
    pages = counted.select("wiki", "title", "link_count")
    others = pages.select(*(F.col(name).alias(each) for name, each in zip(pages.columns, _OTHER, strict=True)))
    known = links.join(pages, ["wiki", "title"]).join(others, list(_OTHER[:2]))
    rows = known.select(F.col("link_count") + F.col("other_count"), "wiki", "title", *_OTHER[:2]).collect()
    return [(count, (wiki, title), (other, other_title)) for count, wiki, title, other, other_title in rows]


def connect(links: Iterable[tuple[int, Page, Page]]) -> tuple[dict[Page, Page], int]:
    """The first page of the group of each page, and the number of links that contradict others.

    A group has one page of a wiki at most. Pairs that link to each other go first, then those of the most linked pages,
    then by wikis and titles; a pair whose groups have pages of one wiki stays apart.
    """
    pairs = Counter[tuple[int, Page, Page]]()
    for count, page, other in links:
        pairs[count, min(page, other), max(page, other)] += 1
    groups: dict[Page, dict[int, Page]] = {}
    contradictions = 0
    for (_, *pages), _ in sorted(pairs.items(), key=lambda each: (-each[1], -each[0][0], each[0][1:])):
        one, two = (groups.setdefault(page, {page[0]: page}) for page in pages)
        if one is two:
            continue
        if one.keys() & two.keys():
            contradictions += 1
            continue
        one |= two
        groups.update(dict.fromkeys(two.values(), one))
    return {page: min(group.values()) for page, group in groups.items()}, contradictions


def _with_keys(counted: DataFrame, keys: Mapping[Page, Page]) -> DataFrame:
    """The pages, each with the key of the first page of its group."""
    columns: list[Any] = [*zip(*keys, strict=True), *zip(*keys.values(), strict=True)] or [[], [], [], []]
    frame = counted.sparkSession.createDataFrame(pa.table(columns, schema=_KEYS))
    first = counted.select(F.col("wiki").alias("first"), F.col("title").alias("first_title"), F.col("key").alias("own"))
    grouped = frame.join(first, ["first", "first_title"]).select("wiki", "title", "own")
    return counted.join(grouped, ["wiki", "title"], "left").withColumn("key", F.coalesce("own", "key")).drop("own")


def one_page_each(pages: DataFrame) -> DataFrame:
    """For each key and wiki the most linked `page`, ties by title, and the `count` of its pages."""
    order = F.struct((-F.col("link_count")).alias("order"), "title", "page_id", "link_count", "qid")
    return pages.groupBy("key", "wiki").agg(F.min(order).alias("page"), F.count(F.lit(1)).alias("count"))


def merge(pages: DataFrame, languages: Sequence[str]) -> DataFrame:
    """The linked entities: `key`, `qid`, `link_count` of all wikis, and `pages` in the order of the wikis."""
    language = F.array(*map(F.lit, languages))[F.col("wiki")].alias("language")
    each = F.struct("wiki", language, "page.title", "page.page_id", "page.link_count")
    merged = pages.groupBy("key").agg(
        F.max("page.qid").alias("qid"),
        F.sum("page.link_count").alias("link_count"),
        F.transform(F.array_sort(F.collect_list(each)), lambda page: page.dropFields("wiki")).alias("pages"),
    )
    return merged.where("link_count > 0")


def titles(folder: str) -> list[str]:
    """The title of each entity, by its id, in the first of the languages that have a page for it."""
    rows = storage.read_tuples([storage.join(folder, FILE)], ["pages"])
    return [*SPECIAL_ENTITIES, *(pages[0]["title"] for (pages,) in rows)]


def build_vocab(job: SparkJob) -> storage.Result:
    """Write the vocabulary of one of the wikis: it reads MergeEntities, FetchDump, ResolveRedirects and ResolveLinks.

    An entity without a page there is called by another language and its title there, with a bar, which no title has.
    """
    language = job.manifest("FetchDump").facts["site"]["language"]
    entries = [*SPECIAL_ROWS]
    ids = dict[str, int]()
    [path] = job.paths("MergeEntities", FILE)
    for entity_id, qid, pages in storage.read_tuples([path], ["entity_id", "qid", "pages"]):
        own = [page for page in pages if page["language"] == language]
        if own:
            ids[own[0]["title"]] = entity_id
            entries.append((own[0]["title"], own[0]["link_count"], own[0]["page_id"], qid))
        else:
            entries.append((f"{pages[0]['language']}|{pages[0]['title']}", 0, -1, qid))
    drops = {"entities:other_languages": len(entries) - len(SPECIAL_ROWS) - len(ids)}
    return finish(job, Entities(EntityVocab.of_rows(entries), ids, drops))
