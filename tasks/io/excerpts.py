"""Spans of characters in a text, and the part of the text around them that fits into the model."""

from collections.abc import Sequence
from itertools import accumulate

CharacterSpan = tuple[int, int]
"""The first character, and the one after the last."""


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


def character_span(words: Sequence[str], span: tuple[int, int]) -> CharacterSpan:
    """Where the words of a half-open span stand in all words joined by blanks."""
    starts = [*accumulate((len(word) + 1 for word in words), initial=0)]
    return starts[span[0]], starts[span[1]] - 1
