"""Entities around the words of a base model: what the words are at the start, and what stays as it was."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from model.hf.load import load_luke
from model.luke.batch import Batch, mention_positions
from model.luke.config import MASK_ENTITY
from model.luke.encoder import LukeModel
from model.luke.new_entities import hide_entities
from tests.support.fine_tuned import bert

WORDS, SPANS, MASK_WORD = 14, 60, 4


@pytest.fixture
def luke(tmp_path: Path) -> LukeModel:
    """A BERT of one layer, doubled, whose entities start as its word [MASK]."""
    bert(tmp_path / "bert")
    once = load_luke(str(tmp_path / "bert"), use_entity_aware_attention=True, mask_word=MASK_WORD)
    twice = LukeModel(replace(once.config, num_hidden_layers=2)).eval()
    twice.load_state_dict(
        {
            **once.state_dict(),
            **{name.replace("layers.0.", "layers.1."): tensor for name, tensor in once.state_dict().items()},
        }
    )
    twice.entities_are_new = once.entities_are_new
    return twice


def sentences(seed: int, rows: int = 4) -> Batch:
    """Random words with all spans of up to five of them, as entity recognition gives them."""
    words = torch.randint(5, 300, (rows, WORDS), generator=torch.Generator().manual_seed(seed))
    spans = [(a, b) for a in range(WORDS) for b in range(a + 1, min(WORDS, a + 5) + 1)][:SPANS]
    starts, ends = (torch.tensor(each).expand(rows, -1) for each in zip(*spans, strict=True))
    seen = torch.ones(rows, len(spans), dtype=torch.bool)
    return Batch(
        words,
        torch.ones_like(words, dtype=torch.bool),
        entity_ids=seen * MASK_ENTITY,
        entity_positions=mention_positions(starts, ends, 30),
        entity_mask=seen,
    ).unpadded()


def words_of(batch: Batch) -> Batch:
    return Batch(batch.word_ids, batch.word_mask).unpadded()


@torch.no_grad()
def difference(luke: LukeModel, batch: Batch) -> float:
    """How far the words' states lie from those without entities, as a share of these."""
    (with_entities, _), (alone, _) = luke(batch), luke(words_of(batch))
    return float((with_entities - alone).norm() / alone.norm())


def test_words_start_as_if_there_were_no_entities(luke: LukeModel) -> None:
    assert luke.entities_are_new
    shown, other = sentences(0), sentences(1)
    before = {name: tensor.clone() for name, tensor in luke.state_dict().items()}
    assert min(difference(luke, shown), difference(luke, other)) > 0.3
    hide_entities(luke, shown)
    assert difference(luke, shown) < 0.01
    assert difference(luke, other) < 0.01  # whose entities were not looked at
    changed = {name for name, tensor in luke.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed == {
        f"layers.{layer}.attention.word_to_entity_query.{part}"
        for layer in (0, 1)
        for part in ("weight", "bias")
    }


@torch.no_grad()
def test_queries_that_were_trained_stay(luke: LukeModel) -> None:
    """Those of one layer, here; the other one's are copies of Q."""
    luke.layers[0].attention.word_to_entity_query.bias[0] += 1e-6
    before = {name: tensor.clone() for name, tensor in luke.state_dict().items()}
    hide_entities(luke, sentences(0))
    changed = {name for name, tensor in luke.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed == {f"layers.1.attention.word_to_entity_query.{part}" for part in ("weight", "bias")}


@torch.no_grad()
def test_entities_still_see_the_words(luke: LukeModel) -> None:
    hide_entities(luke, sentences(0))
    batch = sentences(1)
    others = torch.where(torch.arange(WORDS) < WORDS - 1, batch.word_ids, batch.word_ids + 1)
    (_, states), (_, moved) = luke(batch), luke(replace(batch, word_ids=others))
    assert not torch.allclose(states, moved, atol=1e-3)


def test_without_entities_or_queries_for_them_nothing_changes(luke: LukeModel, tmp_path: Path) -> None:
    one = load_luke(str(tmp_path / "bert"), use_entity_aware_attention=False, mask_word=MASK_WORD)
    for module, batch in ((luke, words_of(sentences(0))), (one, sentences(0))):
        before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
        hide_entities(module, batch)
        assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())
