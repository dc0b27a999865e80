"""The run of shuffled epochs, of one language and of several."""

from itertools import pairwise

import numpy as np
import pytest

from model.data.order import Order
from model.data.shards import epoch_order
from tests.support.properties import given, st


@given(st.integers(1, 50), st.integers(0, 5), st.floats(0, 1))
def test_a_single_language_has_the_epochs_of_its_corpus(length: int, seed: int, exponent: float) -> None:
    order = Order([range(length)], exponent=exponent, seed=seed)
    drawn = [order[place] for place in range(3 * length)]
    wanted = [(epoch, index) for epoch in range(3) for index in epoch_order(length, seed=seed, epoch=epoch).tolist()]
    assert drawn == wanted


@given(st.lists(st.integers(0, 40), min_size=2, max_size=4).filter(any), st.integers(0, 3), st.floats(0, 1))
def test_each_language_goes_through_all_of_its_sequences(sizes: list[int], seed: int, exponent: float) -> None:
    """Whatever its share, and wherever one looks: none comes again before all others have come as often."""
    ends = np.cumsum([0, *sizes]).tolist()
    languages = [range(first, end) for first, end in pairwise(ends)]
    order = Order(languages, exponent=exponent, seed=seed)
    drawn = [order[place] for place in range(5 * order.length)]
    assert drawn == [order[place] for place in range(5 * order.length)]
    assert len({*drawn}) == len(drawn)  # an epoch and an index come once, so that masks differ
    for language in languages:
        own = [pair for pair in drawn if pair[1] in language]
        assert [epoch for epoch, _ in own] == [number // len(language) for number in range(len(own))]


@pytest.mark.parametrize(("exponent", "shares"), [(1, (0.9, 0.1)), (0.7, (0.823, 0.177)), (0, (0.5, 0.5))])
def test_the_shares_of_languages(exponent: float, shares: tuple[float, float]) -> None:
    order = Order([range(9000), range(9000, 10000)], exponent=exponent, seed=1)
    for epoch in range(2):
        drawn = [order[place][1] for place in range(epoch * 10_000, (epoch + 1) * 10_000)]
        assert abs(np.mean(np.array(drawn) < 9000) - shares[0]) < 0.001
        halves = [np.mean(np.array(half) < 9000) for half in (drawn[:5000], drawn[5000:])]
        assert abs(halves[0] - halves[1]) < 0.05  # they are mixed


def test_sequences_that_are_left_out_do_not_come() -> None:
    order = Order([np.array([1, 4]), np.array([], np.int64), np.array([7])], exponent=0.7, seed=3)
    assert {order[place][1] for place in range(30)} == {1, 4, 7}
