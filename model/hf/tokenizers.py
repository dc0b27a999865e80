"""Tokenizers as transformers' LukeTokenizer, BertTokenizer and MLukeTokenizer load them, with the entity vocabulary."""

import shutil
import tomllib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from model.files import read_json, write_aside, write_json

THEIR_ENTITY_VOCABULARY, THEIR_TOKENIZER = "entity_vocab.json", "tokenizer_config.json"
UNIGRAM = "tokenizer.json"
MARKERS = {"<ent>": "@", "<ent2>": "#"}
VALUES = tomllib.loads(Path(__file__).with_name("tokenizers.toml").read_text(encoding="utf-8"))
MASK, MARKER, BERT = VALUES["mask"], VALUES["marker"], VALUES["bert"]
LUKE = {"mask_token": MASK, "entity_token_1": "<ent>", "entity_token_2": "<ent2>"}
# MLukeTokenizer has its mask by itself, and puts a blank into the name of a marker that is a text.
MLUKE = {f"entity_token_{number}": MARKER | {"content": word} for number, word in enumerate(MARKERS, start=1)}


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

    With the words of BERT it is a BertTokenizer, which knows no entities; without entities it is that, a
    RobertaTokenizer or an XLMRobertaTokenizer, and <ent> and <ent2> are markers. With `blank_first` a text, and what
    follows a mention's end, is tokenised as after a blank, as MLukeTokenizer does it in any case.
    """
    config: dict[str, Any]
    has_pieces = is_unigram(source)
    if entities is not None:
        write_json(output / THEIR_ENTITY_VOCABULARY, entities)
    if entities is None or is_bert(source):
        roberta = {"tokenizer_class": "XLMRobertaTokenizer" if has_pieces else "RobertaTokenizer", "mask_token": MASK}
        config = read_json(source / THEIR_TOKENIZER) | BERT if is_bert(source) else roberta
        config |= {"model_max_length": max_words, "additional_special_tokens": list(MARKERS)}
    else:
        config = {
            "tokenizer_class": "MLukeTokenizer" if has_pieces else "LukeTokenizer",
            "model_max_length": max_words,
            **(MLUKE if has_pieces else LUKE),
            "entity_vocab": dict(entities),  # here, too: versions differ in where they look
        }
        config |= {"task": task} if task else {}
        config |= {"add_prefix_space": True} if blank_first and not has_pieces else {}
    write_words(output, words, source)
    write_json(output / THEIR_TOKENIZER, config)


def is_bert(tokenizer: Path) -> bool:
    """Return whether a folder holds a tokenizer of BERT's, not of RoBERTa's or XLM-R's."""
    return vocabulary_file(tokenizer).name == "vocab.txt"


def is_unigram(tokenizer: Path) -> bool:
    """Return whether a folder holds a tokenizer of XLM-R's."""
    return vocabulary_file(tokenizer).name == UNIGRAM


def vocabulary_file(tokenizer: Path) -> Path:
    """The file of a tokenizer's words: RoBERTa's vocab.json, BERT's vocab.txt or XLM-R's tokenizer.json."""
    names = ("vocab.json", "vocab.txt", UNIGRAM)
    return next((path for name in names if (path := tokenizer / name).is_file()), tokenizer / "vocab.txt")


def read_vocabulary(path: Path) -> dict[str, Any]:
    """The vocabulary {entry: id} in a file: a JSON object, vocab.txt's lines or tokenizer.json's pieces by number."""
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    if path.name == UNIGRAM:
        model = read_json(path).get("model") or {}
        if model.get("type") != "Unigram":
            raise ValueError(f"{path}: its model is {model.get('type')!r}; wanted Unigram")
        return {piece: number for number, (piece, _) in enumerate(model["vocab"])}
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
    elif is_unigram(source):
        values = read_json(source / UNIGRAM)
        pieces = values["model"]["vocab"]
        for word in [*words][len(pieces) :]:
            flags = {name: value for name, value in MARKER.items() if name != "__type"}
            values["added_tokens"].append({"id": len(pieces), **flags, "content": word})
            pieces.append([word, 0.0])
        write_json(output / UNIGRAM, values)
    else:
        write_json(output / "vocab.json", words)
        write_aside(output / "merges.txt", partial(shutil.copyfile, source / "merges.txt"))
