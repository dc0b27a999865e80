"""What is in a step's batch: a function of the seed and the step alone."""

from dataclasses import dataclass
from functools import lru_cache

from model.batch import IGNORED, Batch, Masker, collate
from model.heads import ENTITY_LOSS, WORD_LOSS
from model.recipes import Recipe
from model.shards import Corpus, epoch_order


@dataclass(frozen=True)
class MicroBatch:
    """A part of a step's batch, and how many labels of each kind the whole step has."""

    batch: Batch
    totals: dict[str, int]


class Loader:
    """The micro-batches of a step: its place in the endless run of shuffled epochs says what it holds."""

    def __init__(self, corpus: Corpus, recipe: Recipe, *, profile: str, seed: int, entities: bool) -> None:
        self.corpus = corpus
        self.recipe = recipe
        self.entities = entities
        self.masker = Masker(corpus.facts, corpus.word_starts, profile=profile, seed=seed)
        self.order = lru_cache(maxsize=2)(lambda epoch: epoch_order(len(corpus), seed=seed, epoch=epoch))

    def indices(self, step: int) -> list[tuple[int, int]]:
        """The (epoch, index) of each sequence of a step."""
        size, length = self.recipe.batch_size, len(self.corpus)
        places = [divmod(position, length) for position in range(step * size, (step + 1) * size)]
        return [(epoch, int(self.order(epoch)[place])) for epoch, place in places]

    def __call__(self, step: int) -> list[MicroBatch]:
        masked = [
            self.masker.mask(self.corpus[index], epoch=epoch, index=index)
            for epoch, index in self.indices(step)
        ]
        totals = {
            WORD_LOSS: sum(int((sequence.word_labels != IGNORED).sum()) for sequence in masked),
            ENTITY_LOSS: sum(int((sequence.entity_labels != IGNORED).sum()) for sequence in masked),
        }
        facts, size = self.corpus.facts, self.recipe.micro_batch_size
        batches = [
            collate(
                masked[first : first + size],
                pad_id=facts.pad_id,
                entities=self.entities,
                max_mention_words=facts.max_mention_words,
            )
            for first in range(0, len(masked), size)
        ]
        return [MicroBatch(batch, totals) for batch in batches]
