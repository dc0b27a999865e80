"""Exchange with transformers: one key table, both directions, and every refusal."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from model.hf.keys import (
    ENCODER_KEYS,
    OURS_TO_THEIRS,
    check_model_type,
    config_from_transformers,
    from_transformers,
    rename,
    to_transformers,
)
from model.hf.load import load_strictly, read_model
from model.luke.heads import LukeForPretraining
from tests.support.flat_batches import random_flat
from tests.support.models import TINY, flat_of, random_batch, transformers_values, words_of_transformers

WITH_LM_HEAD = ["RobertaForMaskedLM", "XLMRobertaForMaskedLM", "BertForMaskedLM", "BertForPreTraining"]
WITHOUT_LM_HEAD = ["RobertaModel", "XLMRobertaModel", "BertModel"]


def test_every_entry_of_the_table_is_used() -> None:
    state = LukeForPretraining(replace(TINY, use_entity_aware_attention=True)).state_dict()
    modules = {key.removeprefix("luke.").rpartition(".")[0] for key in state}
    assert {name.format(0) for name in ENCODER_KEYS} <= modules


@pytest.mark.parametrize("key", ["luke.layers.x.output.weight", "head.weight", "luke.layers.0.0.output.weight", "a"])
def test_unknown_names_have_no_counterpart(key: str) -> None:
    assert rename(key, OURS_TO_THEIRS) is None


def test_keys_of_another_architecture_are_refused() -> None:
    state = to_transformers(LukeForPretraining(TINY).state_dict())
    with pytest.raises(ValueError, match=r"^folder: unexpected keys classifier\.weight, luke\.gate\.bias; only"):
        from_transformers(
            state | {"luke.gate.bias": torch.zeros(1), "classifier.weight": torch.zeros(1)}, "folder", with_heads=True
        )


def test_old_checkpoints_position_ids_are_passed_over() -> None:
    state = to_transformers(LukeForPretraining(TINY).state_dict())
    ours = from_transformers(state | {"luke.embeddings.position_ids": torch.zeros(1)}, "folder", with_heads=True)
    load_strictly(LukeForPretraining(TINY), ours, source="folder", optional=set())


def words_of_ours(theirs: torch.nn.Module, folder: Path) -> LukeForPretraining:
    """Save a model of transformers, read it, and put its words into a LUKE."""
    theirs.save_pretrained(folder)
    config, weights = read_model(str(folder))
    ours = LukeForPretraining(config).eval()
    optional = {key for key in ours.state_dict() if "entity" in key}
    if "word_head.bias" not in weights:
        optional |= {key for key in ours.state_dict() if key.startswith("word_head.")}
    load_strictly(ours, weights, source=str(folder), optional=optional)
    return ours


@pytest.mark.parametrize("kind", [*WITH_LM_HEAD, *WITHOUT_LM_HEAD])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"pad_token_id": 0, "type_vocab_size": 2, "layer_norm_eps": 1e-12},
        {"pad_token_id": 3, "hidden_act": "gelu_new", "hidden_size": 24, "num_hidden_layers": 3},
        {"hidden_act": "relu", "num_attention_heads": 4},
    ],
)
def test_words_equal_transformers(tmp_path: Path, kind: str, changes: dict[str, object]) -> None:
    theirs = words_of_transformers(kind, **changes)
    ours = words_of_ours(theirs, tmp_path)
    batch = random_batch(ours.config, entities=0)
    their_output = theirs(input_ids=batch.word_ids, attention_mask=batch.word_mask.long(), output_hidden_states=True)
    states = ours.luke(flat_of(batch))
    wanted, found = [their_output.hidden_states[-1]], [states]
    if kind in WITH_LM_HEAD:
        wanted.append(getattr(their_output, "logits", getattr(their_output, "prediction_logits", None)))
        found.append(ours.word_head(states, ours.luke.word_embeddings.token.weight))
    wanted = [output[batch.word_mask] for output in wanted]
    for outputs in (wanted, found):
        sum((each * torch.linspace(-1, 1, each.numel()).view_as(each)).sum() for each in outputs).backward()
    for mine, their_own in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, their_own, atol=1e-5, rtol=0, check_dtype=True)
    gradients = {name: p.grad for name, p in theirs.named_parameters() if p.grad is not None}
    compared = from_transformers(gradients, "", with_heads=True)
    parameters = dict(ours.named_parameters())
    assert {name for name, parameter in parameters.items() if parameter.grad is not None} == set(compared)
    for name, gradient in compared.items():
        torch.testing.assert_close(parameters[name].grad, gradient, atol=1e-4, rtol=1e-4)


def test_bert_counts_positions_from_zero_and_has_no_padding_row(tmp_path: Path) -> None:
    ours = words_of_ours(words_of_transformers("BertModel", max_position_embeddings=14), tmp_path)
    assert ours.config.word_encoder == "bert"
    assert ours.config.max_words == 14
    ours.luke(random_flat([(14, 0)], ours.config))
    with pytest.raises(ValueError, match="has 15 words in a sequence, but the model has positions for 14"):
        ours.luke(random_flat([(15, 0)], ours.config))


def test_names_of_the_first_bert_are_read(tmp_path: Path) -> None:
    wanted = words_of_ours(words_of_transformers("BertForMaskedLM"), tmp_path).state_dict()
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    weights = {}
    for key, tensor in load_file(tmp_path / "model.safetensors").items():
        stem, _, end = key.rpartition("LayerNorm.")
        weights[f"{stem}{old[f'LayerNorm.{end}']}" if stem else key] = tensor
    assert any(key.endswith("gamma") for key in weights)
    save_file(weights, tmp_path / "model.safetensors")
    _, found = read_model(str(tmp_path))
    assert all(torch.equal(found[key], wanted[key]) for key in found)
    assert len(found) == sum("entity" not in key for key in wanted)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "distilbert"}, "^here: model_type 'distilbert' is not supported; use a model of type luke, "),
        ({}, "^here: model_type None is not supported"),
        ({"model_type": "bert", "is_decoder": True}, "^here: model_type 'bert', a decoder, is not supported"),
    ],
)
def test_other_architectures_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_model_type(values, "here")


def test_impossible_configurations_are_refused() -> None:
    values = transformers_values(TINY) | {"model_type": "bert"}
    sizes = {"entity_vocab_size": 3, "entity_emb_size": 8}
    with pytest.raises(ValueError, match=r"^here: pad_token_id is None, but must be of type int"):
        config_from_transformers(values | {"pad_token_id": None}, "here", **sizes)
    del values["hidden_size"]
    with pytest.raises(ValueError, match=r"^here: hidden_size missing from the configuration"):
        config_from_transformers(values, "here", **sizes)
