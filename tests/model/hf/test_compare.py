"""`python -m model.hf check`: equal models pass with 0, others fail with a line that says where they differ."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from model.hf import compare
from model.hf.__main__ import main
from model.hf.compare import check
from tests.support.models import luke_of_transformers, save_tied, words_of_transformers

ALL = {"word states", "word logits", "entity states", "entity logits"}
OUTPUTS = {
    "LukeForMaskedLM": ALL,
    "LukeModel": {"word states", "entity states"},
    "LukeForEntitySpanClassification": {"word states", "entity states"},
    "RobertaForMaskedLM": {"word states", "word logits"},
    "RobertaModel": {"word states"},
    "BertForMaskedLM": {"word states", "word logits"},
    "BertForPreTraining": {"word states", "word logits"},
    "BertModel": {"word states"},
}


def saved(kind: str, folder: Path) -> str:
    make = luke_of_transformers if kind.startswith("Luke") else words_of_transformers
    save_tied(make(kind), folder)
    return str(folder)


@pytest.mark.parametrize("kind", OUTPUTS)
def test_every_output_is_compared(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = saved(kind, tmp_path / "model")
    differences, absent, left_out = check(Path(folder))
    assert set(differences) == OUTPUTS[kind]
    assert 0 < max(differences.values()) < 1e-12
    assert not absent
    is_fine_tuned = "Classification" in kind
    assert left_out == (f"the classifier of {kind}" if is_fine_tuned else "")
    assert main(["check", folder]) == (3 if is_fine_tuned else 0)
    lines = capsys.readouterr().out.splitlines()
    told = f"encoder only, equal within 1e-06; not compared: {left_out}" if is_fine_tuned else "equal within 1e-06"
    assert lines[-1] == f"{folder}: {told}"
    assert {line[:14].strip() for line in lines[:-1]} == OUTPUTS[kind]


def test_a_difference_is_found_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = saved("LukeForMaskedLM", tmp_path / "model")
    computed = compare.our_outputs

    def shifted(*arguments: object) -> dict[str, torch.Tensor]:
        outputs = computed(*arguments)
        return outputs | {"entity logits": outputs["entity logits"] + 0.01}

    monkeypatch.setattr(compare, "our_outputs", shifted)
    assert main(["check", folder]) == 1
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == f"{folder}: DIFFERENT by more than 1e-06: entity logits"
    monkeypatch.setattr(
        compare, "our_outputs", lambda *arguments: computed(*arguments) | {"word states": torch.tensor(torch.nan)}
    )
    assert main(["check", folder]) == 1


def test_parameters_that_transformers_draws_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = saved("LukeModel", tmp_path / "model")
    path = tmp_path / "model" / "model.safetensors"
    save_file({key: tensor for key, tensor in load_file(path).items() if "_query." not in key}, path)
    assert main(["check", folder]) == 1
    out = capsys.readouterr().out
    assert "not in the weights, drawn at random by transformers: encoder.layer.0.attention.self.e2e_query.bias" in out
    assert "DIFFERENT by more than 1e-06: word states, entity states" in out


def test_encoder_alone_is_compared_where_the_head_is_not_tied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "model"
    luke_of_transformers("LukeForMaskedLM").save_pretrained(folder)
    assert main(["check", str(folder)]) == 3
    out = capsys.readouterr().out
    assert f"{folder}: lm_head.decoder.weight differs from luke.embeddings.word_embeddings.weight" in out
    assert "encoder only, equal within 1e-06; not compared: the prediction heads" in out
    assert "logits " not in out


def test_what_cannot_be_read_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"{tmp_path / 'config.json'}: no such file; give a folder of transformers\n"
    folder = saved("BertModel", tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").write_bytes(b"\0" * 99)
    assert main(["check", folder]) == 2
    assert "model.safetensors: not a whole safetensors file" in capsys.readouterr().err
