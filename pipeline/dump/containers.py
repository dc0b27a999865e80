"""The container of a dump as blocks of XML bytes: plain, gzip or bzip2 (one stream or many).

A block is a range of the file's bytes. In bzip2 files the data of a range are the compressed bzip2 blocks whose 48-bit
magic begins in it: they decompress alone, so that no reader starts at the file's beginning. A gzip file can only be
read from there, and is one block.
"""

import contextlib
import gzip
import logging
import re
import zlib
from collections.abc import Iterator, Sequence

from pipeline import storage
from pipeline.dump.bzip2 import CorruptBzip2, read_bzip2
from pipeline.storage.blocks import Block

logger = logging.getLogger("pipeline")

_CHUNK = 1 << 20
_HEAD_BYTES = 1 << 20
# What may come before the root element.
PROLOG = re.compile(rb"(?:\xef\xbb\xbf|\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[[^\]]*\]\s*)?>)*", re.DOTALL)
_PACKED = 0.29  # of XML, in bzip2


class TruncatedDump(ValueError):
    """The dump ends in the middle."""


def detect_format(path: str) -> str:
    """`xml`, `bz2` or `gz`, by the first bytes, not the name. Raises: ValueError: no such file, empty, or no dump."""
    if storage.file_size(path) is None:
        raise ValueError(f"{path}: no such dump file; check --dump")
    with open(path, "rb") as stream:
        head = stream.read(512)
    if not head:
        raise ValueError(f"{path}: the file is empty; download it again")
    if re.match(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)", head):
        return "bz2"
    if head.startswith(b"\x1f\x8b"):
        return "gz"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.lower().startswith((b"<!doctype html", b"<html")):
        raise ValueError(f"{path}: an HTML page, not a dump; download the file itself (an .xml, .xml.bz2 or .xml.gz)")
    if text.startswith((b"<mediawiki", b"<?xml", b"<!--")):
        return "xml"
    raise ValueError(f"{path}: begins with {head[:12]!r}; wanted a MediaWiki export as .xml, .xml.bz2 or .xml.gz")


def packed_size(path: str) -> float:
    """Bytes of a dump's file, plain XML as bzip2 would pack it, about: a measure of what is in it."""
    size = storage.file_size(path) or 0
    return size * _PACKED if detect_format(path) == "xml" else size


def plan_blocks(paths: Sequence[str], block_size: int) -> list[Block]:
    """Cut dump files into blocks of `block_size` bytes of the file as it lies.

    A gzip file is one block, and so is a file in which a block could begin inside a comment or a CDATA section.
    """
    blocks: list[Block] = []
    for path in paths:
        size = storage.file_size(path) or 0
        step = size if detect_format(path) == "gz" else block_size
        with contextlib.suppress(TruncatedDump):
            step = max(size, 1) if b"<!" in read_head(path)[0] else step
        for start in range(0, size, step):
            blocks.append(Block(len(blocks), path, start, min(start + step, size)))
    return blocks


def read_head(path: str) -> tuple[bytes, str]:
    """(the beginning of an export, from its root element on; the encoding that its first line names)."""
    head = bytearray()
    try:
        for data, _ in read_range(path, 0, storage.file_size(path) or 0):
            head += data
            if b"<page" in PROLOG.sub(b"", head, 1) or len(head) >= _HEAD_BYTES:
                break
    except TruncatedDump:
        if not head:
            raise
    root = PROLOG.sub(b"", head, 1)
    encoding = re.search(rb"<\?xml[^>]*\bencoding\s*=\s*[\"']([^\"']*)", head[: len(head) - len(root)])
    return root, encoding[1].decode("latin-1") if encoding else "utf-8"


def _warn_of_garbage(path: str, byte: int) -> None:
    count = (storage.file_size(path) or byte) - byte
    logger.warning("%s: %d bytes behind its bzip2 data, at byte %d, are left out", path, count, byte)


def _read_gzip(path: str) -> Iterator[bytes]:
    with open(path, "rb") as stream, gzip.GzipFile(fileobj=stream) as members:
        try:
            while data := members.read1(_CHUNK):
                yield data
        except EOFError:
            raise TruncatedDump(f"{path}: the gzip stream ends in the middle, at byte {stream.tell()}") from None
        except (OSError, zlib.error) as error:
            raise ValueError(f"{path}: damaged before byte {stream.tell()} ({error}); download it again") from None


def read_range(path: str, start: int, end: int) -> Iterator[tuple[bytes, bool]]:
    """Yield decompressed data from `start` to the end of the file, each with whether it belongs to the range.

    Of a gzip file all data do.
    """
    kind = detect_format(path)
    if kind == "xml":
        with open(path, "rb") as stream:
            stream.seek(start)
            while chunk := stream.read(min(_CHUNK, end - start) if start < end else _CHUNK):
                yield chunk, start < end
                start += len(chunk)
    elif kind == "gz":
        for data in _read_gzip(path):
            yield data, True
    else:
        with open(path, "rb") as stream:
            try:
                for bit, data in read_bzip2(stream, start, lambda byte: _warn_of_garbage(path, byte)):
                    yield data, bit < end * 8
            except EOFError as error:
                raise TruncatedDump(f"{path}: the bzip2 stream ends in the middle, {error}") from None
            except CorruptBzip2 as error:
                raise ValueError(f"{path}: damaged {error}; download it again") from None
