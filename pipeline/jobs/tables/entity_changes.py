"""DiffDumps: the page of each entity of an earlier vocabulary in this dump, and the new entities."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline import schemas, storage
from pipeline.jobs.spark_parts import SparkJob, keep
from pipeline.jobs.tables.entity_vocab import Entities, count_links, finish, top_linked
from pipeline.lookup.entities import SPECIAL_ENTITIES, SPECIAL_ROWS, EntityVocab
from pipeline.mediawiki.site import SiteInfo

FILE = "entity_changes.parquet"
WAYS = ("qid", "page_id", "redirect", "redirect", "title")  # the redirect with its page id, or at its title
_OTHER_PAGE = len(WAYS)  # the rank of a page that has an entity's title, and is another one
# An entity with one of these is a page of the dump; with another it keeps its id, and no page has it.
WITH_PAGE = ("same", "renamed", "disambiguation", "new")
_OLD = pa.schema({"entity_id": pa.int32(), "old_title": pa.string(), "old_page_id": pa.int64(), "old_qid": pa.string()})


class Change(NamedTuple):
    """A row of the table entity_changes."""

    entity_id: int
    page_id: int | None
    qid: str | None
    old_title: str | None
    title: str | None
    change: str
    by: str | None
    old_link_count: int
    link_count: int


def build(job: SparkJob, *, old: EntityVocab, vocab_size: int, missing_pages: bool, is_whole: bool) -> storage.Result:
    """Write the table of changes.

    It reads FetchDump, ExtractPages, ResolveRedirects, ResolveLinks, and FetchQids where QIDs are known. `vocab_size`
    and `missing_pages` say which pages are new entities: those that a vocabulary of this dump alone would have. An
    entity that a whole dump lacks is gone. Raises: ValueError: more of the entities of `old` have another page id in
    this dump than the same one.
    """
    site = SiteInfo.from_dict(job.manifest("FetchDump").facts["site"])
    pages, links = job.read("ExtractPages", "pages/"), job.read("ResolveLinks", "links/")
    counted = keep(count_links(links, pages, missing=missing_pages, elsewhere=site.other_prefixes))
    columns: list[Any] = [range(len(old)), old.titles, old.page_ids, old.qids or [None] * len(old)]
    entities = job.session.createDataFrame(pa.table(columns, schema=_OLD).slice(len(SPECIAL_ENTITIES)))
    described = counted.join(_kinds(job, pages), "page_id", "left").fillna(False, "is_disambiguation")
    redirects = job.read("ExtractPages", "redirects/").select("page_id", F.col("source").alias("title"))
    titles = job.read("ResolveRedirects", "titles/").join(redirects, "title", "left")
    found = find_pages(entities, keep(described), titles).collect()
    top = top_linked(described, vocab_size).collect()
    changes = changes_of(old, [row.asDict() for row in found], [row.asDict() for row in top], is_whole=is_whole)
    with storage.parquet_rows(storage.join(job.folder, FILE), schemas.ENTITY_CHANGES.schema) as table:
        table.extend(changes)
    files = (storage.describe(job.folder, FILE, len(changes)),)
    counts = Counter(each.change for each in changes)
    facts = {"changes": dict(sorted(counts.items())), "first_new": len(old)}
    return storage.Result(files, {"entities": len(changes)}, facts=facts)


def build_vocab(job: SparkJob, old: EntityVocab) -> storage.Result:
    """Write the vocabulary `old` with the changes of DiffDumps; it reads ResolveRedirects and ResolveLinks, too."""
    [path] = job.paths("DiffDumps", FILE)
    rows = storage.read_rows(path)
    return finish(job, updated(old, (Change(**row) for row in rows)))


def _kinds(job: SparkJob, pages: DataFrame) -> DataFrame:
    """The QID of each page, where one is known, and whether it is a disambiguation page."""
    own = pages.select("page_id", "is_disambiguation")
    if "FetchQids" not in job.inputs:
        return own.withColumn("qid", F.lit(None).cast("string"))
    listed = job.read("FetchQids", "disambiguations/").withColumn("is_listed", F.lit(True))
    kinds = own.join(listed, "page_id", "left").join(job.read("FetchQids", "qids/"), "page_id", "left")
    return kinds.select("page_id", "qid", F.coalesce("is_listed", "is_disambiguation").alias("is_disambiguation"))


def find_pages(entities: DataFrame, pages: DataFrame, titles: DataFrame) -> DataFrame:
    """For each entity that has one, the page that it is now, by the first way (`rank`) that finds one.

    A page is found by its QID, its page id, the redirect that has this page id now, the redirect at the entity's title,
    or the title. One with the title whose page id or QID is known to be another's has the last rank. Ties go to the
    first title in code points. `titles` are those of ResolveRedirects, with the page ids of redirects.
    """
    redirects = titles.where("status in ('redirect', 'variant', 'missing')")
    names = F.col("title").alias("old_title"), F.col("page_id").alias("old_page_id"), F.col("canonical").alias("title")
    targets = redirects.select(*names)
    moved = targets.drop("old_title").where("old_page_id >= 0")
    is_other = ((F.col("old_page_id") >= 0) & (F.col("page_id") >= 0)) | (F.col("old_qid") != F.col("qid"))
    ways = (
        (F.lit(0), entities.join(pages, F.col("old_qid") == F.col("qid"))),
        (F.lit(1), entities.join(pages.where("page_id >= 0"), F.col("old_page_id") == F.col("page_id"))),
        (F.lit(2), entities.join(moved, "old_page_id").join(pages, "title")),
        (F.lit(3), entities.join(targets.drop("old_page_id"), "old_title").join(pages, "title")),
        (F.when(is_other, _OTHER_PAGE).otherwise(4), entities.join(pages, F.col("old_title") == F.col("title"))),
    )
    columns = ("rank", "title", "page_id", "qid", "link_count", "is_disambiguation")
    ranked = (way.withColumn("rank", rank).select("entity_id", *columns) for rank, way in ways)
    rows = reduce(DataFrame.unionByName, ranked)
    return rows.groupBy("entity_id").agg(F.min(F.struct(*columns)).alias("page")).select("entity_id", "page.*")


def changes_of(
    old: EntityVocab, found: Iterable[Mapping[str, Any]], top: Iterable[Mapping[str, Any]], *, is_whole: bool
) -> list[Change]:
    """Return what became of each entity of `old`, by its id, and behind these the new ones.

    `found` are the rows of `find_pages`, `top` the most linked pages of this dump, the most linked first. Of several
    entities that end at one page the one found by the first way has it, then the one with its title, then the one with
    the lowest id; the others are merged into it. Raises: ValueError: more of them have another page id than the same.
    """
    pages = {row["entity_id"]: row for row in found}
    owners: dict[str, int] = {}
    for entity in sorted(pages, key=lambda each: (pages[each]["rank"], pages[each]["title"] != old.titles[each], each)):
        if pages[entity]["rank"] < _OTHER_PAGE:
            owners.setdefault(pages[entity]["title"], entity)
    changes = []
    for entity in range(len(SPECIAL_ENTITIES), len(old)):
        title, count, page = old.titles[entity], old.link_counts[entity], pages.get(entity)
        if page is None or page["rank"] == _OTHER_PAGE:
            what, qid = "split_off" if page else "gone" if is_whole else "not_in_dump", old.qids and old.qids[entity]
            changes.append(Change(entity, None, qid or None, title, None, what, None, count, 0))
            continue
        what = "disambiguation" if page["is_disambiguation"] else "same" if page["title"] == title else "renamed"
        what = what if owners[page["title"]] == entity else "merged"
        qid = old.qids[entity] if old.qids and what == "merged" else page["qid"]
        now = page["page_id"], qid, title, page["title"], what, WAYS[page["rank"]]
        changes.append(Change(entity, *now, count, page["link_count"]))
    _check_wiki(old, changes)
    for row in top:
        if row["title"] not in owners:
            number = len(SPECIAL_ENTITIES) + len(changes)
            place = row["page_id"], row["qid"]
            changes.append(Change(number, *place, None, row["title"], "new", None, 0, row["link_count"]))
    return changes


def _check_wiki(old: EntityVocab, changes: Sequence[Change]) -> None:
    ids = [(old.page_ids[each.entity_id], each.page_id) for each in changes if each.by in ("qid", "page_id")]
    same = sum(before == after for before, after in ids)
    other = sum(each.change == "split_off" for each in changes)
    other += sum(before != after and before >= 0 and after is not None and after >= 0 for before, after in ids)
    if other > same:
        raise ValueError(
            f"--update-from: {other:,} of its entities have another page id in this dump, and {same:,} the same; it is "
            "another wiki's"
        )


def updated(old: EntityVocab, changes: Iterable[Change]) -> Entities:
    """The vocabulary with the titles, link counts and page ids of this dump; ids stay, and new ones follow.

    An entity that no page has keeps its page id, by which a later dump may have it again, and its title; where another
    entity has that now, it is called by its id.
    """
    rows = list(changes)
    ids = {str(each.title): each.entity_id for each in rows if each.change in WITH_PAGE}
    entries = [*SPECIAL_ROWS]
    for each in rows:
        if each.change in WITH_PAGE:
            page_id = -1 if each.page_id is None else each.page_id
            entries.append((str(each.title), each.link_count, page_id, each.qid))
        else:  # no title of a page has a number sign
            title = str(each.old_title)
            page_id = -1 if each.change == "merged" else old.page_ids[each.entity_id]
            entries.append((f"{title}#{each.entity_id}" if title in ids else title, 0, page_id, each.qid))
    drops = Counter(f"entities:{each.change}" for each in rows if each.change not in WITH_PAGE)
    return Entities(EntityVocab.of_rows(entries), ids, drops)
