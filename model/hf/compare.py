"""Compares a model of transformers in both implementations: `python -m model.hf check DIR`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from model.hf.keys import UntiedError, below
from model.hf.load import has_entities, load_encoder, load_strictly, read_model, read_transformers
from model.luke.batch import FlatBatch, MaskedSequence, collate
from model.luke.config import LukeConfig
from model.luke.heads import LukeForPretraining

TOLERANCE = 1e-6  # of float64, so that rounding hides no difference
SEED = 0
LONGEST_MENTION = 4
FINE_TUNED = ("Classification", "QuestionAnswering", "MultipleChoice")


def check_and_print(folder: Path) -> int:
    """Print the largest difference of each output; 0 where all are within TOLERANCE, 3 for an encoder alone, else 1."""
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()  # absent keys are printed below
    transformers_logging.disable_progress_bar()
    differences, absent, left_out = check(folder)
    for name, difference in differences.items():
        print(f"{name:<14}{difference:>12.2e}")
    if absent:
        print(f"{folder}: not in the weights, drawn at random by transformers: {', '.join(absent)}")
    wrong = [name for name, difference in differences.items() if not difference <= TOLERANCE]
    if wrong:
        print(f"{folder}: DIFFERENT by more than {TOLERANCE:g}: {', '.join(wrong)}")
        return 1
    if left_out:
        print(f"{folder}: encoder only, equal within {TOLERANCE:g}; not compared: {left_out}")
        return 3
    print(f"{folder}: equal within {TOLERANCE:g}")
    return 0


def check(folder: Path) -> tuple[dict[str, float], list[str], str]:
    """The largest difference of each output on a random batch, the parameters that transformers missed, and the head
    that was left out, if any.

    The outputs are the states and, where there are pretraining heads, the logits of words and entities. Nothing is
    fetched. Raises ValueError for a folder that cannot be read.
    """
    if not (folder / "config.json").is_file():
        raise ValueError(f"{folder / 'config.json'}: no such file; give a folder of transformers")
    values, _ = read_transformers(str(folder))
    config, weights, left_out = read_comparable(folder, values)
    entities = has_entities(weights)
    torch.manual_seed(SEED)
    sequences = random_sequences(config, entities=entities)
    batch = collate(sequences, max_mention_words=LONGEST_MENTION, entities=entities)
    ours = our_outputs(config, weights, batch, str(folder))
    with_heads = "word_head.bias" in weights
    theirs, absent = their_outputs(folder, sequences, with_heads=with_heads)
    differences = {
        name: float((ours[name] - each).abs().max()) if ours[name].shape == each.shape else float("inf")
        for name, each in theirs.items()
    }
    return differences, absent, left_out


def read_comparable(folder: Path, values: Mapping[str, Any]) -> tuple[LukeConfig, dict[str, Tensor], str]:
    """Configuration and weights, and the head that is left out: of fine-tuned models, and where it is not tied."""
    names = values.get("architectures") or [""]
    is_fine_tuned = any(kind in names[0] for kind in FINE_TUNED)
    try:
        left_out = f"the classifier of {names[0]}" if is_fine_tuned else ""
        return *read_model(str(folder), with_heads=not is_fine_tuned), left_out
    except UntiedError as error:
        return *read_model(str(folder), with_heads=False), f"the prediction heads ({error})"


def our_outputs(config: LukeConfig, weights: Mapping[str, Tensor], batch: FlatBatch, source: str) -> dict[str, Tensor]:
    """The outputs of this project's model by name."""
    module = LukeForPretraining(config).double().eval()
    load_encoder(module.luke, weights, source=source, entities_required=has_entities(weights))
    for name, head in (("word_head.", module.word_head), ("entity_head.", module.entity_head)):
        if found := below(weights, name):
            load_strictly(head, found, source=source, optional=set())
    with torch.inference_mode():
        words, entities = module.luke(batch).split([batch.shape.words, batch.shape.entities])
        outputs = {"word states": words}
        outputs["word logits"] = module.word_head(words, module.luke.word_embeddings.token.weight)
        if batch.shape.entities:
            outputs["entity states"] = entities
            table = module.luke.entity_embeddings.token.weight
            outputs["entity logits"] = module.entity_head(entities, table)
    return outputs


def their_outputs(
    folder: Path, sequences: Sequence[MaskedSequence], *, with_heads: bool
) -> tuple[dict[str, Tensor], list[str]]:
    """The outputs of transformers by name, sequence by sequence, and the parameters that it did not find."""
    import transformers

    # A pooler, which nothing here uses, would be missed in most folders.
    extra: dict[str, Any] = {} if with_heads else {"add_pooling_layer": False}
    kind: Any = transformers.AutoModelForMaskedLM if with_heads else transformers.AutoModel
    module, info = kind.from_pretrained(
        folder, local_files_only=True, output_loading_info=True, dtype=torch.float64, **extra
    )
    module.eval()
    with torch.inference_mode():
        outputs = [run(module, their_inputs(sequence)) for sequence in sequences]
    joined = {name: torch.cat([output[name][0] for output in outputs]) for name in outputs[0]}
    return joined, sorted(info["missing_keys"])


def their_inputs(sequence: MaskedSequence) -> dict[str, Tensor]:
    """Return one sequence as input of transformers' models."""
    inputs = {"input_ids": sequence.word_ids}
    if len(sequence.entity_ids):
        places = sequence.entity_starts[:, None] + np.arange(LONGEST_MENTION)
        positions = np.where(places < sequence.entity_ends[:, None], places, -1)
        inputs |= {"entity_ids": sequence.entity_ids, "entity_position_ids": positions}
    return {name: torch.from_numpy(values)[None] for name, values in inputs.items()}


def run(module: nn.Module, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """States of transformers' encoder and, where the model has heads, logits."""
    output = module(**inputs, output_hidden_states=True)
    named = {
        "word states": output.hidden_states[-1],
        "entity states": (getattr(output, "entity_hidden_states", None) or [None])[-1],
        "word logits": getattr(output, "logits", None),
        "entity logits": getattr(output, "entity_logits", None),
    }
    return {name: tensor for name, tensor in named.items() if tensor is not None}


def random_sequences(config: LukeConfig, *, entities: bool) -> list[MaskedSequence]:
    """Random words and mentions of one to four words; no sequence is as long as another."""
    generator = np.random.default_rng(SEED)
    longest = min(32, config.max_words)
    found = []
    for words in (longest - longest * number // 8 for number in range(4)):
        word_ids = generator.integers(0, config.vocab_size - 1, words)
        word_ids += word_ids >= config.pad_token_id
        lengths = np.minimum(1 + np.arange(6 if entities else 0) % LONGEST_MENTION, words)
        starts = generator.integers(0, words - lengths + 1)
        entity_ids = generator.integers(0, config.entity_vocab_size, len(lengths))
        spans = np.stack([starts, starts + lengths], axis=1)
        found.append(MaskedSequence.unmasked(word_ids, entity_ids, spans))
    return found
