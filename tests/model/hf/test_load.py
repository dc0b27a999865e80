"""Model folders: ours and transformers', whole or refused."""

import json
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from model.files import save_model, write_aside
from model.hf.load import fingerprint_model, load_luke, read_any_config
from model.luke.batch import MaskedSequence, collate
from model.luke.encoder import LukeModel
from model.luke.heads import LukeForPretraining
from tests.support.models import TINY, flat_of, random_batch, shake, words_of_transformers


@pytest.mark.parametrize("kind", [LukeForPretraining, LukeModel])
def test_our_folder_comes_back_with_the_same_bits(tmp_path: Path, kind: type) -> None:
    module = shake(kind(TINY))
    save_model(tmp_path, module)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    assert read_any_config(str(tmp_path)) == (TINY, tmp_path)
    loaded = load_luke(str(tmp_path), use_entity_aware_attention=False, mask_word=4)
    wanted = module.luke if isinstance(module, LukeForPretraining) else module
    assert loaded.config == TINY
    assert not loaded.training
    for key, tensor in wanted.state_dict().items():
        assert torch.equal(loaded.state_dict()[key], tensor)


def test_absent_queries_start_as_copies_and_it_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    module = shake(LukeForPretraining(TINY)).eval()
    save_model(tmp_path, module)
    with caplog.at_level(logging.INFO):
        loaded = load_luke(str(tmp_path), use_entity_aware_attention=True, mask_word=4)
    assert "entity-aware queries start as copies of Q, as in the paper" in caplog.text
    assert loaded.config.use_entity_aware_attention
    batch = flat_of(random_batch())
    with torch.no_grad():
        torch.testing.assert_close(loaded(batch), module.luke(batch), atol=1e-6, rtol=1e-5)


def test_queries_that_are_there_are_kept_or_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    module = shake(LukeModel(replace(TINY, use_entity_aware_attention=True)))
    save_model(tmp_path, module)
    with caplog.at_level(logging.INFO):
        kept = load_luke(str(tmp_path), use_entity_aware_attention=True, mask_word=4)
    assert caplog.text == ""
    key = "layers.1.attention.entity_to_word_query.weight"
    assert torch.equal(kept.state_dict()[key], module.state_dict()[key])
    with caplog.at_level(logging.INFO):
        original = load_luke(str(tmp_path), use_entity_aware_attention=False, mask_word=4)
    assert "12 entity-aware query tensors are left out" in caplog.text
    assert key not in original.state_dict()


