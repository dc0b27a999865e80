"""The start of entities around words that have never seen one."""

import logging

import torch
from torch import Tensor, nn

from model.kernels.packing import Packed
from model.luke.attention import EntityAwareAttention
from model.luke.batch import FlatBatch
from model.luke.config import PAD_ENTITY
from model.luke.encoder import LukeModel

logger = logging.getLogger(__name__)
SCORE = -10.0  # that an entity has for any word; a hundred of them then weigh less than one word of score 0


def start_entities_as_words(module: LukeModel, mask_word: int, source: str) -> None:
    """Give every special entity but [PAD] the input of the word [MASK] at the place of its mention.

    [MASK]'s word embedding, for which entities are as wide as words (no U), and words' positions, type and layer
    norm. Drawn at random, an entity would look like no word that the layers were trained on, and its position
    would have nothing to do with the words that stand there.
    """
    words, entities = module.word_embeddings, module.entity_embeddings
    if mask_word >= module.config.vocab_size:
        raise ValueError(
            f"{source}: {module.config.vocab_size} word embeddings, but [MASK] is word {mask_word}; give the "
            "tokenizer that the weights were trained with"
        )
    with torch.no_grad():
        entities.token.weight[PAD_ENTITY + 1 :] = words.token.weight[mask_word]
    copy_places(module)
    module.entities_are_new = True
    logger.info("%s: weights without entities; entities start as the word [MASK] at their mention", source)


@torch.no_grad()
def copy_places(module: LukeModel) -> None:
    """Give entities the positions, the type and the layer norm of words."""
    words, entities, config = module.word_embeddings, module.entity_embeddings, module.config
    entities.position.weight[: config.max_words] = words.position.weight[config.first_position :]
    entities.token_type.weight.copy_(words.token_type.weight)
    entities.norm.load_state_dict(words.norm.state_dict())


@torch.no_grad()
def hide_entities(luke: LukeModel, inputs: FlatBatch) -> None:
    """Set the query of words for entities (Q_w2e) so that words hardly see these; training may change it.

    A sentence has up to 128 spans, each of which is an entity. Words that see these have states on which the encoder
    was not trained. The query of each head is the constant whose scores with the entities of `inputs` are nearest to
    SCORE, by least squares; one layer after the other, since the entities' states follow from those before.
    A query that is no copy of Q any more was trained, and stays.
    """

    def set_query(attention: nn.Module, arguments: tuple[Tensor, Packed]) -> None:
        assert isinstance(attention, EntityAwareAttention)
        states, layout = arguments
        of_entities = attention.key(states[layout.words :])
        keys = of_entities.unflatten(-1, (attention.heads, attention.head_size))
        scores = torch.full((attention.heads, len(keys), 1), SCORE * attention.head_size**0.5)
        found = torch.linalg.lstsq(keys.transpose(0, 1), scores.to(keys), driver="gelsd").solution
        attention.word_to_entity_query.weight.zero_()
        attention.word_to_entity_query.bias.copy_(found.flatten())

    if not inputs.shape.entities:
        return
    parts = [part for part in luke.modules() if isinstance(part, EntityAwareAttention)]
    hooks = [part.register_forward_pre_hook(set_query) for part in parts if part.words_query_all_alike()]
    if hooks:
        logger.info("words begin as if there were no entities: their queries for these give a low score")
    try:
        luke(inputs)
    finally:
        for hook in hooks:
            hook.remove()
