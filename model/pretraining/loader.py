"""The batches of pretraining: functions of the seed and the step alone, however many processes share the work."""

import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.data.batches import cut
from model.data.masking import Masker
from model.data.order import Order
from model.data.shards import Corpus, count_known
from model.luke.batch import IGNORED, FlatBatch, MaskedSequence, Shape, collate
from model.luke.heads import ENTITY_LOSS, WORD_LOSS
from model.pretraining.recipes import Recipe
from model.training.ranks import ALONE, Ranks


@dataclass(frozen=True)
class MicroBatch:
    """A part of a step's batch, and by how many labels of each kind the sums of its losses are divided.

    That is how many the step has in all: losses of parts add up to the mean. In the profile `paper` it is the part's
    own number times that of the parts: they add up to the mean of the parts' means.
    """

    batch: FlatBatch
    totals: dict[str, int]


@dataclass(frozen=True, eq=False)
class Step:
    """A step's micro-batches in one tensor, which travels between processes, and to a GPU, as it is."""

    numbers: Tensor
    shapes: tuple[Shape, ...]
    totals: tuple[dict[str, int], ...]

    @classmethod
    def of(cls, parts: Sequence[MicroBatch]) -> "Step":
        """Micro-batches as one step."""
        numbers = torch.cat([part.batch.numbers for part in parts])
        return cls(numbers, tuple(part.batch.shape for part in parts), tuple(part.totals for part in parts))

    def pin_memory(self) -> "Step":
        """The same in memory that a GPU reads while the host goes on."""
        return replace(self, numbers=self.numbers.pin_memory())

    def micro_batches(self) -> list[MicroBatch]:
        """The parts; they share the step's memory."""
        numbers = self.numbers.split([sum(shape.sizes) for shape in self.shapes])
        parts = zip(numbers, self.shapes, self.totals, strict=True)
        return [MicroBatch(FlatBatch(part, shape), totals) for part, shape, totals in parts]


class Loader:
    """The micro-batches of a step: they are a stretch of the endless run of shuffled epochs.

    Of several processes each takes every so many-th sequence of a step; `totals` are then of its own sequences, and in
    the profile `paper` of the micro-batch alone. ValueError where no sequence has as many entities as the recipe wants.
    """

    def __init__(
        self, corpus: Corpus, recipe: Recipe, *, profile: str, seed: int, entities: bool, ranks: Ranks = ALONE
    ) -> None:
        if recipe.batch_size < ranks.count:
            raise ValueError(f"a batch of {recipe.batch_size} sequences is too small for {ranks.count} processes")
        self.corpus = corpus
        self.recipe = recipe
        self.chosen = choose_sequences(corpus, recipe.min_entities)
        languages: Sequence[Sequence[int] | NDArray[np.int64]] = [*corpus.languages.values()]
        if self.chosen is not None:
            ends = np.searchsorted(self.chosen, [each.stop for each in corpus.languages.values()])
            languages = np.split(self.chosen, ends[:-1])
        self.order = Order(languages, exponent=corpus.language_exponent, seed=seed)
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
            masks_unknown=recipe.predicts_unknown,
        )
        self.averages_parts = profile == "paper"

    @property
    def left_out(self) -> int:
        """The number of sequences that have too few known entities for the recipe."""
        return 0 if self.chosen is None else len(self.corpus) - len(self.chosen)

    def indices(self, step: int) -> list[tuple[int, int]]:
        """The (epoch, index) of each sequence of a step, those of all processes."""
        size = self.recipe.batch_size
        return [self.order[position] for position in range(step * size, (step + 1) * size)]

    def __call__(self, step: int) -> list[MicroBatch]:
        masked = [
            self.masker.mask(self.corpus[index], epoch=epoch, index=index)
            for epoch, index in self.indices(step)[self.rank :: self.ranks]
        ]
        totals, budget = labels_in(masked), self.recipe.tokens_per_batch
        # By tokens those of like length come together.
        parts = cut(sorted(masked, key=_tokens) if budget else masked, _tokens, budget, self.recipe.micro_batch_size)
        most = self.corpus.facts.max_mention_words
        batch = partial(collate, entities=self.entities, max_mention_words=most)
        return [MicroBatch(batch(part), labels_in(part) if self.averages_parts else totals) for part in parts]

    def __getitem__(self, step: int) -> Step:
        """The micro-batches of a step in one tensor."""
        return Step.of(self(step))

    def stream(self, first: int, end: int, workers: int, *, pinned: bool = False) -> Iterator[list[MicroBatch]]:
        """The steps from `first` up to, not including, `end`, prepared ahead by so many processes (0: by this one).

        With `pinned` they lie in memory that a GPU reads by itself.
        """
        from torch.utils.data import DataLoader

        loader: Any = DataLoader(
            self,  # type: ignore[arg-type]
            batch_size=None,
            sampler=range(first, end),
            num_workers=workers,
            worker_init_fn=_ignore_sigterm,
            pin_memory=pinned,
        )
        return (step.micro_batches() for step in loader)


def _ignore_sigterm(worker: int) -> None:
    """It may come to a whole group of processes, of which the first one still finishes its step."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def choose_sequences(corpus: Corpus, min_entities: int) -> NDArray[np.int64] | None:
    """The indices of sequences with so many known entities; None for all."""
    if not min_entities:
        return None
    counts = count_known(corpus)
    chosen = np.flatnonzero(counts >= min_entities)
    if not len(chosen):
        raise ValueError(
            f"min_entities is {min_entities}, but no sequence of {corpus.folder} has more than {counts.max(initial=0)} "
            "known entities; give a smaller number"
        )
    return chosen


def labels_in(sequences: Sequence[MaskedSequence]) -> dict[str, int]:
    """The number of labels of each kind."""
    return {
        WORD_LOSS: sum(int((sequence.word_labels != IGNORED).sum()) for sequence in sequences),
        ENTITY_LOSS: sum(int((sequence.entity_labels != IGNORED).sum()) for sequence in sequences),
    }


def _tokens(sequence: MaskedSequence) -> int:
    return len(sequence.word_ids) + len(sequence.entity_ids)
