"""Tokenizers as transformers' LukeTokenizer and BertTokenizer load them, with the entity vocabulary."""

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from model.files import read_json, write_aside, write_json

THEIR_ENTITY_VOCABULARY, THEIR_TOKENIZER = "entity_vocab.json", "tokenizer_config.json"
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
    entities: Mapping[str, int] | None,
    source: Path,
    max_words: int,
    task: str | None = None,
    *,
    blank_first: bool = False,
) -> None:
    """Write the files of a tokenizer with these vocabularies; `source` is the folder of the one that it comes from.

    With the words of BERT it is a BertTokenizer, which knows no entities; without entities it is that or a
    RobertaTokenizer, and <ent> and <ent2> are markers. With `blank_first` a text, and what follows a mention's end, is
    tokenised as after a blank.
    """
    config: dict[str, Any]
    if entities is not None:
        write_json(output / THEIR_ENTITY_VOCABULARY, entities)
    if entities is None or is_bert(source):
        roberta = {"tokenizer_class": "RobertaTokenizer", "mask_token": MASK}
        config = read_json(source / THEIR_TOKENIZER) | BERT if is_bert(source) else roberta
        config |= {"model_max_length": max_words, "additional_special_tokens": list(MARKERS)}
    else:
        config = {
            "tokenizer_class": "LukeTokenizer",
            "model_max_length": max_words,
            "mask_token": MASK,
            "entity_token_1": "<ent>",
            "entity_token_2": "<ent2>",
            "entity_vocab": dict(entities),  # here, too: versions differ in where they look
        }
        config |= {"task": task} if task else {}
        config |= {"add_prefix_space": True} if blank_first else {}
    write_words(output, words, source)
    write_json(output / THEIR_TOKENIZER, config)


def is_bert(tokenizer: Path) -> bool:
    """Return whether a folder holds a tokenizer of BERT's, not of RoBERTa's."""
    return not (tokenizer / "vocab.json").is_file()


def vocabulary_file(tokenizer: Path) -> Path:
    """The file of a tokenizer's words: RoBERTa's or BERT's."""
    return tokenizer / ("vocab.txt" if is_bert(tokenizer) else "vocab.json")


def read_vocabulary(path: Path) -> dict[str, Any]:
    """The vocabulary {entry: id} in a file: a JSON object, or vocab.txt's lines with their numbers."""
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    if path.suffix != ".txt":
        return read_json(path)
    try:
        lines = path.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 ({error})") from error
    return {token: number for number, token in enumerate(lines)}


def write_words(output: Path, words: Mapping[str, int], source: Path) -> None:
    """Write a tokenizer's words, and what splits others into these, in the format of `source`."""
    if is_bert(source):
        text = "".join(f"{word}\n" for word in words)
        write_aside(output / "vocab.txt", lambda aside: aside.write_text(text, encoding="utf-8"))
    else:
        write_json(output / "vocab.json", words)
        write_aside(output / "merges.txt", partial(shutil.copyfile, source / "merges.txt"))
