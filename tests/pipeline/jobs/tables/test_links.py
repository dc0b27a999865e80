"""Links after redirects."""

from collections import Counter
from typing import Any

import pytest

pytestmark = pytest.mark.slow


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
