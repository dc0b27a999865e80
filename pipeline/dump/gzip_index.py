"""A gzip file's data from anywhere in it: an index of points of entry, and reading that starts at one of them.

The package indexed_gzip writes the index. It would read all of it for each block (a hundred megabytes for the English
Wikipedia), and would inflate from the last point anew at every call, so reading is done here. The file begins with a
header and a table of points of 18 bytes each; behind them are 32 KiB of data for each point, its window.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np

from pipeline import storage

_CHUNK = 1 << 20
_SPACING = 32 << 20  # bytes of data between two points
_HEADER = struct.Struct(
    "<5sBBQQIII"
)  # name, version, flags, sizes of file and data, spacing, window size, points
_NAME, _VERSION = b"GZIDX", 1
_POINTS = np.dtype([("offset", "<u8"), ("position", "<u8"), ("bits", "u1"), ("has_window", "u1")])
_TRAILER = 8  # bytes of checksum and size behind the data of a member
# Two blocks of deflate that hold nothing, lowest bit first: one of 10 bits, and one of an odd number of bits.
_EMPTY, _EMPTY_BITS = 0b10, 10
_ODD, _ODD_BITS = 0x35FFC10000000000081E004, 93


class TruncatedDump(ValueError):
    """The dump ends in the middle."""


@dataclass(frozen=True)
class _Entry:
    """A place where reading can start.

    The first whole byte is at `offset`; `bits` of the byte before it belong to the data, too. `window` is the data
    before.
    """

    offset: int
    bits: int
    position: int
    window: bytes


def index_gzip(path: str, index: str) -> None:
    """Read a gzip file once, and write an index by which its data can be entered at many points.

    Raises: ValueError: the compressed data are damaged.
    """
    import indexed_gzip

    with storage.atomic_path(index) as temporary, open(path, "rb") as stream:
        try:
            with indexed_gzip.IndexedGzipFile(fileobj=stream, spacing=_SPACING, buffer_size=_CHUNK) as file:
                file.build_full_index()
                file.export_index(temporary)
        except indexed_gzip.ZranError as error:
            raise ValueError(f"{path}: damaged ({error}); download it again") from None


def gzip_data_size(index: str) -> int:
    """Bytes of the data of an indexed file."""
    with open(index, "rb") as stream:
        return _read_header(stream, index)[0]


def read_gzip(path: str, start: int = 0, index: str = "") -> Iterator[tuple[int, bytes]]:
    """Yield the data of a gzip file from a place on, in pieces with their places; without an index from 0 on.

    Raises: TruncatedDump: the file ends in the middle. ValueError: the compressed data are damaged.
    """
    with open(path, "rb") as stream:
        if not index:
            yield from _inflate(stream, path, zlib.decompressobj(wbits=31), 0)
            return
        entry = _find_entry(index, start)
        stream.seek(entry.offset - bool(entry.bits))
        decoder = zlib.decompressobj(wbits=-15, zdict=entry.window)
        if entry.bits:
            decoder.decompress(_whole_bytes(entry.bits, stream.read(1)[0]))
        for position, data in _inflate(stream, path, decoder, entry.position, trailer=_TRAILER):
            before = max(0, start - position)
            if before < len(data):
                yield position + before, data[before:]


def _inflate(
    stream: IO[bytes], path: str, decoder: "zlib._Decompress", position: int, trailer: int = 0
) -> Iterator[tuple[int, bytes]]:
    """Pieces of data with their places; `trailer`: bytes behind the first member that its decoder does not read."""
    rest = b""
    while compressed := rest or stream.read(_CHUNK):
        if decoder.eof:  # zeros behind a member are padding; else another member follows
            rest = compressed.lstrip(b"\0")
            if len(rest) < len(compressed):
                continue
            decoder = zlib.decompressobj(wbits=31)
        try:
            data = decoder.decompress(compressed, _CHUNK)
        except zlib.error as error:
            raise ValueError(
                f"{path}: damaged before byte {stream.tell()} ({error}); download it again"
            ) from None
        yield position, data
        position += len(data)
        rest = decoder.unconsumed_tail
        if decoder.eof:
            rest = decoder.unused_data
            rest += stream.read(max(0, trailer - len(rest)))
            rest, trailer = rest[trailer:], 0
    if not decoder.eof:
        raise TruncatedDump(f"{path}: the gzip stream ends in the middle, at byte {stream.tell()}")


def _whole_bytes(bits: int, byte: int) -> bytes:
    """Deflate data that end with the last bits of a byte, with nothing but empty blocks before them.

    A block of deflate may begin within a byte, and zlib, as Python has it, begins with a whole one.
    """
    value, length = (_ODD, _ODD_BITS) if bits % 2 else (0, 0)
    while (length + bits) % 8:
        value |= _EMPTY << length
        length += _EMPTY_BITS
    value |= byte >> (8 - bits) << length
    return value.to_bytes((length + bits) // 8, "little")


def _find_entry(index: str, start: int) -> _Entry:
    """The last point of entry at or before a place in the data; of the windows only its own is read."""
    with open(index, "rb") as stream:
        _, window_bytes, count = _read_header(stream, index)
        points = np.frombuffer(stream.read(_POINTS.itemsize * count), _POINTS)
        chosen = int(np.searchsorted(points["position"], start, side="right")) - 1
        point, window = points[chosen], b""
        if point["has_window"]:
            stream.seek(window_bytes * int(points["has_window"][:chosen].sum()), os.SEEK_CUR)
            window = stream.read(window_bytes)
    return _Entry(int(point["offset"]), int(point["bits"]), int(point["position"]), window)


def _read_header(stream: IO[bytes], index: str) -> tuple[int, int, int]:
    """Bytes of the data, bytes of a window, number of points."""
    head = stream.read(_HEADER.size)
    if len(head) == _HEADER.size:
        name, version, _, _, size, _, window_bytes, count = _HEADER.unpack(head)
        if (name, version) == (_NAME, _VERSION):
            return size, window_bytes, count
    raise ValueError(f"{index}: no index of a gzip file; delete it and run FetchDump again")
