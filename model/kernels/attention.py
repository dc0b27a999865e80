"""Attention over tokens that lie as a layout says (`model.kernels.packing`), by what suits the device.

On a GPU, bf16   its variable-length kernel (`attention_cuda.attend_by_cases`; `model.luke.attention.has_kernel`)
On a GPU, else   torch's attention over jagged tensors (`attention_cuda.attend_jagged`)
On a CPU         products (`attention_cpu`), sequence after sequence; torch's attention where there is neither dropout
                 nor a query for entities, except in training in bf16
"""

from torch import Tensor

from model.kernels import attention_cpu, attention_cuda
from model.kernels.packing import Packed, Reordered

JAGGED_DEVICES = ("cuda",)  # where a fused kernel takes jagged batches


def attend(
    for_words: Tensor,
    for_entities: Tensor | None,
    keys: Tensor,
    values: Tensor,
    layout: Packed,
    heads: int,
    dropout: float,
) -> Tensor:
    """Multi-head attention on (tokens, hidden): a token sees those of its own sequence.

    `for_words` are the queries that meet the keys of words, `for_entities` those that meet entities' (None: the same).
    """

    def arrange(tokens: Tensor) -> Tensor:
        if layout.entity_count:
            tokens = Reordered.apply(tokens, layout.order, layout.places)
        return tokens.unflatten(-1, (heads, -1))

    entities = None if for_entities is None else arrange(for_entities)
    in_order = arrange(for_words), entities, arrange(keys), arrange(values)
    if keys.device.type in JAGGED_DEVICES:
        attended = attention_cuda.attend_jagged(*in_order, layout, dropout)
    else:
        attended = attention_cpu.attend_in_turn(*in_order, layout.lengths, dropout)
    attended = attended.flatten(1)
    return Reordered.apply(attended, layout.places, layout.order) if layout.entity_count else attended
