"""Compares a model of transformers in both implementations: `python -m model.hf check DIR`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from model.hf.keys import UntiedError, below
from model.hf.load import has_entities, load_encoder, load_strictly, read_model, read_transformers
from model.luke.batch import Batch
from model.luke.config import LukeConfig
from model.luke.heads import LukeForPretraining

TOLERANCE = 1e-4
SEED = 0
FINE_TUNED = ("Classification", "QuestionAnswering", "MultipleChoice")


def check_and_print(folder: Path) -> int:
    """Print the largest difference of each output; 0 where all are within 1e-4, 3 for an encoder alone, else 1."""
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

    The outputs are the states and, where there are pretraining heads, the logits of words and entities, at
    real words and entities alone. Nothing is fetched. Raises ValueError for a folder that cannot be read.
    """
    if not (folder / "config.json").is_file():
        raise ValueError(f"{folder / 'config.json'}: no such file; give a folder of transformers")
    values, _ = read_transformers(str(folder))
    config, weights, left_out = read_comparable(folder, values)
    entities = has_entities(weights)
    torch.manual_seed(SEED)
    batch = random_batch(config, entities=entities)
    ours = our_outputs(config, weights, batch, str(folder))
    with_heads = "word_head.bias" in weights
    theirs, absent = their_outputs(folder, batch, with_heads=with_heads)
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


def our_outputs(
    config: LukeConfig, weights: Mapping[str, Tensor], batch: Batch, source: str
) -> dict[str, Tensor]:
    """The outputs of this project's model by name."""
    module = LukeForPretraining(config).eval()
    load_encoder(module.luke, weights, source=source, entities_required=has_entities(weights))
    for name, head in (("word_head.", module.word_head), ("entity_head.", module.entity_head)):
        if found := below(weights, name):
            load_strictly(head, found, source=source, optional=set())
    with torch.inference_mode():
        words, entities = module.luke(batch)
        outputs = {"word states": words[batch.word_mask]}
        outputs["word logits"] = module.word_head(
            outputs["word states"], module.luke.word_embeddings.token.weight
        )
        if entities is not None:
            outputs["entity states"] = entities[batch.entity_mask]
            table = module.luke.entity_embeddings.token.weight
            outputs["entity logits"] = module.entity_head(outputs["entity states"], table)
    return outputs


def their_outputs(folder: Path, batch: Batch, *, with_heads: bool) -> tuple[dict[str, Tensor], list[str]]:
    """The outputs of transformers by name, and the parameters that it did not find in the folder."""
    import transformers

    # A pooler, which nothing here uses, would be missed in most folders.
    extra: dict[str, Any] = {} if with_heads else {"add_pooling_layer": False}
    kind: Any = transformers.AutoModelForMaskedLM if with_heads else transformers.AutoModel
    module, info = kind.from_pretrained(
        folder, local_files_only=True, output_loading_info=True, dtype=torch.float32, **extra
    )
    inputs: dict[str, Any] = {"input_ids": batch.word_ids, "attention_mask": batch.word_mask.long()}
    if batch.entity_ids is not None:
        assert batch.entity_mask is not None
        inputs |= {
            "entity_ids": batch.entity_ids,
            "entity_attention_mask": batch.entity_mask.long(),
            "entity_position_ids": batch.entity_positions,
        }
    with torch.inference_mode():
        output = run(module.eval(), inputs)
    masked = {
        name: tensor[batch.word_mask if name.startswith("word") else batch.entity_mask]
        for name, tensor in output.items()
    }
    return masked, sorted(info["missing_keys"])


def run(module: nn.Module, inputs: dict[str, Any]) -> dict[str, Tensor]:
    """States of transformers' encoder and, where the model has heads, logits."""
    output = module(**inputs, output_hidden_states=True)
    named = {
        "word states": output.hidden_states[-1],
        "entity states": (getattr(output, "entity_hidden_states", None) or [None])[-1],
        "word logits": getattr(output, "logits", None),
        "entity logits": getattr(output, "entity_logits", None),
    }
    return {name: tensor for name, tensor in named.items() if tensor is not None}


def random_batch(config: LukeConfig, *, entities: bool, size: int = 4) -> Batch:
    """Random words and mentions of one to four words, padded on the left, on the right and not at all."""
    words = min(32, config.max_words)
    word_mask = torch.ones(size, words, dtype=torch.bool)
    word_mask[0, words * 3 // 4 :] = False
    word_mask[1, : words // 4] = False
    word_ids = torch.randint(0, config.vocab_size - 1, (size, words))
    word_ids += word_ids >= config.pad_token_id
    word_ids = word_ids.masked_fill(~word_mask, config.pad_token_id)
    if not entities:
        return Batch(word_ids, word_mask)
    entity_mask = torch.ones(size, 6, dtype=torch.bool)
    entity_mask[2, 3:] = False
    entity_ids = torch.randint(0, config.entity_vocab_size, entity_mask.shape).masked_fill(~entity_mask, 0)
    lengths = 1 + torch.arange(entity_mask.shape[1])[:, None] % 4
    starts = words // 4 + torch.randint(0, max(1, words // 2 - 4), (*entity_mask.shape, 1))
    offsets = torch.arange(4)
    is_mention = (offsets < lengths) & entity_mask[..., None]
    positions = torch.where(is_mention, (starts + offsets).clamp(max=words - 1), -1)
    return Batch(word_ids, word_mask, entity_ids, positions, entity_mask)
