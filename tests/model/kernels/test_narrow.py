"""Triton's kernels, by its interpreter, against torch's own operations; and the copies of weights."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from model.kernels import attention_cuda, narrow, tables
from model.kernels.narrow import Weights
from model.kernels.tables import linear_cross_entropy
from model.training.optimizer import make_optimizer, parameter_groups
from tests.support.narrow import narrow_on_cpu

__all__ = ["narrow_on_cpu"]
TOLERANCE = 2e-2  # bf16 keeps 8 bits
ROWS, WIDTH = 7, 24


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).bfloat16()


def close(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found.double(), wanted.double(), atol=TOLERANCE, rtol=TOLERANCE)


def mask(rows: int, width: int, dropout: float, seed: int) -> Tensor:
    """The factors of a branch: the kernel adds a branch of ones to nothing."""
    nothing, output, added = torch.zeros(rows, width), torch.empty(rows, width), torch.empty(rows, width)
    inputs = torch.ones(rows, width), nothing, *torch.zeros(3, width), output, added, *torch.empty(2, rows)
    constants = {"BLOCK": narrow.block(width), "DROPS": dropout > 0}
    narrow.launch("add_norm_forward", rows, *inputs, width, 1e-5, dropout, seed, **constants)
    return added


def philox(seed: int, counters: np.ndarray) -> np.ndarray:
    """Philox 4x32-10 (Salmon et al. 2011) of counters (n): four draws each, (n, 4)."""
    zeros, low = np.zeros_like(counters), np.uint64(0xFFFFFFFF)
    state, keys = [counters, zeros, zeros, zeros], [np.uint64(seed), np.uint64(0)]
    for _ in range(10):
        first, second = state[0] * np.uint64(0xD2511F53), state[2] * np.uint64(0xCD9E8D57)
        high = first >> np.uint64(32), second >> np.uint64(32)
        state = [high[1] ^ state[1] ^ keys[0], second & low, high[0] ^ state[3] ^ keys[1], first & low]
        keys = [(key + np.uint64(step)) & low for key, step in zip(keys, (0x9E3779B9, 0xBB67AE85), strict=True)]
    return np.stack(state, axis=1)


@pytest.mark.usefixtures("narrow_on_cpu")
def test_a_mask_is_that_of_philox() -> None:
    """A row of 24 takes eight counters, of four draws each; a draw of 32 bits is told from a share without its sign."""
    rows, block = 64, narrow.block(WIDTH)
    draws = philox(5, np.arange(rows * block // 4, dtype=np.uint64)).reshape(rows, block // 4, 4)
    # Pairs are joined, (0, 1) and (2, 3), and then their firsts and their seconds lie beside each other.
    signed = draws.astype(np.uint32).view(np.int32).astype(np.int64)
    uniform = np.where(signed < 0, -signed - 1, signed).astype(np.float32) * np.float32(2.0**-31)
    wanted = (uniform >= 0.3)[..., [0, 2, 1, 3]].reshape(rows, block)[:, :WIDTH]
    assert np.array_equal(mask(rows, WIDTH, 0.3, 5).numpy() > 0, wanted)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.usefixtures("narrow_on_cpu")
def test_a_layer_norm_of_a_sum_is_that_of_torch_both_ways(dropout: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a width that is no power of two, in fewer programs than rows, under the same mask."""
    monkeypatch.setattr(narrow, "_PROGRAMS", 3)
    monkeypatch.setattr(narrow, "draw_seed", lambda: 5)
    torch.manual_seed(0)
    norm, linear = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)
    for parameter in (norm.weight, norm.bias, linear.bias):
        nn.init.normal_(parameter)
    inputs = [random(ROWS, WIDTH, seed=seed).requires_grad_() for seed in (1, 2)]
    parameters = [linear.bias, norm.weight, norm.bias]
    found = narrow.add_norm(inputs[0], linear, inputs[1], norm, dropout)
    noise = mask(ROWS, WIDTH, dropout, 5)
    wanted = functional.layer_norm(
        inputs[1].float() + (inputs[0].float() + linear.bias) * noise, (WIDTH,), norm.weight, norm.bias, norm.eps
    )
    close(found, wanted)
    direction = random(ROWS, WIDTH, seed=3)
    for ours, theirs in zip(
        torch.autograd.grad(found, [*inputs, *parameters], direction),
        torch.autograd.grad(wanted, [*inputs, *parameters], direction.float()),
        strict=True,
    ):
        close(ours, theirs)


