"""The transformer encoder over words and entities (sections 3.1, 3.2 and 3.4 of the paper)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from model.kernels import narrow
from model.kernels.narrow import Weights, project
from model.kernels.packing import Packed, Reordered
from model.kernels.tables import Table
from model.luke.attention import EntityAwareAttention, SelfAttention, has_kernel
from model.luke.batch import FlatBatch
from model.luke.config import PAD_ENTITY, LukeConfig
from model.luke.embeddings import EntityEmbeddings, WordEmbeddings, initialise

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
        self.weights = (
            Weights(self.attention_output, biases=False),
            Weights(self.intermediate),
            Weights(self.output, biases=False),
        )
        self.is_compiled = False

    def is_narrow(self, states: Tensor) -> bool:
        """Return whether Triton's kernels stand between the products of these states."""
        suits = narrow.suits(states, narrow.product_type(states)) and has_kernel(states, self.attention.head_size)
        return suits and not self.is_compiled

    def forward(self, states: Tensor, layout: Packed, rows: Tensor | None = None) -> Tensor:
        """States (words + entities, hidden), arranged as `layout` says, to the same shape.

        To those at `rows` alone, where these are given.
        """
        finish = self.finish
        if self.is_narrow(states):
            attended, states = self.attention.attend_on_gpu(states, layout)
            finish = self.finish_narrow
        else:
            attended = self.attention(states, layout)
        if rows is not None:
            states, attended = states.index_select(0, rows), attended.index_select(0, rows)
        return finish(states, attended)

    def finish(self, states: Tensor, attended: Tensor) -> Tensor:
        """The part of the layer behind attention, which treats each token by itself."""
        attended = self.attention_output(attended)
        states = self.attention_norm(states + self.dropout(attended))
        transformed = self.output(self.activation(self.intermediate(states)))
        return self.output_norm(states + self.dropout(transformed))

    def finish_narrow(self, states: Tensor, attended: Tensor) -> Tensor:
        """The same by products in bf16, with one kernel for a bias, dropout, the residual and a layer norm."""
        dropout = self.dropout.p if self.training else 0.0
        of_attention, of_intermediate, of_output = self.weights
        attended, _ = project(attended, (len(attended), of_attention))
        states = narrow.add_norm(attended, self.attention_output, states, self.attention_norm, dropout)
        inner, states = project(states, (len(states), of_intermediate))
        transformed, _ = project(self.activation(inner), (len(inner), of_output))
        return narrow.add_norm(transformed, self.output, states, self.output_norm, dropout)


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
        self.gradient_checkpointing = False
        self.entities_are_new = False  # whether they began as words (`model.luke.new_entities`)
        for module in self.modules():
            initialise(module, config.initializer_range)

    def forward(self, batch: FlatBatch, rows: Tensor | None = None) -> Tensor:
        """Encode a batch to states (words + entities of all sequences, hidden), words first.

        Where `rows` are given, to those of them alone: the last layer does no work on others but to attend to them.
        Raises ValueError for values that the model cannot take, where they lie on the CPU: elsewhere that would wait
        for the device (`FlatBatch.check` before).
        """
        if batch.numbers.device.type == "cpu":
            batch.check(self.config)
        states = self.word_embeddings(batch.word_ids, batch.word_places)
        if batch.shape.entities:
            entities = self.entity_embeddings(batch.entity_ids, *batch.mention_places())
            states = torch.cat([states, entities])
        return self.encode(states, batch.layout, rows)

    def compile_layers(self) -> None:
        """Have torch compile what follows attention in each layer: one graph for all layers and numbers of tokens.

        Attention itself is a fused kernel already, and is called with the lengths of sequences, which a graph would
        be made for anew with every batch.
        """
        for layer in self.layers:
            assert isinstance(layer, EncoderLayer)
            layer.is_compiled = True
            layer.finish = torch.compile(layer.finish, dynamic=True)  # type: ignore[method-assign]

    def encode(self, states: Tensor, layout: Packed, rows: Tensor | None = None) -> Tensor:
        """All layers, the last to these `rows` alone where they are given.

        With `gradient_checkpointing` a layer's inner states are computed again when needed.
        """
        if layout.entities and not self.config.use_entity_aware_attention:
            return self.encode_mixed(states, layout, rows)
        dtype = states.dtype
        if cast(EncoderLayer, self.layers[0]).is_narrow(states):  # what passes from layer to layer
            states = states.to(torch.bfloat16)
        for layer in self.layers:
            wanted = rows if layer is self.layers[-1] else None
            if self.gradient_checkpointing and torch.is_grad_enabled():
                states = checkpoint(layer, states, layout, wanted, use_reentrant=False)
            else:
                states = layer(states, layout, wanted)
        return states.to(dtype)

    def encode_mixed(self, states: Tensor, layout: Packed, rows: Tensor | None) -> Tensor:
        """The same where attention treats words and entities alike: those of a sequence lie together meanwhile."""
        states = Reordered.apply(states, layout.order, layout.places)
        if rows is not None:
            return self.encode(states, layout.mixed, layout.places.index_select(0, rows))
        return Reordered.apply(self.encode(states, layout.mixed), layout.places, layout.order)

    def keep_entities(self, entity_ids: Sequence[int], pad: int = PAD_ENTITY) -> None:
        """Shrink the entity table to these rows, in this order; the configuration follows.

        Fine-tuning keeps only the special entities that it uses; a row may be taken more than once ([MASK]
        starts several of them). The first must be `pad`, where [PAD] stands in this table, since padding is never
        learnt; ValueError otherwise.
        """
        table = self.entity_embeddings.token.weight
        if not entity_ids or entity_ids[0] != pad:
            raise ValueError(f"entity_ids {list(entity_ids)} must begin with {pad} ([PAD])")
        outside = [entity for entity in entity_ids if not 0 <= entity < table.shape[0]]
        if outside:
            raise ValueError(f"entity_ids has {outside[0]}, but the entity table has {table.shape[0]} rows")
        self.replace_entities(table.detach()[torch.tensor(entity_ids, device=table.device)])

    def replace_entities(self, rows: Tensor) -> None:
        """Give the entity table other rows (entities, width), the first of which is [PAD]; the configuration follows.

        They are trained or frozen as those before were.
        """
        is_frozen = not self.entity_embeddings.token.weight.requires_grad
        self.entity_embeddings.token = Table.from_pretrained(rows, freeze=is_frozen, padding_idx=PAD_ENTITY)
        self.config = replace(self.config, entity_vocab_size=len(rows))
