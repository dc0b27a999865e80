"""Writes a pretrained model as a folder that transformers' LukeForMaskedLM and its tokenizer load as it is."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from model.files import CONFIG, PRETRAINING, WEIGHTS, write_aside, write_json, write_tensors
from model.hf.card import model_card, read_training
from model.hf.keys import COPIES, ENCODER_KEYS, to_transformers
from model.hf.load import check_fit, is_entity_aware_query, missing_queries, read_model
from model.hf.tokenizers import MARKERS, is_bert, is_unigram, read_vocabulary, vocabulary_file, write_tokenizer
from model.luke.attention import ENTITY_AWARE_QUERIES
from model.luke.config import MASK_ENTITY, SPECIAL_ENTITIES, TRANSFORMERS_LACK, LukeConfig
from model.luke.heads import LukeForPretraining

WANTED_WORDS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>", *MARKERS.values())
WANTED_BERT_WORDS = ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]", *MARKERS.values())
SPECIAL_TITLES = ("[PAD]", "[UNK]", "[MASK]")
SECOND_MASK = "[MASK2]"
BESIDE = ("entity_qids.json", "entity_vocab.parquet")  # the vocabulary: what transformers' format has no room for
WORD_POSITIONS = "luke.embeddings.position_embeddings.weight"
ENTITY_POSITIONS = "luke.entity_embeddings.position_embeddings.weight"


def export(
    source: Path,
    output: Path,
    *,
    tokenizer: Path,
    entity_vocab: Path,
    lite: bool = False,
    figures: Mapping[str, Any] | None = None,
) -> None:
    """Write a pretrained model as a folder that transformers' LukeForMaskedLM and LukeTokenizer load.

    The words gain the two entity markers <ent> and <ent2> (from "@" and "#"), the entities [MASK2] (from [MASK]), as in
    the public checkpoints; the markers stand in the vocabulary, since versions of transformers give different ids to a
    token that does not. With `lite`, the special entities are all that is kept of the entity table; else the files of
    BESIDE that lie beside the entity vocabulary are copied, too. With the words of XLM-R the tokenizer is an
    MLukeTokenizer, with those of BERT a BertTokenizer, which knows no entities: these are given to the model by hand.
    The model card has the `figures` of the corpus, and of its training, as the source has them (`model/hf/card.py`).
    Raises ValueError for what cannot be exchanged or does not fit together.
    """
    config, weights = read_pretrained(source)
    wanted = WANTED_BERT_WORDS if is_bert(tokenizer) else WANTED_WORDS
    words = checked_vocabulary(vocabulary_file(tokenizer), config.vocab_size, wanted)
    entities = checked_vocabulary(entity_vocab, config.entity_vocab_size, SPECIAL_TITLES, several_names=True)
    if tuple(entities)[:SPECIAL_ENTITIES] != SPECIAL_TITLES:
        raise ValueError(f"{entity_vocab}: begins with {tuple(entities)[:3]}, wanted {SPECIAL_TITLES}")
    if vocabulary_file(tokenizer).name == "vocab.json" and not (tokenizer / "merges.txt").is_file():
        raise ValueError(f"{tokenizer / 'merges.txt'}: no such file; give a tokenizer in RoBERTa's format")
    markers = {marker: initial for marker, initial in MARKERS.items() if marker not in words}
    word_rows = [*range(len(words)), *(words[initial] for initial in markers.values())]
    words |= {marker: len(words) + number for number, marker in enumerate(markers)}
    entities, rows = numbered(entity_rows(entities, lite=lite))
    tensors = exported_tensors(to_transformers(weights), config, word_rows, rows) | pooler(config)
    exported = exported_config(config, tensors, words=len(words), entities=len(rows))
    output.mkdir(parents=True, exist_ok=True)
    write_tokenizer(output, words, entities, tokenizer, config.max_words)
    for name in () if lite else BESIDE:
        if (beside := entity_vocab.with_name(name)).is_file():
            write_aside(output / name, partial(shutil.copyfile, beside))
    if (source / PRETRAINING).is_file():
        write_aside(output / PRETRAINING, partial(shutil.copyfile, source / PRETRAINING))
    write_json(output / CONFIG, transformers_config(exported, words))
    write_tensors(output / WEIGHTS, tensors)
    parameters = sum(tensor.numel() for key, tensor in tensors.items() if key not in COPIES)
    figures = {**read_training(source), **(figures or {})}
    kind = {"is_bert": is_bert(tokenizer), "is_unigram": is_unigram(tokenizer)}
    card = model_card(exported, parameters, figures, lite=lite, **kind)
    write_aside(output / "README.md", lambda aside: aside.write_text(card, encoding="utf-8"))


def read_pretrained(source: Path) -> tuple[LukeConfig, dict[str, Tensor]]:
    """Configuration and weights of a folder with a complete pretrained LUKE, or a ValueError that says why not."""
    if not source.is_dir():
        raise ValueError(f"{source}: no such folder; give the folder of a pretrained model")
    config, weights = read_model(str(source))
    if config.entity_head != "released":
        raise ValueError(
            f"{source}: entity_head is {config.entity_head!r}, but transformers has only the head of the "
            "public checkpoints; pretrain with entity_head 'released' to export"
        )
    if config.word_encoder == "bert" and config.hidden_act != "gelu":
        raise ValueError(
            f"{source}: hidden_act is {config.hidden_act!r}, in the word head, too, where transformers' LUKE has gelu; "
            "pretrain from a BERT with gelu to export"
        )
    if not {"word_head.bias", "entity_head.bias"} <= set(weights):
        raise ValueError(f"{source}: no prediction heads in the weights; export a pretrained model")
    with torch.device("meta"):
        whole = LukeForPretraining(config).state_dict()
    unneeded = {key for key in weights if is_entity_aware_query(key)} - set(whole)
    wanted = whole | {key: weights[key] for key in unneeded}
    missing = missing_queries(whole, weights, str(source))
    check_fit(wanted, weights, source=str(source), optional=missing)
    return config, weights


def entity_rows(entities: Mapping[str, int], *, lite: bool) -> dict[str, int]:
    """The titles that are exported, in order, and the row of the model's table that each is given.

    [PAD] stays at 0 also in a lite export: transformers never learns row 0, so [MASK] must not stand there.
    """
    kept = SPECIAL_TITLES if lite else entities
    return {title: entities[title] for title in kept} | {SECOND_MASK: entities.get(SECOND_MASK, MASK_ENTITY)}


def numbered(titles: Mapping[str, int]) -> tuple[dict[str, int], list[int]]:
    """The number of each title in an export, and the row of the model's table for each number.

    Titles of one entity in several languages share both; the special ones have a number each.
    """
    keys = {title: title if title in (*SPECIAL_TITLES, SECOND_MASK) else row for title, row in titles.items()}
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys.values()))}
    found = {numbers[keys[title]]: row for title, row in titles.items()}
    return {title: numbers[key] for title, key in keys.items()}, [*found.values()]


def exported_tensors(
    state: dict[str, Tensor], config: LukeConfig, word_rows: Sequence[int], entities: Sequence[int]
) -> dict[str, Tensor]:
    """All that transformers' LUKE has but a pooler: our tensors with these rows of the tables, queries, and copies."""
    for key, rows in (
        ("luke.embeddings.word_embeddings.weight", word_rows),
        ("lm_head.bias", word_rows),
        ("luke.entity_embeddings.entity_embeddings.weight", entities),
        ("entity_predictions.bias", entities),
    ):
        if key in state:
            state[key] = state[key][torch.tensor(rows, device=state[key].device)]
    state = with_padding_positions(with_queries(state, config), config)
    heads = COPIES if "lm_head.bias" in state else {}
    return state | {copy: state[original].clone() for copy, original in heads.items()}


