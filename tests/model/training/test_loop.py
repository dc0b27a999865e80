"""The training loop: parameter groups, optimisers, schedule, accumulation and determinism."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from model.luke.heads import LukeForPretraining
from model.pretraining.recipes import PAPER_RECIPE
from model.training import optimizer
from model.training.loop import accumulate, dropout_seed, fit, resolve_device
from model.training.optimizer import linear_schedule, make_optimizer, parameter_groups
from model.training.ranks import Ranks
from tests.support.models import TINY, shake


def test_weight_decay_spares_biases_and_layer_norms_alone() -> None:
    module = LukeForPretraining(TINY)
    module.luke.word_embeddings.token.weight.requires_grad_(False)
    decayed, exempt = parameter_groups(module, 0.01)
    assert (decayed["weight_decay"], exempt["weight_decay"]) == (0.01, 0.0)
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    assert {names[id(parameter)] for parameter in exempt["params"]} == {
        name for name in names.values() if name.endswith("bias") or "norm." in name
    }
    frozen = {"luke.word_embeddings.token.weight"}
    everything = {names[id(parameter)] for group in (decayed, exempt) for parameter in group["params"]}
    assert everything == set(names.values()) - frozen
    assert "luke.entity_embeddings.token.weight" in {names[id(parameter)] for parameter in decayed["params"]}


DECAYED = {
    "luke.word_embeddings.token.weight",
    "luke.word_embeddings.position.weight",
    "luke.word_embeddings.token_type.weight",
    "luke.entity_embeddings.token.weight",
    "luke.entity_embeddings.projection.weight",
    "luke.entity_embeddings.position.weight",
    "luke.entity_embeddings.token_type.weight",
    *(
        f"luke.layers.{layer}.{matrix}.weight"
        for layer in (0, 1)
        for matrix in (
            "attention.query",
            "attention.key",
            "attention.value",
            "attention_output",
            "intermediate",
            "output",
        )
    ),
    "word_head.dense.weight",
    "entity_head.dense.weight",
}


@pytest.mark.parametrize(("bias_correction", "decays_old"), [(True, False), (False, False), (False, True)])
def test_decay_shrinks_the_matrices_and_leaves_the_bits_of_all_else(
    bias_correction: bool, decays_old: bool
) -> None:
    """Gradients of zero: what an update does is decay alone."""
    module = shake(LukeForPretraining(TINY))
    before = {name: parameter.detach().clone() for name, parameter in module.named_parameters()}
    optimizer = make_optimizer(
        parameter_groups(module, 0.01),
        learning_rate=0.5,
        betas=(0.9, 0.999),
        epsilon=1e-6,
        bias_correction=bias_correction,
        decays_old=decays_old,
    )
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, parameter in module.named_parameters():
        if name in DECAYED:
            torch.testing.assert_close(parameter, before[name] * (1 - 0.5 * 0.01), rtol=1e-6, atol=0)
        else:
            assert torch.equal(parameter, before[name])
    assert {name for name in before if torch.equal(module.get_parameter(name), before[name])} == (
        before.keys() - DECAYED
    )


def test_norms_that_are_named_decay() -> None:
    """As RoBERTa's word head did in the authors' code, which spared `bias` and `LayerNorm.weight` alone."""
    module = LukeForPretraining(TINY)
    decayed, exempt = parameter_groups(module, 0.01, ("word_head.norm.weight",))
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    found = {names[id(parameter)] for parameter in decayed["params"]}
    assert found == DECAYED | {"word_head.norm.weight"}
    assert "entity_head.norm.weight" in {names[id(parameter)] for parameter in exempt["params"]}
    theirs = {
        name: name.replace(*("norm", "layer_norm") if "word_head" in name else ("norm.", "LayerNorm."))
        for name in names.values()
    }
    spared = ("bias", "LayerNorm.weight")
    assert found == {ours for ours, name in theirs.items() if not any(part in name for part in spared)}


def literal_adam(
    value: float,
    gradients: list[float],
    *,
    rate: float,
    decay: float,
    bias_correction: bool,
    decays_old: bool = False,
) -> float:
    """AdamW as it is; or the authors': in pretraining the decay is added to the update, in fine-tuning it follows."""
    first, second, epsilon = 0.9, 0.98, 1e-6
    mean = square = 0.0
    for step, gradient in enumerate(gradients, start=1):
        mean = first * mean + (1 - first) * gradient
        square = second * square + (1 - second) * gradient**2
        if bias_correction:
            value -= rate * decay * value
            corrected = mean / (1 - first**step)
            value -= rate * corrected / (math.sqrt(square / (1 - second**step)) + epsilon)
            continue
        update = mean / (math.sqrt(square) + epsilon)
        if decays_old:
            update += decay * value
        value += -rate * update
        if not decays_old:
            value += -rate * decay * value
    return value


