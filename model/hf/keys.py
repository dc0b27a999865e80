"""Names of weights here and in transformers: one table, used in both directions, strictly."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from model.luke.config import TRANSFORMERS_LACK, LukeConfig

TABLES: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("keys.toml").read_text(encoding="utf-8")
)
ENCODER_KEYS, HEAD_KEYS, BERT_HEAD_KEYS = (TABLES[name] for name in ("encoder", "heads", "bert_heads"))
FINE_TUNED_PREFIXES = ("classifier.", "qa_outputs.")
HEAD_PREFIXES = ("lm_head.", "entity_predictions.", "cls.", *FINE_TUNED_PREFIXES)
OURS_TO_THEIRS = {**{f"luke.{ours}": f"luke.{theirs}" for ours, theirs in ENCODER_KEYS.items()}, **HEAD_KEYS}
THEIRS_TO_OURS = {theirs: ours for table in (OURS_TO_THEIRS, BERT_HEAD_KEYS) for ours, theirs in table.items()}
COPIES = TABLES["copies"]
ALL_COPIES = {**COPIES, **TABLES["bert_copies"]}
# The pooler serves sentence classification only, as does the next-sentence head of BERT, and position ids are
# a constant that old versions saved.
WITHOUT_COUNTERPART = re.compile(
    r"(luke\.pooler\.dense|cls\.seq_relationship)\.(weight|bias)|luke\.embeddings\.position_ids"
)
ENCODER_PREFIXES = ("luke.", "roberta.", "bert.")
# As the first BERT named them, and its checkpoints still do.
OLD_NORM = re.compile(r"(?<=LayerNorm\.)(gamma|beta)$")
ROBERTA_TYPES = ("roberta", "xlm-roberta", "camembert")
MODEL_TYPES = ("luke", *ROBERTA_TYPES, "bert")
LAYER_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")


class UntiedError(ValueError):
    """Weights that are one here differ in a checkpoint."""


def rename(key: str, table: Mapping[str, str]) -> str | None:
    """The key in the other naming, or None where the table has no such key."""
    module, _, parameter = key.rpartition(".")
    number = LAYER_NUMBER.search(f"{module}.")
    counterpart = table.get(LAYER_NUMBER.sub("{}", f"{module}.").removesuffix("."))
    return None if counterpart is None else f"{counterpart.format(number and number.group())}.{parameter}"


def to_transformers(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Our pretraining weights under transformers' names (without its copies of tied weights)."""
    renamed = {rename(key, OURS_TO_THEIRS): tensor for key, tensor in state.items()}
    assert None not in renamed, f"the key table has no name for one of {sorted(state)}"
    return {key: tensor for key, tensor in renamed.items() if key is not None}


def from_transformers(state: Mapping[str, Tensor], source: str, *, with_heads: bool) -> dict[str, Tensor]:
    """LUKE, RoBERTa or BERT weights of transformers under our names, those of `LukeForPretraining`.

    Of weights that are tied one copy is enough. Without heads, those of pretraining and of fine-tuning are
    left out. Raises ValueError, naming the keys and `source`, for keys that are not of the architecture, and
    UntiedError for tied weights that are not equal.
    """
    has_prefix = any(key.startswith(ENCODER_PREFIXES) for key in state)
    keys = {key: luke_key(key, has_prefix) for key in state}
    renamed: dict[str, Tensor] = {}
    origins: dict[str, str] = {}
    unexpected = []
    for key in sorted(state, key=lambda key: keys[key] in ALL_COPIES):
        theirs = keys[key]
        if WITHOUT_COUNTERPART.fullmatch(theirs) or (not with_heads and theirs.startswith(HEAD_PREFIXES)):
            continue
        ours = rename(ALL_COPIES.get(theirs, theirs), THEIRS_TO_OURS)
        if ours is None:
            unexpected.append(theirs)
        elif ours not in renamed:
            renamed[ours], origins[ours] = state[key], theirs
        elif not torch.equal(renamed[ours], state[key]):
            raise UntiedError(
                f"{source}: {theirs} differs from {origins[ours]}, to which it is tied here; "
                "tie them first, or load the encoder alone"
            )
    if unexpected:
        raise ValueError(
            f"{source}: unexpected keys {', '.join(sorted(unexpected))}; "
            "only LUKE, RoBERTa and BERT encoders with their pretraining heads can be read"
        )
    return renamed


def below(state: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, by their names without it."""
    return {key.removeprefix(prefix): each for key, each in state.items() if key.startswith(prefix)}


def luke_key(key: str, has_prefix: bool) -> str:
    """The key as LukeForMaskedLM (or BERT's head) has it; an encoder that stands alone has no prefix."""
    key = OLD_NORM.sub(lambda match: "weight" if match.group() == "gamma" else "bias", key)
    for prefix in ENCODER_PREFIXES:
        if key.startswith(prefix):
            return f"luke.{key.removeprefix(prefix)}"
    return key if has_prefix or key.startswith(HEAD_PREFIXES) else f"luke.{key}"


def check_model_type(values: Mapping[str, Any], source: str) -> None:
    """Raise a ValueError for a transformers configuration of another architecture."""
    model_type = values.get("model_type")
    if model_type not in MODEL_TYPES or values.get("is_decoder"):
        decoder = ", a decoder," if values.get("is_decoder") else ""
        raise ValueError(
            f"{source}: model_type {model_type!r}{decoder} is not supported; "
            f"use a model of type {', '.join(MODEL_TYPES)}"
        )


def config_from_transformers(
    values: Mapping[str, Any], source: str, *, entity_vocab_size: int, entity_emb_size: int
) -> LukeConfig:
    """Our configuration for a transformers config of LUKE, RoBERTa or BERT; the sizes given are for the latter.

    Raises ValueError for values that are impossible or missing.
    """
    fields = set(asdict(LukeConfig())) - set(TRANSFORMERS_LACK)
    entity = {
        "entity_vocab_size": entity_vocab_size,
        "entity_emb_size": entity_emb_size,
        "use_entity_aware_attention": False,
    }
    given = entity | {name: values[name] for name in sorted(fields) if name in values}
    if missing := sorted(fields - set(given)):
        raise ValueError(f"{source}: {', '.join(missing)} missing from the configuration")
    try:
        return LukeConfig(**given, word_encoder="bert" if values["model_type"] == "bert" else "roberta")
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error
