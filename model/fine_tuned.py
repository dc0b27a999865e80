"""LUKE fine-tuned with transformers: the encoder and its classifier, for `tasks/` to go on with."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from model import hf
from model.checkpoint import check_fit, load_encoder, read_transformers
from model.config import SPECIAL_ENTITIES
from model.encoder import LukeModel
from model.files import read_weights
from model.original import refuse_archive


@dataclass(frozen=True)
class Architecture:
    """A fine-tuned model of transformers: its linear layer's name, how many states it takes in, its bias.

    The states are [h_entity], [h_head; h_tail], [h_first; h_last; h_entity], and each word's.
    """

    layer: str
    states: int
    bias: bool


ARCHITECTURES = {
    "LukeForEntityClassification": Architecture("classifier", 1, bias=True),
    "LukeForEntityPairClassification": Architecture("classifier", 2, bias=False),
    "LukeForEntitySpanClassification": Architecture("classifier", 3, bias=True),
    "LukeForQuestionAnswering": Architecture("qa_outputs", 1, bias=True),
}


@dataclass(frozen=True)
class FineTuned:
    """A fine-tuned LUKE.

    `head` holds `weight` (labels, inputs) and, where the architecture has one, `bias` (labels) of the linear
    layer; `labels` are the names of its rows.
    """

    architecture: str
    luke: LukeModel
    head: Mapping[str, Tensor]
    labels: tuple[str, ...]


def load_fine_tuned(path: str) -> FineTuned:
    """A fine-tuned LUKE of transformers, from a folder or by its name on the hub.

    Raises ValueError for another architecture and for missing, unexpected or misshapen weights.
    """
    refuse_archive(Path(path))
    values, folder = read_transformers(path)
    name = (values.get("architectures") or ["none"])[0]
    if name not in ARCHITECTURES:
        raise ValueError(f"{path}: architecture {name!r}, wanted one of {', '.join(ARCHITECTURES)}")
    config = hf.config_from_transformers(values, path, entity_vocab_size=SPECIAL_ENTITIES, entity_emb_size=1)
    weights = read_weights(folder)
    luke = LukeModel(config)
    encoder = hf.from_transformers(weights, path, with_heads=False)
    load_encoder(
        luke,
        {key.removeprefix("luke."): tensor for key, tensor in encoder.items()},
        source=path,
        entities_required=True,
    )
    labels = label_names(values, path)
    head = read_head(weights, ARCHITECTURES[name], config.hidden_size, len(labels), path)
    return FineTuned(name, luke.eval(), head, labels)


def label_names(values: Mapping[str, Any], source: str) -> tuple[str, ...]:
    """The names in id2label, in the order of their numbers."""
    names = {int(number): str(label) for number, label in (values.get("id2label") or {}).items()}
    if sorted(names) != list(range(len(names))) or not names:
        raise ValueError(f"{source}: id2label has the numbers {sorted(names)}, wanted 0, 1, 2, ...")
    return tuple(names[number] for number in range(len(names)))


def read_head(
    weights: Mapping[str, Tensor], architecture: Architecture, hidden_size: int, labels: int, source: str
) -> dict[str, Tensor]:
    """The linear layer's tensors without its name, held against what the architecture has."""
    with torch.device("meta"):
        layer = nn.Linear(architecture.states * hidden_size, labels, bias=architecture.bias)
    found = {key: tensor for key, tensor in weights.items() if key.startswith(hf.HEAD_PREFIXES)}
    wanted = {f"{architecture.layer}.{key}": tensor for key, tensor in layer.state_dict().items()}
    check_fit(wanted, found, source=source, optional=set())
    return {key.removeprefix(f"{architecture.layer}."): tensor for key, tensor in found.items()}
