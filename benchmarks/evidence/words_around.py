"""A bag of words: which entity has the words around a mention, in training, around its own links."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer

from model.data.shards import Corpus

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class WordsAround:
    """The words around each entity's links in training, and around a mention, as tf-idf vectors of length 1."""

    def __init__(self, training: Corpus, *, sublinear: bool) -> None:
        """Learn from sequences; `sublinear` takes the logarithm of counts."""
        places, spans = list[tuple[int, int]](), list[tuple[int, int]]()
        for index in range(len(training)):
            each = training[index]
            links = zip(each.entity_ids.tolist(), each.entity_starts, each.entity_ends, strict=True)
            for label, start, end in links:
                places.append((label, index))
                spans += [(label, word) for word in each.word_ids[start:end].tolist()]
        words, entities = words_of(training, range(len(training))), training.facts.entity_vocab_size
        self.weigh = TfidfTransformer(sublinear_tf=sublinear).fit(words)
        around = counted(places, (entities, words.shape[0])) @ words
        self.entities: csr_matrix = self.weigh.transform(around - counted(spans, (entities, words.shape[1])))

    def cosines(self, around: csr_matrix, candidates: Sequence[Integers]) -> list[Floats]:
        """Return the cosines of the words of each mention's candidates with those around it: (mentions, words)."""
        vectors = self.weigh.transform(around)
        return [
            np.asarray((self.entities[each] @ vectors[row].T).todense()).ravel() for row, each in enumerate(candidates)
        ]


def around_mentions(corpus: Corpus, mentions: Sequence[tuple[int, int]]) -> csr_matrix:
    """Count the words around mentions, which are (sequence, place in it): (mentions, words)."""
    spans = []
    for row, (index, place) in enumerate(mentions):
        sequence = corpus[index]
        own = sequence.word_ids[sequence.entity_starts[place] : sequence.entity_ends[place]]
        spans += [(row, int(word)) for word in own]
    words = words_of(corpus, [index for index, _ in mentions])
    return words - counted(spans, words.shape)


def words_of(corpus: Corpus, indices: Sequence[int]) -> csr_matrix:
    """Count the words of each sequence: (sequences, words)."""
    texts = [corpus[index].word_ids for index in indices]
    rows = np.repeat(np.arange(len(texts)), [len(each) for each in texts])
    pairs = np.stack([rows, np.concatenate(texts)], axis=1)
    return counted(pairs, (len(texts), corpus.facts.word_vocab_size))


def counted(pairs: Integers | Sequence[tuple[int, int]], shape: tuple[int, int]) -> csr_matrix:
    """Count how often each (row, column) is among the pairs."""
    rows, columns = np.array(pairs).reshape(-1, 2).T
    return coo_matrix((np.ones(len(rows)), (rows, columns)), shape).tocsr()
