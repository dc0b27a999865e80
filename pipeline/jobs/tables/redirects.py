"""ResolveRedirects: every title with the page that it ends at."""

from collections import Counter
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline import schemas, storage
from pipeline.jobs.spark_parts import SparkJob, keep
from pipeline.mediawiki.conversions import Conversion, find_conversion


def build(job: SparkJob, *, profile: str, dump: str, language: str) -> storage.Result:
    """Write the table `titles`.

    It reads ExtractPages. Profile `paper` follows one redirect only, and finds no titles in another script. Raises:
    ValueError: a page is there twice.
    """
    pages, redirects = job.read("ExtractPages", "pages/"), job.read("ExtractPages", "redirects/")
    counted = pages.groupBy("page_id").agg(F.min("title").alias("title"), F.count(F.lit(1)).alias("n"))
    if twice := counted.where(F.col("n") > 1).orderBy("page_id").first():
        raise ValueError(f"--dump {dump}: holds the page {twice['title']!r} twice; do its parts overlap?")
    titles = keep(resolve_redirects(pages, redirects, max_hops=1 if profile == "paper" else None))
    if profile != "paper" and (conversion := find_conversion(language)):
        linked = job.read("ExtractPages", "paragraphs/").select(F.explode("links.target").alias("target"))
        titles = keep(titles.unionByName(find_variants(linked, titles, conversion)))
    blocks = job.write(titles, schemas.TITLES.schema, "titles", by="title")
    statuses = {row["status"]: row["count"] for row in titles.groupBy("status").count().collect()}
    result = storage.merge_blocks(blocks)
    # A page, or another redirect, of the same title goes before a redirect.
    used = result.rows["titles"] - statuses.get("page", 0) - statuses.get("variant", 0)
    shadowed = job.manifest("ExtractPages").rows["redirects"] - used
    return replace(result, drops=+Counter({"redirects:shadowed": shadowed}), facts={"statuses": statuses})


def resolve_redirects(pages: DataFrame, redirects: DataFrame, *, max_hops: int | None = None) -> DataFrame:
    """Follow every redirect to its end.

    `redirects` have columns `source` and `target`. At most `max_hops` are followed (profile `paper`: 1). There is
    one row a page or redirect: `title`, `canonical` (the page it ends at; for `missing` the title where the chain
    ends), `hops`, `status` (`page`, `redirect`, `loop`, `missing`); both are null for a `loop`.
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
    goes_on = steps.select(F.col("title").alias("at"), F.lit(True).alias("goes_on"))
    ends = ends.join(is_page, "at", "left").join(goes_on, "at", "left")
    status = F.when(F.col("is_page"), "redirect").when(F.col("goes_on") & F.lit(max_hops is None), "loop")
    is_loop = F.col("status") == "loop"
    followed = ends.withColumn("status", status.otherwise("missing")).select(
        "title",
        F.when(~is_loop, F.col("at")).alias("canonical"),
        F.when(~is_loop, F.col("hops")).alias("hops"),
        "status",
    )
    own = F.col("title").alias("canonical"), F.lit(0).alias("hops"), F.lit("page").alias("status")
    return titles.select("title", *own).unionByName(followed)


def find_variants(linked: DataFrame, titles: DataFrame, conversion: Conversion) -> DataFrame:
    """The rows of linked titles that no page and no redirect has, but that one has in another script of the wiki.

    Where several have, a page goes before a redirect, and then the first in code points.
    """
    keys = F.udf(lambda title: conversion.keys(title), "array<string>")
    known = titles.where(F.col("status").isin("page", "redirect")).withColumn("key", keys("title")[0])
    absent = linked.distinct().join(titles.select(F.col("title").alias("target")), "target", "left_anti")
    found = absent.select("target", F.posexplode(keys("target")).alias("rank", "key")).join(known, "key")
    best = found.groupBy("target").agg(F.min(F.struct("rank", "hops", "title", "canonical")).alias("best"))
    return best.select(F.col("target").alias("title"), "best.canonical", "best.hops", F.lit("variant").alias("status"))


def _follow(steps: DataFrame) -> DataFrame:
    """Pointer doubling: after k rounds every chain of up to 2^k hops has ended.

    A round in which no chain ends leaves only chains that lead into a loop, so it is the last.
    """
    current = keep(steps)
    going = None
    while True:
        nexts = current.select(F.col("title").alias("at"), F.col("at").alias("next"), F.col("hops").alias("more"))
        joined = current.join(nexts, "at", "left")
        still = joined.where(F.col("next").isNotNull()).count()
        if still in (0, going):
            return current
        going = still
        # Hops around a loop would double without end; they mean nothing there.
        total = F.col("hops").cast("long") + F.coalesce("more", F.lit(0))
        hops = F.least(total, F.lit(2**31 - 1)).cast("int")
        current = keep(joined.select("title", F.coalesce("next", "at").alias("at"), hops.alias("hops")))
