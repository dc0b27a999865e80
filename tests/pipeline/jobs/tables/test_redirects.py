"""Redirects are followed as plain Python follows them, and links end where their titles do."""

from collections import Counter
from typing import Any

import pytest

from pipeline.jobs.tables.redirects import resolve_redirects
from tests.support.oracle_tables import Pages, resolve_titles

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


@pytest.mark.parametrize(("profile", "max_hops"), [("fixed", None), ("paper", 1)])
def test_redirects_equal_the_plain_way(spark: Any, profile: str, max_hops: int | None) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    pages = spark.createDataFrame([(title,) for title in PAGES], "title string")
    redirects = spark.createDataFrame(list(REDIRECTS.items()), "source string, target string")
    rows = resolve_redirects(pages, redirects, max_hops=max_hops).collect()
    both = [{"source": source, "target": target} for source, target in REDIRECTS.items()]
    expected = resolve_titles(Pages([{"title": title} for title in PAGES], both, []), profile)
    found = {row["title"]: row.asDict() for row in rows}
    assert len(rows) == len(found)
    assert found == expected


def test_links_end_where_their_titles_do(tables: dict[str, Any]) -> None:
    rows = Counter((row["mention"], row["title"], row["status"]) for row in tables["links"].collect())
    assert rows == {
        ("ape", "Ape", "page"): 2,
        ("Ape", "A", "loop"): 1,
        ("日本", "Japan", "page"): 1,
        ("Japan", "Japan", "page"): 1,
        ("ape", "Further", "missing"): 1,
        ("apes", "Ape", "redirect"): 1,
    }
