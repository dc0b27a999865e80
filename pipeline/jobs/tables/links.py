"""ResolveLinks: every annotation with the page that its target ends at."""

from collections import Counter
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline import schemas, storage
from pipeline.jobs.spark_parts import SparkJob


def build(job: SparkJob, *, profile: str) -> storage.Result:
    """Write the table `links`, the annotations of a page together.

    It reads ExtractPages and ResolveRedirects. A link that a redirect leads back to its own page is no annotation,
    except in profile `paper`. Raises: ValueError: there are not as many links as ExtractPages has counted.
    """
    links = resolve_links(job.read("ExtractPages", "paragraphs/"), job.read("ResolveRedirects", "titles/"))
    own = F.lit(False) if profile == "paper" else F.col("leads_back")
    # Rows that are equal in all of these may stand in any order.
    order = ["page_id", "mention", "title", "status"]
    blocks = job.write(links.where(~own), schemas.LINKS.schema, "links", by="page_id", order=order)
    result, same_page = storage.merge_blocks(blocks), links.where(own).count()
    found, wanted = result.rows["links"] + same_page, job.manifest("ExtractPages").rows["links"]
    if found != wanted:
        raise ValueError(
            f"{job.folder}: {found:,} of {wanted:,} links were written; delete the folder and run ResolveLinks again"
        )
    statuses = storage.parquet.count_values(result.paths(job.folder), "status")
    drops = {"links:same_page": same_page, "links:variant": statuses.get("variant", 0)}
    return replace(result, drops=+Counter(drops), facts={"statuses": statuses})


def resolve_links(paragraphs: DataFrame, titles: DataFrame) -> DataFrame:
    """Every annotation as (`page_id`, `mention`, `title`, `status`): its anchor, and its target after redirects.

    The status is that of the target's row in `titles`; `missing` where it has none. Such a target, and one in a loop of
    redirects, keeps its own title. `leads_back` says whether the target ends at the page that the link stands on.
    """
    mention = F.expr("substring(text, link.start + 1, link.end - link.start)").alias("mention")
    status = F.coalesce("status", F.lit("missing")).alias("status")
    return follow_links(paragraphs, titles, mention).select("page_id", "mention", "title", status, "leads_back")


def follow_links(paragraphs: DataFrame, titles: DataFrame, *columns: Column) -> DataFrame:
    """Every annotation with these columns of it, the `title` that its target ends at, and the target's `status`.

    `leads_back` says whether that is the page that it stands on, which has its `page_id`.
    """
    page, target = F.col("title").alias("page"), F.col("link.target").alias("target")
    links = paragraphs.select("*", F.explode("links").alias("link")).select("page_id", page, target, *columns)
    resolved = links.join(titles.withColumnRenamed("title", "target"), "target", "left")
    found = resolved.withColumn("title", F.coalesce("canonical", "target"))
    return found.withColumn("leads_back", F.col("title") == F.col("page"))
