"""Files of weights: whole, in parts, in the old format, and nothing else."""

import json
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from model.files import read_json, read_weights
from model.hf.load import load_luke

TENSORS = {"a.weight": torch.arange(6.0).view(2, 3), "a.bias": torch.ones(2)}


class Command:
    """The call that a pickle of this runs when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("is_zip", [True, False])
def test_old_format_is_read(tmp_path: Path, is_zip: bool) -> None:
    torch.save(TENSORS, tmp_path / "pytorch_model.bin", _use_new_zipfile_serialization=is_zip)
    found = read_weights(tmp_path)
    assert found.keys() == TENSORS.keys()
    assert all(torch.equal(found[key], TENSORS[key]) for key in TENSORS)


def test_pickles_are_refused_and_not_run(tmp_path: Path) -> None:
    path, trace = tmp_path / "pytorch_model.bin", tmp_path / "trace"
    torch.save(TENSORS | {"evil": Command(trace)}, path)
    with pytest.raises(ValueError, match=r"pytorch_model\.bin: more than tensors, or no file of torch\.save"):
        read_weights(tmp_path)
    path.write_bytes(pickle.dumps(Command(trace), protocol=2))
    with pytest.raises(ValueError, match=r"pytorch_model\.bin: more than tensors"):
        read_weights(tmp_path)
    assert not trace.exists()


@pytest.mark.parametrize("content", [b"", b"not a file of torch", b"PK\x03\x04cut"])
def test_broken_files_of_the_old_format_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(content)
    with pytest.raises(ValueError, match=r"pytorch_model\.bin: (more than|not a whole file of torch\.save)"):
        read_weights(tmp_path)


def test_cut_files_are_refused(tmp_path: Path) -> None:
    torch.save(TENSORS, tmp_path / "pytorch_model.bin")
    whole = (tmp_path / "pytorch_model.bin").read_bytes()
    (tmp_path / "pytorch_model.bin").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"pytorch_model\.bin: not a whole file of torch\.save"):
        read_weights(tmp_path)
    save_file(TENSORS, tmp_path / "model.safetensors")
    whole = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(whole[:-3])
    with pytest.raises(ValueError, match=r"model\.safetensors: not a whole safetensors file"):
        read_weights(tmp_path)


def test_only_dictionaries_of_tensors_are_weights(tmp_path: Path) -> None:
    for content in ([torch.ones(1)], {"state_dict": TENSORS}, {"step": 3}):
        torch.save(content, tmp_path / "pytorch_model.bin")
        with pytest.raises(ValueError, match=r"pytorch_model\.bin: (list|dict) found, a dictionary of tensors"):
            read_weights(tmp_path)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ({"weight_map": {"a.weight": "../a.safetensors"}}, r"'\.\./a\.safetensors' is not a file beside it"),
        ({"weight_map": {"a.weight": "/etc/passwd"}}, r"'/etc/passwd' is not a file beside it"),
        ({"weight_map": ["a"]}, r"index\.json: no weight_map in it"),
        ({}, r"index\.json: no weight_map in it"),
        ({"weight_map": {"a.weight": "b.safetensors"}}, r"b\.safetensors: not a whole safetensors file"),
    ],
)
def test_index_names_files_beside_it(tmp_path: Path, index: dict[str, object], message: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    save_file(TENSORS, tmp_path / "a.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match=message):
        read_weights(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", r"config\.json: not JSON"), ("[1]", r"config\.json: list found, a JSON object wanted"),
     ('{"model_type": "luke", "hidden_size": "x"}', r"config\.json: .*'hidden_size' expected int, got str"),
     ('{"model_type": "luke", "hidden_act": "silu"}', r"hidden_act is 'silu', but must be one of gelu"),
     ('{"model_type": "t5"}', r"model_type 't5' is not supported; use a model of type luke, roberta")],
)  # fmt: skip
def test_broken_configurations_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        load_luke(str(tmp_path), use_entity_aware_attention=False, mask_word=4)


def test_bytes_that_are_no_text_are_not_json(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(ValueError, match=r"a\.json: not JSON"):
        read_json(tmp_path / "a.json")
