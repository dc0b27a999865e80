"""The model that pretraining starts from: from scratch, or around the words of a base model."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch.nn import functional

from model.data.shards import Corpus, SequenceFacts
from model.hf.load import is_entity_aware_query, load_strictly, read_model
from model.luke.config import MASK_ENTITY, SPECIAL_ENTITIES, LukeConfig, preset
from model.luke.embeddings import initialise
from model.luke.heads import LukeForPretraining, PaperEntityHead
from model.luke.new_entities import copy_places
from model.luke.titles import vectors_of_titles
from model.pretraining.recipes import SCRATCH, Configuration

logger = logging.getLogger(__name__)
MOST_SPARE_WORDS = 127  # tables are rounded up to a multiple of 128 at most; more is another tokenizer's
HEAD_BIAS = 6.0  # there GELU lets through what it is given; the layer norm takes the bias out again


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
        return module, frozenset(module.state_dict())
    base_config, weights = read_model(base_model)
    if base_config.word_encoder == "bert":  # whose positions do not need it, and some configurations have it wrong
        base_config = replace(base_config, pad_token_id=facts.pad_id)
    check_base(base_config, facts, base_model)
    base_config, weights = without_spare_words(base_config, weights, facts.word_vocab_size)
    sizes = {**configuration.sizes, **entities, "use_entity_aware_attention": False}
    module = LukeForPretraining(replace(base_config, **sizes))
    words = {key: tensor for key, tensor in weights.items() if is_word_side(key)}
    has_head = any(key.startswith("word_head.") for key in words)
    optional = {key for key in module.state_dict() if not is_word_side(key)}
    if not has_head:
        optional |= {key for key in module.state_dict() if key.startswith("word_head.")}
    load_strictly(module, words, source=base_model, optional=optional)
    if not has_head:  # drawn once more, so that it is the same whatever entities there are
        torch.manual_seed(seed)
        module.word_head.apply(lambda part: initialise(part, base_config.initializer_range))
    return module, frozenset(set(module.state_dict()) - set(words))


def without_spare_words(
    config: LukeConfig, weights: Mapping[str, torch.Tensor], count: int
) -> tuple[LukeConfig, dict[str, torch.Tensor]]:
    """A base model without the rows behind the `count` words of its tokenizer, by which some tables are rounded up."""
    if config.vocab_size > count:
        spare = config.vocab_size - count
        logger.info("the base model's last %d word rows are no word of its tokenizer: left out", spare)
    tables = ("luke.word_embeddings.token.weight", "word_head.bias")
    kept = {key: tensor[:count] if key in tables else tensor for key, tensor in weights.items()}
    return replace(config, vocab_size=count), kept


def is_word_side(key: str) -> bool:
    """Return whether a parameter is one that LUKE has in common with RoBERTa."""
    return not (key.startswith(("luke.entity_embeddings.", "entity_head.")) or is_entity_aware_query(key))


def check_base(config: LukeConfig, facts: SequenceFacts, base_model: str) -> None:
    """Raise a ValueError unless the base model has the words of the sequences and enough positions."""
    for name, found, wanted, most in (
        ("vocab_size", config.vocab_size, facts.word_vocab_size, facts.word_vocab_size + MOST_SPARE_WORDS),
        ("pad_token_id", config.pad_token_id, facts.pad_id, facts.pad_id),
    ):
        if not wanted <= found <= most:
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
def begin_with_words(module: LukeForPretraining, corpus: Corpus) -> None:
    """Start entities and their head from the words of a base model.

    An entity is the mean vector of its name's words and, for less, of its whole title's. [MASK] is the word [MASK].
    Positions, type and layer norm of entities are the words'. The head begins as a layer norm alone: its matrix is the
    identity, and a bias for all units keeps its activation from cutting off what is negative. Where entities are
    narrower than words, they keep [MASK] as it is, and the directions that hold most of the others.
    """
    words, entities = module.luke.word_embeddings.token.weight, module.luke.entity_embeddings
    width = module.config.entity_emb_size
    copy_places(module.luke)
    vectors = vectors_of_titles(words, corpus.titles())
    vectors[MASK_ENTITY] = words[corpus.facts.mask_id]
    basis = main_directions(vectors, width)
    entities.token.weight.copy_(vectors if width == len(basis) else vectors @ basis)
    if isinstance(entities.projection, torch.nn.Linear):
        entities.projection.weight.copy_(basis)
    head = module.entity_head
    head.dense.bias.fill_(HEAD_BIAS)
    if isinstance(head, PaperEntityHead):
        torch.nn.init.eye_(head.dense.weight)
        head.projection.weight.copy_(basis.T)
    else:
        head.dense.weight.copy_(basis.T)


def main_directions(vectors: torch.Tensor, width: int) -> torch.Tensor:
    """Directions (hidden, width) that hold all of [MASK], and most of the vectors (entities, hidden) behind it.

    Where there is room for all of them it is the identity, with zeros for what is left.
    """
    hidden = vectors.shape[1]
    if width >= hidden:
        return torch.eye(hidden, width)
    first = functional.normalize(vectors[MASK_ENTITY], dim=0)
    others = vectors[SPECIAL_ENTITIES:]
    others = others - (others @ first)[:, None] * first
    found = torch.linalg.eigh(others.T @ others).eigenvectors.flip(1)
    return torch.cat([first[:, None], found[:, : width - 1]], dim=1)
