"""What is no batch is refused where it is made, by name; what lies on another device is not looked into."""

import re
from dataclasses import replace
from typing import Any

import pytest
import torch

from model.kernels import attention_cpu, attention_cuda
from model.luke.encoder import LukeModel
from model.luke.heads import LukeForPretraining
from tests.support.models import TINY, flat_of, random_batch


def changed(name: str, place: tuple[int, ...], value: int) -> dict[str, Any]:
    tensor = getattr(batch(), name).clone()
    tensor[place] = value
    return {name: tensor}


def batch() -> Any:
    torch.manual_seed(0)
    return random_batch()


REFUSED: list[tuple[dict[str, Any], str]] = [
    (changed("word_mask", (2,), 0), r"word_mask of shape \(4, 14\) has no word in sequence 2"),
    ({"entity_mask": None}, "entity_ids, entity_positions, entity_mask come together; one is None"),
    (
        changed("entity_positions", (3, 1, 0), 14),
        r"entity_positions of shape \(4, 5, 4\) has 14 at \[3, 1, 0\], wanted -1 to 13 for 14 words",
    ),
    (changed("entity_positions", (3, 1, 0), -2), r"entity_positions .* has -2 at \[3, 1, 0\]"),
    (
        changed("entity_positions", (1, 2, 0), 3),
        r"entity_positions .* has 3 at \[1, 2, 0\], wanted positions where word_mask is True",
    ),
    (
        changed("entity_positions", (3, 1), -1),
        r"entity_positions of shape \(4, 5, 4\): the mention of entity 1 of sequence 3 is empty",
    ),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_is_no_batch_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(batch(), **changes)


@pytest.mark.parametrize(("name", "rows"), [("word_ids", 60), ("entity_ids", 12)])
@pytest.mark.parametrize("beyond", [True, False])
def test_ids_without_a_row_are_refused(name: str, rows: int, beyond: bool) -> None:
    value = rows if beyond else -3
    bad = replace(batch(), **changed(name, (3, 0), value))
    shape = tuple(getattr(bad, name).shape)
    found, wanted = f"{name} of shape {shape} has {value} at [3, 0], wanted", f"0 to {rows - 1}, the rows of"
    with pytest.raises(ValueError, match=re.escape(f"{found} {wanted}")):
        LukeModel(TINY)(bad)


def test_other_devices_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The meta device has no values: whoever looks at one fails. The kernels of attention are for tests/gpu."""
    monkeypatch.setattr(attention_cpu, "attend_in_turn", lambda queries, *_: torch.empty_like(queries))
    moved = batch().unpadded().to("meta")
    assert {getattr(moved, name).device.type for name in ("word_ids", "entity_positions")} == {"meta"}
    assert moved.packed.layout.order.device.type == "meta"
    with torch.device("meta"):
        module = LukeForPretraining(TINY)
    words, entities = module.luke(moved)
    assert (words.shape, entities.shape) == ((4, 14, 16), (4, 5, 16))


@pytest.mark.parametrize("entity_aware", [False, True])
@pytest.mark.parametrize("entities", [0, 5])
def test_training_waits_for_no_device(
    entities: int, entity_aware: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
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
