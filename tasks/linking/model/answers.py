"""The candidate that a mention stands for, by a pretrained model: its masked entity at the mention's place.

The score of a candidate is the entity head's logit, plus the weighted sum of the logarithm of its prior, the cosine of
its context, and its coherence with the other mentions. Locally all mentions are masked, and answered at once. Globally
(Yamada et al., "Global Entity Disambiguation with BERT", NAACL 2022) the mention of which the model is most certain is
answered first, its entity is put in for the mask, and the others are scored again, one mention after the other.

A candidate that the model does not know is scored by the row that its title tells, and by an offset of its own.
A document's mentions are masked in windows of as many words as the model reads.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from model.data.batches import cut_by_tokens
from model.luke.batch import IGNORED, MaskedSequence, collate
from model.luke.heads import ENTITY_LOSS, logits_of_vectors
from tasks.io.probabilities import softmax
from tasks.io.windows import Integers, token_spans, windows
from tasks.linking.candidates import NO_ROW, LinkingExample
from tasks.linking.certainty import UNCALIBRATED, Certainty, Floats
from tasks.linking.model.entity_model import EntityModel
from tasks.task import MAX_MENTION_POSITIONS

MOST_INSIDE = 128  # mentions of a sequence in pretraining
ROWS = 4  # of a product for each thread of a CPU: of fewer rows each is rounded otherwise


@dataclass(eq=False)
class MaskedMention:
    """A mention that has candidates, before and after it is answered."""

    tokens: tuple[int, int]  # those in the document, half open
    rows: Integers  # of its candidates in the entity table
    unknown: Sequence[str]  # the titles of candidates without a row
    log_prior: Floats  # with what contexts and coherence add
    shares: Floats | None = None  # once it is scored
    logits: Floats | None = None  # once it is scored, if there are several candidates
    row: int = NO_ROW  # the entity that is put in for the mask


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
    model: EntityModel, example: LinkingExample, certainty: Certainty
) -> tuple[list[MaskedMention | None], list[Window]]:
    """A masked mention for each mention (None: without candidates or tokens), and the windows that answer them.

    Each mention is answered in the window that has most context on its shorter side. Windows overlap by a quarter.
    """
    ids, characters = model.tokenizer.encode_with_offsets(example.text)
    spans = np.array([(each.start, each.end) for each in example.mentions], np.int64).reshape(-1, 2)
    tokens = token_spans(np.array(characters, np.int64).reshape(-1, 2), spans)
    by_counts = example.log_priors(certainty)
    found_by_counts = zip(tokens.tolist(), example.candidates, by_counts, strict=True)
    masked = list[MaskedMention | None]()
    for (first, last), candidates, log_prior in found_by_counts:
        rows = np.array([model.row_of(each) for each in candidates.items], np.int64)
        unknown = [each.title for each, row in zip(candidates.items, rows, strict=True) if row < 0]
        is_asked = candidates.items and first < last
        masked.append(MaskedMention((first, last), rows, unknown, log_prior) if is_asked else None)
    ends = windows(len(ids), model.room, max(1, model.room - model.room // 4))
    special = model.tokenizer.cls_id, model.tokenizer.sep_id
    found = [Window(start, end, np.array([special[0], *ids[start:end], special[1]], np.int64)) for start, end in ends]
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


def disambiguate(
    model: EntityModel,
    documents: Sequence[LinkingExample],
    *,
    is_global: bool,
    certainty: Certainty = UNCALIBRATED,
    check: Callable[[], None] = lambda: None,
) -> list[list[MaskedMention | None]]:
    """Each mention, answered; None for a mention that has no candidates, or no tokens.

    Of `certainty` its weights count, which make the scores. `check` is called before each pass of the model.
    """
    found = [masked_mentions_of(model, each, certainty) for each in documents]
    for each in (each for masked, _ in found for each in masked if each):
        if len(each.rows) == 1:  # what the model says changes nothing
            answer(each, np.zeros(1), certainty, fills_mask=is_global)
    pending = [window for _, several in found for window in several if window.open()]
    while pending:
        # All of them before the first answer, so that it does not matter what is computed at once.
        for window, logits in list(scored(model, pending, check)):
            pairs = [*zip(window.open(), logits, strict=True)]
            if is_global:
                pairs = [max(pairs, key=lambda pair: shares_of(pair[0], pair[1], certainty).max())]
            for each, own in pairs:
                each.logits = own
                answer(each, own, certainty, fills_mask=is_global)
        pending = [window for window in pending if window.open()]
    return [masked for masked, _ in found]


@torch.inference_mode()
def scored(
    model: EntityModel, pending: Sequence[Window], check: Callable[[], None]
) -> Iterator[tuple[Window, list[Floats]]]:
    """For each window the logits of its open mentions' candidates."""
    head, _ = model.module.heads[ENTITY_LOSS]
    for part in cut_by_tokens(pending, Window.size, model.tokens_per_batch):
        check()
        sequences = [*(window.masked(model.mask_row) for window in part), filler(model)]
        batch = collate(sequences, max_mention_words=MAX_MENTION_POSITIONS, entities=True)
        batch.check(model.module.config)
        states, _ = model.module.masked_states(batch.to(model.device))[ENTITY_LOSS]
        masked = [each for window in part for each in window.open()]
        sizes = [len(each.rows) for each in masked]
        of_state = torch.repeat_interleave(torch.tensor(sizes)).to(states.device)
        found = logits_of_vectors(head, states, *vectors_of(model, masked), of_state)
        logits = iter(np.split(found.double().cpu().numpy(), np.cumsum(sizes)[:-1]))
        for window in part:
            yield window, [next(logits) for _ in window.open()]


def filler(model: EntityModel) -> MaskedSequence:
    """A sequence beside the windows, so that no product has few rows, and what is computed at once changes no digit."""
    count = min(MOST_INSIDE, model.max_words, ROWS * (torch.get_num_threads() + 1))
    words, entities = np.full(count, model.tokenizer.sep_id, np.int64), np.full(count, model.mask_row, np.int64)
    spans = np.tile(np.array([0, 1], np.int64), (count, 1))
    return replace(MaskedSequence.unmasked(words, entities, spans), entity_labels=entities)


def vectors_of(model: EntityModel, masked: Sequence[MaskedMention]) -> tuple[Tensor, Tensor]:
    """Return the candidates' rows of the entity table (candidates, width), and biases of the head (candidates)."""
    head, table = model.module.heads[ENTITY_LOSS]
    rows = torch.cat([torch.from_numpy(each.rows) for each in masked]).to(table.weight.device)
    vectors, biases = table.weight[rows.clamp(min=0)], head.bias[rows.clamp(min=0)]
    if titles := [title for each in masked for title in each.unknown]:
        is_unknown, found = rows < 0, model.of_titles(titles)
        vectors[is_unknown], biases[is_unknown] = found[:, :-1], found[:, -1]
    return vectors, biases


def shares_of(mention: MaskedMention, logits: Floats, certainty: Certainty) -> Floats:
    """The softmax of the candidates' scores."""
    scores = certainty.prior_weight * mention.log_prior + logits + certainty.unknown_offset * (mention.rows < 0)
    return softmax(scores, 1.0)


def answer(mention: MaskedMention, logits: Floats, certainty: Certainty, *, fills_mask: bool) -> None:
    """Settle a mention; with `fills_mask` its entity goes into the inputs that follow, where the model knows it."""
    mention.shares = shares_of(mention, logits, certainty)
    if fills_mask:
        mention.row = int(mention.rows[int(mention.shares.argmax())])
