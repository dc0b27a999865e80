"""A small model on the device: the CPU's losses and gradients, and what it does to get them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from model.data.shards import Corpus
from model.kernels import narrow, tables
from model.luke.batch import FlatBatch
from model.pretraining.loader import Loader
from model.pretraining.phases import to_device
from model.pretraining.recipes import Phase, Recipe
from tests.gpu import DEVICE, LENGTHS, ON_GPU
from tests.support.attention_kernels import attention_kernel
from tests.support.flat_batches import random_flat
from tests.support.models import TINY
from tests.support.outcomes import OF_GRADIENT, OF_LOSS, Outcome, compare, make, outcome
from tests.support.shards import random_rows, write_sequences

pytestmark = ON_GPU
DROPPING = replace(TINY, hidden_size=128, max_position_embeddings=320, num_hidden_layers=3)
STILL = replace(DROPPING, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
BOTH = pytest.mark.parametrize("entity_aware", [False, True])


@cache
def on_the_cpu(entity_aware: bool, name: str) -> Outcome:
    """The wanted losses and gradients, in float32."""
    return outcome(make(STILL, entity_aware), random_flat(LENGTHS[name], STILL), "float32")


@pytest.mark.parametrize("precision", OF_LOSS)
@pytest.mark.parametrize("name", LENGTHS)
@BOTH
def test_losses_and_gradients_are_those_of_the_cpu(entity_aware: bool, name: str, precision: str) -> None:
    batch = random_flat(LENGTHS[name], STILL).to(DEVICE)
    wanted, of_wanted = on_the_cpu(entity_aware, name)
    found, of_found = outcome(make(STILL, entity_aware).to(DEVICE), batch, precision)
    assert found.keys() == wanted.keys()
    assert found == pytest.approx(wanted, rel=OF_LOSS[precision])
    compare(of_found, of_wanted, OF_GRADIENT[precision])


@pytest.mark.parametrize("name", LENGTHS)
@BOTH
def test_states_are_those_of_the_cpu(entity_aware: bool, name: str) -> None:
    module = make(STILL, entity_aware).luke.eval()
    batch = random_flat(LENGTHS[name], STILL)
    with torch.no_grad():
        wanted = module(batch)
        found = module.to(DEVICE)(batch.to(DEVICE))
    torch.testing.assert_close(found.cpu(), wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.usefixtures("count_graphs")
@pytest.mark.parametrize("compiled", [False, True])
@BOTH
def test_checkpointing_changes_no_loss_and_no_gradient(entity_aware: bool, compiled: bool) -> None:
    """With dropout: what is computed again drops the same. The kernel adds gradients up in any order."""
    module = make(DROPPING, entity_aware).to(DEVICE)
    if compiled:
        module.luke.compile_layers()
    batch = random_flat(LENGTHS["different lengths"], DROPPING).to(DEVICE)
    found = []
    for module.luke.gradient_checkpointing in (False, True):
        torch.manual_seed(5)
        found.append(outcome(module, batch))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-3 if compiled else 1e-6)
    compare(found[1][1], found[0][1], OF_GRADIENT["bf16"] if compiled else 5e-3)


@pytest.mark.parametrize("is_training", [False, True])
@BOTH
def test_attention_in_bf16_runs_on_the_flash_kernel(entity_aware: bool, is_training: bool) -> None:
    module = make(DROPPING, entity_aware).to(DEVICE).train(is_training)
    with torch.autocast(DEVICE.type, torch.bfloat16):
        assert attention_kernel(module.luke, DEVICE) == "flash attention"


@BOTH
def test_a_step_in_bf16_calls_the_flash_kernel_both_ways(entity_aware: bool) -> None:
    """As the device itself says, by the names of what ran there."""
    module = make(DROPPING, entity_aware).to(DEVICE)
    batch = random_flat(LENGTHS["different lengths"], DROPPING).to(DEVICE)
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        outcome(module, batch)
        torch.cuda.synchronize()
    names = [event.name for event in profile.events()]
    for way in ("forward", "backward"):
        calls = sum(name == f"aten::_flash_attention_{way}" for name in names)
        cases = 4 if entity_aware else 1  # words and entities to words and entities; or all to all
        assert calls == cases * DROPPING.num_hidden_layers
    assert any("flash" in event.name for event in profile.events() if event.device_type.name == "CUDA")


@BOTH
def test_triton_s_kernels_give_what_torch_s_operations_give(
    entity_aware: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without dropout, of which each has its own; the layers' kernels and the loss's are called."""
    batch = random_flat(LENGTHS["different lengths"], STILL).to(DEVICE)
    calls, launch = [], narrow.launch

    def noted(name: str, *arguments: Any, **constants: Any) -> None:
        calls.append(name)
        launch(name, *arguments, **constants)

    monkeypatch.setattr(narrow, "launch", noted)
    found, of_found = outcome(make(STILL, entity_aware).to(DEVICE), batch)
    assert calls.count("add_norm_backward") == 2 * STILL.num_hidden_layers
    assert calls.count("cross_entropy") == 2
    monkeypatch.setattr(narrow, "has_triton", lambda: False)
    wanted, of_wanted = outcome(make(STILL, entity_aware).to(DEVICE), batch)
    assert found == pytest.approx(wanted, rel=OF_LOSS["bf16"])
    compare(of_found, of_wanted, OF_GRADIENT["bf16"])