def test_weights_in_parts_and_in_the_old_format(tmp_path: Path) -> None:
    words_of_transformers("RobertaForMaskedLM").save_pretrained(tmp_path)
    torch.manual_seed(0)
    wanted = load_luke(str(tmp_path), use_entity_aware_attention=False, mask_word=4).state_dict()
    weights = load_file(tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors").unlink()
    torch.save(weights, tmp_path / "pytorch_model.bin")
    torch.manual_seed(0)
    old = load_luke(str(tmp_path), use_entity_aware_attention=False, mask_word=4).state_dict()
    (tmp_path / "pytorch_model.bin").unlink()
    keys = sorted(weights)
    for number, part in enumerate((keys[:9], keys[9:])):
        save_file({key: weights[key] for key in part}, tmp_path / f"model-{number}.safetensors")
    index = {key: f"model-{int(position >= 9)}.safetensors" for position, key in enumerate(keys)}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    torch.manual_seed(0)
    parts = load_luke(str(tmp_path), use_entity_aware_attention=False, mask_word=4).state_dict()
    for key, tensor in wanted.items():
        assert torch.equal(old[key], tensor)
        assert torch.equal(parts[key], tensor)


def test_missing_unexpected_and_misshapen_weights_are_refused(tmp_path: Path) -> None:
    save_model(tmp_path, LukeForPretraining(TINY))
    path = tmp_path / "model.safetensors"
    weights = load_file(path)
    bias = weights.pop("luke.layers.0.output.bias")
    save_file(weights | {"luke.extra.weight": torch.zeros(1)}, path)
    with pytest.raises(ValueError, match=r"missing keys layers\.0\.output\.bias; unexpected keys extra\.weight; "):
        load_luke(str(tmp_path), use_entity_aware_attention=False, mask_word=4)
    save_file(weights | {"luke.layers.0.output.bias": bias[:3]}, path)
    with pytest.raises(ValueError, match=r"layers\.0\.output\.bias has shape \(3,\), the configuration wants \(16,\)"):
        load_luke(str(tmp_path), use_entity_aware_attention=False, mask_word=4)
    path.unlink()
    with pytest.raises(ValueError, match=r"none of model\.safetensors, "):
        load_luke(str(tmp_path), use_entity_aware_attention=False, mask_word=4)


def test_some_of_the_queries_are_too_few(tmp_path: Path) -> None:
    save_model(tmp_path, LukeModel(replace(TINY, use_entity_aware_attention=True)))
    path = tmp_path / "model.safetensors"
    weights = load_file(path)
    absent = [f"layers.1.attention.entity_to_word_query.{part}" for part in ("bias", "weight")]
    save_file({key: tensor for key, tensor in weights.items() if key not in absent}, path)
    with pytest.raises(ValueError, match=f"missing keys {', '.join(absent)}; the weights have the other"):
        load_luke(str(tmp_path), use_entity_aware_attention=True, mask_word=4)


@pytest.mark.parametrize("kind", ["RobertaModel", "BertModel"])
def test_entities_that_start_as_words_are_the_word_mask_at_their_mention(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = words_of_transformers(kind)
    theirs.save_pretrained(tmp_path)
    with caplog.at_level(logging.INFO):
        ours = load_luke(str(tmp_path), use_entity_aware_attention=True, mask_word=9)
    assert "entities start as the word [MASK] at their mention" in caplog.text
    assert "at random" not in caplog.text
    words, positions = torch.full((ours.config.max_words,), 9), torch.arange(ours.config.max_words)
    with torch.no_grad():
        as_words = ours.word_embeddings(words, positions)
        for entity in range(1, ours.config.entity_vocab_size):
            found = ours.entity_embeddings(torch.full_like(words, entity), positions, positions)
            assert torch.equal(found, as_words)
        assert not ours.entity_embeddings.token.weight[0].any()
        # To the attention, too, an entity is a second such word: it ends in the state of the one that stands there.
        sequence = MaskedSequence.unmasked(np.array([4, 5, 6, 9, 7]), np.array([2]), np.array([[3, 4]]))
        states = ours(collate([sequence], max_mention_words=30, entities=True))
    torch.testing.assert_close(states[5], states[3], atol=1e-6, rtol=0)


def test_a_mask_beyond_the_words_is_refused(tmp_path: Path) -> None:
    words_of_transformers("BertModel").save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"\d+ word embeddings, but \[MASK\] is word 5000; give the tokenizer that"):
        load_luke(str(tmp_path), use_entity_aware_attention=True, mask_word=5000)


def test_missing_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"config\.json: no such file; give a folder with a model"):
        load_luke(str(tmp_path), use_entity_aware_attention=False, mask_word=4)
    with pytest.raises(ValueError, match="not/there: no such folder; give a model's folder or its name"):
        load_luke(str(tmp_path / "not" / "there"), use_entity_aware_attention=False, mask_word=4)


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def fail(aside: Path) -> None:
        aside.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_aside(path, fail)
    assert path.read_text() == "old"
    write_aside(path, lambda aside: aside.write_text("new"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "new"


def test_weights_are_as_readable_as_other_files(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    save_model(tmp_path, LukeModel(TINY))
    assert (tmp_path / "model.safetensors").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_fingerprint_is_of_the_content_not_of_the_place(tmp_path: Path) -> None:
    for name in ("a", "b"):
        torch.manual_seed(0)
        save_model(tmp_path / name, LukeModel(TINY))
    assert fingerprint_model(str(tmp_path / "a")) == fingerprint_model(str(tmp_path / "b"))
    save_model(tmp_path / "b", LukeModel(TINY))
    assert fingerprint_model(str(tmp_path / "a")) != fingerprint_model(str(tmp_path / "b"))
