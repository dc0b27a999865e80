"""The bounds of the mention table: long names, and names made to have one key. The oracle's test has its rows."""

from pathlib import Path
from typing import Any

import pytest

from pipeline import schemas, storage
from pipeline.jobs.tables import mention_table
from tests.pipeline.jobs.tables.test_occurrences import one_key

pytestmark = pytest.mark.slow


def count_mentions(tables: dict[str, Any], path: Path, profile: str) -> list[Any]:
    """The rows of the mention table; (mention, title) stands once."""
    anchors = mention_table.count_anchors(mention_table.select_mentions(tables["links"], profile))
    longest = mention_table.write_names(anchors, str(path))
    mention_table.count_names(anchors.sparkSession, [tables["paragraphs"]], str(path), profile)
    counted = mention_table.with_occurrences(anchors, str(path))
    rows = mention_table.mention_table(counted, tables["entities"]).collect()
    assert max(len(row["mention"]) for row in rows) == longest
    return rows


def test_long_mentions_are_left_out(tables: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mention_table, "MAX_CHARACTERS", 3)
    assert {row["mention"] for row in count_mentions(tables, tmp_path, "fixed")} == {"ape", "Ape", "日本"}


@pytest.mark.parametrize("profile", ["fixed", "paper"])
def test_names_made_to_have_one_key_keep_their_counts(spark: Any, tmp_path: Path, profile: str) -> None:
    one, two = one_key("\u331f\U000372c0", 64)
    path = str(tmp_path / "paragraphs.parquet")
    with storage.parquet_rows(path, schemas.PARAGRAPHS.schema) as table:
        for page, text in ((1, f"{one}: {two}, {one}, an ape."), (2, one), (3, f"ape {one}")):
            start = text.index(one)
            table.extend([(page, "", 0, "", text, [{"start": start, "end": start + 64, "target": "A"}])])
    rows = [(name, "A", 1, 1) for name in (one, two, "ape")]
    names = ("mention string", "title string", "link_count long", "total_links long")
    anchors = spark.createDataFrame(rows, ", ".join(names))
    assert mention_table.write_names(anchors, str(tmp_path)) == 64
    mention_table.count_names(spark, [path], str(tmp_path), profile)
    counted = mention_table.with_occurrences(anchors, str(tmp_path)).collect()
    found = {row["mention"]: row["occurrences"] for row in counted}
    assert found == {one: 3 if profile == "paper" else 4, two: 1, "ape": 2}