@pytest.fixture
def no_waiting() -> Iterator[None]:
    yield
    torch.cuda.set_sync_debug_mode("default")


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize("checkpointing", [False, True])
@BOTH
def test_the_host_does_not_wait_for_a_micro_batch(entity_aware: bool, checkpointing: bool) -> None:
    """From the copy of its numbers to the end of its backward pass; torch raises where it would wait."""
    module = make(DROPPING, entity_aware).to(DEVICE)
    module.luke.gradient_checkpointing = checkpointing
    batches = [random_flat(lengths, DROPPING) for lengths in LENGTHS.values()]
    pinned = [FlatBatch(batch.numbers.pin_memory(), batch.shape) for batch in batches]
    for mode in ("default", "error"):
        torch.cuda.synchronize()
        for batch in pinned:
            torch.cuda.set_sync_debug_mode(mode)
            with torch.autocast("cuda", torch.bfloat16):
                losses = module(to_device(batch, module, DEVICE), {"masked_word": 9, "masked_entity": 9}).losses
            torch.stack(list(losses.values())).sum().backward()
            torch.cuda.set_sync_debug_mode("default")
    assert all(parameter.grad.isfinite().all() for parameter in module.word_head.parameters())


@BOTH
def test_a_batch_of_a_loader_s_size_is_that_of_the_cpu(entity_aware: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some 7,000 tokens, longer than a block of any kernel; the losses are made of several parts."""
    for limit in ("LOGITS", "NARROW_LOGITS"):
        monkeypatch.setattr(tables, limit, 1 << 14)
    lengths = [(100 + 20 * number, 5 + number) for number in range(11)] * 3
    batch = random_flat(lengths, STILL)
    wanted, of_wanted = outcome(make(STILL, entity_aware), batch, "float32")
    for precision, tolerance in OF_LOSS.items():
        found, of_found = outcome(make(STILL, entity_aware).to(DEVICE), batch.to(DEVICE), precision)
        assert found == pytest.approx(wanted, rel=tolerance)
        compare(of_found, of_wanted, OF_GRADIENT[precision])


@pytest.mark.parametrize("workers", [0, 2])
def test_the_micro_batches_of_a_stream_are_pinned(workers: int, tmp_path: Path) -> None:
    sequences = write_sequences(tmp_path, random_rows(60))
    recipe = Recipe((Phase(3, 1e-3, 1, "all"),), 20, 20, log_every=1, checkpoint_every=3, tokens_per_batch=100)
    loader = Loader(Corpus(sequences), recipe, profile="fixed", seed=0, entities=True)
    module = make(DROPPING, True).to(DEVICE)
    for parts in loader.stream(0, 3, workers, pinned=True):
        for part in parts:
            assert part.batch.numbers.is_pinned()
            there = to_device(part.batch, module, DEVICE)
            assert torch.equal(there.numbers.cpu(), part.batch.numbers)


def test_twenty_shapes_are_compiled_at_most_twice_again(count_graphs: Callable[[], int]) -> None:
    deep = replace(STILL, num_hidden_layers=12)  # more layers than graphs
    module = make(deep, True).to(DEVICE)
    other = make(deep, True).to(DEVICE)
    module.luke.compile_layers()
    graphs = []
    for size in range(1, 21):
        lengths = [(20 + 3 * size, 1 + size % 5), (40, 2), (10 + size % 7, size % 3)]
        batch = random_flat(lengths, STILL, seed=size).to(DEVICE)
        losses, gradients = outcome(module, batch)
        graphs.append(count_graphs())
        if size % 10 == 1:
            wanted, of_wanted = outcome(other, batch)
            assert losses == pytest.approx(wanted, rel=OF_LOSS["bf16"])
            compare(gradients, of_wanted, OF_GRADIENT["bf16"])
    assert graphs[0] >= 1, "something is compiled"
    assert graphs[-1] <= 3
