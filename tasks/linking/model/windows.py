"""A document's mentions as masked entities of a model, in windows of as many words as it reads."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from model.data.masking import MaskedSequence
from model.luke.batch import IGNORED
from tasks.io.windows import token_spans, windows
from tasks.linking.candidates import NO_ROW, Candidate, LinkingExample
from tasks.linking.model.entity_model import EntityModel

MOST_INSIDE = 128  # mentions of a sequence in pretraining
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(eq=False)
class MaskedMention:
    """A mention that has candidates, before and after it is answered.

    `tokens` are those in the document, half open; `rows` are its candidates' in the entity table, and `unknown` has
    the titles of those without one. `log_prior` has what contexts and coherence add. Once it is scored it has
    `shares`, and `row` is the entity that is put in for the mask.
    """

    tokens: tuple[int, int]
    rows: Integers
    unknown: Sequence[str]
    log_prior: Floats
    shares: Floats | None = None
    row: int = NO_ROW


@dataclass(eq=False)
class Window:
    """A part of a document: its tokens, the mentions inside, and those of them that are answered here."""

    start: int
    end: int
    word_ids: Integers
    inside: list[MaskedMention] = field(default_factory=list)
    own: list[MaskedMention] = field(default_factory=list)

    def masked(self, mask_row: int) -> MaskedSequence:
        """The input: entities at all mentions inside, of which those without an answer are asked for."""
        places = np.array([each.tokens for each in self.inside], np.int64) - self.start + 1
        open_ = set(map(id, self.open()))
        return MaskedSequence(
            word_ids=self.word_ids,
            word_labels=np.full(len(self.word_ids), IGNORED),
            entity_ids=np.array([mask_row if each.row < 0 else each.row for each in self.inside], np.int64),
            entity_labels=np.array([mask_row if id(each) in open_ else IGNORED for each in self.inside]),
            entity_starts=places[:, 0],
            entity_ends=np.minimum(places[:, 1], len(self.word_ids) - 1),
        )

    def open(self) -> list[MaskedMention]:
        """Its own mentions that are not answered, in the order in which they are inside."""
        return [each for each in self.own if each.shares is None]

    def size(self) -> int:
        return len(self.word_ids) + len(self.inside)


def masked_mentions_of(
    model: EntityModel, example: LinkingExample, context_weight: float = 0.0, coherence_weight: float = 0.0
) -> tuple[list[MaskedMention | None], list[Window]]:
    """A masked mention for each mention (None: without candidates or tokens), and the windows that answer them.

    Each mention is answered in the window that has most context on its shorter side. Windows overlap by a quarter.
    """
    ids, characters = model.tokenizer.encode_with_offsets(example.text)
    spans = np.array([(each.start, each.end) for each in example.mentions], np.int64).reshape(-1, 2)
    tokens = token_spans(np.array(characters, np.int64).reshape(-1, 2), spans)
    by_counts = example.log_priors(context_weight, coherence_weight)
    found_by_counts = zip(tokens.tolist(), example.candidates, by_counts, strict=True)
    masked = [
        masked_mention(model, (first, last), each.items, log_prior) if each.items and first < last else None
        for (first, last), each, log_prior in found_by_counts
    ]
    ends = windows(len(ids), model.room, max(1, model.room - model.room // 4))
    special = model.tokenizer.cls_id, model.tokenizer.sep_id
    found = [
        Window(start, end, np.array([special[0], *ids[start:end], special[1]], np.int64))
        for start, end in ends
    ]
    starts = [window.start for window in found]
    for each in filter(None, masked):
        first = each.tokens[0]
        near = found[bisect_right(starts, first - model.room) : bisect_right(starts, first)]
        own = max(near, key=lambda window: context(window, each.tokens))
        own.own.append(each)
        for window in near:
            if window is own or each.tokens[1] <= window.end:
                window.inside.append(each)
    return masked, [part for window in found if window.own for part in parts_of(window)]


def parts_of(window: Window) -> list[Window]:
    """The window, or windows of its words for parts of its own mentions where more are inside than training saw."""
    if len(window.inside) <= MOST_INSIDE:
        return [window]
    parts = [window.own[first : first + MOST_INSIDE] for first in range(0, len(window.own), MOST_INSIDE)]
    return [replace(window, inside=part, own=part) for part in parts]


def context(window: Window, tokens: tuple[int, int]) -> tuple[int, int]:
    """Return how good a window is that has a mention's first token: tokens on the shorter side, and its length.

    A mention that no window has as a whole is cut at the end of the one that has most of it.
    """
    return min(tokens[0] - window.start, window.end - tokens[1]), window.end - window.start


def masked_mention(
    model: EntityModel, tokens: tuple[int, int], candidates: Sequence[Candidate], log_prior: Floats
) -> MaskedMention:
    """Return a mention with its rows, before it is answered."""
    rows = np.array([model.row_of(each) for each in candidates], np.int64)
    unknown = [each.title for each, row in zip(candidates, rows, strict=True) if row < 0]
    return MaskedMention(tokens, rows, unknown, log_prior)
