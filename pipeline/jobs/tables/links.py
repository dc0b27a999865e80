"""ResolveLinks: every annotation with the page that its target ends at."""

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline import schemas, storage
from pipeline.jobs.spark_parts import SparkJob


def build(job: SparkJob) -> storage.Result:
    """Write the table `links`, the annotations of a page together.

    It reads ExtractPages and ResolveRedirects. Raises: ValueError: there are not as many links as ExtractPages has
    counted.
    """
    links = resolve_links(job.read("ExtractPages", "paragraphs/"), job.read("ResolveRedirects", "titles/"))
    # Rows that are equal in all of these may stand in any order.
    order = ["page_id", "mention", "title", "status"]
    result = storage.merge_blocks(job.write(links, schemas.LINKS.schema, "links", by="page_id", order=order))
    found, wanted = result.rows["links"], job.manifest("ExtractPages").rows["links"]
    if found != wanted:
        raise ValueError(
            f"{job.folder}: {found:,} of {wanted:,} links were written; delete the folder and run ResolveLinks again"
        )
    statuses = storage.count_values(result.paths(job.folder), "status")
    variants = statuses.get("variant", 0)
    return replace(
        result, drops={"links:variant": variants} if variants else {}, facts={"statuses": statuses}
    )


def resolve_links(paragraphs: DataFrame, titles: DataFrame) -> DataFrame:
    """Every annotation as (`page_id`, `mention`, `title`, `status`): its anchor, and its target after redirects.

    The status is that of the target's row in `titles`; `missing` where it has none. Such a target, and one in a loop of
    redirects, keeps its own title.
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
