"""First weights of the recipe `small`: attention to a token's own place. No other recipe uses them."""

import math
from typing import cast

import torch

from model.luke.config import MASK_ENTITY
from model.luke.encoder import EncoderLayer
from model.luke.heads import LukeForPretraining

OWN_PLACE = 11.0  # the expected logit of a word's attention to its own place


@torch.no_grad()
def attend_to_own_place(module: LukeForPretraining) -> None:
    """Let a model without a base begin with attention to what stands at the same place: an entity to its own words.

    Random weights attend to everything alike: an entity is guessed from all words of its sequence until training has
    found which of them name it, and a short training never does. Positions begin in a fourth of the units, tokens in
    the others; entities begin with the positions of words, and [MASK] with the length of a word's vector; the keys
    of the first layer begin as its queries and look at positions alone (after Trockman and Kolter, 2023, Mimetic
    initialization of self-attention layers); every layer doubles what attention adds. From then on these weights
    are trained like all others. The paper begins with RoBERTa's and needs none of this.
    """
    words, entities, config = module.luke.word_embeddings, module.luke.entity_embeddings, module.config
    units = config.hidden_size // 4
    words.position.weight[:, units:] = 0
    words.token.weight[:, :units] = 0
    entities.position.weight[: config.max_words] = words.position.weight[config.first_position :]
    for table in (words.token_type, entities.token_type):
        table.weight.zero_()
    if isinstance(entities.projection, torch.nn.Linear):
        entities.projection.weight[:units] = 0
    else:
        entities.token.weight[:, :units] = 0
    mask = entities.token.weight[MASK_ENTITY]
    mask *= words.token.weight.norm(dim=1).mean() / entities.projection(mask).norm()
    layers = cast(list[EncoderLayer], list(module.luke.layers))
    first = layers[0].attention
    first.query.weight.normal_(std=math.sqrt(OWN_PLACE / units / math.sqrt(config.attention_head_size)))
    first.query.weight[:, units:] = 0
    first.key.weight.copy_(first.query.weight)
    for layer in layers:
        layer.attention_output.weight *= 2
