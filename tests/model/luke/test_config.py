"""Configurations: validation, JSON, presets and their parameter counts."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from model.luke.config import BASE, PRESETS, LukeConfig, preset
from model.sizes import parameter_counts
from tests.support import ROOT


@pytest.mark.parametrize("name", PRESETS)
def test_json_gives_the_same_configuration(name: str) -> None:
    assert LukeConfig.from_json(PRESETS[name].to_json()) == PRESETS[name]


def test_large_is_the_paper_s_model() -> None:
    large = PRESETS["large"]
    assert (large.hidden_size, large.num_hidden_layers, large.num_attention_heads) == (1024, 24, 16)
    assert (large.attention_head_size, large.entity_emb_size, large.entity_vocab_size) == (64, 256, 500_000)
    assert large.max_words == 512
    counts = parameter_counts(large)
    roberta = counts["word embeddings"] + counts["transformer layers"] + counts["word head"]
    assert round(roberta / 1e6) == 355
    assert counts["entity token embeddings (B)"] == 128_000_000


def test_large_has_as_many_parameters_as_transformers_roberta_large() -> None:
    import torch
    from transformers import RobertaConfig, RobertaForMaskedLM

    config = RobertaConfig(
        vocab_size=50265,
        hidden_size=1024,
        num_hidden_layers=24,
        num_attention_heads=16,
        intermediate_size=4096,
        max_position_embeddings=514,
        type_vocab_size=1,
    )
    with torch.device("meta"):
        expected = sum(parameter.numel() for parameter in RobertaForMaskedLM(config).parameters())
    counts = parameter_counts(PRESETS["large"])
    assert counts["word embeddings"] + counts["transformer layers"] + counts["word head"] == expected


def test_command_line_prints_a_line_per_part() -> None:
    command = [sys.executable, "-m", "model.luke.config", "demo"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "entity token embeddings (B)" in printed
    assert f"{sum(parameter_counts(PRESETS['demo']).values()):,}" in printed
    wrong = subprocess.run([*command[:-1], "huge"], cwd=ROOT, capture_output=True, text=True)
    assert wrong.returncode == 2
    assert wrong.stderr == "preset 'huge' is unknown; use one of demo, small, base, large\n"


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
        (
            "max_position_embeddings",
            2,
            "max_position_embeddings is 2, but must be above pad_token_id + 1 = 2",
        ),
    ],
)
def test_impossible_values_are_refused(field: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        replace(BASE, **{field: value})


def test_unknown_and_missing_keys_are_named() -> None:
    values = json.loads(BASE.to_json())
    del values["hidden_size"]
    with pytest.raises(ValueError, match=r"^a\.json: unknown keys colour; missing keys hidden_size; use "):
        LukeConfig.from_json(json.dumps(values | {"colour": 1}), "a.json")
    with pytest.raises(ValueError, match=r"^a\.json: not JSON"):
        LukeConfig.from_json("{", "a.json")
    with pytest.raises(ValueError, match=r"^a\.json: list found"):
        LukeConfig.from_json("[]", "a.json")
    with pytest.raises(ValueError, match=r"^a\.json: vocab_size is 0"):
        LukeConfig.from_json(json.dumps(json.loads(BASE.to_json()) | {"vocab_size": 0}), "a.json")


def test_files_from_before_there_was_a_word_encoder_are_roberta_s() -> None:
    values = json.loads(PRESETS["demo"].to_json())
    assert values.pop("word_encoder") == "roberta"
    assert LukeConfig.from_json(json.dumps(values)) == PRESETS["demo"]


def test_bert_has_a_position_for_every_row() -> None:
    bert = replace(BASE, word_encoder="bert", pad_token_id=0, max_position_embeddings=512)
    assert (bert.first_position, bert.max_words) == (0, 512)
    assert LukeConfig.from_json(bert.to_json()) == bert
    assert replace(bert, max_position_embeddings=1, pad_token_id=7).max_words == 1
    with pytest.raises(ValueError, match="max_position_embeddings is 0, but must be at least 1"):
        replace(bert, max_position_embeddings=0)


def test_unknown_preset_is_refused() -> None:
    with pytest.raises(ValueError, match="use one of demo, small, base, large"):
        preset("xl")
