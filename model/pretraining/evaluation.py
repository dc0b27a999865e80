"""Held-out evaluation: masked words and masked entities that are the same for every model, beside three baselines.

`python -m model.evaluation MODEL SEQUENCES` evaluates a finished model on all held-out sequences.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from model.data.held_out import HeldOut
from model.data.masking import Masker
from model.data.shards import Corpus, SequenceFacts
from model.files import PRETRAINING, read_optional
from model.luke.batch import IGNORED, MaskedSequence, collate
from model.luke.config import SPECIAL_ENTITIES, LukeConfig
from model.luke.heads import ENTITY_LOSS, WORD_LOSS, LukeForPretraining
from model.pretraining.loader import choose_sequences
from model.pretraining.ranking import Baselines, Figures, Scores, entity_figures, score, word_figures
from model.training.ranks import ALONE, Ranks

MOST_SEQUENCES = 4096
WINDOW = 24  # words shown on each side of a mention
Columns = Sequence[NDArray[Any]]


def evaluate(
    module: LukeForPretraining,
    held_out: HeldOut,
    *,
    sequences: int | None = None,
    rounds: int = 1,
    batch_size: int = 8,
    ranks: Ranks = ALONE,
    masks_words: bool = True,
    first_new: int = 0,
) -> Figures:
    """Figures of masked words and entities on held-out sequences (all, or a fixed sample of `sequences`).

    Entities are masked in whole text. Words are masked whole, beside masked entities; without `masks_words` none is.
    Masked entities are judged over all labels (masked_entity_*), over those that are known entities, not [UNK]
    (known_entity_*), and by how often training annotates them (known_entity_seen_*); with `first_new` those from that
    id on and the earlier ones also apart (known_entity_new_*, known_entity_earlier_*). Each group has its count, and
    the share that each baseline gets right; one of no labels its count alone. More `rounds` mask every sequence as
    often, each time other words and entities: where there are few of them. The module, its mode and every random
    generator are left as they were; call it under the autocast of training. Of several processes each takes every so
    many-th batch, and all have the figures. A model without entities is judged on its words. ValueError where model and
    sequences do not fit.
    """
    corpus = held_out.corpus
    has_entities = predicts_entities(module.config, corpus.facts)
    if not len(held_out):
        raise ValueError(f"{corpus.folder}: no held-out sequence; raise corpus.held_out or use a larger dump")
    indices = held_out.sample(sequences or len(held_out))
    places = [(epoch, index) for epoch in range(rounds) for index in indices]
    of_words, of_entities = held_out.make_masker(), held_out.make_masker(masks_words=False)
    word_parts, entity_parts = dict[int, Columns](), dict[int, Columns]()
    with evaluating(module):
        for number, first in enumerate(range(0, len(places), batch_size)):
            if number % ranks.count != ranks.rank:
                continue
            chosen = places[first : first + batch_size]
            if masks_words:
                masked = mask(of_words, corpus, chosen)
                word_parts[number] = score_batch(module, masked, corpus.facts, WORD_LOSS, entities=has_entities)
            if has_entities:
                entity_parts[number] = entity_columns(module, held_out, of_entities, chosen)
    figures: Figures = {"sequences": len(indices)}
    if masks_words:
        figures |= word_figures(Scores(*joined(ranks, word_parts)))
    if not has_entities:
        return figures
    *scores, commonest, known, titled = joined(ranks, entity_parts)
    if not len(titled):
        return figures
    by_table = {"commonest": (commonest, known)} if held_out.commonest else {}
    baselines = Baselines(held_out.most_frequent, {**by_table, "title": (titled, titled)})
    return figures | entity_figures(Scores(*scores), baselines, held_out.training_counts, first_new)


def entity_columns(
    module: LukeForPretraining, held_out: HeldOut, masker: Masker, chosen: Sequence[tuple[int, int]]
) -> Columns:
    """Scores of the masked entities of these (epoch, index), both labels of the mention table, and those by title."""
    masked = mask(masker, held_out.corpus, chosen)
    scores = score_batch(module, masked, held_out.corpus.facts, ENTITY_LOSS, entities=True)
    answers = []
    for (_, index), each in zip(chosen, masked, strict=True):
        is_label = each.entity_labels != IGNORED
        found = (*held_out.commonest_of(index, len(is_label)), held_out.titled_of(index))
        answers.append([column[is_label] for column in found])
    return [*scores, *(np.concatenate(column) for column in zip(*answers, strict=True))]


def mask(masker: Masker, corpus: Corpus, chosen: Sequence[tuple[int, int]]) -> list[MaskedSequence]:
    """The sequences of these (epoch, index)."""
    return [masker.mask(corpus[index], epoch=epoch, index=index) for epoch, index in chosen]


def joined(ranks: Ranks, parts: dict[int, Columns]) -> Columns:
    """The columns of all processes' batches, in the order of these, as one process alone would have them."""
    found = ranks.gather(parts)
    return [np.concatenate(column) for column in zip(*(found[number] for number in sorted(found)), strict=True)]


