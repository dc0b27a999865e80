"""Parameters of a model, part by part."""

import pytest

from model.luke.config import PRESETS
from model.sizes import main, parameter_counts


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


def test_command_line_prints_a_line_per_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["base"]) == 0
    printed = capsys.readouterr().out
    assert "entity token embeddings (B)" in printed
    assert printed.splitlines()[-1].split() == ["all", "253,988,473"]
    with pytest.raises(SystemExit):
        main(["huge"])
    assert "'huge'" in capsys.readouterr().err
