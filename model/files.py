"""Files of models: written completely or not at all, and read without running what is in them."""

import json
import os
import pickle  # only for the error that torch.load raises
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

CONFIG, WEIGHTS = "config.json", "model.safetensors"
INDEX, OLD_WEIGHTS = "model.safetensors.index.json", "pytorch_model.bin"
# Beside a pretrained model: its configuration, its held-out figures, and its predictions for some mentions.
PRETRAINING, EVALUATION, ANSWERS = "pretraining.json", "evaluation.jsonl", "answers.jsonl"


def write_aside(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file under another name, force it to disk, then rename it: it is never seen half-written."""
    aside = path.with_name(f"{path.name}.partial")
    aside.unlink(missing_ok=True)
    aside.touch()
    # safetensors makes files that only their owner can read; what the user's umask allows is right.
    mode = aside.stat().st_mode
    write(aside)
    aside.chmod(mode)
    with aside.open("rb+") as file:
        os.fsync(file.fileno())
    aside.replace(path)


def write_json(path: Path, value: object) -> None:
    """Write a value as readable JSON."""
    text = json.dumps(value, ensure_ascii=False, indent=1) + "\n"
    write_aside(path, lambda aside: aside.write_text(text, encoding="utf-8"))


def write_tensors(path: Path, tensors: Mapping[str, Tensor], note: tuple[str, str] = ("format", "pt")) -> None:
    """Write tensors as safetensors, with one note (name, value) in the header."""
    # One note only: safetensors writes several in an order that differs from call to call.
    written = {key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}
    write_aside(path, lambda aside: save_file(written, aside, metadata=dict([note])))


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file; what is not one is a ValueError that names the file."""
    try:
        values = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"{path}: not JSON ({error}); write or download it again") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path}: {type(values).__name__} found, a JSON object wanted")
    return values


def read_optional(path: Path) -> dict[str, Any]:
    """The JSON object in a file, empty where there is no file."""
    return read_json(path) if path.is_file() else {}


def pretrained_words(folder: Path) -> int | None:
    """The words of the longest sequence that a model was pretrained on; None where its folder has no record of it.

    In a longer input it has seen no entity, though its words may have positions there.
    """
    words = read_optional(folder / PRETRAINING).get("max_words")
    return words if isinstance(words, int) and words > 2 else None


def read_weights(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder: safetensors (whole or in parts) or else pytorch_model.bin."""
    if (folder / WEIGHTS).is_file():
        return read_tensors(folder / WEIGHTS)
    if (folder / INDEX).is_file():
        return {key: tensor for part in read_parts(folder / INDEX) for key, tensor in read_tensors(part).items()}
    if (folder / OLD_WEIGHTS).is_file():
        return read_old_tensors(folder / OLD_WEIGHTS)
    raise ValueError(f"{folder}: none of {WEIGHTS}, {INDEX}, {OLD_WEIGHTS}; give a folder with weights")


def read_parts(index: Path) -> list[Path]:
    """The safetensors files that an index names, all of them beside it."""
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict):
        raise ValueError(f"{index}: no weight_map in it; write or download it again")
    names = sorted({str(name) for name in weight_map.values()})
    if outside := [name for name in names if Path(name).name != name]:
        raise ValueError(f"{index}: {outside[0]!r} is not a file beside it; download the model again")
    return [index.with_name(name) for name in names]


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of one safetensors file; a broken file is a ValueError that names it."""
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path}: not a whole safetensors file ({error}); write or download it again") from error


def read_old_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file of torch.save; one with other objects, which could run code, is refused."""
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"{path}: more than tensors, or no file of torch.save, is not read ({reason})") from error
    except (EOFError, RuntimeError, OSError, ValueError) as error:
        raise ValueError(f"{path}: not a whole file of torch.save ({error}); download it again") from error
    if not isinstance(tensors, dict) or not all(isinstance(tensor, Tensor) for tensor in tensors.values()):
        raise ValueError(f"{path}: {type(tensors).__name__} found, a dictionary of tensors wanted")
    return dict(tensors)


class Configured(Protocol):
    """A module whose configuration `to_json` writes."""

    @property
    def config(self) -> Any: ...

    def state_dict(self) -> dict[str, Any]: ...


def save_model(folder: Path, module: Configured, note: tuple[str, str] = ("format", "pt")) -> None:
    """Write config.json and model.safetensors; `note` goes into the header of the latter."""
    folder.mkdir(parents=True, exist_ok=True)
    write_aside(folder / CONFIG, lambda aside: aside.write_text(module.config.to_json(), encoding="utf-8"))
    write_tensors(folder / WEIGHTS, module.state_dict(), note)
