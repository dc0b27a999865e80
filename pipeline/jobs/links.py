"""Every hyperlink annotation with its anchor text, and its target after redirects: BuildEntityVocab and
BuildMentionTable count these."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def resolve_links(paragraphs: DataFrame, titles: DataFrame) -> DataFrame:
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
