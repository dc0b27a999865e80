"""Exchange with Hugging Face transformers: one key table, used in both directions, strictly.

Reads LUKE and RoBERTa weights, writes a folder that `LukeForMaskedLM` and `LukeTokenizer` load as it is.
"""

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from model.attention import ENTITY_AWARE_QUERIES
from model.config import MASK_ENTITY, LukeConfig

# A module (or single parameter) of ours, and what transformers calls it; {} is the number of a layer.
ENCODER_KEYS = {
    "word_embeddings.token": "embeddings.word_embeddings",
    "word_embeddings.position": "embeddings.position_embeddings",
    "word_embeddings.token_type": "embeddings.token_type_embeddings",
    "word_embeddings.norm": "embeddings.LayerNorm",
    "entity_embeddings.token": "entity_embeddings.entity_embeddings",
    "entity_embeddings.projection": "entity_embeddings.entity_embedding_dense",
    "entity_embeddings.position": "entity_embeddings.position_embeddings",
    "entity_embeddings.token_type": "entity_embeddings.token_type_embeddings",
    "entity_embeddings.norm": "entity_embeddings.LayerNorm",
    "layers.{}.attention.query": "encoder.layer.{}.attention.self.query",
    "layers.{}.attention.key": "encoder.layer.{}.attention.self.key",
    "layers.{}.attention.value": "encoder.layer.{}.attention.self.value",
    "layers.{}.attention.word_to_entity_query": "encoder.layer.{}.attention.self.w2e_query",
    "layers.{}.attention.entity_to_word_query": "encoder.layer.{}.attention.self.e2w_query",
    "layers.{}.attention.entity_to_entity_query": "encoder.layer.{}.attention.self.e2e_query",
    "layers.{}.attention_output": "encoder.layer.{}.attention.output.dense",
    "layers.{}.attention_norm": "encoder.layer.{}.attention.output.LayerNorm",
    "layers.{}.intermediate": "encoder.layer.{}.intermediate.dense",
    "layers.{}.output": "encoder.layer.{}.output.dense",
    "layers.{}.output_norm": "encoder.layer.{}.output.LayerNorm",
}
HEAD_KEYS = {
    "word_head.dense": "lm_head.dense",
    "word_head.norm": "lm_head.layer_norm",
    "word_head": "lm_head",
    "entity_head.dense": "entity_predictions.transform.dense",
    "entity_head.norm": "entity_predictions.transform.LayerNorm",
    "entity_head": "entity_predictions",
}
HEAD_PREFIXES = ("lm_head.", "entity_predictions.")
OURS_TO_THEIRS = {**{f"luke.{ours}": f"luke.{theirs}" for ours, theirs in ENCODER_KEYS.items()}, **HEAD_KEYS}
THEIRS_TO_OURS = {theirs: ours for ours, theirs in OURS_TO_THEIRS.items()}
# Copies of other tensors in a checkpoint: theirs, and the key (theirs too) that it must equal.
COPIES = {
    "lm_head.decoder.weight": "luke.embeddings.word_embeddings.weight",
    "lm_head.decoder.bias": "lm_head.bias",
    "entity_predictions.decoder.weight": "luke.entity_embeddings.entity_embeddings.weight",
}
# The pooler serves sentence classification only, and position ids are a constant that old versions saved.
WITHOUT_COUNTERPART = re.compile(r"luke\.(pooler\.dense\.(weight|bias)|embeddings\.position_ids)")
ROBERTA_TYPES = ("roberta", "xlm-roberta", "camembert")
LAYER_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")
MARKERS = {"<ent>": "@", "<ent2>": "#"}
WANTED_WORDS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>", *MARKERS.values())
SPECIAL_TITLES = ("[PAD]", "[UNK]", "[MASK]")
SECOND_MASK = "[MASK2]"


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
    """LUKE or RoBERTa weights of transformers under our names, those of `LukeForPretraining`.

    Raises ValueError, naming the keys and `source`, for keys that are not of the architecture and, with
    heads, for tied weights that are not equal.
    """
    if not with_heads:
        state = {key: value for key, value in state.items() if not key.startswith(HEAD_PREFIXES)}
    has_prefix = any(key.startswith(("luke.", "roberta.")) for key in state)
    theirs = {
        key if key.startswith("luke.") else _luke_key(key, has_prefix): value for key, value in state.items()
    }
    renamed, unexpected = {}, []
    for key, tensor in theirs.items():
        ours = None if key in COPIES else rename(key, THEIRS_TO_OURS)
        if ours is not None:
            renamed[ours] = tensor
        elif key not in COPIES and not WITHOUT_COUNTERPART.fullmatch(key):
            unexpected.append(key)
    if unexpected:
        raise ValueError(
            f"{source}: unexpected keys {', '.join(sorted(unexpected))}; "
            "only LUKE and RoBERTa encoders with their pretraining heads can be read"
        )
    for copy, original in COPIES.items():
        if copy in theirs and original in theirs and not torch.equal(theirs[copy], theirs[original]):
            raise ValueError(
                f"{source}: {copy} differs from {original}, to which it is tied here; "
                "load the encoder alone or tie them first"
            )
    return renamed


