"""The model that pretraining starts from: from scratch, or around the words of a base model."""

import math
from dataclasses import replace
from typing import Any, cast

import torch

from model.data.shards import SequenceFacts
from model.exchange.load import is_entity_aware_query, load_strictly, read_model
from model.luke.config import MASK_ENTITY, SPECIAL_ENTITIES, LukeConfig, preset
from model.luke.encoder import EncoderLayer
from model.luke.heads import LukeForPretraining
from model.pretraining.configuration import Configuration
from model.pretraining.recipes import SCRATCH

OWN_PLACE = 11.0  # the expected logit of a word's attention to its own place


def build_model(
    facts: SequenceFacts, configuration: Configuration, *, seed: int
) -> tuple[LukeForPretraining, frozenset[str]]:
    """The model to pretrain and the names of its parameters that are new: not taken from the base model."""
    base_model = configuration.base_model
    entities: dict[str, Any] = {
        "entity_vocab_size": facts.entity_vocab_size if configuration.entities else SPECIAL_ENTITIES
    }
    torch.manual_seed(seed)
    if base_model == SCRATCH:
        config = replace(preset(configuration.preset), **configuration.sizes)
        positions = max(config.max_position_embeddings, facts.max_words + facts.pad_id + 1)
        vocabularies = {"vocab_size": facts.word_vocab_size, "pad_token_id": facts.pad_id, **entities}
        module = LukeForPretraining(replace(config, max_position_embeddings=positions, **vocabularies))
        if configuration.recipe.begins_at_own_place:
            attend_to_own_place(module)
        return module, frozenset(module.state_dict())
    base_config, weights = read_model(base_model)
    check_base(base_config, facts, base_model)
    sizes = {**configuration.sizes, **entities, "use_entity_aware_attention": False}
    module = LukeForPretraining(replace(base_config, **sizes))
    words = {key: tensor for key, tensor in weights.items() if is_word_side(key)}
    has_head = any(key.startswith("word_head.") for key in words)
    optional = {
        key
        for key in module.state_dict()
        if not is_word_side(key) or (key.startswith("word_head.") and not has_head)
    }
    load_strictly(module, words, source=base_model, optional=optional)
    return module, frozenset(set(module.state_dict()) - set(words))


def is_word_side(key: str) -> bool:
    """Whether a parameter is one that LUKE has in common with RoBERTa."""
    return not (key.startswith(("luke.entity_embeddings.", "entity_head.")) or is_entity_aware_query(key))


def check_base(config: LukeConfig, facts: SequenceFacts, base_model: str) -> None:
    """Raise a ValueError unless the base model has the words of the sequences and enough positions."""
    for name, found, wanted in (
        ("vocab_size", config.vocab_size, facts.word_vocab_size),
        ("pad_token_id", config.pad_token_id, facts.pad_id),
    ):
        if found != wanted:
            raise ValueError(
                f"{base_model}: {name} {found}, but the sequences were made with {wanted}; "
                "make the sequences with the base model's own tokenizer"
            )
    if config.max_words < facts.max_words:
        raise ValueError(
            f"{base_model}: positions for {config.max_words} words, but sequences have up to "
            f"{facts.max_words}; make shorter sequences or take another base model"
        )


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
