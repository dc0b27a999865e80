"""A flat batch as a padded one: what lies where, and back again."""

import numpy as np
import pytest
import torch

from model.luke.flat import FlatBatch, FlatSequence, flatten
from tests.support.flat_batches import random_flat
from tests.support.models import TINY, flat_of
from tests.support.padded import padded

LENGTHS = {
    "different lengths": [(9, 2), (4, 5), (13, 1)],
    "a sequence without entities": [(5, 3), (8, 0), (2, 1)],
    "no entities at all": [(3, 0), (7, 0)],
    "one sequence": [(11, 4)],
}


@pytest.mark.parametrize("name", LENGTHS)
def test_there_and_back_nothing_changes(name: str) -> None:
    batch = random_flat(LENGTHS[name], TINY)
    found = flat_of(padded(batch, pad_id=1))
    assert found.shape == batch.shape
    assert found.numbers.tolist() == batch.numbers.tolist()


def test_what_lies_where() -> None:
    def sequence(*columns: list[int]) -> FlatSequence:
        return FlatSequence(*(np.array(column, dtype=np.int64) for column in columns))

    numbers, shape = flatten(
        [
            sequence([5, 6, 7], [1], [60], [9], [1], [2], [0], [90]),
            sequence([8, 4], [0, 1], [80, 40], [11, 12], [0, 1], [1, 1], [1], [13]),
        ]
    )
    batch = padded(FlatBatch(torch.from_numpy(numbers), shape), pad_id=1)
    assert batch.word_ids.tolist() == [[5, 6, 7], [8, 4, 1]]
    assert batch.word_mask.tolist() == [[True] * 3, [True, True, False]]
    assert batch.word_labels.tolist() == [[-100, 60, -100], [80, 40, -100]]
    assert batch.entity_ids.tolist() == [[9, 0], [11, 12]]
    assert batch.entity_mask.tolist() == [[True, False], [True, True]]
    assert batch.entity_positions.tolist() == [[[1, 2], [-1, -1]], [[0, -1], [1, -1]]]
    assert batch.entity_labels.tolist() == [[90, -100], [-100, 13]]
    assert batch.word_ids.dtype == torch.int64
