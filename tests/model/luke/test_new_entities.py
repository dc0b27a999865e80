"""Entities around the words of a base model: what the words are at the start, and what stays as it was."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from model.hf.load import load_luke
from model.luke.batch import FlatBatch, MaskedSequence, collate
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


def sentences(seed: int, *, entities: bool = True) -> FlatBatch:
    """Random words with all spans of up to five of them, as entity recognition gives them."""
    words = torch.randint(5, 300, (4, WORDS), generator=torch.Generator().manual_seed(seed)).numpy()
    spans = np.array([(a, b) for a in range(WORDS) for b in range(a + 1, min(WORDS, a + 5) + 1)][:SPANS])
    rows = [MaskedSequence.unmasked(row, np.full(len(spans), MASK_ENTITY), spans) for row in words]
    return collate(rows, max_mention_words=30, entities=entities)


@torch.no_grad()
def difference(luke: LukeModel, seed: int) -> float:
    """The distance of the states of words from those without entities, as a share of these."""
    alone = luke(sentences(seed, entities=False))
    return float((luke(sentences(seed))[: len(alone)] - alone).norm() / alone.norm())


def test_words_start_as_if_there_were_no_entities(luke: LukeModel) -> None:
    assert luke.entities_are_new
    before = {name: tensor.clone() for name, tensor in luke.state_dict().items()}
    assert min(difference(luke, 0), difference(luke, 1)) > 0.3
    hide_entities(luke, sentences(0))
    assert difference(luke, 0) < 0.01
    assert difference(luke, 1) < 0.01  # whose entities were not looked at
    changed = {name for name, tensor in luke.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed == {
        f"layers.{layer}.attention.word_to_entity_query.{part}" for layer in (0, 1) for part in ("weight", "bias")
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
    batch, other = sentences(1), sentences(1)
    other.word_ids[WORDS - 1 :: WORDS] += 1
    states, moved = (luke(each)[each.shape.words :] for each in (batch, other))
    assert not torch.allclose(states, moved, atol=1e-3)


def test_without_entities_or_queries_for_them_nothing_changes(luke: LukeModel, tmp_path: Path) -> None:
    one = load_luke(str(tmp_path / "bert"), use_entity_aware_attention=False, mask_word=MASK_WORD)
    for module, batch in ((luke, sentences(0, entities=False)), (one, sentences(0))):
        before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
        hide_entities(module, batch)
        assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())
