"""The authors' original release of LUKE: pytorch_model.bin, metadata.json and the entity vocabulary.

The weights have the names of transformers' LukeModel and of the pretraining heads, without a prefix; a model
that started from BERT has BERT's head for words. metadata.json holds the sizes in `model_config`.
"""

import tarfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from model.files import read_json
from model.luke.config import TRANSFORMERS_LACK, LukeConfig

METADATA = "metadata.json"
ENTITY_VOCABULARY, MULTILINGUAL_VOCABULARY = "entity_vocab.tsv", "entity_vocab.jsonl"
ROBERTA_PADDING = 1


def refuse_archive(path: Path) -> None:
    """Raise a ValueError for a file where a folder is wanted, with the remedy for an archive."""
    if path.is_file():
        remedy = "unpack it (tar xf) and" if tarfile.is_tarfile(path) else "a folder is wanted;"
        raise ValueError(f"{path}: a file; {remedy} give the folder with {METADATA} or config.json")


def read_original_config(folder: Path) -> LukeConfig:
    """The configuration in metadata.json, compared with the entity vocabulary beside it.

    Raises ValueError for what is missing or no model can have.
    """
    path = folder / METADATA
    values = read_json(path).get("model_config")
    if not isinstance(values, dict):
        raise ValueError(f"{path}: no model_config in it; give a folder of LUKE's original release")
    fields = set(asdict(LukeConfig())) - set(TRANSFORMERS_LACK) - {"use_entity_aware_attention"}
    given = {name: values[name] for name in sorted(fields) if name in values} | words_of(values, path)
    # The first releases had entity embeddings as wide as the words, without a value for their width.
    given["entity_emb_size"] = values.get("entity_emb_size") or values.get("hidden_size")
    if missing := sorted(fields - set(given)):
        raise ValueError(f"{path}: {', '.join(missing)} missing from model_config")
    try:
        config = LukeConfig(**given)
    except ValueError as error:
        raise ValueError(f"{path}: model_config: {error}") from error
    check_entity_vocabulary(folder, config.entity_vocab_size)
    return config


def words_of(values: dict[str, Any], path: Path) -> dict[str, Any]:
    """The word side, which the authors' code chose by the name of the model that training started from.

    It always padded RoBERTa's words with 1, whatever the configuration said.
    """
    name = values.get("bert_model_name")
    if not isinstance(name, str):
        raise ValueError(
            f"{path}: model_config: bert_model_name is {name!r}, wanted a name such as roberta-base"
        )
    if "roberta" in name:
        return {"word_encoder": "roberta", "pad_token_id": ROBERTA_PADDING}
    return {"word_encoder": "bert", "pad_token_id": values.get("pad_token_id", 0)}


def check_entity_vocabulary(folder: Path, size: int) -> None:
    """Raise a ValueError unless the entity vocabulary is there and has as many entries as the model."""
    for name in (ENTITY_VOCABULARY, MULTILINGUAL_VOCABULARY):
        path = folder / name
        if path.is_file():
            with path.open(encoding="utf-8") as lines:
                found = sum(1 for _ in lines)
            if found != size:
                raise ValueError(f"{path}: {found} lines, but {METADATA} says entity_vocab_size {size}")
            return
    raise ValueError(f"{folder / ENTITY_VOCABULARY}: no such file; the release has one")


def read_entity_titles(text: str) -> dict[str, int]:
    """The lines `title TAB count` of entity_vocab.tsv as {title: id}; an id is the number of its line."""
    titles: dict[str, int] = {}
    for number, line in enumerate(text.removesuffix("\n").split("\n")):
        title, tab, _ = line.partition("\t")
        if not tab or title in titles:
            raise ValueError(f"line {number + 1}: {line!r} is {'a second ' if tab else 'no '}title TAB count")
        titles[title] = number
    return titles
