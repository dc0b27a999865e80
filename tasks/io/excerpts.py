"""The part of a text that fits into the model, around what is asked."""

from collections.abc import Sequence

from tasks.io.records import CharacterSpan


def context_window(start: int, end: int, length: int, room: int) -> tuple[int, int]:
    """The most of a document of `length` sub-words that fits into `room`, `start` to `end` in the middle.

    What one side cannot use, because the document ends there, goes to the other side.
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

    At one place spans close before others open; of nested spans the outer one opens first and closes last.
    """
    opening = [((start, 1, -end, number), (start, number, 0)) for number, (start, end) in enumerate(spans)]
    closing = [((end, 0, -start, -number), (end, number, 1)) for number, (start, end) in enumerate(spans)]
    return [mark for _, mark in sorted(opening + closing)]
