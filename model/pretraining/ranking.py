"""Losses and ranks of masked words and entities, in bounded memory, and the figures that are made of them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from model.luke.config import SPECIAL_ENTITIES

# How often training annotates an entity, both ends included.
BANDS: tuple[tuple[int, int | None], ...] = ((0, 0), (1, 9), (10, 99), (100, 999), (1000, None))
LOGITS_AT_ONCE = 1 << 26  # 256 MiB as float32
Integers = NDArray[np.int64]
Figures = dict[str, float]


class Scores(NamedTuple):
    """A model's losses and ranks at masked positions: a row for each, with its label in `labels`.

    A rank is 1 + the number of logits above the label's own; among the known, special entities do not compete.
    """

    labels: Integers
    losses: NDArray[np.float64]
    ranks: Integers
    ranks_among_known: Integers


@dataclass(frozen=True)
class Baselines:
    """The predictions of the baselines at the same masked entities: among all labels, and among known entities.

    `answers` are by the name of a baseline. Where one has none (-1), it, too, predicts the most frequent one.
    """

    most_frequent: tuple[int, int]
    answers: Mapping[str, tuple[Integers, Integers]]


@torch.no_grad()
def score(head: nn.Module, states: Tensor, labels: Tensor, table: Tensor, special: int = 0) -> Scores:
    """Scores of the labels (rows) at states (rows, hidden).

    Logits are computed in single precision, since ranks among rounded ones would be flattering, and for a few
    positions at a time. The first `special` rows of the table do not compete in `ranks_among_known`.
    """
    losses, ranks, known = [], [], []
    rows = max(1, LOGITS_AT_ONCE // table.shape[0])
    with torch.autocast(states.device.type, enabled=False):
        for part, wanted in zip(states.split(rows), labels.split(rows), strict=True):
            logits = head(part.to(table.dtype), table).float()
            is_above = above_own(logits, wanted)
            losses.append(functional.cross_entropy(logits, wanted, reduction="none"))
            ranks.append(1 + is_above.sum(dim=1))
            known.append(1 + is_above[:, special:].sum(dim=1))
    columns = (labels, torch.cat(losses).double(), torch.cat(ranks), torch.cat(known))
    return Scores(*(column.cpu().numpy() for column in columns))


def above_own(logits: Tensor, labels: Tensor) -> Tensor:
    """A mask of the logits (rows, classes) above that of the row's label; what is no number counts as above."""
    return ~(logits <= logits.gather(1, labels[:, None]))


def word_figures(scores: Scores) -> Figures:
    """Loss, accuracy and perplexity of masked words."""
    loss = float(scores.losses.mean())
    return {
        "masked_word_count": len(scores.labels),
        "masked_word_loss": loss,
        "masked_word_accuracy": float((scores.ranks == 1).mean()),
        "masked_word_perplexity": math.exp(min(loss, 700.0)),
    }


def entity_figures(scores: Scores, baselines: Baselines, training_counts: Integers, first_new: int = 0) -> Figures:
    """Figures of masked entities by group, see `evaluate`."""
    is_known = scores.labels >= SPECIAL_ENTITIES
    figures = group_figures("masked_entity", scores, baselines, np.ones_like(is_known), known=False)
    figures |= group_figures("known_entity", scores, baselines, is_known, known=True)
    if first_new:
        is_new = scores.labels >= first_new
        figures |= group_figures("known_entity_new", scores, baselines, is_new, known=True)
        figures |= group_figures("known_entity_earlier", scores, baselines, is_known & ~is_new, known=True)
    seen = training_counts[scores.labels]
    for least, most in BANDS:
        is_inside = is_known & (seen >= least) & (seen <= (math.inf if most is None else most))
        end = "" if most == least else "_or_more" if most is None else f"_to_{most}"
        name = f"known_entity_seen_{least}{end}"
        figures |= group_figures(name, scores, baselines, is_inside, known=True)
    return figures


def group_figures(
    name: str, scores: Scores, baselines: Baselines, is_inside: NDArray[np.bool_], *, known: bool
) -> Figures:
    """Figures of the labels inside a group; a group of known entities also has ranks among the known alone."""
    figures: Figures = {"count": int(is_inside.sum())}
    if figures["count"]:
        labels, ranks = scores.labels[is_inside], scores.ranks[is_inside]
        figures["loss"] = float(scores.losses[is_inside].mean())
        figures |= rank_figures(ranks)
        if known:
            among = rank_figures(scores.ranks_among_known[is_inside])
            figures |= {f"{key}_among_known": value for key, value in among.items()}
        figures["most_frequent_top_1"] = float((labels == baselines.most_frequent[known]).mean())
        for baseline, answers in baselines.answers.items():
            answer = answers[known][is_inside]
            answer = np.where(answer < 0, baselines.most_frequent[known], answer)
            figures[f"{baseline}_top_1"] = float((labels == answer).mean())
    return {f"{name}_{key}": value for key, value in figures.items()}


def rank_figures(ranks: Integers) -> Figures:
    """The share of labels that are first, or among the first ten, and the mean reciprocal rank."""
    return {
        "top_1": float((ranks == 1).mean()),
        "top_10": float((ranks <= 10).mean()),
        "mean_reciprocal_rank": float((1 / ranks).mean()),
    }
