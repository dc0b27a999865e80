"""New entities of a pretrained model: their rows against plain ways, and all else as it was."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from model.data.shards import Corpus
from model.files import save_model
from model.hf.load import read_model
from model.luke.config import SPECIAL_ENTITIES
from model.luke.heads import LukeForPretraining
from model.pretraining import update as updating
from model.pretraining.update import (
    Mentions,
    choose,
    grown_model,
    likeliest,
    likeliest_bias,
    objective,
    read_mentions,
    ridge,
    update,
)
from tests.support.models import TINY
from tests.support.pretraining import contents
from tests.support.properties import given, st
from tests.support.shards import ENTITIES, WORDS, random_rows, write_sequences

KNOWN = 9


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the words of the tests' sequences that knows nine entities."""
    torch.manual_seed(4)
    folder = tmp_path_factory.mktemp("earlier")
    module = LukeForPretraining(replace(TINY, vocab_size=WORDS, entity_vocab_size=KNOWN, pad_token_id=1))
    torch.nn.init.normal_(module.entity_head.bias)
    save_model(folder, module)
    (folder / "pretraining.json").write_text('{"preset": "tiny", "recipe": {"precision": "bf16"}}')
    return folder


def updated(sequences: Path, earlier: Path, output: Path) -> dict[str, float]:
    return update(sequences, earlier, output, known=KNOWN, device="cpu", progress=lambda done, total: None)


