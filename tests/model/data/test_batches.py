"""Batches that are cut by their tokens."""

from itertools import pairwise

from model.data.batches import cut_by_tokens
from tests.support.properties import given, st


@given(st.lists(st.integers(1, 9), max_size=30), st.integers(1, 20))
def test_parts_are_as_large_as_the_budget_allows(sizes: list[int], budget: int) -> None:
    parts = [list(part) for part in cut_by_tokens(sizes, int, budget)]
    assert sum(parts, []) == sizes  # noqa: RUF017
    assert all(sum(part) <= budget or len(part) == 1 for part in parts)
    assert all(sum(part) + following[0] > budget for part, following in pairwise(parts))
