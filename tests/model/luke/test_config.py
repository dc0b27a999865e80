"""Configurations: validation, JSON, presets and their parameter counts."""

import json
import re
from dataclasses import replace

import pytest

from model.luke.config import BASE, PRESETS, LukeConfig, preset


@pytest.mark.parametrize("name", PRESETS)
def test_json_gives_the_same_configuration(name: str) -> None:
    assert LukeConfig.of_values(json.loads(PRESETS[name].to_json())) == PRESETS[name]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("hidden_size", 100, "hidden_size is 100, but must be a multiple of num_attention_heads 12"),
        ("num_hidden_layers", 0, "num_hidden_layers is 0, but must be at least 1"),
        ("hidden_dropout_prob", 1.0, "hidden_dropout_prob is 1.0, but must be at least 0 and below 1"),
        ("vocab_size", "9", "vocab_size is '9', but must be of type int"),
        ("vocab_size", True, "vocab_size is True, but must be of type int"),
        ("use_entity_aware_attention", 1, "use_entity_aware_attention is 1, but must be of type bool"),
        ("entity_head", "big", "entity_head is 'big', but must be one of released, paper"),
        ("word_encoder", "gpt", "word_encoder is 'gpt', but must be one of roberta, bert"),
        ("hidden_act", "tanh", "hidden_act is 'tanh', but must be one of gelu, gelu_new, relu"),
        ("pad_token_id", 50265, "pad_token_id is 50265, but must be a word id below vocab_size 50265"),
        ("max_position_embeddings", 2, "max_position_embeddings is 2, but must be above pad_token_id + 1 = 2"),
    ],
)
def test_impossible_values_are_refused(field: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        replace(BASE, **{field: value})


def test_unknown_and_missing_keys_are_named() -> None:
    values = json.loads(BASE.to_json())
    del values["hidden_size"]
    with pytest.raises(ValueError, match=r"^a\.json: unknown keys colour; missing keys hidden_size; use "):
        LukeConfig.of_values(values | {"colour": 1}, "a.json")
    with pytest.raises(ValueError, match=r"^a\.json: the model was fine-tuned for ner; give the pretrained one"):
        LukeConfig.of_values({"task": "ner", "model": values, "labels": []}, "a.json")
    with pytest.raises(ValueError, match=r"^a\.json: vocab_size is 0"):
        LukeConfig.of_values(json.loads(BASE.to_json()) | {"vocab_size": 0}, "a.json")


def test_files_from_before_there_was_a_word_encoder_are_roberta_s() -> None:
    values = json.loads(PRESETS["tiny"].to_json())
    assert values.pop("word_encoder") == "roberta"
    assert LukeConfig.of_values(values) == PRESETS["tiny"]


def test_bert_has_a_position_for_every_row() -> None:
    bert = replace(BASE, word_encoder="bert", pad_token_id=0, max_position_embeddings=512)
    assert (bert.first_position, bert.max_words) == (0, 512)
    assert LukeConfig.of_values(json.loads(bert.to_json())) == bert
    assert replace(bert, max_position_embeddings=1, pad_token_id=7).max_words == 1
    with pytest.raises(ValueError, match="max_position_embeddings is 0, but must be at least 1"):
        replace(bert, max_position_embeddings=0)


def test_unknown_preset_is_refused() -> None:
    with pytest.raises(ValueError, match="use one of tiny, demo, small, base, large"):
        preset("xl")
