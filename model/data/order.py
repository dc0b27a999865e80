"""The endless run of shuffled epochs over sequences, in which each language has its share."""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from model.data.shards import epoch_order


class Order:
    """The sequence at each place of the run, as a function of the seed and the place alone.

    An epoch has as many places as there are sequences. Each language has a number of them that grows with a power of
    its number of sequences, anywhere in the epoch; at these, one after the other, come its own sequences in shuffled
    epochs of its own. A corpus of one language has its own epochs alone.
    """

    def __init__(self, languages: Sequence[Sequence[int] | NDArray[np.int64]], *, exponent: float, seed: int) -> None:
        """`languages` has the indices of each language's sequences."""
        self.languages = [indices for indices in languages if len(indices)]
        weights = np.array([len(indices) for indices in self.languages], np.float64) ** exponent
        self.length = sum(map(len, self.languages))
        ends = np.round(np.cumsum(weights) / weights.sum() * self.length).astype(int)
        self.ends, self.counts = tuple(ends.tolist()), np.diff(ends, prepend=0).tolist()
        self.seed = seed

    def __getitem__(self, position: int) -> tuple[int, int]:
        """The epoch, of the sequence's own language, and the index of the sequence at a position."""
        epoch, place = divmod(position, self.length)
        language = 0
        if len(self.languages) > 1:
            of_places, numbers = _places(self.ends, self.seed, epoch)
            language = int(of_places[place])
            epoch, place = divmod(epoch * self.counts[language] + int(numbers[place]), len(self.languages[language]))
        order = _orders(language)(len(self.languages[language]), seed=self.seed, epoch=epoch, index=language)
        return epoch, int(self.languages[language][order[place]])


@lru_cache(maxsize=2)
def _places(ends: tuple[int, ...], seed: int, epoch: int) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """The language of each place of an epoch, and how many places it has had there before."""
    shuffled = epoch_order(ends[-1], seed=seed, epoch=epoch, index=len(ends))
    languages = np.searchsorted(ends, shuffled, side="right").astype(np.uint16)
    numbers = np.empty(len(languages), np.int64)
    counts = np.bincount(languages, minlength=len(ends))
    numbers[np.argsort(languages, kind="stable")] = np.concatenate([np.arange(count) for count in counts])
    return languages, numbers


@cache
def _orders(language: int) -> Callable[..., NDArray[np.int64]]:
    """The shuffles of a language, of which the last two are remembered."""
    return lru_cache(maxsize=2)(epoch_order)
