"""Vectors of entities by the words of their titles."""

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from model.luke.batch import Integers
from model.luke.config import SPECIAL_ENTITIES

TITLE_SHARE = 0.3  # of the whole title beside the name
DEVIATION = 0.1  # of entities' vectors


@dataclass(frozen=True)
class TitleWords:
    """The word ids of entities' titles one after the other, and where each entity's begin (entities + 1)."""

    word_ids: Integers
    offsets: Integers


@dataclass(frozen=True)
class Titles:
    """The words of `whole` titles, and of `names`: without the part that distinguishes them from others."""

    whole: TitleWords
    names: TitleWords


def vectors_of_titles(table: torch.Tensor, titles: Titles) -> torch.Tensor:
    """For each entity (entities, hidden) what its title's words have in `table`.

    Their standard deviation is 0.1 without the special ones, unless it is 0.
    """
    vectors = named_vectors(table, titles, table.mean(dim=0))
    deviation = vectors[SPECIAL_ENTITIES:].std() if len(vectors) > SPECIAL_ENTITIES else 0.0
    return vectors.mul_(DEVIATION / deviation) if deviation > 0 else vectors


def named_vectors(table: torch.Tensor, titles: Titles, centre: torch.Tensor) -> torch.Tensor:
    """For each title (titles, hidden) the mean of its name's words in `table`, plus 0.3 times that of all its words.

    `centre` (hidden), the mean of the whole table, is taken from each mean.
    """
    whole = mean_vectors(table, titles.whole, centre)
    return whole.mul_(TITLE_SHARE).add_(mean_vectors(table, titles.names, centre))


def mean_vectors(table: torch.Tensor, words: TitleWords, centre: torch.Tensor) -> torch.Tensor:
    """The mean row of `table` for each title's words (titles, hidden), less the centre; 0 without words."""
    ids, begins = (torch.from_numpy(each).to(table.device) for each in (words.word_ids, words.offsets[:-1]))
    means = functional.embedding_bag(ids, table, begins, mode="mean").sub_(centre)
    means[torch.from_numpy(np.diff(words.offsets) == 0)] = 0
    return means
