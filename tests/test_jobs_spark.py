"""Spark's joins and counts, against plain Python."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline import jobs_spark, mentions, storage
from pipeline.jobs_beam import SCHEMAS

pytestmark = pytest.mark.slow

PAGES = ["A", "B", "C", "Both"]
REDIRECTS = {
    "to A": "A",
    "to to A": "to A",
    **{f"chain {number}": f"chain {number + 1}" for number in range(40)},
    "chain 40": "B",
    "dead": "Nowhere",
    "to dead": "dead",
    "self": "self",
    "loop 1": "loop 2",
    "loop 2": "loop 3",
    "loop 3": "loop 1",
    "into loop": "loop 2",
    "Both": "C",
}


def follow(title: str, max_hops: int | None) -> tuple[str | None, int, str]:
    """The plain way along redirects, one hop after another; a bounded one cannot notice a loop."""
    seen, hops = [title], 0
    while seen[-1] in REDIRECTS and seen[-1] not in PAGES and (max_hops is None or hops < max_hops):
        following = REDIRECTS[seen[-1]]
        hops += 1
        if max_hops is None and following in seen:
            return None, hops, "loop"
        seen.append(following)
    if hops == 0:
        return title, 0, "page"
    return seen[-1], hops, "redirect" if seen[-1] in PAGES else "missing"


@pytest.mark.parametrize("max_hops", [None, 1])
def test_redirects_equal_the_plain_way(spark: Any, max_hops: int | None) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    pages = spark.createDataFrame([(title,) for title in PAGES], "title string")
    redirects = spark.createDataFrame(list(REDIRECTS.items()), "source string, target string")
    rows = jobs_spark.resolve_redirects(pages, redirects, max_hops=max_hops).collect()
    found = {row["title"]: (row["canonical"], row["hops"], row["status"]) for row in rows}
    expected = {title: follow(title, max_hops) for title in {*PAGES, *REDIRECTS}}
    assert len(rows) == len(found)
    for title, (canonical, hops, status) in expected.items():
        assert found[title][0] == canonical, title
        assert found[title][2] == status, title
        assert status == "loop" or found[title][1] == hops, title


PARAGRAPHS = [
    (1, "The ape saw an Ape and apes.", [("ape", 4, "Ape"), ("Ape", 15, "A"), ("ape", 23, "Ape")]),
    (2, "😀😀 日本 is Japan, an ape.", [("日本", 3, "Japan"), ("Japan", 9, "Japan"), ("ape", 19, "Gone")]),
    (2, "Nothing is linked here, not one ape.", []),
    (3, "Redirected: apes", [("apes", 12, "to Ape")]),
]
TITLES = [
    ("Ape", "Ape", 0, "page"),
    ("to Ape", "Ape", 1, "redirect"),
    ("Japan", "Japan", 0, "page"),
    ("A", None, 2, "loop"),
    ("Gone", "Further", 1, "missing"),
]
PAGE_ROWS = [("Ape", 1), ("Japan", 2), ("Unlinked", 3)]


@pytest.fixture(scope="module")
def tables(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = str(tmp_path_factory.mktemp("tables") / "paragraphs.parquet")
    rows = [
        {
            "page_id": page_id,
            "title": "",
            "paragraph": 0,
            "section": "",
            "text": text,
            "links": [
                {"start": at, "end": at + len(anchor), "target": target} for anchor, at, target in links
            ],
        }
        for page_id, text, links in PARAGRAPHS
    ]
    for row in rows:
        for link, (anchor, _, _) in zip(
            row["links"], {text: links for _, text, links in PARAGRAPHS}[row["text"]], strict=True
        ):
            assert row["text"][link["start"] : link["end"]] == anchor
    pq.write_table(pa.Table.from_pylist(rows, SCHEMAS["paragraphs"]), path)
    paragraphs = jobs_spark.read(spark, [path], 2)
    titles = spark.createDataFrame(TITLES, "title string, canonical string, hops int, status string")
    return {
        "paragraphs": paragraphs,
        "titles": titles,
        "pages": spark.createDataFrame(PAGE_ROWS, "title string, page_id long"),
        "annotations": jobs_spark.links(paragraphs, titles),
    }


def test_links_and_coverage(tables: dict[str, Any]) -> None:
    rows = Counter((row["mention"], row["title"], row["status"]) for row in tables["annotations"].collect())
    assert rows == {
        ("ape", "Ape", "page"): 2,
        ("Ape", "A", "loop"): 1,
        ("日本", "Japan", "page"): 1,
        ("Japan", "Japan", "page"): 1,
        ("ape", "Further", "missing"): 1,
        ("apes", "Ape", "redirect"): 1,
    }
    assert jobs_spark.link_coverage(tables["annotations"]) == {
        "loop": 1,
        "missing": 1,
        "page": 4,
        "redirect": 1,
    }


@pytest.mark.parametrize(("size", "titles"), [(10, ("Ape", "Japan")), (4, ("Ape",))])
def test_vocabulary(tables: dict[str, Any], size: int, titles: tuple[str, ...]) -> None:
    vocab, candidates = jobs_spark.build_vocab(tables["annotations"], tables["pages"], size)
    assert vocab.titles[3:] == titles
    assert vocab.link_counts[3] == 3
    assert vocab.page_ids[3] == 1
    assert candidates == 2


def expected_mentions(names: mentions.Names) -> dict[tuple[str, str], tuple[int, int, int]]:
    """(link count, total links, occurrences) of each mention and title, with dictionaries alone."""
    canonical = {title: end or title for title, end, _, _ in TITLES}
    links: dict[str, Counter[str]] = defaultdict(Counter)
    occurrences: Counter[str] = Counter()
    for _, text, anchors in PARAGRAPHS:
        for anchor, _, target in anchors:
            links[anchor][canonical[target]] += 1
        spans = [(at, at + len(anchor)) for anchor, at, _ in anchors]
        occurrences.update(mentions.count_occurrences(text, spans, names))
    return {
        (name, title): (count, links[name].total(), occurrences[name])
        for name in links
        for title, count in links[name].items()
    }


def test_mention_table(spark: Any, tables: dict[str, Any], tmp_path: Path) -> None:
    vocab = spark.createDataFrame([("Ape", 3)], "title string, entity_id int")
    path = str(tmp_path / mentions.NAMES)
    frame = jobs_spark.count_mentions(
        tables["paragraphs"], tables["annotations"], vocab, path, profile="fixed", min_links=1
    )
    rows = {(row["mention"], row["title"]): row for row in frame.collect()}
    expected = expected_mentions(mentions.Names(path))
    assert {
        key: (row["link_count"], row["total_links"], row["occurrences"]) for key, row in rows.items()
    } == expected
    # "ape": three links (one of them inside "apes") and one place that is no link.
    ape = rows["ape", "Ape"]
    assert (ape["entity_id"], ape["link_count"], ape["total_links"], ape["occurrences"]) == (3, 2, 3, 4)
    assert ape["link_probability"] == pytest.approx(3 / 4)
    assert ape["commonness"] == pytest.approx(2 / 3)
    assert rows["ape", "Further"]["entity_id"] is None
    assert all(0 < row["link_probability"] <= 1 for row in rows.values())


def test_mention_table_as_the_paper_counted(spark: Any, tables: dict[str, Any], tmp_path: Path) -> None:
    vocab = spark.createDataFrame([("Ape", 3)], "title string, entity_id int")
    path = str(tmp_path / mentions.NAMES)
    frame = jobs_spark.count_mentions(
        tables["paragraphs"], tables["annotations"], vocab, path, profile="paper", min_links=1
    )
    rows = {(row["mention"], row["title"]): row for row in frame.collect()}
    # Folded, "ape" is linked four times, on pages 1 and 2: four links on two pages, capped at 1.
    assert rows["ape", "Ape"]["total_links"] == 4
    assert rows["ape", "Ape"]["occurrences"] == 2
    assert rows["ape", "Ape"]["link_probability"] == 1.0


def test_parts_are_kept_and_have_the_same_bytes(spark: Any, tmp_path: Path) -> None:
    schema = pa.schema([("word", pa.string()), ("number", pa.int64())])
    rows = [(f"word {number % 1000}", number) for number in range(30_000)]

    def write(folder: Path, partitions: int) -> dict[int, storage.BlockRecord]:
        frame = spark.createDataFrame(rows, "word string, number long").repartition(partitions)
        return jobs_spark.write_parts(
            frame, schema, str(folder), "words", "key", parts=3, by="word", order=["word", "number"]
        )

    whole = write(tmp_path / "whole", 1)
    broken = tmp_path / "broken"
    write(broken, 7)
    (broken / "blocks/block-00001.json").unlink()
    (broken / "words/block-00001.parquet").write_bytes(b"half")
    kept = (broken / "words/block-00000.parquet").stat().st_mtime_ns
    assert write(broken, 5) == whole
    assert (broken / "words/block-00000.parquet").stat().st_mtime_ns == kept
    assert sum(record.rows["words"] for record in whole.values()) == len(rows)
    assert pq.ParquetFile(tmp_path / "whole/words/block-00000.parquet").metadata.row_group(0).num_rows == 8192
