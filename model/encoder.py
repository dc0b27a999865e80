"""The transformer encoder over words and entities (sections 3.1, 3.2 and 3.4 of the paper)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from model.attention import EntityAwareAttention, SelfAttention
from model.batch import Batch
from model.config import PAD_ENTITY, LukeConfig
from model.embeddings import EntityEmbeddings, WordEmbeddings, initialise

ACTIVATION: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "gelu_new": partial(functional.gelu, approximate="tanh"),
    "relu": functional.relu,
}


class EncoderLayer(nn.Module):
    """Attention and feed-forward, each followed by dropout, the residual and a layer norm."""

    def __init__(self, config: LukeConfig) -> None:
        super().__init__()
        hidden = config.hidden_size
        attention = EntityAwareAttention if config.use_entity_aware_attention else SelfAttention
        self.attention = attention(config)
        self.attention_output = nn.Linear(hidden, hidden)
        self.attention_norm = nn.LayerNorm(hidden, eps=config.layer_norm_eps)
        self.intermediate = nn.Linear(hidden, config.intermediate_size)
        self.output = nn.Linear(config.intermediate_size, hidden)
        self.output_norm = nn.LayerNorm(hidden, eps=config.layer_norm_eps)
        self.activation = ACTIVATION[config.hidden_act]
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, states: Tensor, key_mask: Tensor, word_count: int) -> Tensor:
        """(batch, words + entities, hidden) to the same shape; the arguments are those of the attention."""
        attended = self.attention_output(self.attention(states, key_mask, word_count))
        states = self.attention_norm(states + self.dropout(attended))
        transformed = self.output(self.activation(self.intermediate(states)))
        return self.output_norm(states + self.dropout(transformed))


class LukeModel(nn.Module):
    """LUKE without a head: contextualised representations of words and entities.

    A new model takes its random weights from torch's global generator.
    """

    def __init__(self, config: LukeConfig) -> None:
        super().__init__()
        self.config = config
        self.word_embeddings = WordEmbeddings(config)
        self.entity_embeddings = EntityEmbeddings(config)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.num_hidden_layers))
        for module in self.modules():
            initialise(module, config.initializer_range)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Encode a batch to word states (batch, words, hidden) and entity states (batch, entities, hidden).

        The second is None for a batch without entities. Raises ValueError for more words than positions.
        """
        word_count = batch.word_ids.shape[1]
        if word_count > self.config.max_words:
            raise ValueError(
                f"word_ids has {word_count} words, but the model has positions for "
                f"{self.config.max_words}; split the text into shorter windows"
            )
        states = self.word_embeddings(batch.word_ids, batch.word_mask)
        key_mask = batch.word_mask
        if batch.entity_ids is not None:
            assert batch.entity_mask is not None
            entities = self.entity_embeddings(batch.entity_ids, batch.entity_positions)
            states = torch.cat([states, entities], dim=1)
            key_mask = torch.cat([key_mask, batch.entity_mask], dim=1)
        for layer in self.layers:
            states = layer(states, key_mask, word_count)
        has_entities = batch.entity_ids is not None
        return states[:, :word_count], states[:, word_count:] if has_entities else None

    def keep_entities(self, entity_ids: Sequence[int]) -> None:
        """Shrink the entity table to these rows, in this order; the configuration follows.

        Fine-tuning keeps only the special entities that it uses; a row may be taken more than once ([MASK]
        starts several of them). Row 0 must stay [PAD], since padding is never learnt; ValueError otherwise.
        """
        table = self.entity_embeddings.token.weight
        if not entity_ids or entity_ids[0] != PAD_ENTITY:
            raise ValueError(f"entity_ids {list(entity_ids)} must begin with {PAD_ENTITY} ([PAD])")
        outside = [entity for entity in entity_ids if not 0 <= entity < table.shape[0]]
        if outside:
            raise ValueError(f"entity_ids has {outside[0]}, but the entity table has {table.shape[0]} rows")
        kept = table.detach()[torch.tensor(entity_ids, device=table.device)]
        self.entity_embeddings.token = nn.Embedding.from_pretrained(
            kept, freeze=not table.requires_grad, padding_idx=PAD_ENTITY
        )
        self.config = replace(self.config, entity_vocab_size=len(entity_ids))
