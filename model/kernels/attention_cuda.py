"""Attention over packed sequences on a GPU: by its variable-length kernel, and by torch's for types that it lacks.

Words attend to words (w2w) and to entities (w2e), entities to words (e2w) and to entities (e2e), each with a query
matrix of its own (section 3.2 of the paper). Each case is a call of the kernel on slices as they lie in memory: no
token is moved, and nothing is as wide as two queries. A softmax over both kinds of keys is made from two by their
log-sum-exps: with S and s the sums of exponentials over word keys and entity keys, and O and o the attended
values, it is (S O + s o) / (S + s). The kernel's backward pass is given the values and the log-sum-exp of the whole,
and then gives each part's share of the gradients.
"""

import functools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from model.kernels import narrow
from model.kernels.packing import Packed

# What a token's projection holds, side by side; the last is absent where all keys are met by one query.
FOR_WORDS, KEY, VALUE, FOR_ENTITIES = range(4)
NARROW = (torch.bfloat16, torch.float16)  # what the kernel takes
_MULTIPLE, _WIDEST = 8, 256  # a head's size is a multiple, and no more
_OLDEST = (8, 0)  # the first GPUs that it runs on: Ampere


@dataclass(frozen=True, eq=False)
class Rows:
    """The words, or the entities, of all sequences."""

    projected: Tensor  # (tokens, 3 or 4, heads, size), by `FOR_WORDS` to `FOR_ENTITIES`
    offsets: Tensor  # (sequences + 1) int32, where each sequence begins and the last one ends
    longest: int  # tokens of the longest sequence


class Place(NamedTuple):
    """The places of the sequences of queries and of keys, in the order of the kernel's arguments."""

    query_offsets: Tensor
    key_offsets: Tensor
    longest_query: int
    longest_key: int


