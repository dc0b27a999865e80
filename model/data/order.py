"""The endless run of shuffled epochs over sequences, in which each language has its share."""

from bisect import bisect_right
from collections.abc import Sequence
from functools import cache, lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from model.data.shards import epoch_order


class Order:
    """Which sequence comes at which place of the run: a function of the seed and the place alone.

    An epoch has as many places as there are sequences. Each language has a number of them that grows with a power of
    its number of sequences, and visits its own sequences in shuffled epochs of its own. A corpus of one language has
    its own epochs alone.
    """

    def __init__(self, languages: Sequence[Sequence[int] | NDArray[np.int64]], *, exponent: float, seed: int) -> None:
        """`languages` has the indices of each language's sequences."""
        self.languages = [indices for indices in languages if len(indices)]
        weights = np.array([len(indices) for indices in self.languages], np.float64) ** exponent
        self.length = sum(map(len, self.languages))
        shares = np.cumsum(weights) / weights.sum()
        self.ends: list[int] = np.maximum.accumulate(np.round(shares * self.length)).astype(int).tolist()
        self.seed = seed

    def __getitem__(self, position: int) -> tuple[int, int]:
        """The epoch, of the sequence's own language, and the index of the sequence at a position."""
        epoch, place = divmod(position, self.length)
        place = int(_orders(0)(self.length, seed=self.seed, epoch=epoch)[place])
        if len(self.languages) == 1:
            return epoch, int(self.languages[0][place])
        language = bisect_right(self.ends, place)
        begin = self.ends[language - 1] if language else 0
        indices = self.languages[language]
        own, place = divmod(epoch * (self.ends[language] - begin) + place - begin, len(indices))
        return own, int(indices[_orders(1 + language)(len(indices), seed=self.seed, epoch=own)[place]])


@cache
def _orders(index: int) -> "partial[NDArray[np.int64]]":
    return lru_cache(maxsize=2)(partial(epoch_order, index=index))  # type: ignore[return-value]
