"""What stands around entities, beside plain loops over the same sequences."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from model.data import contexts
from model.data.contexts import SHRINKAGE, context_vectors
from model.data.shards import Corpus
from tests.support.shards import ENTITIES, WORDS, random_rows, write_sequences


def by_hand(rows: list[dict[str, Any]], table: torch.Tensor) -> torch.Tensor:
    """The same by the definition, a sequence and an entity at a time."""
    having = Counter(word for row in rows for word in set(row["word_ids"]))
    weight = {word: math.log((len(rows) + 1) / (count + 1)) for word, count in having.items()}
    centre = table.mean(dim=0)
    of_entity: dict[int, list[torch.Tensor]] = {}
    for row in rows:
        total = sum(weight[word] for word in row["word_ids"])
        mean = sum(weight[word] * (table[word] - centre) for word in row["word_ids"]) / total
        for entity in {entity for entity in row["entity_ids"] if entity >= 3}:
            of_entity.setdefault(entity, []).append(mean)
    everything = torch.stack([mean for means in of_entity.values() for mean in means]).mean(dim=0)
    found = torch.zeros(ENTITIES, table.shape[1], dtype=table.dtype)
    for entity, means in of_entity.items():
        found[entity] = torch.stack([mean - everything for mean in means]).sum(dim=0) / (
            len(means) + SHRINKAGE
        )
    return found


@pytest.mark.parametrize("most", [None, 200, 90])
def test_contexts_are_the_means_of_rare_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int | None
) -> None:
    """Of a corpus with too many words each second sequence counts, or each third and so on."""
    rows = random_rows(25, seed=4)
    rows[3]["entity_ids"] = [1] * len(rows[3]["entity_ids"])  # no known entity
    rows[8]["entity_ids"] = [7] * len(rows[8]["entity_ids"])  # the same entity several times
    corpus = Corpus(write_sequences(tmp_path, rows, held_out=random_rows(9, seed=5)))
    step = 1
    if most:
        monkeypatch.setattr(contexts, "MOST_WORDS", most)
        step = math.ceil(sum(len(row["word_ids"]) for row in rows) / most)
        assert step > 1
    table = torch.randn(WORDS, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(
        context_vectors(table, corpus), by_hand(rows[::step], table), atol=1e-6, rtol=1e-6
    )


def test_entities_that_stand_nowhere_have_no_context(tmp_path: Path) -> None:
    rows = [row | {"entity_ids": [1] * len(row["entity_ids"])} for row in random_rows(5)]
    found = context_vectors(torch.randn(WORDS, 4), Corpus(write_sequences(tmp_path, rows)))
    assert torch.equal(found, torch.zeros(ENTITIES, 4))


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
    with pytest.raises(ValueError, match=f"{tmp_path}: {message}; run BuildSequences again"):
        context_vectors(torch.randn(WORDS, 4), Corpus(write_sequences(tmp_path, [row])))