@dataclass(frozen=True)
class Schedule:
    """When a run of `steps` evaluates, and on how many sequences; with `every` 0 it never does.

    Evaluation sees at most an eighth of the sequences that training has seen since the last one, which is about a
    twelfth of the time, and at most `MOST_SEQUENCES`; at the end, at most an eighth of all.
    """

    every: int
    steps: int
    batch_size: int

    def is_due(self, step: int) -> bool:
        """Return whether to evaluate after `step` finished steps."""
        return self.every > 0 and (step % self.every == 0 or step == self.steps)

    def sequences(self, step: int) -> int:
        """The number of sequences to evaluate on."""
        seen = (self.steps if step == self.steps else self.every) * self.batch_size
        return max(1, min(MOST_SEQUENCES, seen // 8))


def predicts_entities(config: LukeConfig, facts: SequenceFacts) -> bool:
    """Return whether a model has the entities of the sequences; one of special entities alone predicts none."""
    for kind, found, wanted in (
        ("words", config.vocab_size, [facts.word_vocab_size]),
        ("entities", config.entity_vocab_size, [facts.entity_vocab_size, SPECIAL_ENTITIES]),
    ):
        if found not in wanted:
            remedy = "evaluate on sequences of the model's own tokenizer and entity vocabulary"
            raise ValueError(f"the model has {found} {kind}, the sequences have {wanted[0]}; {remedy}")
    return config.entity_vocab_size == facts.entity_vocab_size


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Without dropout and gradients; each part then is in the mode that it was in."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part, mode in modes.items():
            part.training = mode


def score_batch(
    module: LukeForPretraining, masked: list[MaskedSequence], facts: SequenceFacts, kind: str, *, entities: bool
) -> Scores:
    """Scores of the masked words of a batch, or of its masked entities."""
    device = next(module.parameters()).device
    batch = collate(masked, max_mention_words=facts.max_mention_words, entities=entities)
    batch.check(module.config)
    masked_states = module.masked_states(batch.to(device))
    if kind not in masked_states:
        return Scores(*np.zeros((4, 0), np.int64))
    head, table = module.heads[kind]
    return score(head, *masked_states[kind], table.weight, SPECIAL_ENTITIES if kind == ENTITY_LOSS else 0)


def sample_predictions(module: LukeForPretraining, held_out: HeldOut, count: int = 20) -> list[dict[str, Any]]:
    """Predictions for `count` held-out mentions of known entities, each of another sequence, always the same.

    A mention is as `evaluate` masks it. Its record has `word_ids` around it, where it begins (`start`) and ends (`end`)
    in these, its entity (`label`), the known entity that the model predicts (`said`), the softmax of both over known
    entities (`certainty`, `of_label`), and the `commonest` known entity of its text by the mention table (-1: none).
    """
    corpus, rows = held_out.corpus, list[dict[str, Any]]()
    if not predicts_entities(module.config, corpus.facts):
        return rows
    masker = held_out.make_masker(masks_words=False)
    with evaluating(module):
        for index in held_out.shuffled():
            masked = mask(masker, corpus, [(0, index)])
            known = np.flatnonzero(masked[0].entity_labels >= SPECIAL_ENTITIES)
            if len(known):
                rows.append(prediction(module, held_out, index, masked[0], int(known[0])))
            if len(rows) == count:
                break
    return rows


def prediction(
    module: LukeForPretraining, held_out: HeldOut, index: int, masked: MaskedSequence, place: int
) -> dict[str, Any]:
    """The record of `sample_predictions` for the entity at a place of a sequence."""
    device, facts = next(module.parameters()).device, held_out.corpus.facts
    batch = collate([masked], max_mention_words=facts.max_mention_words, entities=True).to(device)
    states, labels = module.masked_states(batch)[ENTITY_LOSS]
    head, table = module.heads[ENTITY_LOSS]
    is_label = np.flatnonzero(masked.entity_labels != IGNORED)
    row = int(np.searchsorted(is_label, place))
    with torch.autocast(device.type, enabled=False):
        logits = head(states[row].to(table.weight.dtype), table.weight)[SPECIAL_ENTITIES:]
    shares, label = logits.softmax(dim=0), int(labels[row])
    best = int(shares.argmax())
    start, end = int(masked.entity_starts[place]), int(masked.entity_ends[place])
    first, last = max(1, start - WINDOW), min(len(masked.word_ids) - 1, end + WINDOW)
    return {
        "word_ids": masked.word_ids[first:last].tolist(),
        "start": start - first,
        "end": end - first,
        "label": label,
        "said": SPECIAL_ENTITIES + best,
        "certainty": round(float(shares[best]), 4),
        "of_label": round(float(shares[label - SPECIAL_ENTITIES]), 4),
        "commonest": int(held_out.commonest_of(index, len(masked.entity_ids))[1][place]),
    }


def open_held_out(sequences: Path, commonest: Path | None, model: Path, trained: Path | None = None) -> HeldOut:
    """The held-out sequences for a finished model.

    Entities count as seen in the sequences of its pretraining, those of the folder `trained` (None: the same).
    """
    recipe = read_optional(model / PRETRAINING).get("recipe", {})
    seen = choose_sequences(Corpus(trained or sequences), recipe.get("min_entities", 0))
    return HeldOut.open(sequences, commonest, seen=seen, trained=trained)
