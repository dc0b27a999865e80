"""Links after redirects, and how many there are of each status."""

from collections import Counter
from typing import Any

import pytest

from pipeline.jobs.redirects import link_coverage

pytestmark = pytest.mark.slow


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
    assert link_coverage(tables["annotations"]) == {"loop": 1, "missing": 1, "page": 4, "redirect": 1}
