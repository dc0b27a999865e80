"""Tokenizers as transformers' LukeTokenizer and BertTokenizer load them, with the entity vocabulary."""

import json
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from model.files import read_json, write_aside

MARKERS = {"<ent>": "@", "<ent2>": "#"}
MASK = {
    "__type": "AddedToken",
    "content": "<mask>",
    "lstrip": True,
    "rstrip": False,
    "single_word": False,
    "normalized": True,
    "special": True,
}

# Without token types: a second text has none of its own here.
BERT = {"tokenizer_class": "BertTokenizer", "model_input_names": ["input_ids", "attention_mask"]}


def write_tokenizer(
    output: Path,
    words: Mapping[str, int],
    entities: Mapping[str, int],
    source: Path,
    max_words: int,
    task: str | None = None,
    *,
    blank_first: bool = False,
) -> None:
    """Write the files of a tokenizer with these vocabularies; `source` is the folder of the one that it comes from.

    With the words of BERT it is a BertTokenizer, which knows no entities. With `blank_first` a text, and what follows
    a mention's end, is tokenised as after a blank.
    """
    if is_bert(source):
        write_bert_tokenizer(output, words, entities, source, max_words)
    else:
        changes: dict[str, Any] = {"task": task} if task else {}
        changes |= {"add_prefix_space": True} if blank_first else {}
        write_luke_tokenizer(output, words, entities, source / "merges.txt", max_words, changes)


def is_bert(tokenizer: Path) -> bool:
    """Return whether a folder holds a tokenizer of BERT's, not of RoBERTa's."""
    return not (tokenizer / "vocab.json").is_file()


def vocabulary_file(tokenizer: Path) -> Path:
    """The file of a tokenizer's words: RoBERTa's or BERT's."""
    return tokenizer / ("vocab.txt" if is_bert(tokenizer) else "vocab.json")


def read_words(tokenizer: Path) -> dict[str, int]:
    """Word -> id, from vocab.json or vocab.txt."""
    if not is_bert(tokenizer):
        return read_json(tokenizer / "vocab.json")
    if not (tokenizer / "vocab.txt").is_file():
        raise ValueError(f"{tokenizer}: found neither vocab.json nor vocab.txt")
    return numbered_lines((tokenizer / "vocab.txt").read_text(encoding="utf-8"))


def numbered_lines(text: str) -> dict[str, int]:
    """The lines of vocab.txt with their numbers."""
    return {token: number for number, token in enumerate(text.removesuffix("\n").split("\n"))}


def write_bert_tokenizer(
    output: Path, words: Mapping[str, int], entities: Mapping[str, int], source: Path, max_words: int
) -> None:
    """Write the files of a BertTokenizer in whose texts <ent> and <ent2> are markers, and the entity vocabulary."""
    known = {"model_max_length": max_words, "additional_special_tokens": list(MARKERS)}
    config = read_json(source / "tokenizer_config.json") | BERT | known
    text = "".join(f"{word}\n" for word in words)
    write_aside(output / "vocab.txt", lambda aside: aside.write_text(text, encoding="utf-8"))
    for name, content in (("entity_vocab.json", entities), ("tokenizer_config.json", config)):
        write_aside(output / name, partial(write_json, content))


def write_luke_tokenizer(
    output: Path,
    words: Mapping[str, int],
    entities: Mapping[str, int],
    merges: Path,
    max_words: int,
    changes: Mapping[str, Any],
) -> None:
    """Write the files of a LukeTokenizer with these vocabularies; `changes` are more of its configuration."""
    for name, content in (
        ("vocab.json", words),
        ("entity_vocab.json", entities),
        ("tokenizer_config.json", tokenizer_config(entities, max_words) | dict(changes)),
    ):
        write_aside(output / name, partial(write_json, content))
    write_aside(output / "merges.txt", partial(shutil.copyfile, merges))


def write_words_tokenizer(output: Path, words: Mapping[str, int], source: Path, max_words: int) -> None:
    """Write the files of a RobertaTokenizer or BertTokenizer with these words; <ent> and <ent2> are markers."""
    known = {"model_max_length": max_words, "additional_special_tokens": list(MARKERS)}
    if is_bert(source):
        config = read_json(source / "tokenizer_config.json") | BERT | known
        text = "".join(f"{word}\n" for word in words)
        write_aside(output / "vocab.txt", lambda aside: aside.write_text(text, encoding="utf-8"))
    else:
        config = {"tokenizer_class": "RobertaTokenizer", "mask_token": MASK} | known
        write_aside(output / "vocab.json", partial(write_json, words))
        write_aside(output / "merges.txt", partial(shutil.copyfile, source / "merges.txt"))
    write_aside(output / "tokenizer_config.json", partial(write_json, config))


def tokenizer_config(entities: Mapping[str, int], max_words: int) -> dict[str, Any]:
    """The tokenizer's configuration, with the entity vocabulary: versions differ in where they look."""
    return {
        "tokenizer_class": "LukeTokenizer",
        "model_max_length": max_words,
        "mask_token": MASK,
        "entity_token_1": "<ent>",
        "entity_token_2": "<ent2>",
        "entity_vocab": dict(entities),
    }


def write_json(value: object, path: Path) -> None:
    """Write a value as readable JSON."""
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
