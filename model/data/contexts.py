"""What stands around entities in the sequences of pretraining, as vectors of words."""

import logging
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch.nn import functional

from model.data.shards import REMEDY, Corpus
from model.luke.config import SPECIAL_ENTITIES

logger = logging.getLogger(__name__)
# Words that are read: minutes of one core. Of a larger corpus each second sequence is taken, or each third and so on.
MOST_WORDS = 1 << 28
EXPECTED_SEQUENCES = 5.0  # for which what a title lets expect counts, beside those of each entity
RIDGE = 1e-3  # of the mean square of titles
_ROWS = 1 << 16  # that are computed at once, for the memory
Integers = NDArray[np.int64]


def context_vectors(table: torch.Tensor, corpus: Corpus, titles: torch.Tensor) -> torch.Tensor:
    """For each entity (entities, hidden) what the words of its sequences have in `table` (words, hidden).

    A sequence is the mean of its words' rows, less that of the whole table, where a word counts by the logarithm of
    how many times as many sequences there are as have it. The mean over all entities' sequences is taken from it.
    An entity is the mean of its sequences and of five more, which are what its row of `titles` (entities, hidden) lets
    expect, by `map_from_titles`. So one with few or no sequences is like others with such a title. All sequences count,
    those without an entity by their words. Of a corpus above MOST_WORDS only some are read, which the log says. One
    block of it is in memory at a time. ValueError for ids of words or entities that are too high.
    """
    sums, counts = sums_of_sequences(table, corpus)
    from_titles = map_from_titles(sums, counts, titles)
    for some_sums, some_counts, some_titles in in_blocks(sums, counts, titles):
        some_sums.add_(some_titles @ from_titles, alpha=EXPECTED_SEQUENCES)
        some_sums.div_(some_counts + EXPECTED_SEQUENCES)
    return sums


def sums_of_sequences(table: torch.Tensor, corpus: Corpus) -> tuple[torch.Tensor, torch.Tensor]:
    """The sum of each known entity's sequences (entities, hidden), and how many there are (entities, 1)."""
    step = -(-sum(len(batch.column("word_ids").values) for batch in corpus.batches) // MOST_WORDS)
    if step > 1:
        logger.info("%s: one of %d sequences is read for the words around entities", corpus.folder, step)
    weights = torch.from_numpy(word_weights(corpus, step)).to(table)
    weighted = (table - table.mean(dim=0)) * weights[:, None]
    sums = table.new_zeros(corpus.facts.entity_vocab_size, table.shape[1])
    counts = table.new_zeros(len(sums), 1)
    for batch in each_of(corpus, step):
        words, begins, _ = (torch.from_numpy(each) for each in flat(batch, "word_ids"))
        sequences, entities = (torch.from_numpy(each) for each in known_entities(batch, corpus))
        means = functional.embedding_bag(words, weighted, begins, mode="sum")
        means /= functional.embedding_bag(words, weights[:, None], begins, mode="sum").clamp_min(1e-6)
        sums.index_add_(0, entities, means[sequences])
        counts.index_add_(0, entities, counts.new_ones(len(entities), 1))
    mean = sums.sum(dim=0) / counts.sum().clamp_min(1)
    for some_sums, some_counts in in_blocks(sums, counts):
        some_sums.sub_(some_counts * mean)
    return sums, counts


def map_from_titles(sums: torch.Tensor, counts: torch.Tensor, titles: torch.Tensor) -> torch.Tensor:
    """The linear map (hidden, hidden) from titles to the mean sequence that each lets expect: a ridge regression.

    An entity with n sequences has the weight n / (n + 5).
    """
    squares, products = titles.new_zeros(2, titles.shape[1], titles.shape[1])
    for some_sums, some_counts, some_titles in in_blocks(sums, counts, titles):
        number = some_counts + EXPECTED_SEQUENCES
        squares += some_titles.T @ (some_counts / number * some_titles)
        products += some_titles.T @ (some_sums / number)
    squares.diagonal().add_(max(RIDGE * float(squares.trace()) / len(squares), 1e-6))
    return torch.linalg.solve(squares, products)


def in_blocks(*tables: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """A few rows of each table at a time, the same ones, for the memory."""
    return zip(*(table.split(_ROWS) for table in tables), strict=True)


def word_weights(corpus: Corpus, step: int) -> NDArray[np.float32]:
    """For each word (words,) the logarithm of how many times as many sequences there are as have it."""
    size = corpus.facts.word_vocab_size
    counts, sequences = np.zeros(size, np.int64), 0
    for batch in each_of(corpus, step):
        counts += np.bincount(distinct(batch, "word_ids", size, corpus)[1], minlength=size)
        sequences += batch.num_rows
    return np.log((sequences + 1) / (counts + 1)).astype(np.float32)


def known_entities(batch: pa.RecordBatch, corpus: Corpus) -> tuple[Integers, Integers]:
    """Each known entity of each sequence once: the sequences' numbers in the batch, and the entities."""
    sequences, entities = distinct(batch, "entity_ids", corpus.facts.entity_vocab_size, corpus)
    is_known = entities >= SPECIAL_ENTITIES
    return sequences[is_known], entities[is_known]


def each_of(corpus: Corpus, step: int) -> Iterator[pa.RecordBatch]:
    """The blocks of a corpus, with each `step`-th of all its sequences."""
    for batch, end in zip(corpus.batches, corpus.ends, strict=True):
        first = -(end - batch.num_rows) % step
        yield batch if step == 1 else batch.take(pa.array(range(first, batch.num_rows, step), pa.int64()))


def flat(batch: pa.RecordBatch, column: str) -> tuple[Integers, Integers, Integers]:
    """All numbers of a column of lists, where each list begins among them, and the number of each one's list."""
    lists = batch.column(column)
    offsets = lists.offsets.to_numpy().astype(np.int64)
    values = lists.flatten().to_numpy().astype(np.int64)
    return values, offsets[:-1] - offsets[0], np.repeat(np.arange(len(lists)), np.diff(offsets))


def distinct(batch: pa.RecordBatch, column: str, size: int, corpus: Corpus) -> tuple[Integers, Integers]:
    """Each number of each list of a column once: the lists' numbers, and the numbers; ValueError unless below size."""
    values, _, lists = flat(batch, column)
    if len(values) and not 0 <= values.min() <= values.max() < size:
        raise ValueError(
            f"{corpus.folder}: {column} from {values.min()} to {values.max()}, wanted 0 to {size - 1}; {REMEDY}"
        )
    return np.divmod(np.unique(lists * size + values), size)
