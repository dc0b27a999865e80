"""The input representations of words and entities (section 3.1 of the paper)."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from model.kernels.tables import Table
from model.luke.config import PAD_ENTITY, LukeConfig

# Every input is of segment 0; the tables keep further rows so that checkpoints can be exchanged.
SEGMENT = 0


class WordEmbeddings(nn.Module):
    """RoBERTa's or BERT's input: token (A), position (C) and token type, then layer norm and dropout."""

    def __init__(self, config: LukeConfig) -> None:
        super().__init__()
        padding = config.pad_token_id
        self.first_position = config.first_position
        self.token = Table(config.vocab_size, config.hidden_size, padding_idx=padding)
        of_positions = padding if config.word_encoder == "roberta" else None
        self.position = nn.Embedding(config.max_position_embeddings, config.hidden_size, padding_idx=of_positions)
        self.token_type = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, word_ids: Tensor, places: Tensor) -> Tensor:
        """Embed words (words) that are at `places` 0, 1, 2, ... of their sequences, to (words, hidden)."""
        positions = self.position(places + self.first_position)
        summed = self.token(word_ids) + positions + self.token_type.weight[SEGMENT]
        return self.dropout(self.norm(summed))


class EntityEmbeddings(nn.Module):
    """An entity's input: B[id] U, the mean of its words' positions (D) and the type vector e.

    Its positions index the word sequence from 0 (no offset as for words) and have a table of their own.
    """

    def __init__(self, config: LukeConfig) -> None:
        super().__init__()
        self.token = Table(config.entity_vocab_size, config.entity_emb_size, padding_idx=PAD_ENTITY)
        # The public checkpoints have no U where B is as wide as the words.
        self.projection = (
            nn.Identity()
            if config.entity_emb_size == config.hidden_size
            else nn.Linear(config.entity_emb_size, config.hidden_size, bias=False)
        )
        self.position = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, entity_ids: Tensor, positions: Tensor, begins: Tensor) -> Tensor:
        """Embed entities (entities), each at the word positions from its place in `begins` on; (entities, hidden)."""
        means = functional.embedding_bag(positions, self.position.weight, begins, mode="mean")
        summed = self.projection(self.token(entity_ids)) + means + self.token_type.weight[SEGMENT]
        return self.dropout(self.norm(summed))


def initialise(module: nn.Module, standard_deviation: float) -> None:
    """Initialise one layer as BERT does: normal weights, zero biases and padding rows, unit layer norms."""
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=standard_deviation)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=standard_deviation)
        if module.padding_idx is not None:
            with torch.no_grad():
                module.weight[module.padding_idx].zero_()
