"""Vectors of entities by the words of their titles, by hand."""

import numpy as np
import torch

from model.luke.titles import Titles, TitleWords, named_vectors, vectors_of_titles


def words_of(*titles: list[int]) -> TitleWords:
    ids = [word for title in titles for word in title]
    return TitleWords(np.array(ids, dtype=np.int64), np.cumsum([0, *map(len, titles)]))


TITLES = Titles(words_of([], [], [], [4, 5], [6], []), words_of([], [], [], [4], [6], []))


def test_a_name_counts_more_than_the_rest_of_its_title() -> None:
    table = torch.randn(8, 5)
    centre = table.mean(dim=0)
    found = named_vectors(table, TITLES, centre)
    torch.testing.assert_close(found[3], table[4] - centre + 0.3 * (table[[4, 5]].mean(dim=0) - centre))
    torch.testing.assert_close(found[4], 1.3 * (table[6] - centre))
    assert not found[[0, 1, 2, 5]].any()


def test_vectors_have_a_deviation_of_a_tenth() -> None:
    table = torch.randn(8, 5)
    found, plain = vectors_of_titles(table, TITLES), named_vectors(table, TITLES, table.mean(dim=0))
    torch.testing.assert_close(found, plain * 0.1 / plain[3:].std())
    nothing = Titles(words_of([], [], []), words_of([], [], []))
    assert vectors_of_titles(table, nothing).shape == (3, 5)
