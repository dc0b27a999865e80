"""The two prediction heads of pretraining and their loss (section 3.3 of the paper)."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from model.batch import IGNORED, Batch
from model.config import LukeConfig
from model.embeddings import initialise
from model.encoder import ACTIVATION, LukeModel

WORD_LOSS, ENTITY_LOSS = "masked_word", "masked_entity"


class WordHead(nn.Module):
    """RoBERTa's or BERT's masked language model head; its output matrix is the word embedding table."""

    def __init__(self, config: LukeConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        # RoBERTa's and LUKE's head has gelu whatever the layers have, BERT's has what they have.
        self.activation = ACTIVATION[config.hidden_act if config.word_encoder == "bert" else "gelu"]

    def forward(self, states: Tensor, table: Tensor) -> Tensor:
        """Logits (..., words in the vocabulary) of states (..., hidden)."""
        return functional.linear(self.norm(self.activation(self.dense(states))), table, self.bias)


class EntityHead(nn.Module):
    """The head of the public checkpoints: it narrows to the width of B, which is its output matrix."""

    def __init__(self, config: LukeConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.entity_emb_size)
        self.norm = nn.LayerNorm(config.entity_emb_size, eps=config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.entity_vocab_size))
        self.activation = ACTIVATION[config.hidden_act]

    def forward(self, states: Tensor, table: Tensor) -> Tensor:
        """Logits (..., entities in the vocabulary) of states (..., hidden)."""
        return functional.linear(self.norm(self.activation(self.dense(states))), table, self.bias)


class PaperEntityHead(nn.Module):
    """The head of the paper's equations: m = layer_norm(gelu(W_h h_e + b_h)), logits = B T m + b_o."""

    def __init__(self, config: LukeConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.projection = nn.Linear(config.hidden_size, config.entity_emb_size, bias=False)
        self.bias = nn.Parameter(torch.zeros(config.entity_vocab_size))

    def forward(self, states: Tensor, table: Tensor) -> Tensor:
        """Logits (..., entities in the vocabulary) of states (..., hidden)."""
        hidden = self.norm(functional.gelu(self.dense(states)))
        return functional.linear(self.projection(hidden), table, self.bias)


@dataclass(frozen=True)
class PretrainingOutput:
    """Losses by name (masked_word, masked_entity), and how many predictions were right out of how many."""

    losses: dict[str, Tensor]
    correct: dict[str, Tensor]
    total: dict[str, int]

    def add(
        self,
        name: str,
        head: nn.Module,
        states: Tensor,
        labels: Tensor,
        table: Tensor,
        totals: Mapping[str, int] | None,
    ) -> None:
        """Predict the labels that are asked for from states (batch, tokens, hidden), and enter the result."""
        is_asked = labels != IGNORED
        wanted = labels[is_asked]
        logits = head(states[is_asked], table)
        total = max(1, totals[name] if totals else len(wanted))
        self.losses[name] = functional.cross_entropy(logits, wanted, reduction="sum") / total
        self.correct[name] = (logits.detach().argmax(dim=-1) == wanted).sum()
        self.total[name] = len(wanted)


class LukeForPretraining(nn.Module):
    """LUKE with the masked-word and the masked-entity head, both tied to their embedding tables."""

    def __init__(self, config: LukeConfig) -> None:
        super().__init__()
        self.luke = LukeModel(config)
        self.word_head = WordHead(config)
        self.entity_head = PaperEntityHead(config) if config.entity_head == "paper" else EntityHead(config)
        for head in (self.word_head, self.entity_head):
            for module in head.modules():
                initialise(module, config.initializer_range)

    @property
    def config(self) -> LukeConfig:
        """The configuration of the encoder."""
        return self.luke.config

    def forward(self, batch: Batch, totals: Mapping[str, int] | None = None) -> PretrainingOutput:
        """Losses over what the batch's labels ask for; logits are computed at those positions alone.

        A loss is the sum of its cross-entropies divided by the batch's count of labels, or by that in
        `totals`: the losses of the parts of a batch then add up to the loss of the whole.
        """
        word_states, entity_states = self.luke(batch)
        output = PretrainingOutput({}, {}, {})
        if batch.word_labels is not None:
            table = self.luke.word_embeddings.token.weight
            output.add(WORD_LOSS, self.word_head, word_states, batch.word_labels, table, totals)
        if batch.entity_labels is not None:
            table = self.luke.entity_embeddings.token.weight
            output.add(ENTITY_LOSS, self.entity_head, entity_states, batch.entity_labels, table, totals)
        return output
