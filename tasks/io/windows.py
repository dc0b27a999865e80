"""The windows in which long texts are seen, spans of characters, and the tokens of these."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

STRIDE = 128

Integers = NDArray[np.int64]
CharacterSpan = tuple[int, int]  # the first character, and the one after the last
Placed = TypeVar("Placed", bound=tuple[Any, ...])
"""A place in a text or a sentence: its start, its end, and what else there is."""


def windows(length: int, room: int, stride: int | None = None) -> list[tuple[int, int]]:
    """Half-open windows of at most `room` tokens that cover a text of `length`; none where that is 0.

    They begin `stride` apart. Unless that is given it is STRIDE, and in a short model half a window: (0, 4), (2, 6),
    (4, 7) for 7 tokens and a room of 4.
    """
    step = stride or min(STRIDE, max(1, room // 2))
    starts = range(0, max(length - room, 0) + step, step) if length else ()
    return [(start, min(start + room, length)) for start in starts]


def widest_windows(spans: Sequence[tuple[int, int]]) -> Integers:
    """The number of the window in which each token has the most context, as BERT counts it.

    That is the context on its shorter side and, between equals, the longer window, then the first. The windows (0, 4)
    and (2, 6) both hold the tokens 2 and 3: 2 has a token on its right in the first window (and two on its left), none
    on its left in the second; 3 is the last of the first window. So the result is 0 0 0 1 1 1.
    """
    length = spans[-1][1]
    most, widest = np.full(length, -1.0), np.zeros(length, dtype=np.int64)
    for number, (start, end) in enumerate(spans):
        before = np.arange(end - start)
        context = np.minimum(before, before[::-1]) + 0.01 * (end - start)
        is_more = context > most[start:end]
        most[start:end][is_more] = context[is_more]
        widest[start:end][is_more] = number
    return widest


def token_spans(characters: Integers, spans: Integers) -> Integers:
    """The tokens (spans, 2) that share a character with each span (spans, 2) of characters; both half open.

    `characters` (tokens, 2) are those of each token.
    """
    first = np.searchsorted(characters[:, 1], spans[:, 0], side="right")
    return np.stack([first, np.searchsorted(characters[:, 0], spans[:, 1], side="left")], axis=1)


def context_window(start: int, end: int, length: int, room: int) -> tuple[int, int]:
    """The most of a document of `length` sub-words that fits into `room`, `start` to `end` in the middle.

    What one side cannot use, because the document ends there, goes to the other side: of 10 sub-words with a room
    of 6, the span (1, 3) has 4 to spare and only one sub-word on its left, so the window is (0, 6).
    """
    spare = room - (end - start)
    left, right = start, length - end
    if left < right:
        left = min(left, spare // 2)
        right = min(right, spare - left)
    else:
        right = min(right, spare // 2)
        left = min(left, spare - right)
    return start - left, end + right


def boundaries(spans: Sequence[CharacterSpan]) -> list[tuple[int, int, int]]:
    """Each marker in the order of the text: its place, the number of its span, and 0 (opens) or 1 (closes).

    At one place spans close before others open; of nested spans the outer one opens first and closes last: for the
    spans (0, 5) and (0, 3) these are (0, 0, 0), (0, 1, 0), (3, 1, 1), (5, 0, 1).
    """
    opening = [((start, 1, -end, number), (start, number, 0)) for number, (start, end) in enumerate(spans)]
    closing = [((end, 0, -start, -number), (end, number, 1)) for number, (start, end) in enumerate(spans)]
    return [mark for _, mark in sorted(opening + closing)]


def without_overlaps(places: Iterable[Placed]) -> list[Placed]:
    """Places in their order, of those that overlap the one that was given first."""
    kept: list[Placed] = []
    taken: set[int] = set()
    for place in places:
        inside = range(place[0], place[1])
        if taken.isdisjoint(inside):
            kept.append(place)
            taken.update(inside)
    return sorted(kept)


def character_span(words: Sequence[str], span: tuple[int, int]) -> CharacterSpan:
    """Return where the words of a half-open span stand in all words joined by blanks."""
    starts = [*accumulate((len(word) + 1 for word in words), initial=0)]
    return starts[span[0]], starts[span[1]] - 1