@pytest.mark.usefixtures("narrow_on_cpu")
def test_a_mask_drops_its_share_anew_for_each_place_and_seed() -> None:
    masks = torch.stack([mask(64, 100, 0.25, seed) for seed in range(4)])
    kept = masks > 0
    torch.testing.assert_close(masks[kept], torch.full_like(masks[kept], 1 / 0.75))
    # The share of 25,600 places has a standard deviation of 0.0027; masks, rows and places agree as chance has it.
    assert float(kept.double().mean()) == pytest.approx(0.75, abs=0.012)
    chance = 0.75**2 + 0.25**2
    for some, others in ((kept[0], kept[1]), (kept[:, :-1], kept[:, 1:]), (kept[..., :-1], kept[..., 1:])):
        assert float((some == others).double().mean()) == pytest.approx(chance, abs=0.03)
    assert torch.equal(masks[2], mask(64, 100, 0.25, 2))


@pytest.mark.usefixtures("narrow_on_cpu")
def test_two_softmaxes_are_merged_as_torch_does() -> None:
    """Also where a token has no entity to look at: flash attention says infinity there."""
    parts = [(random(ROWS, 3, 8, seed=seed), torch.randn(3, ROWS)) for seed in (1, 2)]
    parts[1][1][:, 2:4] = torch.inf
    found, wanted = torch.empty(ROWS, 3, 8).bfloat16(), torch.empty(ROWS, 3, 8).bfloat16()
    totals = narrow.merge(parts, found)
    torch.testing.assert_close(totals, attention_cuda.add_up(parts, wanted))
    close(found, wanted)
    assert torch.equal(found[2:4], parts[0][0][2:4])


@pytest.mark.parametrize(("kinds", "columns"), [(1, 3), (1, 4), (2, 4)])
@pytest.mark.usefixtures("narrow_on_cpu")
def test_gradients_of_cases_lie_side_by_side_as_torch_has_them(kinds: int, columns: int) -> None:
    cases = [tuple(random(ROWS, 3, 8, seed=3 * kind + seed) for seed in range(3)) for kind in range(kinds)]
    close(narrow.gather(cases, columns), attention_cuda.side_by_side(cases, columns))