def exported_config(config: LukeConfig, state: Mapping[str, Tensor], *, words: int, entities: int) -> LukeConfig:
    """The sizes of what is written: positions are counted as RoBERTa does, whatever the words."""
    return replace(
        config,
        vocab_size=words,
        entity_vocab_size=entities,
        use_entity_aware_attention=True,
        word_encoder="roberta",
        max_position_embeddings=len(state[WORD_POSITIONS]),
    )


def with_padding_positions(state: dict[str, Tensor], config: LukeConfig) -> dict[str, Tensor]:
    """Weights under transformers' names, whose words count positions after the padding id also where BERT's do not.

    Entities count from 0 in either; their table gets as many rows as the words', of which the last are not used.
    """
    if config.word_encoder == "roberta":
        return state
    unused = torch.zeros(config.pad_token_id + 1, config.hidden_size)
    words, entities = state[WORD_POSITIONS], state[ENTITY_POSITIONS]
    return state | {
        WORD_POSITIONS: torch.cat([unused.to(words), words]),
        ENTITY_POSITIONS: torch.cat([entities, unused.to(entities)]),
    }


def with_queries(state: dict[str, Tensor], config: LukeConfig) -> dict[str, Tensor]:
    """Weights under transformers' names with copies of Q where entity-aware queries are missing."""
    queries = ENCODER_KEYS["layers.{}.attention.query"]
    for layer in range(config.num_hidden_layers):
        for name in ENTITY_AWARE_QUERIES:
            copy = ENCODER_KEYS[f"layers.{{}}.attention.{name}"].format(layer)
            for part in ("weight", "bias"):
                original = state[f"luke.{queries.format(layer)}.{part}"]
                state.setdefault(f"luke.{copy}.{part}", original.clone())
    return state


