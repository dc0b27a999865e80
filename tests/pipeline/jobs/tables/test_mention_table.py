"""The mention table and the names of pages, counted by hand."""

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


def test_mention_table(tables: dict[str, Any], tmp_path: Path) -> None:
    rows = {(row["mention"], row["title"]): row for row in count_mentions(tables, tmp_path, "fixed")}
    columns = ("entity_id", "link_count", "total_links", "occurrences")
    assert {key: tuple(row[name] for name in columns) for key, row in rows.items()} == {
        # Three links, one of them inside "apes", and one place that is no link.
        ("ape", "Ape"): (3, 2, 3, 4),
        ("ape", "Further"): (None, 1, 3, 4),
        ("Ape", "A"): (None, 1, 1, 1),
        ("apes", "Ape"): (3, 1, 1, 2),
        ("Japan", "Japan"): (None, 1, 1, 1),
        ("日本", "Japan"): (None, 1, 1, 1),
    }
    assert rows["ape", "Ape"]["link_probability"] == pytest.approx(3 / 4)
    assert rows["ape", "Ape"]["commonness"] == pytest.approx(2 / 3)


def test_long_mentions_are_left_out(
    tables: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_mention_table_as_the_paper_counted(tables: dict[str, Any], tmp_path: Path) -> None:
    rows = {(row["mention"], row["title"]): row for row in count_mentions(tables, tmp_path, "paper")}
    # Folded, "ape" is linked four times, on pages 1 and 2: four links on two pages, capped at 1.
    assert rows["ape", "Ape"]["total_links"] == 4
    assert rows["ape", "Ape"]["occurrences"] == 2
    assert rows["ape", "Ape"]["link_probability"] == 1.0


@pytest.mark.parametrize(
    ("profile", "ape", "japan"),
    [
        (
            "fixed",
            ([("Ape", "A"), ("ape", "Ape")], 0),
            [("Japan", "Japan"), ("ape", "Further"), ("日本", "Japan")],
        ),
        ("paper", ([], 1), [("ape", "Further"), ("japan", "Japan"), ("日本", "Japan")]),
    ],
)
def test_names_of_pages(
    tables: dict[str, Any], profile: str, ape: tuple[list[tuple[str, str]], int], japan: list[tuple[str, str]]
) -> None:
    """Folded, Ape and ape are one name, which links to two titles from its page; a page can have none."""
    links = mention_table.select_mentions(tables["links"], profile)
    links = links.repartition(2, "page_id").sortWithinPartitions("page_id")
    found = mention_table.names_of_pages(links, tables["pages"])
    rows = {
        row["page"]: ([tuple(name) for name in row["names"]], row["ambiguous"]) for row in found.collect()
    }
    linked = {"Ape": ape, "Japan": (japan, 0), "Unlinked": ([("apes", "Ape")], 0)}
    assert rows == linked | {"[MASK]": ([], 0), "[MASK2]": ([], 0)}
