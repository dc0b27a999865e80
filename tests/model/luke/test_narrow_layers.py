"""A model in the form for a GPU in bf16, by Triton's interpreter, against the plain form in float32."""

import pytest
import torch

from tests.support.flat_batches import random_flat
from tests.support.launches import count as launches_of
from tests.support.models import STILL, TINY
from tests.support.narrow import narrow_on_cpu
from tests.support.outcomes import OF_GRADIENT, OF_LOSS, compare, make, outcome

__all__ = ["narrow_on_cpu"]
LENGTHS = {"entities": [(9, 2), (5, 0), (7, 3)], "no entities": [(9, 0), (4, 0)]}


@pytest.mark.parametrize("entity_aware", [False, True])
@pytest.mark.parametrize("name", LENGTHS)
def test_losses_and_gradients_are_those_of_float32(name: str, entity_aware: bool, narrow_on_cpu: list[str]) -> None:
    module, batch = make(STILL, entity_aware), random_flat(LENGTHS[name], STILL)
    wanted, of_wanted = outcome(module, batch, "float32")
    assert not narrow_on_cpu
    found, of_found = outcome(module, batch)
    assert set(narrow_on_cpu) >= {"add_norm_forward", "add_norm_backward", "gather", "cross_entropy"}
    assert ("merge" in narrow_on_cpu) == (entity_aware and name == "entities")
    assert found == pytest.approx(wanted, rel=OF_LOSS["bf16"])
    compare(of_found, of_wanted, OF_GRADIENT["bf16"])


@pytest.mark.usefixtures("narrow_on_cpu")
def test_a_layer_that_is_computed_again_drops_the_same() -> None:
    module, batch = make(TINY, True), random_flat(LENGTHS["entities"], TINY)
    found = []
    for module.luke.gradient_checkpointing in (False, True):
        torch.manual_seed(5)
        found.append(outcome(module, batch))
    assert found[0][0] == found[1][0]
    torch.testing.assert_close(found[0][1], found[1][1], atol=0, rtol=0)


def test_a_compiled_layer_is_made_of_torch_s_operations(narrow_on_cpu: list[str]) -> None:
    """As is one whose products are in float32."""
    module, batch = make(STILL, True).eval(), random_flat(LENGTHS["entities"], STILL)
    for layer in module.luke.layers:
        layer.is_compiled = True
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        module.luke(batch)
    assert set(narrow_on_cpu) == {"merge"}
    with torch.no_grad():
        assert module.luke(batch).dtype == torch.float32


@pytest.mark.usefixtures("narrow_on_cpu")
def test_nothing_is_dropped_out_of_training() -> None:
    batch, found = random_flat(LENGTHS["entities"], TINY), []
    for config in (TINY, STILL):
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            found.append(make(config, True).eval().luke(batch))
    assert torch.equal(*found)


@pytest.mark.usefixtures("narrow_on_cpu")
def test_states_leave_the_model_in_the_type_of_its_weights() -> None:
    module, batch = make(STILL, True).eval(), random_flat(LENGTHS["entities"], STILL)
    with torch.no_grad():
        wanted = module.luke(batch)
        with torch.autocast("cpu", torch.bfloat16):
            found = module.luke(batch)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, wanted, atol=0.05, rtol=0.05)


@pytest.mark.parametrize("entity_aware", [False, True])
def test_a_micro_batch_of_large_launches_and_moves_no_more_than_is_documented(entity_aware: bool) -> None:
    """Counted without a GPU; docs/explanation/needs.md has the counts."""
    launches, gigabytes = (1700, 130) if entity_aware else (1200, 112)
    for counted in launches_of("large", entity_aware=entity_aware):
        assert sum(counted.counts.values()) <= launches
        assert counted.gigabytes <= gigabytes
        assert counted.counts["triton add_norm_backward"] == 48, "two of each layer"