@pytest.mark.parametrize(("bias_correction", "decays_old"), [(True, False), (False, False), (False, True)])
@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_optimisers_equal_the_equations(bias_correction: bool, decays_old: bool, decay: float) -> None:
    start, gradients = [1.0, -2.0], [[0.3, -1.0], [0.1, 2.0], [-0.7, 0.5]]
    parameter = nn.Parameter(torch.tensor(start, dtype=torch.float64))
    groups = [{"params": [parameter], "weight_decay": decay}]
    kind = {"bias_correction": bias_correction, "decays_old": decays_old}
    optimizer = make_optimizer(groups, learning_rate=0.1, betas=(0.9, 0.98), epsilon=1e-6, **kind)
    for gradient in gradients:
        parameter.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
    for index in range(2):
        column = [gradient[index] for gradient in gradients]
        expected = literal_adam(start[index], column, rate=0.1, decay=decay, **kind)
        assert parameter[index].item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("decays_old", [True, False])
@pytest.mark.parametrize("together", [0, 30, 1000])
def test_many_parameters_have_the_bits_of_each_alone(
    decays_old: bool, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many numbers are updated at once; one that has no gradient stays."""
    monkeypatch.setattr(optimizer, "_TOGETHER", together)
    monkeypatch.setattr(optimizer, "_ALONE", ())
    torch.manual_seed(0)
    parameters = [nn.Parameter(torch.randn(size)) for size in ((5, 4), (3,), (7,), (31,), (2, 2))]
    idle, decay, rate = parameters[2], 0.3, 0.1
    expected = [parameter.detach().clone() for parameter in parameters]
    moments = [(torch.zeros_like(value), torch.zeros_like(value)) for value in expected]
    groups = [{"params": parameters, "weight_decay": decay}]
    found = optimizer.UncorrectedAdamW(groups, rate, (0.9, 0.98), 1e-6, decays_old)
    for _ in range(3):
        for parameter, value, (mean, square) in zip(parameters, expected, moments, strict=True):
            if parameter is idle:
                continue
            parameter.grad = torch.randn_like(parameter)
            mean.mul_(0.9).add_(parameter.grad, alpha=1 - 0.9)
            square.mul_(0.98).addcmul_(parameter.grad, parameter.grad, value=1 - 0.98)
            value.mul_(1 - rate * decay if decays_old else 1)
            value.addcdiv_(mean, square.sqrt().add_(1e-6), value=-rate)
            value.mul_(1 if decays_old else 1 - rate * decay)
        found.step()
    assert all(torch.equal(one, other) for one, other in zip(parameters, expected, strict=True))
    assert not found.state[idle]


def test_nothing_trainable_is_refused() -> None:
    module = nn.Linear(2, 2).requires_grad_(False)
    with pytest.raises(ValueError, match="nothing is trainable"):
        make_optimizer(
            parameter_groups(module, 0.0),
            learning_rate=1.0,
            betas=(0.9, 0.9),
            epsilon=1e-6,
            bias_correction=True,
        )


@pytest.mark.parametrize(("warmup", "total"), [(2500, 100_000), (0, 10), (6, 100), (10, 10), (1, 1)])
def test_schedule_equals_transformers(warmup: int, total: int) -> None:
    from transformers import get_linear_schedule_with_warmup

    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    (reference,) = get_linear_schedule_with_warmup(optimizer, warmup, total).lr_lambdas
    steps = sorted(
        {*range(min(total, 30)), warmup - 1, warmup, warmup + 1, total // 2, total - 1, total} - {-1}
    )
    for step in steps:
        assert linear_schedule(step, warmup_steps=warmup, total_steps=total) == pytest.approx(reference(step))


def test_every_learning_rate_is_the_paper_s() -> None:
    """The paper's table: 100K steps to a peak of 5e-4, then 100K to 1e-5; 2,500 of warm-up, then linear decay."""
    for phase, peak in zip(PAPER_RECIPE.phases, (5e-4, 1e-5), strict=True):
        steps = np.arange(100_000)
        literal = peak * np.where(steps < 2500, steps / 2500, (100_000 - steps) / (100_000 - 2500))
        found = [
            phase.learning_rate
            * linear_schedule(step, warmup_steps=phase.warmup_steps, total_steps=phase.steps)
            for step in range(phase.steps)
        ]
        np.testing.assert_allclose(found, literal, rtol=1e-12, atol=0)


def train(steps: range, module: nn.Module, optimizer: Any, seed: int = 0) -> list[dict[str, float]]:
    """A small regression with dropout; one batch of two micro-batches a step."""
    seen: list[dict[str, float]] = []

    def batches(step: int) -> list[Tensor]:
        generator = torch.Generator().manual_seed(step)
        return [torch.randn(4, 3, generator=generator) for _ in range(2)]

    def loss(batch: Tensor) -> dict[str, Tensor]:
        output = module(batch)
        return {"square": (output**2).mean(), "sum": output.mean()}

    def on_step(step: int, values: dict[str, float]) -> None:
        assert step == steps[len(seen)]
        seen.append(values)

    fit(
        module,
        loss,
        batches,
        optimizer,
        lambda step: linear_schedule(step, warmup_steps=2, total_steps=10),
        steps=steps.stop,
        first_step=steps.start,
        seed=seed,
        on_step=on_step,
    )
    return seen


def make_regression() -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(9)
    module = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    groups = parameter_groups(module, 0.01)
    return module, make_optimizer(
        groups, learning_rate=0.1, betas=(0.9, 0.999), epsilon=1e-6, bias_correction=True
    )


def test_learning_rate_parts_and_norm_are_reported() -> None:
    module, optimizer = make_regression()
    seen = train(range(10), module, optimizer)
    assert [values["learning_rate"] for values in seen] == pytest.approx(
        [0.0, 0.05, 0.1, 0.0875, 0.075, 0.0625, 0.05, 0.0375, 0.025, 0.0125]
    )
    assert set(seen[0]) == {"square", "sum", "learning_rate", "gradient_norm"}
    total = math.sqrt(sum(float((p.grad**2).sum()) for p in module.parameters()))
    assert seen[-1]["gradient_norm"] == pytest.approx(total)


def test_continued_training_has_the_same_bits() -> None:
    whole, optimizer = make_regression()
    train(range(10), whole, optimizer)
    broken, optimizer = make_regression()
    train(range(4), broken, optimizer)
    torch.manual_seed(12345)
    train(range(4, 10), broken, optimizer)
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), broken.parameters(), strict=True))
    other, optimizer = make_regression()
    train(range(10), other, optimizer, seed=1)
    assert not torch.equal(next(whole.parameters()), next(other.parameters()))


