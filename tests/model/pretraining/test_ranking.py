"""Ranks, losses and figures against brute force, by hand, and with ties."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from model.luke.batch import IGNORED
from model.luke.heads import LukeForPretraining
from model.pretraining import ranking as scoring
from model.pretraining.ranking import Baselines, Scores, above_own, entity_figures, score, word_figures
from tests.support.models import TINY


@pytest.fixture(scope="module")
def module() -> LukeForPretraining:
    torch.manual_seed(8)
    return LukeForPretraining(TINY).eval()


def head_of(module: LukeForPretraining, kind: str) -> tuple[nn.Module, torch.Tensor]:
    if kind == "word":
        return module.word_head, module.luke.word_embeddings.token.weight
    return module.entity_head, module.luke.entity_embeddings.token.weight


@pytest.mark.parametrize("kind", ["word", "entity"])
@pytest.mark.parametrize("at_once", [1, 100, 1 << 20])
def test_scores_equal_sorted_full_logits(
    module: LukeForPretraining, kind: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "LOGITS_AT_ONCE", at_once)
    head, table = head_of(module, kind)
    states = torch.randn(3, 7, TINY.hidden_size)
    labels = torch.randint(3, len(table), (3, 7))
    labels[torch.rand(3, 7) < 0.4] = IGNORED
    with torch.no_grad():
        found = score(head, states[labels != IGNORED], labels[labels != IGNORED], table, special=3)
        logits = head(states, table)
    expected = []
    for place in (labels != IGNORED).nonzero().tolist():
        row, label = logits[tuple(place)], int(labels[tuple(place)])
        order = row.argsort(descending=True).tolist()
        among_known = [each for each in order if each >= 3]
        loss = -float(row.double().log_softmax(0)[label])
        expected.append((label, loss, order.index(label) + 1, among_known.index(label) + 1))
    label_column, losses, ranks, known = (np.array(column) for column in zip(*expected, strict=True))
    assert found.labels.tolist() == label_column.tolist()
    assert found.ranks.tolist() == ranks.tolist()
    assert found.ranks_among_known.tolist() == known.tolist()
    assert found.losses == pytest.approx(losses, rel=1e-5)
    assert len(set(found.ranks.tolist())) > 3, "the ranks differ"


def test_ties_share_the_best_rank_and_no_number_has_the_worst() -> None:
    logits = torch.tensor([[1.0, 3.0, 3.0, 2.0], [1.0, 3.0, 3.0, 2.0], [5.0, 5.0, 5.0, 5.0], [math.nan, 1.0, 0.0, 2.0]])
    ranks = 1 + above_own(logits, torch.tensor([2, 3, 0, 1])).sum(dim=1)
    assert ranks.tolist() == [1, 3, 1, 3]
    assert 1 + int(above_own(torch.full((1, 4), math.nan), torch.tensor([1])).sum()) == 5


def test_scores_are_in_single_precision_under_autocast(module: LukeForPretraining) -> None:
    head, table = head_of(module, "entity")
    states, labels = torch.randn(10, TINY.hidden_size), torch.randint(0, len(table), (10,))
    with torch.no_grad():
        plain = score(head, states, labels, table)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert head(states, table).dtype == torch.bfloat16
            rounded = score(head, states, labels, table)
    assert plain.losses.tolist() == rounded.losses.tolist()
    assert plain.ranks.tolist() == rounded.ranks.tolist()


def test_nothing_masked_gives_empty_scores(module: LukeForPretraining) -> None:
    head, table = head_of(module, "entity")
    found = score(head, torch.randn(0, TINY.hidden_size), torch.zeros(0, dtype=torch.int64), table)
    assert [len(column) for column in (found.labels, found.losses, found.ranks)] == [0, 0, 0]


def rows(*values: tuple[float, ...]) -> Scores:
    labels, losses, ranks, among_known = (np.array(column) for column in zip(*values, strict=True))
    return Scores(labels, losses, ranks, among_known)


def test_figures_by_hand() -> None:
    # Label, loss, rank, rank among the known. Entity 3 is seen 9 times, 4 is seen 10 times, 5 never; 1 is [UNK].
    # The text of entity 4 has no commonest label: the most frequent known entity, 4, stands in.
    scores = rows((1, 1.0, 1, 1), (3, 2.0, 2, 1), (3, 3.0, 20, 19), (4, 4.0, 10, 10), (5, 6.0, 4, 3))
    counts = np.array([0, 50, 0, 9, 10, 0])
    commonest, titled = (np.array([1, 1, 3, -1, 5]), np.array([3, 3, 4, -1, 5])), np.array([3, 3, 5, 4, -1])
    baselines = Baselines((1, 4), {"commonest": commonest, "title": (titled, titled)})
    figures = entity_figures(scores, baselines, counts)

    def group(name: str) -> dict[str, Any]:
        prefix = f"{name}_"
        return {key.removeprefix(prefix): figures.pop(key) for key in [*figures] if key.startswith(prefix)}

    assert group("masked_entity") == {
        "count": 5,
        "loss": 3.2,
        "top_1": 0.2,
        "top_10": 0.8,
        "mean_reciprocal_rank": pytest.approx((1 + 1 / 2 + 1 / 20 + 1 / 10 + 1 / 4) / 5),
        "most_frequent_top_1": 0.2,
        "commonest_top_1": 0.6,
        "title_top_1": 0.4,
    }
    band = group("known_entity_seen_0")
    names = ("top_10", "top_1_among_known", "top_10_among_known", "mean_reciprocal_rank_among_known")
    assert [band[name] for name in names] == [1, 0, 1, pytest.approx(1 / 3)]
    band = group("known_entity_seen_1_to_9")
    names = ("count", "top_1", "top_1_among_known", "commonest_top_1")
    assert [band[name] for name in names] == [2, 0, 0.5, 0.5]
    band = group("known_entity_seen_10_to_99")
    names = ("count", "top_10", "most_frequent_top_1", "commonest_top_1")
    assert [band[name] for name in names] == [1, 1, 1, 1]
    assert group("known_entity_seen_100_to_999") == {"count": 0}
    assert group("known_entity_seen_1000_or_more") == {"count": 0}
    known = group("known_entity")
    assert (known["count"], known["loss"]) == (4, 3.75)
    assert (known["top_1"], known["top_1_among_known"], known["most_frequent_top_1"]) == (0, 0.25, 0.25)
    assert (known["commonest_top_1"], known["title_top_1"]) == (0.75, 0.5)
    assert not figures


def test_word_figures_by_hand() -> None:
    figures = word_figures(rows((7, 1.0, 1, 1), (8, 3.0, 2, 2)))
    assert figures == {
        "masked_word_count": 2,
        "masked_word_loss": 2.0,
        "masked_word_accuracy": 0.5,
        "masked_word_perplexity": pytest.approx(math.e**2),
    }
