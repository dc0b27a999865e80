"""What is in a step's batch: a function of the seed and the step alone, however many processes share the work."""

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from numpy.typing import NDArray

from model.data.collation import collate
from model.data.masking import MaskedSequence, Masker
from model.data.shards import Corpus, epoch_order
from model.luke.batch import IGNORED, Batch
from model.luke.heads import ENTITY_LOSS, WORD_LOSS
from model.pretraining.recipes import Recipe
from model.training.ranks import ALONE, Ranks

Item = TypeVar("Item")


@dataclass(frozen=True)
class MicroBatch:
    """A part of a step's batch, and by how many labels of each kind the sums of its losses are divided.

    That is how many the step has in all: losses of parts add up to the mean. In the profile `paper` it is the part's
    own number times that of the parts: they add up to the mean of the parts' means.
    """

    batch: Batch
    totals: dict[str, int]


class Loader:
    """The micro-batches of a step: its place in the endless run of shuffled epochs says what it holds.

    Of several processes each takes every so many-th sequence of a step; `totals` are then of its own sequences, and in
    the profile `paper` of the micro-batch alone.
    """

    def __init__(
        self, corpus: Corpus, recipe: Recipe, *, profile: str, seed: int, entities: bool, ranks: Ranks = ALONE
    ) -> None:
        if recipe.batch_size < ranks.count:
            raise ValueError(
                f"a batch of {recipe.batch_size} sequences is too small for {ranks.count} processes"
            )
        self.corpus = corpus
        self.recipe = recipe
        self.entities = entities
        self.seed = seed
        self.rank, self.ranks = ranks.rank, ranks.count
        self.masker = Masker(
            corpus.facts,
            corpus.word_starts,
            profile=profile,
            seed=seed,
            word_share=recipe.masked_word_share,
            entity_share=recipe.masked_entity_share,
        )
        self.averages_parts = profile == "paper"

    def indices(self, step: int) -> list[tuple[int, int]]:
        """The (epoch, index) of each sequence of a step, those of all processes."""
        size, length = self.recipe.batch_size, len(self.corpus)
        places = [divmod(position, length) for position in range(step * size, (step + 1) * size)]
        return [(epoch, int(_order(length, self.seed, epoch)[place])) for epoch, place in places]

    def __call__(self, step: int) -> list[MicroBatch]:
        masked = [
            self.masker.mask(self.corpus[index], epoch=epoch, index=index)
            for epoch, index in self.indices(step)[self.rank :: self.ranks]
        ]
        totals = labels_in(masked)
        return [
            MicroBatch(self.collate(part), labels_in(part) if self.averages_parts else totals)
            for part in cut(masked, self.recipe)
        ]

    def collate(self, part: Sequence[MaskedSequence]) -> Batch:
        """Some sequences as one batch."""
        facts = self.corpus.facts
        return collate(
            part, pad_id=facts.pad_id, entities=self.entities, max_mention_words=facts.max_mention_words
        )

    def stream(self, first: int, end: int, workers: int) -> Iterator[list[MicroBatch]]:
        """The steps from `first` up to, not including, `end`, prepared ahead by so many processes (0: by this one)."""
        if not workers:
            return map(self, range(first, end))
        from torch.utils.data import DataLoader

        options: dict[str, Any] = {"sampler": range(first, end), "batch_size": None, "collate_fn": _same}
        steps: Any = _Steps(self)
        return iter(DataLoader(steps, num_workers=workers, worker_init_fn=_ignore_sigterm, **options))


class _Steps:
    """A loader as torch's DataLoader wants a data set."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def __getitem__(self, step: int) -> list[MicroBatch]:
        return self.loader(step)


def _ignore_sigterm(worker: int) -> None:
    """It may come to a whole group of processes, of which the first one still finishes its step."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _same(parts: list[MicroBatch]) -> list[MicroBatch]:
    return parts


@lru_cache(maxsize=2)
def _order(length: int, seed: int, epoch: int) -> NDArray[Any]:
    return epoch_order(length, seed=seed, epoch=epoch)


def labels_in(sequences: Sequence[MaskedSequence]) -> dict[str, int]:
    """How many labels of each kind there are."""
    return {
        WORD_LOSS: sum(int((sequence.word_labels != IGNORED).sum()) for sequence in sequences),
        ENTITY_LOSS: sum(int((sequence.entity_labels != IGNORED).sum()) for sequence in sequences),
    }


def cut(sequences: Sequence[MaskedSequence], recipe: Recipe) -> Iterator[Sequence[MaskedSequence]]:
    """The micro-batches of a step: by number of sequences, or by tokens with those of like length together.

    A sequence above the budget of tokens is alone.
    """
    if not recipe.tokens_per_batch:
        size = recipe.micro_batch_size
        yield from (sequences[first : first + size] for first in range(0, len(sequences), size))
        return
    yield from cut_by_tokens(sorted(sequences, key=_tokens), _tokens, recipe.tokens_per_batch)


def cut_by_tokens(
    items: Iterable[Item], tokens: Callable[[Item], int], budget: int
) -> Iterator[Sequence[Item]]:
    """Consecutive parts of at most `budget` tokens; an item above it is alone."""
    part: list[Item] = []
    size = 0
    for item in items:
        if part and size + tokens(item) > budget:
            yield part
            part, size = [], 0
        part.append(item)
        size += tokens(item)
    if part:
        yield part


def _tokens(sequence: MaskedSequence) -> int:
    return len(sequence.word_ids) + len(sequence.entity_ids)
