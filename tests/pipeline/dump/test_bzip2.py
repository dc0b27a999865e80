"""bzip2 from anywhere, against the standard library."""

import bz2
import io
import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.dump.bzip2 import CorruptBzip2, read_bzip2

BLOCK = 100_000  # level 1: blocks of that many bytes


def text(seed: int, size: int) -> bytes:
    """Bytes that compress like a text, so that blocks end at any bit."""
    numbers = random.Random(seed)
    words = [bytes(numbers.choices(b"abcdefghij ", k=numbers.randint(2, 9))) for _ in range(2000)]
    data = b" ".join(numbers.choices(words, k=size // 5 + 1))
    return data[:size]


def read(data: bytes, start: int = 0) -> list[tuple[int, bytes]]:
    return list(read_bzip2(io.BytesIO(data), start))


@settings(max_examples=25)
@given(st.lists(st.integers(0, 3 * BLOCK), min_size=1, max_size=4), st.integers(1, 9), st.integers(0, 2**32))
def test_any_streams_read_as_the_library_reads_them(sizes: list[int], level: int, seed: int) -> None:
    pieces = [text(seed + number, size) for number, size in enumerate(sizes)]
    data = b"".join(bz2.compress(piece, level) for piece in pieces)
    assert b"".join(block for _, block in read(data)) == b"".join(pieces)


@settings(max_examples=15)
@given(st.lists(st.integers(1, 400_000), max_size=6))
def test_ranges_share_the_blocks_out(cuts: list[int]) -> None:
    original = text(7, 8 * BLOCK)
    data = bz2.compress(original[: 3 * BLOCK], 1) + bz2.compress(original[3 * BLOCK :], 1)
    borders = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    shared = []
    for start, end in pairwise(borders):
        shared += [block for bit, block in read(data, start) if bit < end * 8]
    assert b"".join(shared) == original


def test_incompressible_data() -> None:
    original = random.Random(1).randbytes(3_000_000)
    assert b"".join(block for _, block in read(bz2.compress(original))) == original


GARBAGE = {
    "one zero": b"\0",
    "zeros": bytes(5_000),
    "more zeros than a block may have": bytes(20_000_000),
    "random bytes": random.Random(2).randbytes(3_000_000),
    "text": b"</html>" * 20,
    "half a header": b"BZh",
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
@pytest.mark.parametrize("streams", [1, 4])
def test_what_lies_behind_the_last_stream_is_left_out_and_told(garbage: bytes, streams: int) -> None:
    original = text(3, 6 * BLOCK)
    size = len(original) // streams
    data = b"".join(bz2.compress(original[at : at + size], 1) for at in range(0, len(original), size))
    found: list[int] = []
    stream = io.BytesIO(data + garbage)
    assert b"".join(block for _, block in read_bzip2(stream, 0, found.append)) == original
    assert found == [len(data)]
    assert read(data + garbage, len(data)) == []


def test_empty_streams_are_no_garbage() -> None:
    data = bz2.compress(text(3, BLOCK)) + bz2.compress(b"") * 9
    assert b"".join(block for _, block in read_bzip2(io.BytesIO(data), 0, pytest.fail)) == text(3, BLOCK)


@pytest.mark.parametrize("padding", [1, 63, 512, 100_000])
def test_padding_between_streams_hides_none_of_them(padding: int) -> None:
    original = text(3, 4 * BLOCK)
    half = len(original) // 2
    data = bz2.compress(original[:half], 1) + bytes(padding) + bz2.compress(original[half:], 1)
    assert b"".join(block for _, block in read(data)) == original


@pytest.mark.parametrize(
    ("missing", "zeros"), [(1, 0), (9, 0), (15, 0), (1000, 0), (40_000, 0), (60_000, 100), (60_000, 12_000_000)]
)
def test_a_cut_file_is_told_apart_from_a_damaged_one(missing: int, zeros: int) -> None:
    data = bz2.compress(text(3, 4 * BLOCK), 1)
    with pytest.raises(EOFError, match="inside the block that begins at byte"):
        read(data[:-missing] + bytes(zeros))


def test_damage_is_named() -> None:
    data = bytearray(bz2.compress(text(3, 4 * BLOCK), 1))
    data[len(data) // 2] ^= 8
    with pytest.raises(CorruptBzip2, match="at byte"):
        read(bytes(data))


def test_a_false_magic_merges_with_the_next_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """A magic that stands in a block by chance (2^-48 a bit) must not end it."""
    from pipeline.dump import bzip2

    original = text(5, 4 * BLOCK)
    data = bz2.compress(original, 1)
    find = bzip2._find_marks

    def with_false_ones(buffer: bytes, mark: int, needles: list[tuple[int, bytes]]) -> list[int]:
        true = find(buffer, mark, needles)
        between = [(low + high) // 2 for low, high in pairwise(true)]
        return sorted(true + between) if mark == bzip2._MAGIC else true

    monkeypatch.setattr(bzip2, "_find_marks", with_false_ones)
    assert b"".join(block for _, block in read(data)) == original


def test_memory_stays_small() -> None:
    """Blocks are given one by one, not collected."""
    stream = io.BytesIO(bz2.compress(text(9, 60 * BLOCK), 1))
    next(read_bzip2(stream))
    assert stream.tell() <= 2 << 20
