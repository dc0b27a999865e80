"""The model's work against torch's own count, and the rates of a run's last steps."""

from dataclasses import replace

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from model.luke.batch import FlatBatch, Shape
from model.luke.config import LukeConfig
from model.luke.heads import LukeForPretraining
from model.pretraining.throughput import WINDOW, Meter, training_flops
from model.training.devices import Peaks
from tests.support.flat_batches import random_flat
from tests.support.models import TINY, flat_of, random_batch

SMALL = replace(TINY, hidden_size=64, entity_emb_size=32, intermediate_size=96, hidden_dropout_prob=0.0)


def counted_flops(config: LukeConfig, batch: FlatBatch, *, frozen: bool) -> int:
    torch.manual_seed(2)
    module = LukeForPretraining(config)
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(not frozen or name.startswith(("luke.entity_embeddings.", "entity_head.")))
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        torch.stack(list(module(batch).losses.values())).sum().backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"entity_emb_size": 64},
        {"entity_head": "paper"},
        {"use_entity_aware_attention": True},
        {"num_hidden_layers": 3, "vocab_size": 500, "entity_vocab_size": 300},
    ],
)
def test_work_is_what_torch_counts(changes: dict[str, object], frozen: bool) -> None:
    config = replace(SMALL, attention_probs_dropout_prob=0.0, **changes)
    batch = random_flat([(20, 6)] * 3, config)
    expected = counted_flops(config, batch, frozen=frozen)
    found = training_flops(config, batch.shape, encoder_trains=not frozen)
    assert found == pytest.approx(expected, rel=0.03)


def test_work_without_entities_is_what_torch_counts() -> None:
    config = replace(SMALL, attention_probs_dropout_prob=0.0, entity_vocab_size=3)
    batch = random_flat([(20, 0)] * 3, config)
    found = training_flops(config, batch.shape)
    assert found == pytest.approx(counted_flops(config, batch, frozen=False), rel=0.03)


def test_padding_is_no_work() -> None:
    shape = flat_of(random_batch()).shape
    assert shape.lengths == ((14 - 3, 5 - 2), (14 - 4, 5), (14, 5 - 1), (14, 5))
    each = [Shape((lengths,), 0, 0, 0) for lengths in shape.lengths]
    whole = replace(shape, masked_words=0, masked_entities=0)
    assert training_flops(SMALL, whole) == sum(training_flops(SMALL, one) for one in each)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_rates_leave_out_what_is_done_aside() -> None:
    clock = Clock()
    meter = Meter(SMALL, Peaks(1e6, 4e6), ranks=2, clock=clock)
    shape = Shape(((16, 3), (14, 1)), mention_words=9, masked_words=5, masked_entities=1)
    for _ in range(4):
        meter.add(shape)
        meter.add(shape)
        clock.now += 0.5
        meter.step()
        with meter.aside("evaluation"):
            clock.now += 10
    figures = meter.figures()
    flops = 2 * training_flops(SMALL, shape) / 0.5
    assert figures == {
        "seconds_per_step": 0.5,
        "sequences_per_second": 2 * 8,
        "words_per_second": 2 * 120,
        "flops_per_second": pytest.approx(2 * flops),
        "share_of_measured_peak": pytest.approx(flops / 1e6),
        "share_of_published_peak": pytest.approx(flops / 4e6),
        "seconds_of_evaluation": 40,
    }


def test_rates_are_those_of_the_last_steps() -> None:
    clock = Clock()
    meter = Meter(SMALL, Peaks(1.0), clock=clock)
    for step in range(3 * WINDOW):
        meter.add(Shape(((1, 0),), 0, 0, 0))
        clock.now += 1 if step < 2 * WINDOW else 0.25
        meter.step()
    assert meter.figures()["words_per_second"] == 4