@pytest.mark.parametrize("learns", [True, False])
def test_a_loss_is_that_of_parts(learns: bool, narrow_on_cpu: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Over more logits than a kernel has at once; two of a row are equal, and the first of them is before the other."""
    monkeypatch.setattr(narrow, "_COLUMNS", 64)
    states, table, bias = random(ROWS, WIDTH, seed=1), random(200, WIDTH, seed=2), torch.randn(200)
    table[150], bias[150] = table[3], bias[3]
    labels = torch.tensor([0, 3, 150, 199, 64, 63, 100])
    labels[2] = int((states.float() @ table.float().T + bias).argmax(dim=1)[2])
    outcomes = []
    for is_whole in (True, False):
        monkeypatch.setattr(tables, "NARROW_LOGITS", 1 << 20 if is_whole else 0)
        given = [each.clone().float().requires_grad_(learns) for each in (states, table, bias)]
        with torch.autocast("cpu", torch.bfloat16):
            loss, correct = linear_cross_entropy(*given, labels)
        gradients = torch.autograd.grad(loss * 0.5, given) if learns else []
        outcomes.append((loss, correct, *gradients))
    assert narrow_on_cpu == ["cross_entropy"]
    for found, wanted in zip(*outcomes, strict=True):
        close(found, wanted)
    assert int(outcomes[0][1]) >= 1


@pytest.mark.usefixtures("narrow_on_cpu")
def test_what_does_not_lie_row_by_row_is_read_all_the_same() -> None:
    """Columns of a wider matrix, a transposed one, and a gradient that is one row over and over."""
    norm, linear = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)
    wide, turned = random(ROWS, 2 * WIDTH, seed=1), random(WIDTH, ROWS, seed=2).T
    inputs = [wide[:, :WIDTH].requires_grad_(), turned.requires_grad_()]
    direction = random(1, WIDTH, seed=3).expand(ROWS, WIDTH)
    found = narrow.add_norm(inputs[0], linear, inputs[1], norm, 0.0)
    wanted = narrow.add_norm(inputs[0].contiguous(), linear, inputs[1].contiguous(), norm, 0.0)
    assert torch.equal(found, wanted)
    of_found = torch.autograd.grad(found, inputs, direction)
    of_wanted = torch.autograd.grad(wanted, inputs, direction.contiguous())
    assert all(torch.equal(*pair) for pair in zip(of_found, of_wanted, strict=True))


def test_without_a_gpu_or_a_compiler_a_line_says_so(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("triton")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(narrow, "gather", lambda *of: 1 / 0)
        assert not narrow.has_triton.__wrapped__()
    assert next(record.message for record in caplog.records).startswith("Triton's kernels cannot be used (")


def test_seeds_are_those_of_torch_s_generator() -> None:
    torch.manual_seed(3)
    seeds = [narrow.draw_seed() for _ in range(4)]
    assert len({*seeds}) == 4
    torch.manual_seed(3)
    assert [narrow.draw_seed() for _ in range(4)] == seeds


@pytest.mark.usefixtures("narrow_on_cpu")
def test_of_equal_logits_the_first_is_before_the_others() -> None:
    logits = torch.tensor([[1.0, 5.0, 5.0, 2.0]] * 4).bfloat16()
    _, ranks = narrow.cross_entropy(logits, torch.zeros(4), torch.tensor([0, 1, 2, 3]), learns=False)
    assert ranks.tolist() == [3, 0, 1, 2]


def test_gradients_of_a_layer_that_two_kinds_share_are_those_of_two_products() -> None:
    """And the states pass through, with what their further use adds to their gradient."""
    torch.manual_seed(0)
    first, shared, last = (nn.Linear(WIDTH, 5) for _ in range(3))
    states = torch.randn(ROWS, WIDTH, dtype=torch.float32, requires_grad=True)
    found = narrow.project(states, (4, Weights(first, shared)), (3, Weights(shared, last)))
    wanted = [
        torch.cat([first(states[:4]), shared(states[:4])], dim=1),
        torch.cat([shared(states[4:]), last(states[4:])], dim=1),
        states,
    ]
    directions = [torch.randn_like(each) for each in wanted]
    inputs = [states, *first.parameters(), *shared.parameters(), *last.parameters()]
    torch.testing.assert_close(list(found), wanted)
    for ours, theirs in zip(
        torch.autograd.grad(found, inputs, directions), torch.autograd.grad(wanted, inputs, directions), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


def test_a_product_that_nobody_takes_adds_nothing() -> None:
    layers = nn.Linear(WIDTH, 5), nn.Linear(WIDTH, 5)
    states = torch.randn(ROWS, WIDTH, requires_grad=True)
    first, _, rest = narrow.project(
        states, *((count, Weights(layer)) for count, layer in zip((4, 3), layers, strict=True))
    )
    (first.sum() + rest.sum()).backward()
    wanted = torch.ones(ROWS, WIDTH)
    wanted[:4] += layers[0].weight.sum(dim=0)
    torch.testing.assert_close(states.grad, wanted)
    assert not layers[1].weight.grad.any()


def test_a_layer_that_is_frozen_gets_no_gradient() -> None:
    layer = nn.Linear(WIDTH, 5).requires_grad_(False)
    states = torch.randn(ROWS, WIDTH, requires_grad=True)
    output, _ = narrow.project(states, (ROWS, Weights(layer)))
    output.sum().backward()
    assert layer.weight.grad is None
    torch.testing.assert_close(states.grad, torch.ones(ROWS, 5) @ layer.weight)


@pytest.mark.parametrize("is_paper", [False, True])
def test_copies_are_made_again_when_weights_have_changed(is_paper: bool) -> None:
    """By either optimiser, by a checkpoint that is read; not otherwise."""
    layers = [nn.Linear(WIDTH, 5), nn.Linear(WIDTH, 5)]
    weights = Weights(*layers)

    def copies() -> tuple[Tensor, ...]:
        return tuple(weights.copy.of(torch.bfloat16, *weights.parameters()))

    first = copies()
    assert all(some is other for some, other in zip(first, copies(), strict=True))
    with torch.inference_mode():
        assert copies()[0] is first[0]
    options = {"learning_rate": 0.1, "betas": (0.9, 0.98), "epsilon": 1e-6, "bias_correction": not is_paper}
    optimizer = make_optimizer(parameter_groups(nn.ModuleList(layers), 0.01), **options)
    for layer in layers:
        layer(torch.ones(1, WIDTH)).sum().backward()
    optimizer.step()
    assert not torch.equal(copies()[0], first[0])
    layers[1].load_state_dict(layers[0].state_dict())
    with torch.inference_mode():
        found = copies()
    assert torch.equal(found[0], torch.cat([layers[0].weight] * 2).bfloat16())
    assert not found[0].is_inference(), "training may keep them"


@pytest.mark.parametrize("capability", [80, 90])
def test_kernels_compile_for_gpus(capability: int) -> None:
    """For Ampere and Hopper, in a process whose kernels are not interpreted. Triton brings the assembler."""
    pytest.importorskip("triton", minversion="3.6")
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "tests.support.compiled_kernels", str(capability)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    assert done.stdout.split() == [
        *["add_norm_forward"] * 2, *["add_norm_backward"] * 2, "merge", *["gather"] * 2, *["cross_entropy"] * 2,
    ]  # fmt: skip