def _luke_key(key: str, has_prefix: bool) -> str:
    if has_prefix:
        return f"luke.{key.removeprefix('roberta.')}" if key.startswith("roberta.") else key
    return key if key.startswith(HEAD_PREFIXES) else f"luke.{key}"


def config_from_transformers(
    values: Mapping[str, Any], source: str, *, entity_vocab_size: int, entity_emb_size: int
) -> LukeConfig:
    """Our configuration for a transformers config of LUKE or RoBERTa; the sizes given are for RoBERTa.

    Raises ValueError for another architecture.
    """
    model_type = values.get("model_type")
    if model_type not in ("luke", *ROBERTA_TYPES) or values.get("is_decoder"):
        raise ValueError(
            f"{source}: model_type {model_type!r} is not supported; "
            f"use a model of type luke, {', '.join(ROBERTA_TYPES)}"
        )
    entity = {
        "entity_vocab_size": entity_vocab_size,
        "entity_emb_size": entity_emb_size,
        "use_entity_aware_attention": False,
    }
    known = {name: values[name] for name in asdict(LukeConfig()) if name in values and name != "entity_head"}
    missing = sorted(set(asdict(LukeConfig())) - set(known) - set(entity) - {"entity_head"})
    if missing:
        raise ValueError(f"{source}: {', '.join(missing)} missing from the configuration")
    try:
        return LukeConfig(**(entity | known))
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error


def export(source: Path, output: Path, *, tokenizer: Path, entity_vocab: Path) -> None:
    """Write a pretrained model as a folder that transformers' LukeForMaskedLM and LukeTokenizer load.

    The words gain the two entity markers <ent> and <ent2> (from "@" and "#"), the entities [MASK2] (from
    [MASK]), as in the public checkpoints; the markers stand in vocab.json, since versions of transformers give
    different ids to a token that does not. Raises ValueError for what cannot be exchanged or does not
    fit together.
    """
    from model.checkpoint import read_config, read_weights, write_aside, write_tensors

    config = read_config(source)
    if config.entity_head != "released":
        raise ValueError(
            f"{source}: entity_head is {config.entity_head!r}, but transformers has only the head of the "
            "public checkpoints; pretrain with entity_head 'released' to export"
        )
    words = read_vocabulary(tokenizer / "vocab.json", config.vocab_size, WANTED_WORDS)
    entities = read_vocabulary(entity_vocab, config.entity_vocab_size, SPECIAL_TITLES)
    if tuple(entities)[: len(SPECIAL_TITLES)] != SPECIAL_TITLES:
        raise ValueError(f"{entity_vocab}: begins with {tuple(entities)[:3]}, wanted {SPECIAL_TITLES}")
    if not (tokenizer / "merges.txt").is_file():
        raise ValueError(f"{tokenizer / 'merges.txt'}: no such file; give a tokenizer in RoBERTa's format")
    weights = read_weights(source)
    if "word_head.bias" not in weights:
        raise ValueError(f"{source}: no prediction heads in the weights; export a pretrained model")
    markers = {marker: initial for marker, initial in MARKERS.items() if marker not in words}
    rows = [words[initial] for initial in markers.values()]
    tensors = exported_tensors(to_transformers(weights), config, rows)
    words |= {marker: len(words) + number for number, marker in enumerate(markers)}
    entities |= {SECOND_MASK: len(entities)}
    exported = replace(
        config,
        vocab_size=len(words),
        entity_vocab_size=len(entities),
        use_entity_aware_attention=True,
    )
    output.mkdir(parents=True, exist_ok=True)
    for name, content in (
        ("vocab.json", words),
        ("entity_vocab.json", entities),
        ("tokenizer_config.json", tokenizer_config(entities, config.max_words)),
        ("config.json", transformers_config(exported, words)),
    ):
        write_aside(output / name, partial(_write_json, content))
    write_aside(output / "merges.txt", partial(shutil.copyfile, tokenizer / "merges.txt"))
    write_tensors(output / "model.safetensors", tensors)


