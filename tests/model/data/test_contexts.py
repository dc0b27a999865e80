"""What stands around entities, beside plain loops over the same sequences and NumPy's least squares."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from model.data import contexts
from model.data.contexts import EXPECTED_SEQUENCES, RIDGE, context_vectors
from model.data.shards import Corpus
from tests.support.shards import ENTITIES, WORDS, random_rows, write_sequences

HIDDEN = 6


def random_vectors(count: int, seed: int) -> torch.Tensor:
    return torch.randn(count, HIDDEN, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def title_vectors() -> torch.Tensor:
    """Vectors of titles, none of which is a special entity's."""
    vectors = random_vectors(ENTITIES, seed=2)
    vectors[:3] = 0
    return vectors


def by_hand(rows: list[dict[str, Any]], table: torch.Tensor, titles: torch.Tensor) -> torch.Tensor:
    """The same by the definition, a sequence and an entity at a time."""
    having = Counter(word for row in rows for word in set(row["word_ids"]))
    weight = {word: math.log((len(rows) + 1) / (count + 1)) for word, count in having.items()}
    centre = table.mean(dim=0)
    of_entity: dict[int, list[torch.Tensor]] = {entity: [] for entity in range(ENTITIES)}
    for row in rows:
        total = sum(weight[word] for word in row["word_ids"])
        mean = sum(weight[word] * (table[word] - centre) for word in row["word_ids"]) / total
        for entity in {entity for entity in row["entity_ids"] if entity >= 3}:
            of_entity[entity].append(mean)
    everything = torch.stack([mean for means in of_entity.values() for mean in means]).mean(dim=0)
    sums = torch.stack(
        [sum((mean - everything for mean in means), torch.zeros(HIDDEN)) for means in of_entity.values()]
    )
    counts = np.array([len(means) for means in of_entity.values()])
    known = counts > 0
    shares = counts / (counts + EXPECTED_SEQUENCES)
    root, size = np.sqrt(shares[known, None]), float((shares[:, None] * titles.numpy() ** 2).sum()) / HIDDEN
    # A ridge regression is least squares with a row for each direction, in which it wants 0.
    inputs = np.concatenate([root * titles[known].numpy(), math.sqrt(RIDGE * size) * np.eye(HIDDEN)])
    means = sums[known].numpy() / counts[known, None]
    outputs = np.concatenate([root * means, np.zeros((HIDDEN, HIDDEN))])
    expected = titles @ torch.from_numpy(np.linalg.lstsq(inputs, outputs, rcond=None)[0])
    return (sums + EXPECTED_SEQUENCES * expected) / (torch.from_numpy(counts)[:, None] + EXPECTED_SEQUENCES)


@pytest.mark.parametrize("most", [None, 200, 90])
def test_contexts_are_the_means_of_rare_words_and_what_titles_let_expect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int | None
) -> None:
    """Of a corpus with too many words each second sequence counts, or each third and so on."""
    rows = random_rows(25, seed=4)
    for row in rows:  # the last entity is nowhere
        row["entity_ids"] = [min(entity, ENTITIES - 2) for entity in row["entity_ids"]]
    rows[3]["entity_ids"] = [1] * len(rows[3]["entity_ids"])  # no known entity
    rows[8]["entity_ids"] = [7] * len(rows[8]["entity_ids"])  # the same entity several times
    corpus = Corpus(write_sequences(tmp_path, rows, held_out=random_rows(9, seed=5)))
    corpus.batches.insert(1, pa.RecordBatch.from_pylist([], corpus.batches[0].schema))  # a block may be empty
    corpus.ends.insert(1, corpus.ends[0])
    monkeypatch.setattr(contexts, "_ROWS", 5)
    step = 1
    if most:
        monkeypatch.setattr(contexts, "MOST_WORDS", most)
        step = math.ceil(sum(len(row["word_ids"]) for row in rows) / most)
        assert step > 1
    table, titles = random_vectors(WORDS, seed=1), title_vectors()
    found = context_vectors(table, corpus, titles)
    torch.testing.assert_close(found, by_hand(rows[::step], table, titles), atol=1e-6, rtol=1e-5)
    assert not found[:3].any()
    assert found[-1].any()


def test_there_are_no_contexts_where_no_entity_is_known(tmp_path: Path) -> None:
    rows = [row | {"entity_ids": [1] * len(row["entity_ids"])} for row in random_rows(5)]
    corpus = Corpus(write_sequences(tmp_path, rows))
    found = context_vectors(random_vectors(WORDS, seed=1), corpus, title_vectors())
    assert torch.equal(found, torch.zeros(ENTITIES, HIDDEN, dtype=torch.float64))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("word_ids", "word_ids from 5 to 60, wanted 0 to 59"),
        ("entity_ids", "entity_ids from 4 to 60, wanted 0 to 11"),
    ],
)
def test_ids_that_are_too_high_are_refused(tmp_path: Path, column: str, message: str) -> None:
    row = {
        "word_ids": [5, 6, 7],
        "entity_ids": [4, 4],
        "entity_starts": [1, 1],
        "entity_ends": [2, 2],
        "page_id": 1,
    }
    row[column] = [*row[column][:-1], 60]
    corpus = Corpus(write_sequences(tmp_path, [row]))
    with pytest.raises(ValueError, match=f"{tmp_path}: {message}; run BuildSequences again"):
        context_vectors(random_vectors(WORDS, seed=1), corpus, title_vectors())
