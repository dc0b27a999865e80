"""The model that pretraining starts from, around the words of a base model or without one."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import torch
from safetensors.torch import load_file, save_file

from model.data.shards import Corpus, SequenceFacts
from model.luke.attention import SelfAttention
from model.luke.batch import Batch
from model.luke.config import MASK_ENTITY, PRESETS
from model.luke.flat import padded
from model.luke.heads import LukeForPretraining
from model.pretraining.configuration import choose
from model.pretraining.loader import Loader
from model.pretraining.recipes import RECIPES
from model.pretraining.start import build_model
from tests.support.models import words_of_transformers
from tests.support.shards import random_rows, write_sequences


@pytest.fixture
def facts(tmp_path: Path) -> SequenceFacts:
    return Corpus(write_sequences(tmp_path / "sequences", random_rows(9))).facts


@pytest.mark.parametrize("kind", ["RobertaForMaskedLM", "RobertaModel", "BertForMaskedLM", "BertModel"])
def test_what_the_base_model_lacks_is_new_and_named(tmp_path: Path, facts: SequenceFacts, kind: str) -> None:
    theirs = words_of_transformers(kind)
    theirs.save_pretrained(tmp_path / "base")
    module, new = build_model(facts, choose("demo", base_model=str(tmp_path / "base")), seed=3)
    state = module.state_dict()
    head = {key for key in state if key.startswith("word_head.")}
    assert {key for key in new if "entity" not in key} == (set() if "ForMaskedLM" in kind else head)
    assert {key for key in state if "entity" in key} <= new
    assert torch.equal(state["luke.word_embeddings.token.weight"], theirs.get_input_embeddings().weight)
    assert module.config.word_encoder == ("bert" if kind.startswith("Bert") else "roberta")
    assert module.config.entity_vocab_size == facts.entity_vocab_size


def test_half_a_word_head_is_refused(tmp_path: Path, facts: SequenceFacts) -> None:
    words_of_transformers("BertForMaskedLM").save_pretrained(tmp_path / "base")
    path = tmp_path / "base" / "model.safetensors"
    weights = load_file(path)
    del weights["cls.predictions.transform.dense.bias"]
    save_file(weights, path)
    with pytest.raises(ValueError, match=r"base: missing keys word_head\.dense\.bias; unexpected keys none"):
        build_model(facts, choose("demo", base_model=str(tmp_path / "base")), seed=3)


def test_a_bert_with_too_few_positions_is_refused(tmp_path: Path, facts: SequenceFacts) -> None:
    theirs = words_of_transformers("BertModel", max_position_embeddings=facts.max_words - 1)
    theirs.save_pretrained(tmp_path / "base")
    with pytest.raises(ValueError, match=r"positions for 31 words, but sequences have up to 32"):
        build_model(facts, choose("demo", base_model=str(tmp_path / "base")), seed=3)


@torch.no_grad()
def share_on_own_words(module: LukeForPretraining, batch: Batch) -> float:
    """How much of an entity's attention in the first layer is on its own words, in the mean over heads."""
    luke = module.luke
    assert batch.entity_ids is not None
    assert batch.entity_positions is not None
    assert batch.entity_mask is not None
    words = luke.word_embeddings(batch.word_ids, batch.word_mask)
    entities = luke.entity_embeddings(batch.entity_ids, batch.entity_positions)
    attention = cast(SelfAttention, luke.layers[0].attention)
    queries, keys = (
        states.unflatten(-1, (attention.heads, attention.head_size)).transpose(1, 2)
        for states in (attention.query(entities), attention.key(torch.cat([words, entities], dim=1)))
    )
    is_key = torch.cat([batch.word_mask, batch.entity_mask], dim=1)[:, None, None]
    scores = queries @ keys.transpose(-1, -2) / attention.head_size**0.5
    shares = scores.masked_fill(~is_key, -torch.inf).softmax(dim=-1)
    own = torch.zeros(*batch.entity_ids.shape, is_key.shape[-1])
    for place in itertools.product(*map(range, batch.entity_ids.shape)):
        own[place][batch.entity_positions[place][batch.entity_positions[place] >= 0]] = 1
    return float((shares * own[:, None]).sum(dim=-1).mean(dim=1)[batch.entity_mask].mean())


@pytest.mark.parametrize("changes", [{}, {"entity_emb_size": 384}], ids=["narrow", "as wide as words"])
def test_where_the_recipe_says_so_entities_begin_with_their_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, int]
) -> None:
    monkeypatch.setitem(PRESETS, "small", replace(PRESETS["small"], **changes))
    corpus = Corpus(write_sequences(tmp_path, random_rows(20)))
    recipe = replace(RECIPES["small"], batch_size=20, micro_batch_size=20)
    batch = padded(Loader(corpus, recipe, profile="fixed", seed=1, entities=True)(0)[0].batch, pad_id=1)
    module, _ = build_model(corpus.facts, choose("small"), seed=3)
    torch.manual_seed(3)
    plain = LukeForPretraining(module.config)
    for each in (module, plain):
        each.eval()
    assert share_on_own_words(module, batch) > 3 * share_on_own_words(plain, batch)
    assert share_on_own_words(module, batch) > 0.35
    # An entity of one word stands where that word stands, in a table of its own.
    words, entities = (
        part.position.weight for part in (module.luke.word_embeddings, module.luke.entity_embeddings)
    )
    assert torch.equal(entities[: module.config.max_words], words[module.config.first_position :])
    assert words.abs().sum() > 0
    assert entities.data_ptr() != words.data_ptr()
    luke = module.luke
    assert not luke.word_embeddings.token_type.weight.any()
    assert not luke.entity_embeddings.token_type.weight.any()
    mask = luke.entity_embeddings.projection(luke.entity_embeddings.token.weight[MASK_ENTITY])
    assert float(mask.detach().norm()) == pytest.approx(
        float(luke.word_embeddings.token.weight.detach().norm(dim=1).mean()), rel=1e-5
    )
    for layer, same in zip(luke.layers, plain.luke.layers, strict=True):
        ratio = layer.attention_output.weight.std() / same.attention_output.weight.std()  # type: ignore[union-attr]
        assert float(ratio) == pytest.approx(2, rel=0.05)


def test_a_start_without_a_base_is_the_seeds(facts: SequenceFacts) -> None:
    first, again, other = (
        build_model(facts, choose("small"), seed=seed)[0].state_dict() for seed in (3, 3, 4)
    )
    assert all(torch.equal(first[name], again[name]) for name in first)
    name = "luke.layers.0.attention.query.weight"
    assert not torch.equal(first[name], other[name])
    assert torch.equal(first[name], first[name.replace("query", "key")])


@pytest.mark.parametrize("preset", sorted(RECIPES.keys() - {"small", "large"}))
def test_else_a_start_without_a_base_is_plain(
    facts: SequenceFacts, monkeypatch: pytest.MonkeyPatch, preset: str
) -> None:
    monkeypatch.setitem(PRESETS, preset, replace(PRESETS[preset], num_hidden_layers=1))
    module, new = build_model(facts, choose(preset), seed=3)
    torch.manual_seed(3)
    plain = LukeForPretraining(module.config).state_dict()
    assert new == plain.keys()
    assert all(torch.equal(tensor, plain[name]) for name, tensor in module.state_dict().items())