def exported_tensors(
    state: dict[str, Tensor], config: LukeConfig, marker_rows: Sequence[int]
) -> dict[str, Tensor]:
    """All that LukeForMaskedLM has: our tensors with the rows added, copies, queries and a pooler."""
    for key, rows in (
        ("luke.embeddings.word_embeddings.weight", list(marker_rows)),
        ("lm_head.bias", list(marker_rows)),
        ("luke.entity_embeddings.entity_embeddings.weight", [MASK_ENTITY]),
        ("entity_predictions.bias", [MASK_ENTITY]),
    ):
        state[key] = torch.cat([state[key], state[key][rows]])
    queries = ENCODER_KEYS["layers.{}.attention.query"]
    for layer in range(config.num_hidden_layers):
        for name in ENTITY_AWARE_QUERIES:
            copy = ENCODER_KEYS[f"layers.{{}}.attention.{name}"].format(layer)
            for part in ("weight", "bias"):
                original = state[f"luke.{queries.format(layer)}.{part}"]
                state.setdefault(f"luke.{copy}.{part}", original.clone())
    # LukeForMaskedLM has a pooler that it never uses; without one in the file it would be drawn at random.
    state["luke.pooler.dense.weight"] = torch.eye(config.hidden_size)
    state["luke.pooler.dense.bias"] = torch.zeros(config.hidden_size)
    return state | {copy: state[original].clone() for copy, original in COPIES.items()}


def read_vocabulary(path: Path, size: int, wanted: Sequence[str]) -> dict[str, int]:
    """A JSON vocabulary {entry: id} with ids 0 .. size - 1 and the entries wanted, or a ValueError.

    A second mask behind the entities, which transformers wants to see there, is none of the model's.
    """
    remedy = "give the vocabulary that the model was pretrained with"
    if not path.is_file():
        raise ValueError(f"{path}: no such file; {remedy}")
    try:
        vocabulary: dict[str, int] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: not JSON ({error}); {remedy}") from error
    if isinstance(vocabulary, dict) and vocabulary.get(SECOND_MASK) == size:
        del vocabulary[SECOND_MASK]
    if len(vocabulary) != size or set(vocabulary.values()) != set(range(size)):
        raise ValueError(f"{path}: {len(vocabulary)} entries, but the model has {size}; {remedy}")
    missing = [entry for entry in wanted if entry not in vocabulary]
    if missing:
        raise ValueError(f"{path}: {', '.join(missing)} missing; {remedy}")
    return dict(sorted(vocabulary.items(), key=lambda item: item[1]))


def transformers_config(config: LukeConfig, words: Mapping[str, int]) -> dict[str, Any]:
    """The configuration as transformers' LukeConfig reads it."""
    values = asdict(config)
    del values["entity_head"]
    return {
        "model_type": "luke",
        "architectures": ["LukeForMaskedLM"],
        **values,
        "bos_token_id": words["<s>"],
        "eos_token_id": words["</s>"],
        "tie_word_embeddings": True,
        "dtype": "float32",
    }


def tokenizer_config(entities: Mapping[str, int], max_words: int) -> dict[str, Any]:
    """The tokenizer's configuration, with the entity vocabulary: versions differ in where they look."""
    mask = {
        "__type": "AddedToken",
        "content": "<mask>",
        "lstrip": True,
        "rstrip": False,
        "single_word": False,
        "normalized": True,
        "special": True,
    }
    return {
        "tokenizer_class": "LukeTokenizer",
        "model_max_length": max_words,
        "mask_token": mask,
        "entity_token_1": "<ent>",
        "entity_token_2": "<ent2>",
        "entity_vocab": dict(entities),
    }


def _write_json(value: object, path: Path) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
