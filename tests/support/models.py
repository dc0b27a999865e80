"""Tiny models and batches, and transformers' models with the same weights as references."""

from dataclasses import asdict, replace
from pathlib import Path

import torch

from model.hf.keys import from_transformers
from model.hf.load import load_strictly
from model.luke.batch import IGNORED, FlatBatch, MaskedSequence, collate
from model.luke.config import PRESETS, TRANSFORMERS_LACK, LukeConfig
from model.luke.encoder import LukeModel
from tests.support.padded import PaddedBatch
from tests.support.shards import ENTITIES, WORDS

TINY = replace(
    PRESETS["tiny"],
    vocab_size=WORDS,
    entity_vocab_size=ENTITIES,
    hidden_size=16,
    entity_emb_size=8,
    num_attention_heads=2,
    intermediate_size=24,
    max_position_embeddings=40,
)
STILL = replace(TINY, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def random_batch(config: LukeConfig = TINY, *, size: int = 4, words: int = 14, entities: int = 5) -> PaddedBatch:
    """A batch from torch's generator: different lengths, mentions of 1 to 4 words, labels."""
    word_mask = torch.ones(size, words, dtype=torch.bool)
    word_mask[0, -3:] = False
    word_mask[1, -4:] = False
    word_ids = torch.randint(4, config.vocab_size, (size, words)).masked_fill(~word_mask, config.pad_token_id)
    is_asked = (torch.rand(size, words) < 0.3) & word_mask
    is_asked[:, 7] = True
    word_labels = torch.where(is_asked, torch.randint(0, config.vocab_size, (size, words)), -100)
    if not entities:
        return PaddedBatch(word_ids, word_mask, word_labels=word_labels)
    entity_mask = torch.ones(size, entities, dtype=torch.bool)
    entity_mask[0, -2:] = False
    entity_mask[2, :1] = False
    ids = torch.randint(1, config.entity_vocab_size, (size, entities)).masked_fill(~entity_mask, 0)
    positions = torch.randint(0, words - 10, (size, entities, 1)) + torch.arange(4)
    is_word = torch.arange(4) < torch.randint(1, 5, (size, entities, 1))
    positions = torch.where(is_word & entity_mask[..., None], positions, -1)
    labels = torch.randint(0, config.entity_vocab_size, (size, entities))
    labels = torch.where(entity_mask & (torch.rand(size, entities) < 0.7), labels, -100)
    labels[3, 0] = 4
    of_entities = ids, positions, entity_mask
    return PaddedBatch(word_ids, word_mask, *of_entities, word_labels=word_labels, entity_labels=labels)


def still_batches() -> dict[str, PaddedBatch]:
    """Batches for STILL: with entities in every sequence, in all but one, in none, and of one sequence."""
    torch.manual_seed(0)
    batch = random_batch(STILL)
    of_entities = ("entity_mask", "entity_positions", "entity_labels")
    less = {name: getattr(batch, name).clone() for name in of_entities}
    for tensor, nothing in zip(less.values(), (False, -1, IGNORED), strict=True):
        tensor[1] = nothing
    columns = {name: value[:1] for name, value in vars(batch).items() if value is not None}
    return {
        "different lengths": batch,
        "a sequence without entities": replace(batch, **less),
        "no entities at all": random_batch(STILL, entities=0),
        "one sequence": PaddedBatch(**columns),
    }


def flat_of(batch: PaddedBatch) -> FlatBatch:
    """The same batch without padding; mentions must be of consecutive words."""
    sequences = [masked_row(batch, row) for row in range(len(batch.word_ids))]
    return collate(sequences, max_mention_words=30, entities=batch.entity_ids is not None)


def masked_row(batch: PaddedBatch, row: int) -> MaskedSequence:
    """A sequence of a padded batch, without its padding."""
    words = batch.word_mask[row]
    columns = [batch.word_ids[row, words], batch.word_labels[row, words]]
    if batch.entity_ids is None:
        columns += [torch.zeros(0, dtype=torch.int64)] * 4
    else:
        entities = batch.entity_mask[row]
        places = batch.entity_positions[row, entities]
        columns += [batch.entity_ids[row, entities], batch.entity_labels[row, entities]]
        columns += [places[:, 0], places.max(dim=1).values + 1]
    return MaskedSequence(*(column.numpy() for column in columns))


def transformers_values(config: LukeConfig) -> dict[str, object]:
    """The arguments of transformers' LukeConfig for the same model."""
    return {name: value for name, value in asdict(config).items() if name not in TRANSFORMERS_LACK}


def transformers_pair(config: LukeConfig) -> tuple[LukeModel, torch.nn.Module]:
    """Our encoder and transformers' with the same random weights (every bias and layer norm, too)."""
    import transformers

    values = transformers_values(config)
    torch.manual_seed(3)
    theirs = shake(transformers.LukeModel(transformers.LukeConfig(**values), add_pooling_layer=False).eval())
    weights = from_transformers(theirs.state_dict(), "theirs", with_heads=False)
    ours = LukeModel(config).eval()
    state = {key.removeprefix("luke."): tensor for key, tensor in weights.items()}
    load_strictly(ours, state, source="theirs", optional=set())
    return ours, theirs


def run_transformers(theirs: torch.nn.Module, batch: PaddedBatch) -> torch.Tensor:
    """The states of words, then of entities, without padding, as ours lie."""
    output = theirs(**transformers_inputs(batch))
    words = output.last_hidden_state[batch.word_mask]
    if batch.entity_mask is None:
        return words
    return torch.cat([words, output.entity_last_hidden_state[batch.entity_mask]])


def transformers_inputs(batch: PaddedBatch) -> dict[str, torch.Tensor]:
    """The inputs of transformers' models for a batch, without labels."""
    inputs = {"input_ids": batch.word_ids, "attention_mask": batch.word_mask.long()}
    if batch.entity_ids is not None:
        inputs |= {
            "entity_ids": batch.entity_ids,
            "entity_attention_mask": batch.entity_mask.long(),
            "entity_position_ids": batch.entity_positions,
        }
    return inputs


def shake(module: torch.nn.Module) -> torch.nn.Module:
    """Add noise to every parameter, so that no bias is zero and no layer norm the identity.

    That of a matrix falls with its width, so that a product's size does not grow with it.
    """
    with torch.no_grad():
        for parameter in module.parameters():
            size = 0.1 if parameter.ndim < 2 else 0.4 / parameter.shape[-1] ** 0.5
            parameter.add_(torch.randn_like(parameter) * size)
    return module


def words_of_transformers(kind: str, **changes: object) -> torch.nn.Module:
    """A random RoBERTa, XLM-R or BERT of transformers of this class, as small as TINY."""
    import transformers

    values = transformers_values(TINY) | changes
    for name in ("entity_vocab_size", "entity_emb_size", "use_entity_aware_attention"):
        del values[name]
    config = getattr(transformers, f"{kind.partition('Model')[0].partition('For')[0]}Config")
    torch.manual_seed(6)
    return shake(getattr(transformers, kind)(config(**values)).eval())


def save_tied(theirs: torch.nn.Module, folder: Path) -> torch.nn.Module:
    """Save a model of transformers; LUKE's word head is made equal to the word embeddings, as it is trained."""
    if hasattr(theirs, "entity_predictions"):
        with torch.no_grad():
            theirs.lm_head.decoder.weight.copy_(theirs.luke.embeddings.word_embeddings.weight)
    theirs.save_pretrained(folder)
    return theirs


def luke_of_transformers(kind: str, **changes: object) -> torch.nn.Module:
    """A random LUKE of transformers of this class, as small as TINY."""
    import transformers

    values = transformers_values(replace(TINY, use_entity_aware_attention=True)) | changes
    torch.manual_seed(7)
    return shake(getattr(transformers, kind)(transformers.LukeConfig(**values)).eval())
