"""Triton's kernels: each does in one pass over memory what takes torch several.

add_norm        dropout, the residual and a layer norm, both ways
merge           a softmax over two kinds of keys of two, and of the gradients of its parts those of a projection
cross_entropy   loss, rank and gradient of logits, in their place

Numbers are read and written in their own type; sums are in float32. A program takes a row. What is dropped is a
function of the seed and the place (Philox), so that the way back draws it again. On a CPU Triton's interpreter runs
them.
"""

import triton
import triton.language as tl


@triton.jit
def kept_of(seed, row, width, dropout, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Return which places of a row stay; one draw serves four of them."""
    quarter = row.to(tl.int32) * (BLOCK // 4) + tl.arange(0, BLOCK // 4)
    first, second, third, fourth = tl.randint4x(seed, quarter)
    pairs = tl.join(tl.join(first, second), tl.join(third, fourth))
    return tl.uint_to_uniform_float(tl.reshape(pairs, (BLOCK,))) >= dropout


@triton.jit(do_not_specialize=["seed"])
def add_norm_forward(  # type: ignore[no-untyped-def]
    branch, residual, branch_bias, weight, bias, output, added, means, scales, width, epsilon, dropout, seed,
    BLOCK: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """Write layer_norm(residual + dropout(branch + branch_bias)); for the way back the sum, its mean and scale."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    places = row * width + columns
    value = tl.load(branch + places, mask=inside, other=0.0).to(tl.float32)
    value += tl.load(branch_bias + columns, mask=inside, other=0.0)
    if DROPS:
        value = tl.where(kept_of(seed, row, width, dropout, BLOCK), value / (1 - dropout), 0.0)
    value += tl.load(residual + places, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(value, axis=0) / width
    off = tl.where(inside, value - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(off * off, axis=0) / width + epsilon)
    normal = off * scale * tl.load(weight + columns, mask=inside) + tl.load(bias + columns, mask=inside)
    tl.store(output + places, normal, mask=inside)
    tl.store(added + places, value, mask=inside)
    tl.store(means + row, mean)
    tl.store(scales + row, scale)


@triton.jit(do_not_specialize=["rows", "seed"])
def add_norm_backward(  # type: ignore[no-untyped-def]
    gradient, added, means, scales, weight, of_branch, of_residual, sums, rows, width, dropout, seed,
    BLOCK: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """Write gradients of both inputs, and each program's part (3, programs, width) of those of the parameters."""
    program, programs = tl.program_id(0), tl.num_programs(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    weights = tl.load(weight + columns, mask=inside, other=0.0)
    of_branch_bias = tl.zeros((BLOCK,), tl.float32)
    of_weight, of_bias = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for number in range(program, rows, programs):
        row = tl.cast(number, tl.int64)
        places = row * width + columns
        of_output = tl.load(gradient + places, mask=inside, other=0.0).to(tl.float32)
        value = tl.load(added + places, mask=inside, other=0.0).to(tl.float32)
        scale = tl.load(scales + row)
        normal = tl.where(inside, (value - tl.load(means + row)) * scale, 0.0)
        of_weight += of_output * normal
        of_bias += of_output
        of_normal = of_output * weights
        mean = tl.sum(of_normal, axis=0) / width
        of_sum = scale * (of_normal - mean - normal * (tl.sum(of_normal * normal, axis=0) / width))
        tl.store(of_residual + places, of_sum, mask=inside)
        if DROPS:
            of_sum = tl.where(kept_of(seed, row, width, dropout, BLOCK), of_sum / (1 - dropout), 0.0)
            tl.store(of_branch + places, of_sum, mask=inside)
        of_branch_bias += of_sum
    tl.store(sums + program * width + columns, of_branch_bias, mask=inside)
    tl.store(sums + (programs + program) * width + columns, of_weight, mask=inside)
    tl.store(sums + (2 * programs + program) * width + columns, of_bias, mask=inside)


@triton.jit(do_not_specialize=["tokens"])
def merge(  # type: ignore[no-untyped-def]
    by_words, by_entities, word_totals, entity_totals, output, totals, tokens, size, width, BLOCK: tl.constexpr
):
    """Write a token's values over both kinds of keys (heads, size), and the log-sum-exp of each head.

    Over no keys at all flash attention returns infinity in place of minus infinity.
    """
    token = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    places = token * width + columns
    heads = (columns // size) * tokens + token
    first = tl.load(word_totals + heads, mask=inside, other=0.0)
    second = tl.load(entity_totals + heads, mask=inside, other=0.0)
    first = tl.where(first == float("inf"), -float("inf"), first)
    second = tl.where(second == float("inf"), -float("inf"), second)
    highest = tl.maximum(first, second)
    of_words, of_entities = tl.exp(first - highest), tl.exp(second - highest)
    share = of_entities / (of_words + of_entities)
    words = tl.load(by_words + places, mask=inside, other=0.0).to(tl.float32)
    entities = tl.load(by_entities + places, mask=inside, other=0.0).to(tl.float32)
    tl.store(output + places, words + share * (entities - words), mask=inside)
    total = highest + tl.log(of_words + of_entities)
    tl.store(totals + heads, total, mask=inside & (columns % size == 0))


@triton.jit
def gather(  # type: ignore[no-untyped-def]
    query, key, value, other_query, other_key, other_value, output, width, columns_of,
    BLOCK: tl.constexpr, HAS_OTHER: tl.constexpr,
):  # fmt: skip
    """Write a token's gradients of query, key, value and the query for entities side by side; keys have two parts."""
    token = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    places = token * width + columns
    target = output + token * width * columns_of + columns
    of_key = tl.load(key + places, mask=inside, other=0.0).to(tl.float32)
    of_value = tl.load(value + places, mask=inside, other=0.0).to(tl.float32)
    of_other = tl.zeros((BLOCK,), tl.float32)
    if HAS_OTHER:
        of_key += tl.load(other_key + places, mask=inside, other=0.0).to(tl.float32)
        of_value += tl.load(other_value + places, mask=inside, other=0.0).to(tl.float32)
        of_other = tl.load(other_query + places, mask=inside, other=0.0).to(tl.float32)
    tl.store(target, tl.load(query + places, mask=inside, other=0.0), mask=inside)
    tl.store(target + width, of_key, mask=inside)
    tl.store(target + 2 * width, of_value, mask=inside)
    tl.store(target + 3 * width, of_other, mask=inside & (columns_of > 3))


@triton.jit
def cross_entropy(  # type: ignore[no-untyped-def]
    logits, bias, labels, losses, ranks, vocabulary, step, BLOCK: tl.constexpr, LEARNS: tl.constexpr
):
    """Write a row's loss and how many logits are before its label's, and over the logits the loss's gradient.

    Logits have no bias yet. Of equal logits the first is before the others.
    """
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels + row)
    begin = logits + row * step
    own = tl.load(begin + label).to(tl.float32) + tl.load(bias + label)
    highest, total, rank = -float("inf"), 0.0, 0
    for first in range(0, vocabulary, BLOCK):
        columns = first + tl.arange(0, BLOCK)
        inside = columns < vocabulary
        value = tl.load(begin + columns, mask=inside, other=-float("inf")).to(tl.float32)
        value += tl.load(bias + columns, mask=inside, other=0.0)
        top = tl.maximum(highest, tl.max(value, axis=0))
        total = total * tl.exp(highest - top) + tl.sum(tl.exp(value - top), axis=0)
        highest = top
        rank += tl.sum(((value > own) | ((value == own) & (columns < label))).to(tl.int32), axis=0)
    tl.store(losses + row, highest + tl.log(total) - own)
    tl.store(ranks + row, rank)
    if LEARNS:
        for first in range(0, vocabulary, BLOCK):
            columns = first + tl.arange(0, BLOCK)
            inside = columns < vocabulary
            value = tl.load(begin + columns, mask=inside, other=-float("inf")).to(tl.float32)
            value += tl.load(bias + columns, mask=inside, other=0.0)
            gradient = tl.exp(value - highest) / total - (columns == label).to(tl.float32)
            tl.store(begin + columns, gradient, mask=inside)
