"""Fine-tuned LUKE, exchanged with transformers: the encoder and its classifier."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from model.files import CONFIG, WEIGHTS, read_weights, write_json, write_tensors
from model.hf import keys
from model.hf.export import exported_config, exported_tensors, numbered, pooler, transformers_config
from model.hf.load import check_fit, load_encoder, read_transformers
from model.hf.tokenizers import read_vocabulary, vocabulary_file, write_tokenizer
from model.luke.config import SPECIAL_ENTITIES
from model.luke.encoder import LukeModel


@dataclass(frozen=True)
class Architecture:
    """A fine-tuned model of transformers: its linear layer's name, how many states it takes in, its bias.

    The states are [h_entity], [h_head; h_tail], [h_first; h_last; h_entity], and each word's. `task` is what its
    tokenizer calls the classification of entities; those have a pooler, too.
    """

    layer: str
    states: int
    bias: bool
    task: str | None = None


ARCHITECTURES = {
    "LukeForEntityClassification": Architecture("classifier", 1, bias=True, task="entity_classification"),
    "LukeForEntityPairClassification": Architecture("classifier", 2, bias=False, task="entity_pair_classification"),
    "LukeForEntitySpanClassification": Architecture("classifier", 3, bias=True, task="entity_span_classification"),
    "LukeForQuestionAnswering": Architecture("qa_outputs", 1, bias=True),
}

# What RoBERTa and BERT have of a LUKE: no entities, and one query.
WORDS_ALONE = re.compile(r"luke\.(embeddings|encoder)\.(?!.*\.(w2e|e2w|e2e)_query\.)")
LUKES_ALONE = ("entity_vocab_size", "entity_emb_size", "use_entity_aware_attention")
HEAD = "head.safetensors"
TEMPERATURE = "calibration_temperature"  # in config.json; transformers keeps it, and does nothing with it


@dataclass(frozen=True)
class FineTuned:
    """A fine-tuned LUKE.

    `head` holds `weight` (labels, inputs) and, where the architecture has one, `bias` (labels) of the linear
    layer; `labels` are the names of its rows. Its logits divided by `temperature` give calibrated probabilities.
    """

    architecture: str
    luke: LukeModel
    head: Mapping[str, Tensor]
    labels: tuple[str, ...]
    temperature: float = 1.0

    def values(self) -> dict[str, Any]:
        """The values of transformers' config.json for the classifier."""
        return {
            "architectures": [self.architecture],
            "id2label": dict(enumerate(self.labels)),
            "label2id": {label: number for number, label in enumerate(self.labels)},
            TEMPERATURE: self.temperature,
        }


def load_fine_tuned(path: str) -> FineTuned:
    """A fine-tuned LUKE of transformers, from a folder or by its name on the hub.

    Raises ValueError for another architecture and for missing, unexpected or misshapen weights.
    """
    values, folder = read_transformers(path)
    name = (values.get("architectures") or ["none"])[0]
    if name not in ARCHITECTURES:
        hint = "; a pretrained model has to be fine-tuned first" * name.endswith(("ForMaskedLM", "Model"))
        raise ValueError(f"{path}: architecture {name!r}, wanted one of {', '.join(ARCHITECTURES)}{hint}")
    config = keys.config_from_transformers(values, path, entity_vocab_size=SPECIAL_ENTITIES, entity_emb_size=1)
    weights = read_weights(folder)
    luke = LukeModel(config)
    encoder = keys.from_transformers(weights, path, with_heads=False)
    load_encoder(luke, encoder, source=path, entities_required=True)
    labels = label_names(values, path)
    head = read_head(weights, ARCHITECTURES[name], config.hidden_size, len(labels), path)
    return FineTuned(name, luke.eval(), head, labels, read_temperature(values, path))


def read_temperature(values: Mapping[str, Any], source: str) -> float:
    """The temperature of probabilities in config.json; 1 where there is none."""
    temperature = values.get(TEMPERATURE, 1.0)
    if type(temperature) not in (int, float) or not 0 < temperature < math.inf:
        raise ValueError(f"{source}: {TEMPERATURE} is {temperature!r}; wanted a number above 0")
    return float(temperature)


def label_names(values: Mapping[str, Any], source: str) -> tuple[str, ...]:
    """The names in id2label, in the order of their numbers."""
    names = {int(number): str(label) for number, label in (values.get("id2label") or {}).items()}
    if sorted(names) != list(range(len(names))) or not names:
        raise ValueError(f"{source}: id2label has the numbers {sorted(names)}, wanted 0, 1, 2, ...")
    return tuple(names[number] for number in range(len(names)))