def pooler(config: LukeConfig) -> dict[str, Tensor]:
    """The pooler that most of transformers' LUKEs have and never use; missing weights would be drawn at random."""
    return {
        "luke.pooler.dense.weight": torch.eye(config.hidden_size),
        "luke.pooler.dense.bias": torch.zeros(config.hidden_size),
    }


def checked_vocabulary(path: Path, size: int, wanted: Sequence[str], *, several_names: bool = False) -> dict[str, int]:
    """The vocabulary in a file, with ids 0 .. size - 1, each once or also more often, and the entries wanted.

    A second mask behind the entities, which transformers wants to see there, is none of the model's. Raises:
    ValueError for any other.
    """
    remedy = "give the vocabulary that the model was pretrained with"
    try:
        vocabulary = read_vocabulary(path)
    except ValueError as error:
        raise ValueError(f"{error}; {remedy}") from error
    if vocabulary.get(SECOND_MASK) == size:
        del vocabulary[SECOND_MASK]
    numbers = [number for number in vocabulary.values() if isinstance(number, int)]
    is_short = len(numbers) != len(vocabulary) or (len(vocabulary) != size and not several_names)
    if is_short or set(numbers) != set(range(size)):
        raise ValueError(f"{path}: {len(vocabulary)} entries, but the model has {size}; {remedy}")
    missing = [entry for entry in wanted if entry not in vocabulary]
    if missing:
        raise ValueError(f"{path}: {', '.join(missing)} missing; {remedy}")
    return dict(sorted(vocabulary.items(), key=lambda item: item[1]))


def transformers_config(config: LukeConfig, words: Mapping[str, int]) -> dict[str, Any]:
    """The configuration as transformers' LukeConfig reads it."""
    return {
        "model_type": "luke",
        "architectures": ["LukeForMaskedLM"],
        **{name: value for name, value in asdict(config).items() if name not in TRANSFORMERS_LACK},
        "bos_token_id": words["<s>" if "<s>" in words else "[CLS]"],
        "eos_token_id": words["</s>" if "</s>" in words else "[SEP]"],
        "tie_word_embeddings": True,
        "dtype": "float32",
    }
