"""Entity-aware attention: against the paper's equation, and dropout."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from model.kernels.attention_cpu import Products, attend, dropout_noise
from model.luke.attention import EntityAwareAttention, SelfAttention
from tests.support.attention_kernels import kernel_of
from tests.support.flat_batches import layout_of
from tests.support.models import TINY

LENGTHS = ((4, 3), (6, 2), (2, 0))  # words and entities of each sequence
LAYOUT = layout_of(LENGTHS)


def make_states(seed: int = 0) -> Tensor:
    torch.manual_seed(seed)
    return torch.randn(LAYOUT.words + LAYOUT.entities, TINY.hidden_size, requires_grad=True)


def make_attention(seed: int = 1) -> EntityAwareAttention:
    torch.manual_seed(seed)
    return EntityAwareAttention(replace(TINY, use_entity_aware_attention=True)).eval()


def literal_attention(attention: EntityAwareAttention, states: Tensor) -> Tensor:
    """Section 3.2 written out: for each token i, head and token j of its sequence a score by the types of i and j."""
    size = attention.head_size
    tokens = [(row, True) for row, (words, _) in enumerate(LENGTHS) for _ in range(words)]
    tokens += [(row, False) for row, (_, entities) in enumerate(LENGTHS) for _ in range(entities)]
    output = torch.zeros_like(states)
    for head in range(attention.heads):
        part = slice(head * size, (head + 1) * size)
        for i, (row, is_word) in enumerate(tokens):
            seen = [j for j, (other, _) in enumerate(tokens) if other == row]
            scores = []
            for j in seen:
                matrix = {
                    (True, True): attention.query,
                    (True, False): attention.word_to_entity_query,
                    (False, True): attention.entity_to_word_query,
                    (False, False): attention.entity_to_entity_query,
                }[is_word, tokens[j][1]]
                scores.append(attention.key(states[j])[part] @ matrix(states[i])[part] / math.sqrt(size))
            weights = torch.stack(scores).softmax(dim=0)
            output[i, part] = weights @ torch.stack([attention.value(states[j])[part] for j in seen])
    return output


def test_attention_equals_the_paper_s_equation_in_value_and_gradient() -> None:
    attention = make_attention().double()
    states = make_states()
    results = []
    for form in (lambda inputs: attention(inputs, LAYOUT), lambda inputs: literal_attention(attention, inputs)):
        attention.zero_grad()
        inputs = states.detach().double().requires_grad_()
        output = form(inputs)
        weights = torch.linspace(-1, 1, output.numel(), dtype=torch.float64).view_as(output)
        (output * weights).sum().backward()
        gradients = {name: parameter.grad for name, parameter in attention.named_parameters()}
        results.append((output, inputs.grad, gradients))
    torch.testing.assert_close(results[0], results[1], atol=1e-12, rtol=1e-10)
    assert all(gradient.abs().max() > 0 for name, gradient in results[0][2].items() if name != "key.bias")


@pytest.mark.parametrize("entity_aware", [False, True])
def test_attention_dropout_is_applied_in_training_only(entity_aware: bool) -> None:
    config = replace(TINY, attention_probs_dropout_prob=0.5)
    torch.manual_seed(0)
    attention = (EntityAwareAttention if entity_aware else SelfAttention)(config)
    states = make_states()
    assert not torch.equal(attention(states, LAYOUT), attention(states, LAYOUT))
    attention.eval()
    assert torch.equal(attention(states, LAYOUT), attention(states, LAYOUT))


def dropped_weights(dropout: float, seed: int = 0) -> Tensor:
    """Weights of 40 equal keys after dropout: values of the identity let them through."""
    torch.manual_seed(seed)
    zeros = torch.zeros(2, 3, 40, 40, dtype=torch.float64)
    return attend(zeros, None, zeros, torch.eye(40).double().expand_as(zeros), 40, dropout)


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.25])
def test_dropout_drops_its_share_and_scales_the_rest(dropout: float) -> None:
    weights = dropped_weights(dropout)
    kept = weights[weights > 0]
    threshold = round(dropout * 2**16)
    torch.testing.assert_close(kept, torch.full_like(kept, 2**16 / (2**16 - threshold) / 40))
    # 9,600 draws: a standard deviation is at most 0.0051.
    assert abs(1 - len(kept) / weights.numel() - dropout) < 0.025
    assert torch.equal(weights, dropped_weights(dropout))
    assert not torch.equal(weights, dropped_weights(dropout, seed=1))


def test_draws_of_dropout_are_independent_of_their_place() -> None:
    draws = dropout_noise(torch.empty(4, 50_000), 0.25)[0] < 0
    shares = draws.view(-1, 4).double().mean(dim=0)  # the four lanes of a draw
    assert (abs(shares - 0.25) < 0.01).all()
    both = draws.view(-1, 4).double()
    assert abs(torch.corrcoef(both.T) - torch.eye(4)).max() < 0.03


@pytest.mark.parametrize("with_entities", [True, False])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_gradients_of_the_products(with_entities: bool, dropout: float) -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(2, 2, 5, 3, dtype=torch.float64, requires_grad=True) for _ in range(4)]

    def function(for_words: Tensor, for_entities: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        torch.manual_seed(1)
        entities = for_entities if with_entities else None
        return Products.apply(for_words, entities, keys, values, 3, dropout)

    assert torch.autograd.gradcheck(function, inputs)


def test_report_says_which_kernel_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    packed, device = layout_of([(3, 2), (3, 2)]), torch.device("cpu")
    aware = make_attention()
    original = SelfAttention(replace(TINY, attention_probs_dropout_prob=0.1))
    assert kernel_of(original.train(), packed, 16, device) == "plain products"
    assert kernel_of(aware, packed, 16, device) == "plain products"
    assert kernel_of(original.eval(), packed, 16, device) == "the CPU's flash attention"
    with torch.autocast("cpu", torch.bfloat16):
        assert kernel_of(original, packed, 16, device) == "plain products"
        with torch.no_grad():
            assert kernel_of(original, packed, 16, device) == "the CPU's flash attention"


def test_training_in_bf16_has_the_gradients_of_float32() -> None:
    """To the digits of bf16: what torch's fused kernel gives in float32, at a hundred tokens."""
    torch.manual_seed(0)
    exact = [torch.randn(1, 2, 100, 16).bfloat16().float().requires_grad_() for _ in range(3)]
    rounded = [each.detach().bfloat16().requires_grad_() for each in exact]
    wanted = functional.scaled_dot_product_attention(*exact)
    found = attend(rounded[0], None, *rounded[1:], 100, 0.0)
    gradient = torch.randn_like(wanted)
    torch.testing.assert_close(found.float(), wanted, atol=0.02, rtol=0.02)
    theirs = torch.autograd.grad(wanted, exact, gradient)
    ours = torch.autograd.grad(found, rounded, gradient.bfloat16())
    for each, other in zip(ours, theirs, strict=True):
        assert (each.float() - other).norm() < 0.01 * other.norm()
