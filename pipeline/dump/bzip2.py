"""Reading bzip2 from anywhere: the blocks of a stream can be read alone once their beginning is found.

A bzip2 stream is `BZh` and a digit, then blocks that begin with a 48-bit magic at any bit, then a 48-bit end mark
with a checksum, padded to a byte. One block, cut out and given a header and an end of its own, is a stream that the
library decompresses. Multistream files are such streams one behind another.
"""

import bz2
from collections.abc import Iterator
from typing import IO

_MAGIC = 0x314159265359
_END = 0x177245385090
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


def _block_end(data: bytes, start: int, limit: int, *, is_last: bool) -> int | None:
    """Where the block that begins at bit `start` ends, if the next magic (or the file's end) is at bit `limit`.

    Between a stream's last block and the next stream's first is an end mark; it is looked for in the last 64
    bytes only, where alone it can be.
    """
    first = max(start // 8, limit // 8 - 64)
    marks = [first * 8 + bit for bit in _find_marks(data[first : limit // 8 + 1], _END, _END_NEEDLES)]
    inside = [bit for bit in marks if start < bit <= limit - 80]
    if inside:
        return inside[0]
    return None if is_last else limit


def _decompress(data: bytes, start: int, limit: int, *, is_last: bool) -> bytes | None:
    """The block that begins at bit `start`, or None if it does not end at or before `limit`."""
    end = _block_end(data, start, limit, is_last=is_last)
    if end is None:
        return None
    decoder = bz2.BZ2Decompressor()
    try:
        block = decoder.decompress(_rebuild(data, start, end))
    except (OSError, OverflowError, ValueError):
        return None
    return block if decoder.eof else None


def read_bzip2(stream: IO[bytes], start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Decompress from byte `start` to the end of the file, holding a few blocks at a time.

    Args:
        stream: a seekable bzip2 file.
        start: byte at which to look for the first block's magic.

    Yields:
        (bit offset of the block's magic in the file, the block's data).

    Raises:
        EOFError: the file ends inside a block.
        CorruptBzip2: a block is damaged.
    """
    stream.seek(start)
    data, base, ended = b"", start, False  # `data` holds the file's bytes from `base` on
    while True:
        # A block reaches from one mark to the next; where it does not decompress, that next one was no true
        # magic, and the block reaches to the one behind it.
        marks = _find_marks(data, _MAGIC, _MAGIC_NEEDLES) + ([len(data) * 8] if ended else [])
        begin = 0
        for limit in range(1, len(marks)):
            is_last = ended and limit == len(marks) - 1
            block = _decompress(data, marks[begin], marks[limit], is_last=is_last)
            if block is not None:
                yield base * 8 + marks[begin], block
                begin = limit
            elif marks[limit] - marks[begin] > _MAX_BLOCK * 8:
                raise CorruptBzip2(f"at byte {base + marks[begin] // 8}")
        if ended:
            if begin < len(marks) - 1:
                raise _failure(data, base, marks[begin])
            return
        keep = marks[begin] // 8 if begin < len(marks) else max(0, len(data) - 8)
        data, base = data[keep:], base + keep
        if len(data) > 2 * _MAX_BLOCK:
            raise CorruptBzip2(f"at byte {base}")
        chunk = stream.read(_READ)
        data, ended = data + chunk, not chunk


def _failure(data: bytes, base: int, begin: int) -> Exception:
    where = f"byte {base + begin // 8}"
    if _block_end(data, begin, len(data) * 8, is_last=True) is None:
        return EOFError(
            f"inside the block that begins at {where}, with {len(data) - begin // 8} bytes of it there"
        )
    return CorruptBzip2(f"at {where}")
