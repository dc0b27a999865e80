"""A flat batch as a padded one: what lies where, and back again."""

import pytest

from model.luke.flat import padded
from tests.support.flat_batches import random_flat
from tests.support.models import TINY, flat_of

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
