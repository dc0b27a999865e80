"""The mentions of an answer in the order of their text, and texts in which they are written otherwise."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

LinkedMention = Mapping[str, Any]


def ordered(values: Mapping[str, Any]) -> list[LinkedMention]:
    """The mentions of an answer from left to right. Raises: ValueError where two overlap, which no format can say."""
    mentions: Sequence[LinkedMention] = values["mentions"]
    found = sorted(mentions, key=lambda each: (each["start"], each["end"]))
    for left, right in pairwise(found):
        if right["start"] < left["end"]:
            raise ValueError(
                f"the mentions {left['mention']!r} at {left['start']} and {right['mention']!r} at {right['start']} "
                "overlap, which JSON alone can say; give one of them, or --format json"
            )
    return found


def replaced(text: str, spans: Iterable[tuple[int, int, str]], escape: Callable[[str], str]) -> str:
    """The text with spans (half open, from left to right) replaced by what is given, and all else escaped."""
    parts, last = [], 0
    for start, end, new in spans:
        parts += [escape(text[last:start]), new]
        last = end
    return "".join([*parts, escape(text[last:])])
