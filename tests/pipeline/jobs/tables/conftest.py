"""A handful of paragraphs, pages and titles as Spark tables."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline import schemas

PARAGRAPHS = [
    (1, "The ape saw an Ape and apes.", [("ape", 4, "Ape"), ("Ape", 15, "A"), ("ape", 23, "Ape")]),
    (2, "😀😀 日本 is Japan, an ape.", [("日本", 3, "Japan"), ("Japan", 9, "Japan"), ("ape", 19, "Gone")]),
    (2, "Nothing is linked here, not one ape.", []),
    (3, "Redirected: apes", [("apes", 12, "to Ape")]),
]
PAGE_TITLES = {1: "Monkey", 2: "Further", 3: "Ape"}
TITLES = [
    ("Ape", "Ape", 0, "page"),
    ("to Ape", "Ape", 1, "redirect"),
    ("Japan", "Japan", 0, "page"),
    ("A", None, 2, "loop"),
    ("Gone", "Further", 1, "missing"),
]
PAGE_ROWS = [("Ape", 1, False), ("Japan", 2, True), ("Unlinked", 3, False), ("[MASK]", 4, False), ("[MASK2]", 5, False)]


@pytest.fixture(scope="session")
def tables(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    from pipeline.jobs.tables.links import resolve_links

    path = str(tmp_path_factory.mktemp("tables") / "paragraphs.parquet")
    rows = [
        {
            "page_id": page_id,
            "title": PAGE_TITLES[page_id],
            "paragraph": 0,
            "section": "",
            "text": text,
            "links": [{"start": at, "end": at + len(anchor), "target": target} for anchor, at, target in links],
        }
        for page_id, text, links in PARAGRAPHS
    ]
    pq.write_table(pa.Table.from_pylist(rows, schemas.PARAGRAPHS.schema), path)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    paragraphs = spark.read.parquet(path)
    titles = spark.createDataFrame(TITLES, "title string, canonical string, hops int, status string")
    return {
        "paragraphs": path,
        "titles": titles,
        "pages": spark.createDataFrame(PAGE_ROWS, "title string, page_id long, is_disambiguation boolean"),
        "links": resolve_links(paragraphs, titles),
        "entities": spark.createDataFrame([("Ape", 3)], "title string, entity_id int"),
    }
