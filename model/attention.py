"""Self-attention over words and entities: the original and the entity-aware one (section 3.2 of the paper).

Both take the states of words and entities as one tensor, words first, and return the attended values; the
output projection belongs to the layer. Original attention is entity-aware attention with four equal matrices.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from model.config import LukeConfig

ENTITY_AWARE_QUERIES = ("word_to_entity_query", "entity_to_word_query", "entity_to_entity_query")


class SelfAttention(nn.Module):
    """The original multi-head attention: a query, key and value matrix for words and entities alike."""

    def __init__(self, config: LukeConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.head_size = config.attention_head_size
        self.dropout = config.attention_probs_dropout_prob
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, states: Tensor, key_mask: Tensor, word_count: int) -> Tensor:
        """Attend over `states` (batch, words + entities, hidden); the result has the same shape.

        `key_mask` (batch, words + entities) is True where a key is real; the first `word_count` are words.
        """
        queries = self.split_heads(self.query(states))
        keys = self.split_heads(self.key(states))
        values = self.split_heads(self.value(states))
        return self.attend(queries, keys, values, key_mask)

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, key_mask: Tensor) -> Tensor:
        """One fused call on (batch, heads, tokens, width) tensors, scaled by 1/sqrt(L) for any width."""
        attended = functional.scaled_dot_product_attention(
            queries,
            keys,
            values,
            attn_mask=key_mask[:, None, None, :],
            dropout_p=self.dropout if self.training else 0.0,
            scale=1 / math.sqrt(self.head_size),
        )
        return merge_heads(attended)

    def split_heads(self, projected: Tensor) -> Tensor:
        """(batch, tokens, hidden) to (batch, heads, tokens, head size)."""
        return projected.unflatten(-1, (self.heads, self.head_size)).transpose(1, 2)


class EntityAwareAttention(SelfAttention):
    """Attention whose query matrix depends on the types of both tokens: Q, Q_w2e, Q_e2w or Q_e2e."""

    def __init__(self, config: LukeConfig) -> None:
        super().__init__(config)
        self.word_to_entity_query = nn.Linear(config.hidden_size, config.hidden_size)
        self.entity_to_word_query = nn.Linear(config.hidden_size, config.hidden_size)
        self.entity_to_entity_query = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, states: Tensor, key_mask: Tensor, word_count: int) -> Tensor:
        """As the original attention; without entities the two are the same."""
        if states.shape[1] == word_count:
            return super().forward(states, key_mask, word_count)
        keys = self.split_heads(self.key(states))
        values = self.split_heads(self.value(states))
        queries = stack_queries(*self.four_queries(states, word_count))
        return self.attend(queries, stack_keys(keys, word_count), values, key_mask)

    def four_queries(self, states: Tensor, word_count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The queries w2w, w2e (of the words), e2w, e2e (of the entities), split into heads."""
        words, entities = states[:, :word_count], states[:, word_count:]
        return (
            self.split_heads(self.query(words)),
            self.split_heads(self.word_to_entity_query(words)),
            self.split_heads(self.entity_to_word_query(entities)),
            self.split_heads(self.entity_to_entity_query(entities)),
        )

    def reference(self, states: Tensor, key_mask: Tensor, word_count: int) -> Tensor:
        """The same as four matrix products and a softmax: the form that the fused one is tested against."""
        word_to_word, word_to_entity, entity_to_word, entity_to_entity = self.four_queries(states, word_count)
        keys = self.split_heads(self.key(states)).transpose(-1, -2)
        word_keys, entity_keys = keys[..., :word_count], keys[..., word_count:]
        of_words = torch.cat([word_to_word @ word_keys, word_to_entity @ entity_keys], dim=-1)
        of_entities = torch.cat([entity_to_word @ word_keys, entity_to_entity @ entity_keys], dim=-1)
        scores = torch.cat([of_words, of_entities], dim=-2) / math.sqrt(self.head_size)
        weights = scores.masked_fill(~key_mask[:, None, None, :], -math.inf).softmax(dim=-1)
        weights = functional.dropout(weights, self.dropout, self.training)
        return merge_heads(weights @ self.split_heads(self.value(states)))


def stack_queries(
    word_to_word: Tensor, word_to_entity: Tensor, entity_to_word: Tensor, entity_to_entity: Tensor
) -> Tensor:
    """Queries of double width: the half for word keys, then the half for entity keys."""
    of_words = torch.cat([word_to_word, word_to_entity], dim=-1)
    of_entities = torch.cat([entity_to_word, entity_to_entity], dim=-1)
    return torch.cat([of_words, of_entities], dim=-2)


def stack_keys(keys: Tensor, word_count: int) -> Tensor:
    """Keys of double width: [k; 0] for words and [0; k] for entities, so that each meets its own half."""
    size = keys.shape[-1]
    word_keys = functional.pad(keys[..., :word_count, :], (0, size))
    entity_keys = functional.pad(keys[..., word_count:, :], (size, 0))
    return torch.cat([word_keys, entity_keys], dim=-2)


def merge_heads(attended: Tensor) -> Tensor:
    """(batch, heads, tokens, head size) to (batch, tokens, hidden)."""
    return attended.transpose(1, 2).flatten(-2)


def copy_missing_queries(attention: EntityAwareAttention) -> None:
    """Start the three further query matrices as copies of Q, as the paper does (section 4)."""
    for name in ENTITY_AWARE_QUERIES:
        getattr(attention, name).load_state_dict(attention.query.state_dict())
