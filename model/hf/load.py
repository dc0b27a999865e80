"""Model folders: written so that a file is complete or absent, and read from whoever wrote them.

A folder of this project holds config.json and model.safetensors, a fine-tuned model's with its `task`; transformers'
LUKE, RoBERTa and BERT folders are told apart by the `model_type` in their config.json.
"""

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from model.files import CONFIG, OLD_WEIGHTS, read_json, read_optional, read_weights
from model.hf import keys
from model.hf.hub import model_folder
from model.hf.tokenizers import THEIR_ENTITY_VOCABULARY, THEIR_TOKENIZER
from model.luke.attention import ENTITY_AWARE_QUERIES, EntityAwareAttention, copy_missing_queries
from model.luke.config import BASE, SPECIAL_ENTITIES, LukeConfig
from model.luke.encoder import LukeModel
from model.luke.heads import LukeForPretraining
from model.luke.new_entities import start_entities_as_words

logger = logging.getLogger(__name__)


def read_fine_tuned(folder: Path) -> dict[str, Any]:
    """The configuration that fine-tuning wrote into a folder; empty for any other."""
    values = read_optional(folder / CONFIG)
    return values if {"task", "model"} <= values.keys() else {}


def load_luke(
    path: str, *, use_entity_aware_attention: bool, mask_word: int, dropout: float | None = None
) -> LukeModel:
    """A LUKE encoder from a folder of this project, or a model of transformers.

    `path` is a folder or, for transformers' LUKE, RoBERTa or BERT, a name on its hub. What the latter two and a model
    that was fine-tuned without entities lack (the entity side, for the special entities) starts from their words, of
    which `mask_word` is the id of [MASK] (`start_entities_as_words`).
    Entity-aware queries that the weights lack start as copies of Q; those that are not wanted are left out; all of
    that is logged. `dropout` replaces the one that the weights were trained with.
    Raises ValueError for missing or unexpected keys.
    """
    config, weights = read_model(path, with_heads=False)
    if not has_entities(weights):
        config = replace(config, entity_emb_size=config.hidden_size)
    if dropout is not None:
        config = replace(config, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    module = LukeModel(replace(config, use_entity_aware_attention=use_entity_aware_attention))
    load_encoder(module, weights, source=path, entities_required=has_entities(weights))
    if not has_entities(weights):
        start_entities_as_words(module, mask_word, path)
    return module.eval()


def has_entities(weights: Mapping[str, Tensor]) -> bool:
    """Return whether weights (under our names) hold an entity side, as RoBERTa's do not."""
    return any(key.startswith("luke.entity_embeddings.") for key in weights)


def load_encoder(module: LukeModel, weights: Mapping[str, Tensor], *, source: str, entities_required: bool) -> None:
    """Load an encoder's weights (our names), of a whole model's; only queries and the entity side may be absent."""
    weights, wanted = keys.below(weights, "luke."), set(module.state_dict())
    queries = {key for key in wanted | set(weights) if is_entity_aware_query(key)}
    optional = set() if entities_required else {key for key in wanted if key.startswith("entity_embeddings.")}
    left_out = (queries & set(weights)) - wanted
    absent = missing_queries(wanted, weights, source)
    if left_out:
        logger.info("%s: %d entity-aware query tensors are left out", source, len(left_out))
    kept = {key: weights[key] for key in set(weights) - left_out}
    load_strictly(module, kept, source=source, optional=optional | absent)
    if absent:
        logger.info("%s: entity-aware queries start as copies of Q, as in the paper", source)
        for part in module.modules():
            if isinstance(part, EntityAwareAttention):
                copy_missing_queries(part)


def missing_queries(wanted: Iterable[str], weights: Iterable[str], source: str) -> set[str]:
    """The entity-aware queries that are wanted and not in the weights: all or none, or a ValueError."""
    queries = {key for key in wanted if is_entity_aware_query(key)}
    absent = queries - set(weights)
    if absent and absent != queries:
        raise ValueError(
            f"{source}: missing keys {', '.join(sorted(absent))}; the weights have the other entity-aware queries"
        )
    return absent


def is_entity_aware_query(key: str) -> bool:
    """Return whether a key (our names) belongs to one of the three further query matrices."""
    return any(f".{name}." in key for name in ENTITY_AWARE_QUERIES)


def load_strictly(module: nn.Module, weights: Mapping[str, Tensor], *, source: str, optional: set[str]) -> None:
    """Load weights; keys missing (unless optional), unexpected or of another shape are ValueErrors."""
    state = module.state_dict()
    check_fit(state, weights, source=source, optional=optional)
    module.load_state_dict({**state, **weights})


def check_fit(state: Mapping[str, Tensor], weights: Mapping[str, Tensor], *, source: str, optional: set[str]) -> None:
    """Raise a ValueError unless the weights have the keys (but for optional ones) and shapes of `state`."""
    missing = sorted(set(state) - set(weights) - optional)
    unexpected = sorted(set(weights) - set(state))
    if missing or unexpected:
        raise ValueError(
            f"{source}: missing keys {', '.join(missing) or 'none'}; "
            f"unexpected keys {', '.join(unexpected) or 'none'}; the weights are of another model"
        )
    for key in sorted(weights):
        if weights[key].shape != state[key].shape:
            raise ValueError(
                f"{source}: {key} has shape {tuple(weights[key].shape)}, the configuration wants "
                f"{tuple(state[key].shape)}; config.json and weights are of different models"
            )


def read_model(path: str, *, with_heads: bool = True) -> tuple[LukeConfig, dict[str, Tensor]]:
    """Configuration and weights of any model that can be read, under the names of `LukeForPretraining`.

    Of a fine-tuned model only its encoder can be read, without heads; without entities, too, where it had none.
    """
    config, folder = read_any_config(path, with_heads=with_heads)
    weights = read_weights(folder)
    if not is_ours(folder):
        return config, keys.from_transformers(weights, path, with_heads=with_heads)
    if fine_tuned := read_fine_tuned(folder):
        left_out = () if fine_tuned.get("entities") else ("luke.entity_embeddings.",)
        encoder = (key for key in weights if key.startswith("luke.") and not key.startswith(left_out))
        weights = {key: weights[key] for key in encoder}
    prefix = "" if any(key.startswith("luke.") for key in weights) else "luke."
    return config, {f"{prefix}{key}": tensor for key, tensor in weights.items()}


def read_any_config(path: str, *, with_heads: bool = True) -> tuple[LukeConfig, Path]:
    """Configuration of any model that can be read, and the folder of its weights; a fine-tuned one has no heads."""
    folder = Path(path)
    if is_ours(folder):
        values = read_json(folder / CONFIG)
        if not with_heads and read_fine_tuned(folder):
            # Entities start as the words where it had none.
            anew = {} if values.get("entities") else {"entity_vocab_size": SPECIAL_ENTITIES}
            values = values["model"] | anew
        return LukeConfig.of_values(values, str(folder / CONFIG)), folder
    values, folder = read_transformers(path)
    config = keys.config_from_transformers(
        values, path, entity_vocab_size=SPECIAL_ENTITIES, entity_emb_size=BASE.entity_emb_size
    )
    return config, folder


def fingerprint_model(path: str) -> str:
    """SHA-256 over a model's configuration, weights and entities' names: the same model, wherever it lies."""
    folder = Path(model_folder(path))
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.name in (CONFIG, OLD_WEIGHTS) or file.suffix == ".safetensors":
            digest.update(file.name.encode())
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
    if names := entity_vocabulary(str(folder)):
        digest.update(json.dumps(names, sort_keys=True).encode())
    return digest.hexdigest()


def is_ours(folder: Path) -> bool:
    """Return whether a folder holds a model that this project wrote."""
    if not (folder / CONFIG).is_file():
        return False
    return "model_type" not in read_json(folder / CONFIG)


def read_transformers(path: str) -> tuple[dict[str, Any], Path]:
    """The configuration of a transformers model, defaults filled in, and the folder of its weights.

    Raises ValueError for another architecture than LUKE, RoBERTa or BERT, and for impossible values.
    """
    from huggingface_hub.errors import StrictDataclassError
    from transformers import AutoConfig

    folder = Path(model_folder(path))
    if not (folder / CONFIG).is_file():
        raise ValueError(f"{folder / CONFIG}: no such file; give a folder with a model")
    keys.check_model_type(read_json(folder / CONFIG), path)
    try:
        return AutoConfig.from_pretrained(folder).to_dict(), folder
    except (StrictDataclassError, ValueError, TypeError) as error:
        raise ValueError(f"{folder / CONFIG}: {' '.join(str(error).split())}") from error


def entity_vocabulary(path: str) -> dict[str, int]:
    """Entity -> row of the table, by the files of the tokenizer beside a LUKE of transformers.

    Empty where there are none and for other models: ours begin with [PAD], [UNK], [MASK], which words alone get here.
    """
    folder = Path(model_folder(path))
    if read_optional(folder / CONFIG).get("model_type") != "luke":
        return {}
    in_tokenizer = read_optional(folder / THEIR_TOKENIZER).get("entity_vocab")
    return read_optional(folder / THEIR_ENTITY_VOCABULARY) or in_tokenizer or {}


def read_pretrained(folder: Path) -> LukeForPretraining:
    """A finished model of this project with its heads."""
    config, weights = read_model(str(folder))
    module = LukeForPretraining(config)
    load_strictly(module, weights, source=str(folder), optional=set())
    return module
