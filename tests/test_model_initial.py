"""The model that pretraining starts from, around the words of a base model."""

from pathlib import Path

import pytest
import torch
from models_for_tests import words_of_transformers
from safetensors.torch import load_file, save_file
from shards_for_tests import random_rows, write_sequences

from model.initial import build_model
from model.shards import Corpus, SequenceFacts


@pytest.fixture
def facts(tmp_path: Path) -> SequenceFacts:
    return Corpus(write_sequences(tmp_path / "sequences", random_rows(9))).facts


@pytest.mark.parametrize("kind", ["RobertaForMaskedLM", "RobertaModel", "BertForMaskedLM", "BertModel"])
def test_what_the_base_model_lacks_is_new_and_named(tmp_path: Path, facts: SequenceFacts, kind: str) -> None:
    theirs = words_of_transformers(kind)
    theirs.save_pretrained(tmp_path / "base")
    module, new = build_model(facts, "demo", str(tmp_path / "base"), entities=True, seed=3)
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
        build_model(facts, "demo", str(tmp_path / "base"), entities=True, seed=3)


def test_a_bert_with_too_few_positions_is_refused(tmp_path: Path, facts: SequenceFacts) -> None:
    theirs = words_of_transformers("BertModel", max_position_embeddings=facts.max_words - 1)
    theirs.save_pretrained(tmp_path / "base")
    with pytest.raises(ValueError, match=r"positions for 31 words, but sequences have up to 32"):
        build_model(facts, "demo", str(tmp_path / "base"), entities=True, seed=3)
