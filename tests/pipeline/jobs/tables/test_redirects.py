"""Redirects are followed as plain Python follows them."""

from typing import Any

import pytest

from pipeline.jobs.tables.redirects import resolve_redirects

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


def follow(title: str, max_hops: int | None) -> tuple[str | None, int | None, str]:
    """The plain way along redirects, one hop after another; a bounded one cannot notice a loop."""
    seen, hops = [title], 0
    while seen[-1] in REDIRECTS and seen[-1] not in PAGES and (max_hops is None or hops < max_hops):
        following = REDIRECTS[seen[-1]]
        hops += 1
        if max_hops is None and following in seen:
            return None, None, "loop"
        seen.append(following)
    if hops == 0:
        return title, 0, "page"
    return seen[-1], hops, "redirect" if seen[-1] in PAGES else "missing"


@pytest.mark.parametrize("max_hops", [None, 1])
def test_redirects_equal_the_plain_way(spark: Any, max_hops: int | None) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    pages = spark.createDataFrame([(title,) for title in PAGES], "title string")
    redirects = spark.createDataFrame(list(REDIRECTS.items()), "source string, target string")
    rows = resolve_redirects(pages, redirects, max_hops=max_hops).collect()
    found = {row["title"]: (row["canonical"], row["hops"], row["status"]) for row in rows}
    expected = {title: follow(title, max_hops) for title in {*PAGES, *REDIRECTS}}
    assert len(rows) == len(found)
    assert found == expected
