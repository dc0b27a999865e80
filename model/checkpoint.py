"""Model folders: written so that a file is whole or absent, and read from whoever wrote them.

A folder of this project holds config.json and model.safetensors; transformers' LUKE and RoBERTa folders are
told apart by the `model_type` in their config.json.
"""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from model import hf
from model.attention import ENTITY_AWARE_QUERIES, EntityAwareAttention, copy_missing_queries
from model.config import BASE, SPECIAL_ENTITIES, LukeConfig
from model.encoder import LukeModel
from model.heads import LukeForPretraining

logger = logging.getLogger(__name__)
CONFIG, WEIGHTS, INDEX, OLD_WEIGHTS = (
    "config.json",
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
)


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


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], note: tuple[str, str] = ("format", "pt")
) -> None:
    """Write tensors as safetensors, with one note (name, value) in the header."""
    # One note only: safetensors writes several in an order that differs from call to call.
    written = {key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}
    write_aside(path, lambda aside: save_file(written, aside, metadata=dict([note])))


def save_model(
    folder: Path, module: LukeForPretraining | LukeModel, note: tuple[str, str] = ("format", "pt")
) -> None:
    """Write config.json and model.safetensors; `note` goes into the header of the latter."""
    folder.mkdir(parents=True, exist_ok=True)
    write_aside(folder / CONFIG, lambda aside: aside.write_text(module.config.to_json(), encoding="utf-8"))
    write_tensors(folder / WEIGHTS, module.state_dict(), note)


def read_config(folder: Path) -> LukeConfig:
    """The configuration of a folder that `save_model` wrote."""
    path = folder / CONFIG
    if not path.is_file():
        raise ValueError(f"{path}: no such file; give a folder with a model")
    return LukeConfig.from_json(path.read_text(encoding="utf-8"), str(path))