def test_all_but_the_new_rows_keeps_its_bits(tmp_path: Path, earlier: Path) -> None:
    rows = random_rows(40)
    for row in rows:  # one new entity is never mentioned
        row["entity_ids"] = [entity if entity != ENTITIES - 1 else 1 for entity in row["entity_ids"]]
    sequences = write_sequences(tmp_path / "sequences", rows, held_out=random_rows(5, seed=1))
    figures = updated(sequences, earlier, tmp_path / "a")
    before, after = read_model(str(earlier))[1], read_model(str(tmp_path / "a"))[1]
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        found = after[name][:KNOWN] if name in (updating.ROWS, updating.BIAS) else after[name]
        assert torch.equal(found, tensor), name
    assert after[updating.ROWS].shape[0] == ENTITIES
    labels = Counter(entity for row in rows for entity in row["entity_ids"])
    assert (figures["new"], figures["mentioned"]) == (ENTITIES - KNOWN, ENTITIES - KNOWN - 1)
    assert figures["mentions"] <= sum(labels[entity] for entity in range(SPECIAL_ENTITIES, ENTITIES))
    module, corpus = grown_model(Corpus(sequences), str(earlier), KNOWN), Corpus(sequences)
    start, _ = updating.rows_of_titles(module, corpus, KNOWN)
    moved = (after[updating.ROWS][KNOWN:] - start).norm(dim=1)
    assert (moved[:-1] > 1e-3).all()
    assert moved[-1] == 0  # it is what its title says
    told = json.loads((tmp_path / "a/pretraining.json").read_text())
    assert told["preset"] == "tiny"
    assert told["updated"]["new"] == ENTITIES - KNOWN
    [line] = (tmp_path / "a/evaluation.jsonl").read_text().splitlines()
    of_groups = json.loads(line)
    assert (
        of_groups["known_entity_count"] == of_groups["known_entity_new_count"] + of_groups["known_entity_earlier_count"]
    )
    updated(sequences, earlier, tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_models_that_do_not_fit_are_refused(tmp_path: Path, earlier: Path) -> None:
    sequences = write_sequences(tmp_path / "sequences", random_rows(5))
    with pytest.raises(ValueError, match=r"9 entities, wanted 10 of the 12"):
        grown_model(Corpus(sequences), str(earlier), KNOWN + 1)


@given(st.integers(0, 50), st.integers(1, 4), st.integers(3, ENTITIES))
def test_as_many_sequences_without_a_new_entity_stand_beside(
    tmp_path_factory: pytest.TempPathFactory, seed: int, most: int, known: int
) -> None:
    corpus = Corpus(write_sequences(tmp_path_factory.mktemp("rows"), random_rows(25, seed)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(updating, "MENTIONS", most)
        chosen, weights = choose(corpus, known)
    has_new = np.array([bool((corpus[index].entity_ids >= known).any()) for index in range(len(corpus))])
    read, beside = chosen[has_new[chosen]], chosen[~has_new[chosen]]
    assert list(chosen) == sorted(set(chosen))
    assert len(beside) == min(len(read), int((~has_new).sum()))
    in_all = Counter(entity for index in range(len(corpus)) for entity in corpus[index].entity_ids.tolist())
    in_read = Counter(entity for index in read for entity in corpus[index].entity_ids.tolist())
    for entity in range(known, ENTITIES):
        assert in_read[entity] >= min(most, in_all[entity])
    assert len(read) <= most * (ENTITIES - known)
    assert weights[True] * len(read) == pytest.approx(has_new.sum())
    if len(beside):
        assert weights[False] * len(beside) == pytest.approx((~has_new).sum())


def test_mentions_are_what_the_model_says_of_each_sequence_alone(tmp_path: Path, earlier: Path) -> None:
    """Their vectors give the logits of the whole model."""
    corpus = Corpus(write_sequences(tmp_path, random_rows(7)))
    module = grown_model(corpus, str(earlier), KNOWN)
    chosen = np.arange(7)
    found = read_mentions(module, corpus, KNOWN, chosen, {True: 2.0, False: 3.0}, lambda done, total: None)
    labels = [int(each) for index in chosen for each in corpus[index].entity_ids if each >= SPECIAL_ENTITIES]
    assert found.labels.tolist() == labels
    table = module.luke.entity_embeddings.token.weight
    logits = found.vectors @ table.T + module.entity_head.bias
    torch.testing.assert_close(found.earlier, logits[:, SPECIAL_ENTITIES:KNOWN].logsumexp(dim=1))
    has_new = [bool((corpus[index].entity_ids >= KNOWN).any()) for index in chosen]
    counts = [int((corpus[index].entity_ids >= SPECIAL_ENTITIES).sum()) for index in chosen]
    wanted = [2.0 if new else 3.0 for new, count in zip(has_new, counts, strict=True) for _ in range(count)]
    assert found.weights.tolist() == wanted


def random_mentions(count: int, table: torch.Tensor, known: int) -> tuple[Mentions, torch.Tensor]:
    """Mentions with random vectors, and their logits of the earlier rows."""
    vectors = torch.randn(count, table.shape[1], dtype=torch.float64)
    labels = torch.randint(0, len(table), (count,))
    logits = vectors @ table[:known].T
    return Mentions(vectors, labels, torch.rand(count, dtype=torch.float64) + 0.5, logits.logsumexp(dim=1)), logits


def test_rows_are_the_likeliest_under_the_whole_softmax(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside autograd over all rows, for a few mentions at a time; gradient descent finds the same ones."""
    monkeypatch.setattr(updating, "LOGITS_AT_ONCE", 28)
    monkeypatch.setattr(updating, "STEPS", 100)
    torch.manual_seed(0)
    table, known, bias, deviation = torch.randn(12, 6, dtype=torch.float64), 8, -0.3, 0.5
    mentions, logits = random_mentions(50, table, known)
    start = torch.randn(4, 6, dtype=torch.float64)

    def plain(rows: torch.Tensor) -> torch.Tensor:
        scores = torch.cat([logits, mentions.vectors @ rows.T + bias], dim=1)
        # Which earlier entity is meant does not depend on the new rows.
        is_new = mentions.labels >= known
        losses = functional.cross_entropy(scores, mentions.labels, reduction="none")
        of_earlier = scores.logsumexp(dim=1) - logits.logsumexp(dim=1)
        data = (mentions.weights * torch.where(is_new, losses, of_earlier)).sum()
        return (data + (rows - start).pow(2).sum() / (2 * deviation**2)) / mentions.weights.sum()

    rows = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    wanted = plain(rows)
    wanted.backward()
    value, gradient = objective(rows.detach(), mentions, known, start, bias, deviation)
    torch.testing.assert_close(value, wanted.detach())
    torch.testing.assert_close(gradient, rows.grad)
    best = likeliest(mentions, known, start, bias, deviation)
    slow = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([slow], lr=0.02)
    for _ in range(2000):
        optimiser.zero_grad()
        plain(slow).backward()
        optimiser.step()
    torch.testing.assert_close(best, slow.detach(), atol=1e-3, rtol=1e-3)


def test_the_bias_is_the_likeliest_for_the_rows_of_titles(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the whole softmax, for a few mentions at a time; where new entities are rare or common, or all there is."""
    monkeypatch.setattr(updating, "LOGITS_AT_ONCE", 28)
    torch.manual_seed(0)
    table, known, rows = torch.randn(12, 6, dtype=torch.float64), 8, torch.randn(4, 6, dtype=torch.float64)
    mentions, logits = random_mentions(50, table, known)
    for factor in (0.01, 1.0, 1000.0):
        is_new = mentions.labels >= known
        weighted = replace(mentions, weights=mentions.weights * torch.where(is_new, factor, 1.0))

        def plain(bias: float, weighted: Mentions = weighted, is_new: torch.Tensor = is_new) -> float:
            shares = torch.cat([logits, weighted.vectors @ rows.T + bias], dim=1).softmax(dim=1)
            of_kind = torch.where(is_new, shares[:, known:].sum(dim=1), shares[:, :known].sum(dim=1))
            return float(-(weighted.weights * of_kind.log()).sum()) + (bias - 0.4) ** 2 / 2

        low, high = -20.0, 20.0
        for _ in range(60):  # of thirds, since the loss is convex
            left, right = (2 * low + high) / 3, (low + 2 * high) / 3
            low, high = (low, right) if plain(left) < plain(right) else (left, high)
        assert likeliest_bias(weighted, known, rows, 0.4) == pytest.approx(low, abs=1e-3)


def test_ridge_regression_is_that_of_numpy() -> None:
    generator = np.random.default_rng(0)
    inputs, outputs, at = generator.normal(size=(30, 4)) + 1, generator.normal(size=(30, 2)) - 2, np.ones((3, 4))
    centred = inputs - inputs.mean(0)
    penalty = np.sqrt(0.1 * 30 * (centred**2).mean()) * np.eye(4)
    stacked = np.concatenate([centred, penalty]), np.concatenate([outputs - outputs.mean(0), np.zeros((4, 2))])
    wanted = (at - inputs.mean(0)) @ np.linalg.lstsq(*stacked, rcond=None)[0] + outputs.mean(0)
    np.testing.assert_allclose(ridge(*map(torch.from_numpy, (inputs, outputs)), 0.1, torch.from_numpy(at)), wanted)
