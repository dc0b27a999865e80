"""The candidate that a mention stands for, by a pretrained model: its masked entity at the mention's place.

The score of a candidate is the entity head's logit, plus the weighted sum of the logarithm of its prior, the cosine of
its context, and its coherence with the other mentions. Locally all mentions are masked, and answered at once. Globally
(Yamada et al., "Global Entity Disambiguation with BERT", NAACL 2022) the mention of which the model is most certain is
answered first, its entity is put in for the mask, and the others are scored again, one mention after the other.

A candidate that the model does not know is scored by the row that its title tells, and by an offset of its own.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from model.data.batches import cut_by_tokens
from model.data.collation import collate
from model.luke.heads import ENTITY_LOSS, logits_of_vectors
from tasks.linking.candidates import LinkingExample
from tasks.linking.certainty import UNCALIBRATED, Certainty
from tasks.linking.model.entity_model import EntityModel
from tasks.linking.model.windows import Floats, MaskedMention, Window, masked_mentions_of
from tasks.task import MAX_MENTION_POSITIONS


def disambiguate(
    model: EntityModel,
    documents: Sequence[LinkingExample],
    *,
    is_global: bool,
    certainty: Certainty = UNCALIBRATED,
    check: Callable[[], None] = lambda: None,
) -> list[list[Floats | None]]:
    """The share of each candidate of each mention; None for a mention that has no candidates, or no tokens.

    Of `certainty` its weights count, which make the scores. `check` is called before each pass of the model.
    """
    found = [
        masked_mentions_of(model, each, certainty.context_weight, certainty.coherence_weight)
        for each in documents
    ]
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
                answer(each, own, certainty, fills_mask=is_global)
        pending = [window for window in pending if window.open()]
    return [[each.shares if each else None for each in masked] for masked, _ in found]


@torch.inference_mode()
def scored(
    model: EntityModel, pending: Sequence[Window], check: Callable[[], None]
) -> Iterator[tuple[Window, list[Floats]]]:
    """For each window the logits of its open mentions' candidates."""
    head, _ = model.module.heads[ENTITY_LOSS]
    for part in cut_by_tokens(pending, Window.size, model.tokens_per_batch):
        check()
        sequences = [window.masked(model.mask_row) for window in part]
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
    scores = (
        certainty.prior_weight * mention.log_prior + logits + certainty.unknown_offset * (mention.rows < 0)
    )
    shares = np.exp(scores - scores.max())
    total: Floats = shares / shares.sum()
    return total


def answer(mention: MaskedMention, logits: Floats, certainty: Certainty, *, fills_mask: bool) -> None:
    """Settle a mention; with `fills_mask` its entity goes into the inputs that follow, where the model knows it."""
    mention.shares = shares_of(mention, logits, certainty)
    if fills_mask:
        mention.row = int(mention.rows[int(mention.shares.argmax())])