def read_weights(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder: safetensors (whole or in parts) or else pytorch_model.bin."""
    if (folder / WEIGHTS).is_file():
        return read_tensors(folder / WEIGHTS)
    if (folder / INDEX).is_file():
        parts = sorted(set(json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"].values()))
        return {key: tensor for part in parts for key, tensor in read_tensors(folder / part).items()}
    if (folder / OLD_WEIGHTS).is_file():
        return dict(torch.load(folder / OLD_WEIGHTS, map_location="cpu", weights_only=True))
    raise ValueError(
        f"{folder}: none of {WEIGHTS}, {INDEX}, {OLD_WEIGHTS}; give a folder with a model's weights"
    )


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of one safetensors file; a broken file is a ValueError that names it."""
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise ValueError(
            f"{path}: not a whole safetensors file ({error}); write or download it again"
        ) from error


def load_luke(path: str, *, use_entity_aware_attention: bool) -> LukeModel:
    """A LUKE encoder from a folder of this project, or from a LUKE or RoBERTa model of transformers.

    `path` is a folder or, for transformers, a name on its hub. What RoBERTa lacks (the entity side, for the
    three special entities) is drawn from torch's generator. Entity-aware queries that the weights lack start
    as copies of Q; those that are not asked for are left out; both are logged. Raises ValueError for missing
    or unexpected keys.
    """
    config, weights = read_model(path, with_heads=False)
    encoder = {
        key.removeprefix("luke."): tensor for key, tensor in weights.items() if key.startswith("luke.")
    }
    module = LukeModel(replace(config, use_entity_aware_attention=use_entity_aware_attention))
    load_encoder(module, encoder, source=path, entities_required=has_entities(weights))
    return module.eval()


def has_entities(weights: Mapping[str, Tensor]) -> bool:
    """Whether weights (under our names) hold an entity side, as RoBERTa's do not."""
    return any(key.startswith("luke.entity_embeddings.") for key in weights)


def load_encoder(
    module: LukeModel, weights: Mapping[str, Tensor], *, source: str, entities_required: bool
) -> None:
    """Load encoder weights (our names, no prefix); only queries and the entity side may be absent."""
    wanted = set(module.state_dict())
    queries = {key for key in wanted | set(weights) if is_entity_aware_query(key)}
    optional = set() if entities_required else {key for key in wanted if key.startswith("entity_embeddings.")}
    left_out = (queries & set(weights)) - wanted
    absent = (queries & wanted) - set(weights)
    if left_out:
        logger.info(
            "%s: %d entity-aware query tensors are left out, original attention is asked for",
            source,
            len(left_out),
        )
    load_strictly(
        module,
        {key: weights[key] for key in set(weights) - left_out},
        source=source,
        optional=optional | absent,
    )
    if absent:
        logger.info("%s: no entity-aware queries in the weights; they start as copies of Q", source)
        for part in module.modules():
            if isinstance(part, EntityAwareAttention):
                copy_missing_queries(part)


def is_entity_aware_query(key: str) -> bool:
    """Whether a key (our names) belongs to one of the three further query matrices."""
    return any(f".{name}." in key for name in ENTITY_AWARE_QUERIES)


def load_strictly(
    module: nn.Module, weights: Mapping[str, Tensor], *, source: str, optional: set[str]
) -> None:
    """Load weights; keys missing (unless optional), unexpected or of another shape are ValueErrors."""
    state = module.state_dict()
    missing = sorted(set(state) - set(weights) - optional)
    unexpected = sorted(set(weights) - set(state))
    if missing or unexpected:
        raise ValueError(
            f"{source}: missing keys {', '.join(missing) or 'none'}; "
            f"unexpected keys {', '.join(unexpected) or 'none'}; the weights are of another model"
        )
    for key, tensor in weights.items():
        if tensor.shape != state[key].shape:
            raise ValueError(
                f"{source}: {key} has shape {tuple(tensor.shape)}, the configuration wants "
                f"{tuple(state[key].shape)}; config.json and weights are of different models"
            )
    module.load_state_dict({**state, **weights})


def read_model(path: str, *, with_heads: bool = True) -> tuple[LukeConfig, dict[str, Tensor]]:
    """Configuration and weights of any model that can be read, under the names of `LukeForPretraining`."""
    folder = Path(path)
    if is_ours(folder):
        weights = read_weights(folder)
        prefix = "" if any(key.startswith("luke.") for key in weights) else "luke."
        return read_config(folder), {f"{prefix}{key}": tensor for key, tensor in weights.items()}
    values, folder = read_transformers(path)
    config = hf.config_from_transformers(
        values, path, entity_vocab_size=SPECIAL_ENTITIES, entity_emb_size=BASE.entity_emb_size
    )
    return config, hf.from_transformers(read_weights(folder), path, with_heads=with_heads)


def fingerprint_model(path: str) -> str:
    """SHA-256 over a model's configuration and weight files: the same model, wherever it lies."""
    folder = Path(path) if Path(path).is_dir() else download(path)
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.name == CONFIG or file.suffix == ".safetensors" or file.name == OLD_WEIGHTS:
            digest.update(file.name.encode())
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()


def is_ours(folder: Path) -> bool:
    """Whether a folder holds a model that this project wrote."""
    if not (folder / CONFIG).is_file():
        return False
    values = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    return "model_type" not in values


def read_transformers(path: str) -> tuple[dict[str, Any], Path]:
    """The configuration of a transformers model, defaults filled in, and the folder of its weights."""
    from transformers import AutoConfig

    folder = Path(path)
    if not folder.is_dir():
        folder = download(path)
    if not (folder / CONFIG).is_file():
        raise ValueError(f"{folder / CONFIG}: no such file; give a folder with a model")
    return AutoConfig.from_pretrained(folder).to_dict(), folder


def download(name: str) -> Path:
    """Fetch a model by its name on the Hugging Face hub (or find it in the cache there)."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=[CONFIG, WEIGHTS, INDEX, "model-*.safetensors"]))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{name}: neither a folder nor a model on the hub ({reason})") from error
