"""Self-attention over words and entities: the original and the entity-aware one (section 3.2 of the paper).

Both take the states of words and entities as one tensor, and return the attended values; the output projection
belongs to the layer. Original attention is entity-aware attention with four equal matrices. It does not look at kinds,
so that a layout may give it all as words (`Packed.mixed`).
A layout names the tokens that see each other (`model.kernels.packing`). The kernel is what suits the device:

On a GPU, bf16   its variable-length kernel (`attention_cuda.attend_by_cases`)
On a GPU, else   torch's attention over jagged tensors (`attention_cuda.attend_jagged`)
On a CPU         products (`attention_cpu`), sequence after sequence; torch's attention where there is neither dropout
                 nor a query for entities, except in training in bf16
"""

import torch
from torch import Tensor, nn

from model.kernels import attention_cpu, attention_cuda
from model.kernels.narrow import Weights, product_type, project
from model.kernels.packing import Packed, Reordered
from model.luke.config import LukeConfig

ENTITY_AWARE_QUERIES = ("word_to_entity_query", "entity_to_word_query", "entity_to_entity_query")


JAGGED_DEVICES = ("cuda",)  # where a fused kernel takes jagged batches


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
        self.of_all = Weights(self.query, self.key, self.value)

    def forward(self, states: Tensor, layout: Packed) -> Tensor:
        """Attend over `states` (words + entities, hidden), arranged as `layout` says; the same shape."""
        if has_kernel(states, self.head_size):
            return self.attend_on_gpu(states, layout)[0]

        def arrange(tokens: Tensor) -> Tensor:
            if layout.entities:
                tokens = Reordered.apply(tokens, layout.order, layout.places)
            return tokens.unflatten(-1, (self.heads, -1))

        for_words, for_entities = self.queries(states, layout.words)
        keys, values = self.key(states), self.value(states)
        entities = None if for_entities is None else arrange(for_entities)
        in_order = arrange(for_words), entities, arrange(keys), arrange(values)
        if states.device.type in JAGGED_DEVICES:
            attended = attention_cuda.attend_jagged(*in_order, layout, self.dropped)
        else:
            attended = attention_cpu.attend_in_turn(*in_order, layout.lengths, self.dropped)
        return to_packed(attended.flatten(1), layout)

    @property
    def dropped(self) -> float:
        """The share of weights that are dropped in the present mode."""
        return self.dropout if self.training else 0.0

    def attend_on_gpu(self, states: Tensor, layout: Packed) -> tuple[Tensor, Tensor]:
        """Attention over packed states (tokens, hidden): one product and one call, sequence after sequence.

        And the states for whatever else takes them (`narrow.project`).
        """
        projected, states = project(states, (len(states), self.of_all))
        if layout.entities:
            projected = Reordered.apply(projected, layout.order, layout.places)
        longest = max(words + entities for words, entities in layout.lengths)
        rows = self.rows(projected, layout.offsets.int(), longest)
        return to_packed(attention_cuda.attend_by_cases([rows], self.dropped).flatten(1), layout), states

    def rows(self, projected: Tensor, offsets: Tensor, longest: int) -> attention_cuda.Rows:
        """Tokens as the kernel takes them, of what was computed of each, side by side."""
        by_head = projected.unflatten(-1, (-1, self.heads, self.head_size))
        return attention_cuda.Rows(by_head, offsets, longest)

    def queries(self, states: Tensor, word_count: int) -> tuple[Tensor, Tensor | None]:
        """The queries (tokens, hidden) for word keys and, where they differ, for entity keys: one for all keys."""
        return self.query(states), None


class EntityAwareAttention(SelfAttention):
    """Attention whose query matrix depends on the types of both tokens: Q, Q_w2e, Q_e2w or Q_e2e."""

    def __init__(self, config: LukeConfig) -> None:
        super().__init__(config)
        self.word_to_entity_query = nn.Linear(config.hidden_size, config.hidden_size)
        self.entity_to_word_query = nn.Linear(config.hidden_size, config.hidden_size)
        self.entity_to_entity_query = nn.Linear(config.hidden_size, config.hidden_size)
        # Side by side as `attention_cuda` wants them.
        self.of_words = Weights(self.query, self.key, self.value, self.word_to_entity_query)
        self.of_entities = Weights(self.entity_to_word_query, self.key, self.value, self.entity_to_entity_query)

    def words_query_all_alike(self) -> bool:
        """Return whether Q_w2e is a copy of Q, as it starts."""
        pairs = zip(self.word_to_entity_query.parameters(), self.query.parameters(), strict=True)
        return all(torch.equal(ours, other) for ours, other in pairs)

    def attend_on_gpu(self, states: Tensor, layout: Packed) -> tuple[Tensor, Tensor]:
        """Attention over packed states (tokens, hidden): a product for words, one for entities, and the four cases."""
        counts = [(layout.words, self.of_words), (layout.entities, self.of_entities)]
        *projected, states = project(states, *counts[: 2 if layout.entities else 1])
        offsets = layout.word_offsets, layout.entity_offsets
        longest = (max(counts) for counts in zip(*layout.lengths, strict=True))
        kinds = [self.rows(*each) for each in zip(projected, offsets, longest, strict=False)]
        return attention_cuda.attend_by_cases(kinds, self.dropped).flatten(1), states

    def queries(self, states: Tensor, word_count: int) -> tuple[Tensor, Tensor | None]:
        """A query of every token for word keys, and one for entity keys; without entities the first alone."""
        if len(states) == word_count:
            return super().queries(states, word_count)
        words, entities = states[:word_count], states[word_count:]
        for_words = torch.cat([self.query(words), self.entity_to_word_query(entities)])
        for_entities = torch.cat([self.word_to_entity_query(words), self.entity_to_entity_query(entities)])
        return for_words, for_entities


def to_packed(tokens: Tensor, layout: Packed) -> Tensor:
    """Tokens (tokens, hidden) that lie sequence after sequence, as they are packed."""
    return Reordered.apply(tokens, layout.places, layout.order) if layout.entities else tokens


def has_kernel(states: Tensor, head_size: int) -> bool:
    """Return whether the GPU's variable-length kernel takes queries of these states, in the type of products here."""
    return attention_cuda.takes(states.device, product_type(states), head_size)


def copy_missing_queries(attention: EntityAwareAttention) -> None:
    """Start the three further query matrices as copies of Q, as the paper does (section 4)."""
    for name in ENTITY_AWARE_QUERIES:
        getattr(attention, name).load_state_dict(attention.query.state_dict())
