"""Reading bzip2 from anywhere: the blocks of a stream can be read alone once their beginning is found.

A bzip2 stream is `BZh` and a digit, then blocks that begin with a 48-bit magic at any bit, then a 48-bit end mark
with a checksum, padded to a byte. One block, cut out and given a header and an end of its own, is a stream that the
library decompresses. Multistream files are such streams one behind another.
"""

import bz2
from collections.abc import Callable, Iterable, Iterator
from typing import IO

_MAGIC = 0x314159265359
_END = 0x177245385090
_EMPTY_STREAMS = tuple(b"BZh%d" % level + _END.to_bytes(6) + bytes(4) for level in range(1, 10))
_READ = 1 << 20
_MAX_BLOCK = 4 << 20  # compressed bytes; real blocks stay below 0.95 MB, a false magic merges two


class CorruptBzip2(ValueError):
    """A block's checksum or structure is wrong."""


def _needles(mark: int) -> list[tuple[int, bytes]]:
    """For each bit shift, five bytes that the 48-bit mark fills completely, whatever is around it."""
    return [(shift, (mark >> (shift or 8) & (1 << 40) - 1).to_bytes(5)) for shift in range(8)]


_MAGIC_NEEDLES, _END_NEEDLES = _needles(_MAGIC), _needles(_END)


def _find_marks(data: bytes, mark: int, needles: list[tuple[int, bytes]]) -> list[int]:
    """Bit offsets of the 48-bit mark in the data, ascending."""
    found = []
    for shift, needle in needles:
        at = data.find(needle)
        while at >= 0:
            # Shift 0: the needle is the mark's first five bytes. Shift s: its bits s.. begin one byte earlier.
            first = at if shift == 0 else at - 1
            window = data[first : first + 7]
            if first >= 0 and len(window) >= 6 + (shift > 0):
                bits = int.from_bytes(window.ljust(7, b"\0"))
                if bits >> (8 - shift) & (1 << 48) - 1 == mark:
                    found.append(first * 8 + shift)
            at = data.find(needle, at + 1)
    return sorted(found)


def _rebuild(data: bytes, start: int, end: int) -> bytes:
    """The bits [start, end) of the data, one complete block, as a stream of its own."""
    count = end - start
    bits = int.from_bytes(data[start // 8 : (end + 7) // 8]) >> (-end % 8) & (1 << count) - 1
    checksum = bits >> (count - 80) & (1 << 32) - 1  # a stream of one block has the block's checksum
    bits = bits << 80 | _END << 32 | checksum
    padding = -(count + 80) % 8
    return b"BZh9" + (bits << padding).to_bytes((count + 80 + padding) // 8)


def _ends(data: bytes, start: int, limit: int) -> Iterator[int]:
    """Yield where the block from bit `start` on may end, if the next magic (or the data's end) is at bit `limit`.

    Between a stream's last block and the next stream's first is an end mark, as a rule in the last 64 bytes; where
    those are padding, anywhere.
    """
    near = max(start // 8, limit // 8 - 64)
    found = list(_end_marks(data, near, start, limit))
    yield from found or [limit]
    if near > start // 8:
        yield from (bit for bit in _end_marks(data, start // 8, start, limit) if bit not in found)


def _end_marks(data: bytes, first: int, start: int, limit: int) -> Iterator[int]:
    """Bits of complete end marks between bits `start` and `limit`, in the data from byte `first` on."""
    for bit in _find_marks(data[first : limit // 8 + 1], _END, _END_NEEDLES):
        if start < first * 8 + bit <= limit - 80:
            yield first * 8 + bit


def _decompress(data: bytes, start: int, ends: Iterable[int]) -> tuple[bytes, int] | None:
    """The block that begins at bit `start`, and at which of the bits it ends; None if at none of them."""
    for end in ends:
        decoder = bz2.BZ2Decompressor()
        try:
            block = decoder.decompress(_rebuild(data, start, end))
        except (OSError, OverflowError, ValueError):
            continue
        if decoder.eof:
            return block, end
    return None


def read_bzip2(
    stream: IO[bytes], start: int = 0, on_garbage: Callable[[int], None] = lambda byte: None
) -> Iterator[tuple[int, bytes]]:
    """Yield the bit of each block's magic in the file, and the block's data, from byte `start` on.

    A few blocks are held at once. Bytes behind the last stream that are of none are left out, as `bzip2` does;
    `on_garbage` gets the byte where they begin. Raises: EOFError: the file ends inside a block. CorruptBzip2: a block
    is damaged.
    """
    stream.seek(start)
    data, base, ended = b"", start, False  # `data` holds the file's bytes from `base` on
    while True:
        # A block reaches from one mark to the next; where it does not decompress, that next one was no true
        # magic, and the block reaches to the one behind it.
        marks = _find_marks(data, _MAGIC, _MAGIC_NEEDLES)
        begin = 0
        for limit in range(1, len(marks)):
            found = _decompress(data, marks[begin], _ends(data, marks[begin], marks[limit]))
            if found is not None:
                yield base * 8 + marks[begin], found[0]
                begin = limit
            elif marks[limit] - marks[begin] > _MAX_BLOCK * 8:
                raise CorruptBzip2(f"at byte {base + marks[begin] // 8}")
        # The last block of a stream has no magic behind it, but an end mark, and then perhaps a lot of padding.
        if begin < len(marks) and (ended or len(data) - marks[-1] // 8 > _MAX_BLOCK):
            ends = _end_marks(data, marks[begin] // 8, marks[begin], len(data) * 8)
            found = _decompress(data, marks[begin], ends)
            if found is None:
                raise _failure(data, base, marks[begin])
            yield base * 8 + marks[begin], found[0]
            begin, stop = len(marks), _behind_streams(data, found[1])
            if stop < len(data):
                on_garbage(base + stop)
        if ended:
            return
        keep = marks[begin] // 8 if begin < len(marks) else max(0, len(data) - 8)
        data, base = data[keep:], base + keep
        chunk = stream.read(_READ)
        data, ended = data + chunk, not chunk


def _behind_streams(data: bytes, end: int) -> int:
    """The byte behind the stream whose end mark is at bit `end`, and behind empty streams that follow it."""
    stop = (end + 80 + 7) // 8
    while data.startswith(_EMPTY_STREAMS, stop):
        stop += len(_EMPTY_STREAMS[0])
    return stop


def _failure(data: bytes, base: int, begin: int) -> Exception:
    where = f"byte {base + begin // 8}"
    if next(_end_marks(data, begin // 8, begin, len(data) * 8), None) is None:
        return EOFError(f"inside the block that begins at {where}, with {len(data) - begin // 8} bytes of it there")
    return CorruptBzip2(f"at {where}")
