"""The training loop: parameter groups, optimisers, schedule, accumulation and determinism."""

import math

import pytest
import torch
from torch import Tensor, nn

from model.luke.heads import LukeForPretraining
from model.training import optimizer
from model.training.loop import accumulate, dropout_seed, fit
from model.training.optimizer import linear_schedule, make_optimizer, parameter_groups
from model.training.ranks import Ranks
from tests.support.models import TINY


def test_norms_that_are_named_decay_and_what_is_frozen_is_in_no_group() -> None:
    """As RoBERTa's word head did in the authors' code, which spared `bias` and `LayerNorm.weight` alone."""
    module = LukeForPretraining(TINY)
    module.luke.word_embeddings.token.weight.requires_grad_(False)
    decayed, exempt = parameter_groups(module, 0.01, ("word_head.norm.weight",))
    assert (decayed["weight_decay"], exempt["weight_decay"]) == (0.01, 0.0)
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    found, spared = ({names[id(parameter)] for parameter in group["params"]} for group in (decayed, exempt))
    trained = {*names.values()} - {"luke.word_embeddings.token.weight"}
    theirs = {
        name: name.replace(*("norm", "layer_norm") if "word_head" in name else ("norm.", "LayerNorm."))
        for name in trained
    }
    assert spared == {name for name in trained if theirs[name].endswith(("bias", "LayerNorm.weight"))}
    assert found == trained - spared


def literal_adam(
    value: float, gradients: list[float], *, rate: float, decay: float, bias_correction: bool, decays_old: bool = False
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
@pytest.mark.parametrize("together", [1, 30, 1000])
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
            parameter_groups(module, 0.0), learning_rate=1.0, betas=(0.9, 0.9), epsilon=1e-6, bias_correction=True
        )


@pytest.mark.parametrize(("warmup", "total"), [(2500, 100_000), (0, 10), (6, 100), (10, 10), (1, 1)])
def test_schedule_equals_transformers(warmup: int, total: int) -> None:
    from transformers import get_linear_schedule_with_warmup

    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    (reference,) = get_linear_schedule_with_warmup(optimizer, warmup, total).lr_lambdas
    steps = sorted({*range(min(total, 30)), warmup - 1, warmup, warmup + 1, total // 2, total - 1, total} - {-1})
    for step in steps:
        assert linear_schedule(step, warmup_steps=warmup, total_steps=total) == pytest.approx(reference(step))


def test_learning_rate_parts_and_norm_are_reported() -> None:
    """Of each step, whose batch has two micro-batches."""
    module, seen = nn.Linear(3, 1), list[dict[str, float]]()

    def loss(batch: Tensor) -> dict[str, Tensor]:
        output = module(batch)
        return {"square": (output**2).mean(), "sum": output.mean()}

    fit(
        module,
        loss,
        lambda step: [torch.randn(4, 3) for _ in range(2)],
        torch.optim.SGD(module.parameters(), lr=0.1),
        lambda step: linear_schedule(step, warmup_steps=2, total_steps=10),
        steps=10,
        seed=0,
        on_step=lambda step, values: seen.append(values),
    )
    assert [values["learning_rate"] for values in seen] == pytest.approx(
        [0.0, 0.05, 0.1, 0.0875, 0.075, 0.0625, 0.05, 0.0375, 0.025, 0.0125]
    )
    assert set(seen[0]) == {"square", "sum", "learning_rate", "gradient_norm"}
    total = math.sqrt(sum(float((p.grad**2).sum()) for p in module.parameters()))
    assert seen[-1]["gradient_norm"] == pytest.approx(total)


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

    wanted = sum(torch.autograd.grad(loss, module.weight, retain_graph=True)[0] for loss in losses(batch).values())
    values = accumulate(losses, [batch], 0)
    torch.testing.assert_close(module.weight.grad, wanted)
    assert values == pytest.approx({name: loss.item() for name, loss in losses(batch).items()})
