"""Marked lines to paragraphs, against a reading of every character alone."""

import sys
from collections import Counter
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from pipeline.wikitext import paragraphs
from pipeline.wikitext.paragraphs import Link, Paragraph, read_lines
from pipeline.wikitext.placeholders import BREAK, CLOSE, OPEN


class Piece(NamedTuple):
    """Text of a line, or of a link in it."""

    text: str
    is_link: bool


Line = tuple[str, list[Piece]]
TEXT = st.text(st.sampled_from("ab é日 \t\u00a0\u3000"), max_size=5)
PIECES = st.builds(Piece, TEXT, st.booleans()) | st.just(Piece(BREAK, is_link=False))
LINES = st.lists(st.tuples(st.sampled_from(["", "", "", "heading", "table_row"]), st.lists(PIECES, max_size=5)))


def read_characters(pieces: list[Piece], targets: list[str]) -> tuple[str, tuple[Link, ...], int]:
    """(text, links, how many links have no text) of a line without breaks."""
    owners: list[tuple[str, int | None]] = []
    waiting, empty = [*targets], 0
    named: dict[int, str] = {}
    for number, piece in enumerate(pieces):
        target = waiting.pop(0) if piece.is_link else ""
        inside = range(len(piece.text) - len(piece.text.lstrip()), len(piece.text.rstrip()))
        if piece.is_link and inside:
            named[number] = target
        empty += piece.is_link and not inside
        owners += [(char, number if number in named and at in inside else None) for at, char in enumerate(piece.text)]
    text, owned = "", []
    for at, (char, owner) in enumerate(owners):
        if not char.isspace():
            text, owned = text + char, [*owned, owner]
        elif text and not owners[at - 1][0].isspace() and not all(later.isspace() for later, _ in owners[at:]):
            text, owned = text + " ", [*owned, owner]
    links = [
        Link(owned.index(number), len(owned) - owned[::-1].index(number), target) for number, target in named.items()
    ]
    return text, tuple(links), empty


def split_at_breaks(pieces: list[Piece]) -> list[list[Piece]]:
    parts: list[list[Piece]] = [[]]
    for piece in pieces:
        if piece.text == BREAK:
            parts.append([])
        else:
            parts[-1].append(piece)
    return parts


def expected(lines: list[Line], targets: list[str]) -> tuple[list[Paragraph], Counter[str]]:
    found, drops, section, waiting = [], Counter[str](), "", [*targets]
    for kind, pieces in lines:
        parts = [[Piece(" ", False) if piece.text == BREAK else piece for piece in pieces]]
        for part in parts if kind else split_at_breaks(pieces):
            own = [waiting.pop(0) for piece in part if piece.is_link]
            text, links, empty = read_characters(part, own)
            drops["links:empty"] += empty
            if kind == "heading":
                section = text
                drops["links:in_heading"] += len(links)
            elif kind:
                drops["lines:table_row"] += 1
                drops["links:in_tables"] += len(links)
            elif text:
                found.append(Paragraph(section, text, links))
    return found, +drops


def test_all_blanks_but_the_controls_are_known() -> None:
    every = {chr(code) for code in range(0x20, sys.maxunicode + 1) if chr(code).isspace()} | {"\t"}
    assert {*paragraphs._OTHER_BLANKS, " "} == every


@given(LINES)
def test_lines_are_what_their_characters_are(lines: list[Line]) -> None:
    text = "\n".join(
        "".join(f"{OPEN}{piece.text}{CLOSE}" if piece.is_link else piece.text for piece in pieces)
        for _, pieces in lines
    )
    kinds = {number: kind for number, (kind, _) in enumerate(lines) if kind}
    targets = [f"T{number}" for number in range(text.count(OPEN))]
    extraction = read_lines(text, kinds, targets, Counter())
    wanted, drops = expected(lines, targets)
    assert list(extraction.paragraphs) == wanted
    assert extraction.drops == drops
    assert sum(extraction.link_counts) == len(extraction.targets) == len(extraction.starts) == len(extraction.ends)
