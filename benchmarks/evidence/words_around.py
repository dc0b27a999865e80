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
        self.width = training.facts.word_vocab_size
        words = self.words(training, range(len(training)))
        self.weigh = TfidfTransformer(sublinear_tf=sublinear).fit(words)
        places, spans = self.annotations(training)
        entities = training.facts.entity_vocab_size
        around = counted(places, (entities, len(training))) @ words - counted(spans, (entities, self.width))
        self.entities: csr_matrix = self.weigh.transform(around)

    def words(self, corpus: Corpus, indices: Sequence[int]) -> csr_matrix:
        """How often each sequence has each word: (sequences, words)."""
        ids = [corpus[index].word_ids for index in indices]
        rows = np.repeat(np.arange(len(ids)), [len(each) for each in ids])
        return counted(np.stack([rows, np.concatenate(ids)], axis=1), (len(ids), self.width))

    @staticmethod
    def annotations(corpus: Corpus) -> tuple[Integers, Integers]:
        """Of each annotation (label, sequence), and of each word that one spans (label, word)."""
        places, spans = list[tuple[int, int]](), list[tuple[int, int]]()
        for index in range(len(corpus)):
            each = corpus[index]
            for label, start, end in zip(
                *(column.tolist() for column in (each.entity_ids, each.entity_starts, each.entity_ends)),
                strict=True,
            ):
                places.append((label, index))
                spans += [(label, word) for word in each.word_ids[start:end].tolist()]
        return np.array(places), np.array(spans)

    def scores(self, corpus: Corpus, mentions: Sequence[tuple[int, int, Integers]]) -> list[Floats]:
        """The cosine of each candidate's words with those around the mention: (sequence, place in it, candidates)."""
        spans = []
        for row, (index, place, _) in enumerate(mentions):
            sequence = corpus[index]
            own = sequence.word_ids[sequence.entity_starts[place] : sequence.entity_ends[place]]
            spans += [(row, int(word)) for word in own]
        around = self.words(corpus, [index for index, _, _ in mentions])
        return self.cosines(
            around - counted(np.array(spans), around.shape), [each for _, _, each in mentions]
        )

    def cosines(self, around: csr_matrix, candidates: Sequence[Integers]) -> list[Floats]:
        """The cosine of the words of each mention's candidates with those around it: (mentions, words)."""
        vectors = self.weigh.transform(around)
        return [
            np.asarray((self.entities[each] @ vectors[row].T).todense()).ravel()
            for row, each in enumerate(candidates)
        ]


def counted(pairs: Integers, shape: tuple[int, int]) -> csr_matrix:
    """How often each (row, column) is among the pairs (n, 2)."""
    rows, columns = pairs.reshape(-1, 2).T
    return coo_matrix((np.ones(len(rows)), (rows, columns)), shape).tocsr()
