"""Inputs that no model can take are refused by name; those on another device are not looked into."""

import re
from dataclasses import replace

import pytest
import torch

from model.kernels import attention_cpu, attention_cuda
from model.luke.encoder import LukeModel
from model.luke.heads import LukeForPretraining
from tests.support.flat_batches import random_flat
from tests.support.models import TINY, flat_of, random_batch

LAST = {"word": TINY.vocab_size - 1, "entity": TINY.entity_vocab_size - 1}


@pytest.mark.parametrize(
    ("field", "place", "value", "wanted"),
    [
        ("word_ids", 9, LAST["word"] + 1, f"0 to {LAST['word']}, the rows of the model's table"),
        ("word_ids", 0, -3, f"0 to {LAST['word']}, the rows of the model's table"),
        ("word_labels", 1, LAST["word"] + 1, f"0 to {LAST['word']}, the rows of the model's table"),
        ("entity_ids", 2, 1 << 20, f"0 to {LAST['entity']}, the rows of the model's table"),
        ("entity_ids", 0, -3, f"0 to {LAST['entity']}, the rows of the model's table"),
        ("entity_labels", 0, -100, f"0 to {LAST['entity']}, the rows of the model's table"),
        ("mention_starts", 1, -2, "0 or more"),
        ("mention_lengths", 2, 0, "a word or more"),
        ("mention_lengths", 1, 10, "mentions that end in their sequences"),
    ],
)
def test_what_no_model_can_take_is_refused(field: str, place: int, value: int, wanted: str) -> None:
    batch = random_flat([(9, 2), (4, 3)], TINY)
    tensor = getattr(batch, field)
    tensor[place] = value
    message = f"{field} of shape ({len(tensor)},) has {value} at [{place}], wanted {wanted}"
    for module in (LukeModel(TINY), LukeForPretraining(TINY)):
        with pytest.raises(ValueError, match=re.escape(message)):
            module(batch)


def test_other_devices_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The meta device has no values: whoever looks at one fails. The kernels of attention are for tests/gpu."""
    monkeypatch.setattr(attention_cpu, "attend_in_turn", lambda queries, *_: torch.empty_like(queries))
    with torch.device("meta"):
        module = LukeModel(TINY)
    assert module(random_flat([(9, 2), (4, 3)], TINY).to("meta")).shape == (18, 16)


@pytest.mark.parametrize("entity_aware", [False, True])
@pytest.mark.parametrize("entities", [0, 5])
def test_training_waits_for_no_device(entities: int, entity_aware: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flat batch on the meta device, in the GPU's form of attention; the losses are for tests/gpu."""
    monkeypatch.setattr(attention_cuda, "takes", lambda *of: True)
    config = replace(TINY, use_entity_aware_attention=entity_aware)
    with torch.device("meta"):
        module = LukeForPretraining(config)
    flat = flat_of(random_batch(config, entities=entities))
    asked = module.masked_states(flat.to("meta"))
    sum(states.sum() for states, _ in asked.values()).backward()
    trained = {name for name, value in module.named_parameters() if value.grad is not None}
    wanted = {name for name, _ in module.luke.layers[0].named_parameters(prefix="luke.layers.0")}
    assert {name for name in wanted if entities or "entity_to" not in name} <= trained
