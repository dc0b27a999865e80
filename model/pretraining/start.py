"""The model that pretraining starts from: from scratch, or around the words of a base model."""

from dataclasses import replace

import torch

from model.data.shards import SequenceFacts
from model.exchange.load import is_entity_aware_query, load_strictly, read_model
from model.luke.config import SPECIAL_ENTITIES, LukeConfig
from model.luke.config import preset as preset_config
from model.luke.heads import LukeForPretraining
from model.pretraining.own_place import attend_to_own_place
from model.pretraining.recipes import RECIPES

SCRATCH = "scratch"


def build_model(
    facts: SequenceFacts, preset: str, base_model: str, *, entities: bool, seed: int
) -> tuple[LukeForPretraining, frozenset[str]]:
    """The model to pretrain and the names of its parameters that are new: not taken from the base model."""
    config = preset_config(preset)
    entity_vocab_size = facts.entity_vocab_size if entities else SPECIAL_ENTITIES
    torch.manual_seed(seed)
    if base_model == SCRATCH:
        positions = max(config.max_position_embeddings, facts.max_words + facts.pad_id + 1)
        module = LukeForPretraining(
            replace(
                config,
                vocab_size=facts.word_vocab_size,
                pad_token_id=facts.pad_id,
                max_position_embeddings=positions,
                entity_vocab_size=entity_vocab_size,
            )
        )
        if RECIPES[preset].begins_at_own_place:
            attend_to_own_place(module)
        return module, frozenset(module.state_dict())
    base_config, weights = read_model(base_model)
    check_base(base_config, facts, base_model)
    module = LukeForPretraining(
        replace(
            base_config,
            entity_vocab_size=entity_vocab_size,
            entity_emb_size=config.entity_emb_size,
            entity_head=config.entity_head,
            use_entity_aware_attention=False,
        )
    )
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
