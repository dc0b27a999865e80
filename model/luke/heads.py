"""The two prediction heads of pretraining and their loss (section 3.3 of the paper)."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from model.kernels.tables import Table, linear_cross_entropy
from model.luke.batch import FlatBatch
from model.luke.config import LukeConfig
from model.luke.embeddings import initialise
from model.luke.encoder import ACTIVATION, LukeModel

WORD_LOSS, ENTITY_LOSS = "masked_word", "masked_entity"


class Head(nn.Module):
    """A head whose logits are those of every row of an embedding table: table @ transform(state) + bias.

    The table has so many `rows`; a state becomes as wide as `width` says.
    """

    def __init__(self, config: LukeConfig, width: int, rows: int, activation: str) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, width)
        self.norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(rows))
        self.activation = ACTIVATION[activation]

    def transform(self, states: Tensor) -> Tensor:
        """The vectors (..., width) that meet the rows of the table, of states (..., hidden)."""
        return self.norm(self.activation(self.dense(states)))

    def forward(self, states: Tensor, table: Tensor) -> Tensor:
        """Logits (..., rows of the table) of states (..., hidden)."""
        return functional.linear(self.transform(states), table, self.bias)


class PaperEntityHead(Head):
    """The head of the paper's equations: m = layer_norm(gelu(W_h h_e + b_h)), logits = B T m + b_o."""

    def __init__(self, config: LukeConfig) -> None:
        super().__init__(config, config.hidden_size, config.entity_vocab_size, "gelu")
        self.projection = nn.Linear(config.hidden_size, config.entity_emb_size, bias=False)

    def transform(self, states: Tensor) -> Tensor:
        """T m: the vectors (..., entity width) that meet the rows of B, of states (..., hidden)."""
        return self.projection(super().transform(states))


@dataclass(frozen=True)
class PretrainingOutput:
    """Losses by name (masked_word, masked_entity), and how many predictions were right out of how many."""

    losses: dict[str, Tensor]
    correct: dict[str, Tensor]
    total: dict[str, int]


class LukeForPretraining(nn.Module):
    """LUKE with the masked-word and the masked-entity head, both tied to their embedding tables."""

    def __init__(self, config: LukeConfig) -> None:
        super().__init__()
        self.luke = LukeModel(config)
        # RoBERTa's and LUKE's head has gelu whatever the layers have, BERT's has what they have.
        activation = config.hidden_act if config.word_encoder == "bert" else "gelu"
        self.word_head = Head(config, config.hidden_size, config.vocab_size, activation)
        # That of the public checkpoints narrows to the width of B, which is its output matrix.
        released = (config.entity_emb_size, config.entity_vocab_size, config.hidden_act)
        is_paper = config.entity_head == "paper"
        self.entity_head = PaperEntityHead(config) if is_paper else Head(config, *released)
        for head in (self.word_head, self.entity_head):
            for module in head.modules():
                initialise(module, config.initializer_range)

    @property
    def config(self) -> LukeConfig:
        """The configuration of the encoder."""
        return self.luke.config

    @property
    def heads(self) -> dict[str, tuple[Head, Table]]:
        """By the name of its loss each head, and the table that it is tied to."""
        return {
            WORD_LOSS: (self.word_head, self.luke.word_embeddings.token),
            ENTITY_LOSS: (self.entity_head, self.luke.entity_embeddings.token),
        }

    def forward(self, batch: FlatBatch, totals: Mapping[str, int] | None = None) -> PretrainingOutput:
        """Losses over the batch's labels; logits are computed at those positions alone.

        A loss is the sum of its cross-entropies divided by the batch's count of labels, or by that in
        `totals`: the losses of the parts of a batch then add up to the loss of the whole.
        """
        output = PretrainingOutput({}, {}, {})
        for name, (states, wanted) in self.masked_states(batch).items():
            head, table = self.heads[name]
            given = head.transform(states), table.weight, head.bias, wanted
            loss, output.correct[name] = linear_cross_entropy(
                *given, adds_in_place=table.adds_in_place, copy=table.copy
            )
            output.losses[name] = loss / max(1, totals[name] if totals else len(wanted))
            output.total[name] = len(wanted)
        return output

    def masked_states(self, batch: FlatBatch) -> dict[str, tuple[Tensor, Tensor]]:
        """States (rows, hidden) of masked words and masked entities, where there are labels, and the labels (rows)."""
        counts = [batch.shape.masked_words, batch.shape.masked_entities]
        rows = torch.cat([batch.masked_words, batch.masked_entities])
        words, entities = self.luke(batch, rows).split(counts)
        found = {WORD_LOSS: (words, batch.word_labels.long()), ENTITY_LOSS: (entities, batch.entity_labels.long())}
        return {name: pair for name, pair in found.items() if len(pair[1])}


def logits_of_vectors(head: Head, states: Tensor, vectors: Tensor, biases: Tensor, of_state: Tensor) -> Tensor:
    """The logits (candidates) of vectors (candidates, width) and biases (candidates), each at its state, `of_state`."""
    with torch.autocast(states.device.type, enabled=False):
        hidden = head.transform(states.to(vectors.dtype))
        return (hidden[of_state] * vectors).sum(dim=1) + biases
