"""The data of held-out evaluation: sequences of pages that pretraining never saw, and three baselines' predictions.

The commonest labels of the mentions' texts come from a file that is made beside the mention table (an Arrow IPC
stream, a row a sequence), so that a machine with nothing but the sequences can evaluate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from model.data.masking import Masker
from model.data.shards import HELD_OUT, Corpus, count_entities, epoch_order, list_lengths, open_table
from model.luke.batch import Integers
from model.luke.config import MASKED_SHARE, SPECIAL_ENTITIES

# The same for every model, whatever its seed, profile or step.
SEED, PROFILE = 20_201_116, "fixed"
COLUMNS = ("commonest", "commonest_known")
ORIGIN = b"sequences"


@dataclass(frozen=True)
class HeldOut:
    """Held-out sequences, how often training annotates each entity, and the labels of the mention table.

    `commonest` are COLUMNS: for each entity of each sequence the commonest label of its text, and the commonest known
    one. A label is an entity id, [UNK] for entities outside the vocabulary together, or -1 where there is none.
    """

    corpus: Corpus
    training_counts: Integers  # (entity_vocab_size,)
    commonest: Sequence[pa.ChunkedArray]  # none without the table

    @classmethod
    def open(
        cls, folder: Path, commonest: Path | None = None, *, seen: Integers | None = None, trained: Path | None = None
    ) -> "HeldOut":
        """The held-out part (it may be empty) of a folder of sequences; ValueError for what does not fit.

        `seen` are the indices, rising, of the sequences that training takes (None: all) of the folder `trained` (None:
        of the same).
        """
        corpus = Corpus(folder, HELD_OUT)
        labels = read_commonest(commonest, corpus) if commonest else ()
        return cls(corpus, count_entities(Corpus(trained or folder), seen), labels)

    def __len__(self) -> int:
        return len(self.corpus)

    def make_masker(self, *, masks_words: bool = True) -> Masker:
        """Masks that are the same at every evaluation."""
        share = MASKED_SHARE if masks_words else 0.0
        return Masker(self.corpus.facts, self.corpus.word_starts, profile=PROFILE, seed=SEED, word_share=share)

    def shuffled(self) -> list[int]:
        """Return all sequences, in an order that is always the same."""
        order: list[int] = epoch_order(len(self.corpus), seed=SEED, epoch=0).tolist()
        return order

    def sample(self, count: int) -> list[int]:
        """At most `count` sequences, always the same, from all over the held-out part."""
        return sorted(self.shuffled()[:count])

    def commonest_of(self, index: int, entities: int) -> tuple[Integers, Integers]:
        """Both labels of the mention table for the entities of a sequence; -1 without the table."""
        if not self.commonest:
            return np.full(entities, -1), np.full(entities, -1)
        labels, known = (column[index].values.to_numpy() for column in self.commonest)
        return labels, known

    @cached_property
    def titled(self) -> dict[bytes, int]:
        """The entity of each title, and of each title's name alone, by their word ids.

        A whole title goes before a name. A name that several titles have is that of the one with most links, which
        stands first.
        """
        titles = self.corpus.titles()
        return {
            words.word_ids[words.offsets[entity] : words.offsets[entity + 1]].tobytes(): entity
            for words in (titles.names, titles.whole)
            for entity in range(self.corpus.facts.entity_vocab_size - 1, SPECIAL_ENTITIES - 1, -1)
        }

    def titled_of(self, index: int) -> Integers:
        """For each entity of a sequence the one whose title the mention's words are; -1 for none."""
        sequence = self.corpus[index]
        words, spans = sequence.word_ids.astype(np.int64), (sequence.entity_starts, sequence.entity_ends)
        found = [self.titled.get(words[start:end].tobytes(), -1) for start, end in zip(*spans, strict=True)]
        return np.array(found, np.int64)

    @property
    def most_frequent(self) -> tuple[int, int]:
        """The most frequent entity of the training sequences, and the most frequent known one."""
        known = self.training_counts[SPECIAL_ENTITIES:]
        best_known = SPECIAL_ENTITIES + int(known.argmax()) if len(known) else -1
        return int(self.training_counts.argmax()), best_known


def read_commonest(path: Path, corpus: Corpus) -> list[pa.ChunkedArray]:
    """The COLUMNS of the file of commonest labels; ValueError unless it was made of these very sequences."""
    remedy = "make it of these sequences"
    table = open_table(path, COLUMNS, remedy)
    if not table.num_rows and len(corpus):
        raise ValueError(f"{path}: no rows, but there are {len(corpus)} held-out sequences; {remedy}")
    origin = (table.schema.metadata or {}).get(ORIGIN, b"").decode() if len(corpus) else corpus.fingerprint
    if origin != corpus.fingerprint:
        raise ValueError(
            f"{path}: made of sequences {origin!r}, but {corpus.folder} holds {corpus.fingerprint!r}; {remedy}"
        )
    columns = [table.column(name) for name in COLUMNS]
    wanted = list_lengths(corpus.table.column("entity_ids"))
    for name, column in zip(COLUMNS, columns, strict=True):
        if not np.array_equal(list_lengths(column), wanted):
            raise ValueError(f"{path}: {name} is not parallel to the sequences' entity_ids; {remedy}")
    return columns
