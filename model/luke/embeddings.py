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
        self.padding_row = padding if config.word_encoder == "roberta" else None
        self.token = Table(config.vocab_size, config.hidden_size, padding_idx=padding)
        self.position = nn.Embedding(
            config.max_position_embeddings, config.hidden_size, padding_idx=self.padding_row
        )
        self.token_type = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, word_ids: Tensor, word_mask: Tensor) -> Tensor:
        """Embed word ids and their mask, both (batch, words), to (batch, words, hidden)."""
        return self.embed(word_ids, word_positions(word_mask, self.padding_row))

    def embed(self, word_ids: Tensor, rows: Tensor) -> Tensor:
        """Embed word ids at these rows of the position table, both (...), to (..., hidden)."""
        summed = self.token(word_ids) + self.position(rows) + self.token_type.weight[SEGMENT]
        return self.dropout(self.norm(summed))

    def packed(self, word_ids: Tensor, places: Tensor) -> Tensor:
        """Embed words (words) that are at `places` 0, 1, 2, ... of their sequences, without padding between them."""
        return self.embed(word_ids, places + (0 if self.padding_row is None else self.padding_row + 1))


def word_positions(word_mask: Tensor, padding_row: int | None) -> Tensor:
    """Rows of the position table (batch, words).

    Real words count up from `padding_row` + 1 and padding takes `padding_row`; without such a row (BERT) all
    words, padding too, count up from 0.
    """
    if padding_row is None:
        return torch.arange(word_mask.shape[1], device=word_mask.device).expand_as(word_mask)
    return word_mask.cumsum(dim=1) * word_mask + padding_row


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

    def forward(self, entity_ids: Tensor, entity_positions: Tensor) -> Tensor:
        """(batch, entities) ids at (batch, entities, mention) positions to (batch, entities, hidden)."""
        return self.embed(entity_ids, self.mean_position(entity_positions))

    def embed(self, entity_ids: Tensor, positions: Tensor) -> Tensor:
        """Embed ids (...) whose mentions have the position embeddings (..., hidden)."""
        summed = self.projection(self.token(entity_ids)) + positions + self.token_type.weight[SEGMENT]
        return self.dropout(self.norm(summed))

    def packed(self, entity_ids: Tensor, positions: Tensor, begins: Tensor) -> Tensor:
        """Embed entities (entities), each at the word positions from its place in `begins` on, without padding."""
        means = functional.embedding_bag(positions, self.position.weight, begins, mode="mean")
        return self.embed(entity_ids, means)

    def mean_position(self, entity_positions: Tensor) -> Tensor:
        """The mean position embedding of each mention; -1 stands for padding and is left out."""
        table = self.position.weight
        is_word = entity_positions >= 0  # (batch, entities, mention)
        shares = is_word / is_word.sum(dim=-1, keepdim=True).clamp(min=1)
        means = functional.embedding_bag(  # sums without an embedding for each position of each mention
            entity_positions.clamp(min=0).flatten(0, 1),
            table,
            mode="sum",
            per_sample_weights=shares.to(table.dtype).flatten(0, 1),
        )
        return means.unflatten(0, entity_positions.shape[:2])


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
