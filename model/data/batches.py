"""Items in parts that a budget of tokens allows."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def cut_by_tokens(items: Iterable[Item], tokens: Callable[[Item], int], budget: int) -> Iterator[Sequence[Item]]:
    """Consecutive parts of at most `budget` tokens; an item above it is alone."""
    part: list[Item] = []
    size = 0
    for item in items:
        if part and size + tokens(item) > budget:
            yield part
            part, size = [], 0
        part.append(item)
        size += tokens(item)
    if part:
        yield part


def cut(items: Sequence[Item], tokens: Callable[[Item], int], budget: int, count: int) -> Iterator[Sequence[Item]]:
    """Consecutive parts of at most `budget` tokens or, where that is 0, of `count` items."""
    if budget:
        return cut_by_tokens(items, tokens, budget)
    return (items[first : first + count] for first in range(0, len(items), count))