class Flash:
    """Torch's flash attention of queries (tokens, heads, size) over the keys of the same sequence.

    `varlen_attn` is the same without dropout.
    """

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, place: Place, dropout: float
    ) -> tuple[Tensor, Tensor, Any]:
        """Attended values, the log-sum-exp of scores (heads, tokens), and the state of dropout."""
        attended, total, state, unused, _ = torch.ops.aten._flash_attention_forward(
            query, key, value, *place, dropout, False, False
        )
        return attended, total, (state, unused)

    def backward(
        self,
        gradient: Tensor,
        tokens: tuple[Tensor, Tensor, Tensor],
        whole: tuple[Tensor, Tensor],
        place: Place,
        dropout: float,
        drawn: Any,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of query, key and value; `whole` are attended values and log-sum-exp over all keys."""
        with _as_deterministic_as_asked():
            return torch.ops.aten._flash_attention_backward(gradient, *tokens, *whole, *place, dropout, False, *drawn)


@contextmanager
def _as_deterministic_as_asked() -> Iterator[None]:
    """The kernel adds up in a fixed order only where torch does not merely warn of what has none."""
    is_lax = torch.is_deterministic_algorithms_warn_only_enabled()
    if not (torch.are_deterministic_algorithms_enabled() and is_lax):
        yield
        return
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(True, warn_only=True)


FLASH = Flash()


def takes(device: torch.device, dtype: torch.dtype, head_size: int) -> bool:
    """Return whether `FLASH` computes attention there, in that type."""
    is_fit = dtype in NARROW and head_size % _MULTIPLE == 0 and head_size <= _WIDEST
    if device.type != "cuda" or not is_fit or torch.version.hip is not None:
        return False
    return torch.cuda.get_device_capability(device) >= _OLDEST


def attend_by_cases(kinds: Sequence[Rows], dropout: float) -> Tensor:
    """Attended values (tokens, heads, size) of words, then of entities; of `kinds` the entities may be absent."""
    places = tuple((rows.offsets, rows.longest) for rows in kinds)
    attended: Tensor = ByCases.apply(FLASH, dropout, places, *(rows.projected for rows in kinds))
    return attended


class ByCases(torch.autograd.Function):
    """The cases and their sum, see above."""

    @staticmethod
    def forward(
        context: Any, kernel: Flash, dropout: float, places: tuple[tuple[Tensor, int], ...], *projected: Tensor
    ) -> Tensor:
        kinds = _rows(projected, places)
        cases = [
            [kernel.forward(*_case(queries, kinds, other), dropout) for other in range(len(kinds))] for queries in kinds
        ]
        attended, totals = _merged([[(values, total) for values, total, _ in row] for row in cases])
        context.save_for_backward(attended, *totals, *projected)
        context.drawn = [[drawn for _, _, drawn in row] for row in cases]
        context.kernel, context.dropout, context.places = kernel, dropout, places
        return attended

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        attended, *saved = context.saved_tensors
        totals, projected = saved[: len(context.places)], saved[len(context.places) :]
        kinds = _rows(projected, context.places)
        sizes = [len(each) for each in projected]
        wholes = zip(gradient.contiguous().split(sizes), attended.split(sizes), totals, strict=True)
        found = []
        for queries, (of_attended, *whole), drawn in zip(kinds, wholes, context.drawn, strict=True):
            row = []
            for other, state in enumerate(drawn):
                *tokens, place = _case(queries, kinds, other)
                of_case = (of_attended, tuple(tokens), tuple(whole), place, context.dropout, state)
                row.append(context.kernel.backward(*of_case))
            found.append(row)
        of_projected = []
        for number, each in enumerate(projected):
            # The queries of a kind met the keys of each kind, and its keys the queries of each.
            parts = [(found[number][other][0], *found[other][number][1:]) for other in range(len(kinds))]
            gather = narrow.gather if narrow.suits(each) else side_by_side
            of_projected.append(gather(parts, each.shape[1]))
        return None, None, None, *of_projected


def _rows(projected: Sequence[Tensor], places: Sequence[tuple[Tensor, int]]) -> list[Rows]:
    return [Rows(each, *place) for each, place in zip(projected, places, strict=True)]


def _case(queries: Rows, kinds: Sequence[Rows], other: int) -> tuple[Tensor, Tensor, Tensor, Place]:
    """Query, key and value (tokens, heads, size) of a case, and their places; `other` is the kind of the keys."""
    keys = kinds[other]
    query = queries.projected[:, FOR_ENTITIES if other else FOR_WORDS]
    place = Place(queries.offsets, keys.offsets, queries.longest, keys.longest)
    return query, keys.projected[:, KEY], keys.projected[:, VALUE], place


def _merged(cases: Sequence[Sequence[tuple[Tensor, Tensor]]]) -> tuple[Tensor, list[Tensor]]:
    """Attended values of all kinds of queries (tokens, heads, size), and log-sum-exps (heads, tokens) of each.

    `cases` are both for each kind of queries and, within, of keys.
    """
    if len(cases) == 1:
        values, total = cases[0][0]
        return values, [total]
    sizes = [len(parts[0][0]) for parts in cases]
    attended = cases[0][0][0].new_empty(sum(sizes), *cases[0][0][0].shape[1:])
    merge = narrow.merge if narrow.suits(attended) else add_up
    targets = attended.split(sizes)
    return attended, [merge(parts, target) for parts, target in zip(cases, targets, strict=True)]


def add_up(parts: Sequence[tuple[Tensor, Tensor]], target: Tensor) -> Tensor:
    """Write attended values over all keys to `target`; their log-sum-exp (heads, tokens). `narrow.merge` does so, too.

    `parts` are attended values and log-sum-exps over each kind of keys.
    """
    # Over no keys at all the kernel returns infinity in place of minus infinity.
    (of_words, by_words), (of_entities, by_entities) = (
        (values, total.masked_fill(total.isinf(), -torch.inf)) for values, total in parts
    )
    # The entities' share is the small one: near 1 a narrow type would lose it.
    share = torch.sigmoid(by_entities - by_words).T[..., None].to(of_words.dtype)
    torch.lerp(of_words, of_entities, share, out=target)
    return torch.logaddexp(by_words, by_entities)


def side_by_side(parts: Sequence[tuple[Tensor, Tensor, Tensor]], columns: int) -> Tensor:
    """Gradients of a projection (tokens, columns, heads, size); `narrow.gather` does so, too.

    `parts` are those of the queries for keys of each kind, and of the keys and values that queries of each kind met.
    """
    queries, keys, values = zip(*parts, strict=True)
    found = [queries[0], functools.reduce(torch.add, keys), functools.reduce(torch.add, values), *queries[1:]]
    # Without entities no key meets the query for them.
    return torch.stack(found + [torch.zeros_like(found[0])] * (columns - len(found)), dim=1)


def attend_jagged(
    for_words: Tensor, for_entities: Tensor | None, keys: Tensor, values: Tensor, layout: Packed, dropout: float
) -> Tensor:
    """All sequences in one call of torch's attention, (tokens, heads, size), sequence after sequence."""
    size = keys.shape[-1]
    query, key, value = for_words, keys, values
    if for_entities is not None:
        query = torch.cat([for_words, for_entities], dim=-1)
        is_word = (layout.order < layout.words)[:, None, None]
        key = torch.cat([keys * is_word, keys * ~is_word], dim=-1)  # [k; 0] for words, [0; k] for entities
        value = functional.pad(values, (0, size))  # flash wants equal widths
    sizes = [words + entities for words, entities in layout.lengths]

    def jagged(tokens: Tensor) -> Tensor:
        return torch.nested.nested_tensor_from_jagged(
            tokens, layout.offsets, min_seqlen=min(sizes), max_seqlen=max(sizes)
        ).transpose(1, 2)

    attended = functional.scaled_dot_product_attention(
        jagged(query), jagged(key), jagged(value), dropout_p=dropout, scale=1 / math.sqrt(size)
    )
    return attended.transpose(1, 2).values()[..., :size]