def test_micro_batches_add_up() -> None:
    module = nn.Linear(3, 1)
    inputs = torch.randn(6, 3)
    gradients = []
    for parts in ([inputs], list(inputs.split([1, 2, 3]))):
        optimizer = torch.optim.SGD(module.parameters(), lr=0.0)
        seen: list[dict[str, float]] = []
        fit(
            module,
            lambda part: {"loss": (module(part) ** 2).sum() / 6},
            lambda step, parts=parts: parts,
            optimizer,
            lambda step: 1.0,
            steps=1,
            seed=0,
            on_step=lambda step, values, seen=seen: seen.append(values),
        )
        gradients.append((module.weight.grad.clone(), torch.tensor(seen[0]["loss"])))
    torch.testing.assert_close(gradients[0], gradients[1])


def test_loss_that_is_not_finite_stops_before_the_update() -> None:
    module = nn.Linear(1, 1)
    before = module.weight.detach().clone()

    def loss(value: float) -> dict[str, Tensor]:
        return {"good": module.weight.sum(), "bad": module.weight.sum() * value}

    with pytest.raises(ValueError, match=r"^step 3: the loss is not finite \(good .*, bad nan\); lower"):
        fit(
            module,
            loss,
            lambda step: [math.nan if step == 3 else 0.0],
            torch.optim.SGD(module.parameters(), lr=0.0),
            lambda step: 1.0,
            steps=9,
            seed=0,
            on_step=lambda step, values: None,
        )
    assert torch.equal(module.weight, before)


def test_devices() -> None:
    assert resolve_device("cpu") == torch.device("cpu")
    assert resolve_device("auto").type in ("cpu", "cuda")
    with pytest.raises(ValueError, match="device 'gpu' is unknown; use auto, cpu, cuda or cuda:N"):
        resolve_device("gpu")
    with pytest.raises(ValueError, match=r"device 'cuda:99' is not there"):
        resolve_device("cuda:99")


def test_dropout_seeds_differ() -> None:
    seeds = {dropout_seed(seed, step, rank) for seed in range(10) for step in range(10) for rank in range(4)}
    assert len(seeds) == 400
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert np.std([seed / 2**63 for seed in seeds]) == pytest.approx(1 / math.sqrt(12), abs=0.03)


@pytest.mark.parametrize("rank", [0, 3])
def test_dropout_of_a_step_is_that_of_its_rank(rank: int) -> None:
    module = nn.Linear(1, 1)
    seeds: list[int] = []

    def loss(value: float) -> dict[str, Tensor]:
        seeds.append(torch.initial_seed())
        return {"loss": module.weight.sum() * value}

    fit(
        module,
        loss,
        lambda step: [1.0],
        torch.optim.SGD(module.parameters(), lr=0.1),
        lambda step: 1.0,
        steps=7,
        first_step=4,
        seed=5,
        on_step=lambda step, values: None,
        ranks=Ranks(rank=rank),
    )
    assert seeds == [dropout_seed(5, step, rank) for step in (4, 5, 6)]


def test_the_losses_of_a_batch_count_alike() -> None:
    """The gradient is that of their plain sum."""
    module = nn.Linear(3, 2)
    batch = torch.randn(4, 3)

    def losses(values: Tensor) -> dict[str, Tensor]:
        found = module(values)
        return {"words": (found[:, 0] ** 2).sum(), "entities": found[:, 1].abs().sum()}

    wanted = sum(
        torch.autograd.grad(loss, module.weight, retain_graph=True)[0] for loss in losses(batch).values()
    )
    values = accumulate(losses, [batch], 0)
    torch.testing.assert_close(module.weight.grad, wanted)
    assert values == pytest.approx({name: loss.item() for name, loss in losses(batch).items()})
