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

    def __init__(
        self, words: csr_matrix, places: Integers, spans: Integers, entities: int, *, sublinear: bool
    ) -> None:
        """Learn from texts.

        Args:
            words: how often each text has each word: (texts, words).
            places: of each link (entity, text).
            spans: of each word that a link spans (entity, word).
            entities: how many there are.
            sublinear: whether the logarithm of counts is taken.
        """
        self.weigh = TfidfTransformer(sublinear_tf=sublinear).fit(words)
        around = counted(places, (entities, words.shape[0])) @ words - counted(
            spans, (entities, words.shape[1])
        )
        self.entities: csr_matrix = self.weigh.transform(around)

    def cosines(self, around: csr_matrix, candidates: Sequence[Integers]) -> list[Floats]:
        """The cosine of the words of each mention's candidates with those around it: (mentions, words)."""
        vectors = self.weigh.transform(around)
        return [
            np.asarray((self.entities[each] @ vectors[row].T).todense()).ravel()
            for row, each in enumerate(candidates)
        ]


def around_links(training: Corpus, *, sublinear: bool) -> WordsAround:
    """The words of sequences around their links."""
    places, spans = annotations(training)
    words = words_of(training, range(len(training)))
    return WordsAround(words, places, spans, training.facts.entity_vocab_size, sublinear=sublinear)


def around_mentions(corpus: Corpus, mentions: Sequence[tuple[int, int]]) -> csr_matrix:
    """How often each word stands around mentions, which are (sequence, place in it): (mentions, words)."""
    spans = []
    for row, (index, place) in enumerate(mentions):
        sequence = corpus[index]
        own = sequence.word_ids[sequence.entity_starts[place] : sequence.entity_ends[place]]
        spans += [(row, int(word)) for word in own]
    words = words_of(corpus, [index for index, _ in mentions])
    return words - counted(np.array(spans), words.shape)


def words_of(corpus: Corpus, indices: Sequence[int]) -> csr_matrix:
    """How often each sequence has each word: (sequences, words)."""
    return word_counts([corpus[index].word_ids for index in indices], corpus.facts.word_vocab_size)


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


def word_counts(texts: Sequence[Integers], words: int) -> csr_matrix:
    """How often each text has each word: (texts, words)."""
    rows = np.repeat(np.arange(len(texts)), [len(each) for each in texts])
    return counted(np.stack([rows, np.concatenate(texts)], axis=1), (len(texts), words))


def counted(pairs: Integers, shape: tuple[int, int]) -> csr_matrix:
    """How often each (row, column) is among the pairs (n, 2)."""
    rows, columns = pairs.reshape(-1, 2).T
    return coo_matrix((np.ones(len(rows)), (rows, columns)), shape).tocsr()