def read_head(
    weights: Mapping[str, Tensor], architecture: Architecture, hidden_size: int, labels: int, source: str
) -> dict[str, Tensor]:
    """The linear layer's tensors without its name, compared with what the architecture has."""
    with torch.device("meta"):
        layer = nn.Linear(architecture.states * hidden_size, labels, bias=architecture.bias)
    found = {key: tensor for key, tensor in weights.items() if key.startswith(keys.HEAD_PREFIXES)}
    wanted = {f"{architecture.layer}.{key}": tensor for key, tensor in layer.state_dict().items()}
    check_fit(wanted, found, source=source, optional=set())
    return {key.removeprefix(f"{architecture.layer}."): tensor for key, tensor in found.items()}


def export_fine_tuned(
    fine_tuned: FineTuned,
    output: Path,
    *,
    tokenizer: Path,
    words: Mapping[str, int],
    entities: Mapping[str, int] | None,
    blank_first: bool = False,
) -> None:
    """Write a fine-tuned model as a folder that the class of its architecture and its tokenizer load.

    `tokenizer` holds vocab.json and merges.txt, vocab.txt or tokenizer.json; `words` are the rows of the word table for
    <ent> and <ent2>, which stand around the first and the second mention; `entities` those of the entity table by
    title: [PAD], [UNK], [MASK] and [MASK2], the last two of which are the first and the second mention, and others.
    With the words of BERT the tokenizer is a BertTokenizer, which knows no entities: these are given to the model
    by hand. `blank_first` is that of `write_tokenizer`.
    A model without entities (None) is RoBERTa's or BERT's. The architecture is then its class without that name: the
    one of questions holds the classifier; an encoder has it beside it, in head.safetensors.
    Raises ValueError for what cannot be exchanged or does not fit together.
    """
    config = fine_tuned.luke.config
    rows = word_rows(vocabulary_file(tokenizer), words, config.vocab_size)
    # BERT's positions do not need the padding's id, and the configurations of some have another than their tokenizer.
    config = replace(config, pad_token_id=rows.get("<pad>", config.pad_token_id))
    state = {f"luke.{key}": tensor for key, tensor in fine_tuned.luke.state_dict().items()}
    state = keys.to_transformers(state)
    vocabulary = {word: number for number, word in enumerate(rows)}
    output.mkdir(parents=True, exist_ok=True)
    if entities is None:
        state = words_alone(fine_tuned, state, [*rows.values()])
        values = transformers_config(replace(config, vocab_size=len(rows)), vocabulary)
        values = {name: value for name, value in values.items() if name not in LUKES_ALONE}
        values |= fine_tuned.values() | {
            "model_type": config.word_encoder,
            "architectures": [f"{config.word_encoder.capitalize()}{fine_tuned.architecture}"],
        }
        write_tokenizer(output, vocabulary, None, tokenizer, config.max_words)
        if fine_tuned.architecture == "Model":
            write_tensors(output / HEAD, fine_tuned.head)
    else:
        architecture = ARCHITECTURES[fine_tuned.architecture]
        entity_ids, entity_rows = numbered(entities)
        state = exported_tensors(state, config, [*rows.values()], entity_rows)
        state |= pooler(config) if architecture.task else {}
        state |= {f"{architecture.layer}.{key}": tensor for key, tensor in fine_tuned.head.items()}
        config = exported_config(config, state, words=len(rows), entities=len(entity_rows))
        values = transformers_config(config, vocabulary) | fine_tuned.values()
        sizes = config.max_words, architecture.task
        write_tokenizer(output, vocabulary, entity_ids, tokenizer, *sizes, blank_first=blank_first)
    write_json(output / CONFIG, values)
    write_tensors(output / WEIGHTS, state)


def words_alone(fine_tuned: FineTuned, state: Mapping[str, Tensor], rows: Sequence[int]) -> dict[str, Tensor]:
    """The weights of a LUKE that RoBERTa's or BERT's class has, too, with these rows of the words' table."""
    kept = {key.removeprefix("luke."): state[key] for key in state if WORDS_ALONE.match(key)}
    table = "embeddings.word_embeddings.weight"
    kept[table] = kept[table][torch.tensor(rows, device=kept[table].device)]
    config = fine_tuned.luke.config
    if fine_tuned.architecture == "Model":
        return kept | keys.below(pooler(config), "luke.")
    kept = {f"{config.word_encoder}.{key}": tensor for key, tensor in kept.items()}
    return kept | {f"qa_outputs.{key}": tensor for key, tensor in fine_tuned.head.items()}


def word_rows(path: Path, markers: Mapping[str, int], size: int) -> dict[str, int]:
    """The words that are exported, in order, and the row of the model's table that each is given."""
    vocabulary = dict(sorted(read_vocabulary(path).items(), key=lambda item: item[1]))
    if [*vocabulary.values()] != [*range(len(vocabulary))] or len(vocabulary) > size:
        raise ValueError(
            f"{path}: {len(vocabulary)} entries, wanted the ids 0, 1, 2, ... below {size}; "
            "give the tokenizer that the model was fine-tuned with"
        )
    return {**vocabulary, **markers}
