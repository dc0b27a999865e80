"""Spans of words: enumeration, passes, greedy and n-best decoding, and the tag schemes IOB1, IOB2 and IOBES."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from tasks.io.windows import without_overlaps

SCHEMES = ("IOB2", "IOB1", "IOBES")


class Span(NamedTuple):
    """Words `start` (included) to `end` (excluded) of a sentence, with an entity type."""

    start: int
    end: int
    label: str


class Tag(NamedTuple):
    """A tag in its two parts; `prefix` is one of O, B, I, E, S, `label` is empty for O."""

    prefix: str
    label: str


OUTSIDE = Tag("O", "")
TAG = re.compile(r"O|[BIESLUM]-.+")
SAME_PREFIXES = {"L": "E", "U": "S", "M": "I"}  # BILOU and BMES say the same as IOBES in other letters


def enumerate_spans(length: int, max_length: int) -> list[tuple[int, int]]:
    """All spans of at most `max_length` words in a sentence of `length` words, by start, then end."""
    return [(start, end) for start in range(length) for end in range(start + 1, min(start + max_length, length) + 1)]


def split_passes(length: int, limit: int) -> list[slice]:
    """The fewest consecutive parts of `length` items of at most `limit` each; sizes differ by one at most."""
    count = -(-length // limit)
    return [slice(part * length // count, (part + 1) * length // count) for part in range(count)]


def select_spans(scored: Iterable[tuple[float, Span]]) -> list[Span]:
    """Greedy choice of spans that do not overlap (section 4.3), by falling score, then from left to right.

    Spans classified as non-entity are left out by the caller. The result is in the order of the sentence.
    """
    return without_overlaps(span for _, span in sorted(scored, key=lambda pair: (-pair[0], pair[1])))


def parse_tag(text: str) -> Tag:
    """The parts of `O` or `<prefix>-<type>`; a ValueError says what is wrong with anything else."""
    prefix, _, label = text.partition("-")
    if text == "O":
        return OUTSIDE
    prefix = SAME_PREFIXES.get(prefix, prefix)
    if prefix not in ("B", "I", "E", "S") or not label:
        hint = "nested entities in brackets are not read; give B- and I- of one level" if "(" in text else ""
        hint = hint or "where tags are bare types, write I- before each"
        raise ValueError(
            f"tag {text!r} is neither O nor B-, I-, E- or S- (or L-, U-, M-) followed by an entity type; {hint}"
        )
    return Tag(prefix, label)


def schemes_of(previous: Tag, tag: Tag, following: Tag) -> frozenset[str]:
    """The schemes in which `tag` may stand between these neighbours (OUTSIDE at the ends of a sentence)."""
    continues = previous.prefix in ("B", "I") and previous.label == tag.label
    continued = following.prefix in ("I", "E") and following.label == tag.label
    match tag.prefix:
        case "O":
            return frozenset(SCHEMES)
        case "B":
            allowed = {"IOB2": True, "IOB1": continues, "IOBES": continued}
        case "I":
            allowed = {"IOB2": continues, "IOB1": True, "IOBES": continues and continued}
        case "E":
            allowed = {"IOBES": continues}
        case _:
            allowed = {"IOBES": True}
    return frozenset(scheme for scheme, fits in allowed.items() if fits)


def spans_of_tags(tags: Sequence[Tag]) -> list[Span]:
    """The entities that `conlleval` sees in any sequence of tags, whether it is valid in a scheme or not.

    Equal to the script on O, B and I; a span also ends after E and S and begins at S, as IOBES means it.
    """
    spans = []
    start = 0
    for position, (previous, tag) in enumerate(pairwise([OUTSIDE, *tags, OUTSIDE])):
        if previous.label == tag.label and previous.prefix not in ("E", "S") and tag.prefix not in ("B", "S"):
            continue
        if previous.label:
            spans.append(Span(start, position, previous.label))
        start = position
    return spans


def tags_of_spans(spans: Iterable[Span], length: int, scheme: str) -> list[str]:
    """The tags of a sentence of `length` words with these spans, which must not overlap."""
    tags = ["O"] * length
    previous: Span | None = None
    for span in sorted(spans):
        assert previous is None or previous.end <= span.start, (previous, span)
        adjoins = previous is not None and previous.end == span.start and previous.label == span.label
        prefixes = ["I"] * (span.end - span.start)
        if scheme != "IOB1" or adjoins:
            prefixes[0] = "B"
        if scheme == "IOBES":
            prefixes[-1] = "S" if len(prefixes) == 1 else "E"
        tags[span.start : span.end] = [f"{prefix}-{span.label}" for prefix in prefixes]
        previous = span
    return tags
