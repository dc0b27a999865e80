"""Manifests and atomic files: what makes a stage's folder trustworthy.

A stage's folder holds data files and, written last, `manifest.json`, which lists each of them with size and
SHA-256. No file is read that a manifest does not list. Work inside a stage is committed block by block: the
block's data files first, then `blocks/block-00017.json`, each by rename; a rerun keeps the blocks that are whole.

Paths are strings: local, or any fsspec URL (`s3://...`, `memory://...`).
"""

import contextlib
import hashlib
import json
import os
import posixpath
import re
import shutil
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import accumulate, chain, repeat
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

MANIFEST = "manifest.json"
BLOCKS = "blocks"
KEY = "key.txt"  # says from what the files of an unfinished stage are made
ROW_GROUP_ROWS = 8192
_CHUNK = 1 << 20
_ASIDE = re.compile(r"\..+\.[0-9a-f]{32}\.tmp")


# Paths and files


def _filesystem(path: str) -> tuple[Any, str]:
    import fsspec  # absent on machines that only train

    return fsspec.core.url_to_fs(path)


def is_url(path: str) -> bool:
    return "://" in path


def join(folder: str, *names: str) -> str:
    return posixpath.join(folder, *names) if is_url(folder) else os.path.join(folder, *names)


def open_input(path: str) -> IO[bytes]:
    """Open a file for reading bytes, local or remote."""
    return open(path, "rb") if not is_url(path) else _filesystem(path)[0].open(path, "rb")


def read_bytes(path: str) -> bytes:
    with open_input(path) as stream:
        return stream.read()


def file_size(path: str) -> int | None:
    """Size in bytes, or None where there is no such file."""
    try:
        return os.stat(path).st_size if not is_url(path) else int(_filesystem(path)[0].size(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def list_files(folder: str) -> list[str]:
    """Every file below the folder, as sorted paths relative to it with forward slashes."""
    if not is_url(folder):
        return sorted(
            path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file()
        )
    filesystem, root = _filesystem(folder)
    return sorted(posixpath.relpath(path, root) for path in filesystem.find(root))


def remove(path: str) -> None:
    if is_url(path):
        _filesystem(path)[0].rm(path)
    else:
        os.remove(path)


def make_folder(folder: str) -> None:
    """Create the folder and its parents; a ValueError says which could not be written and why."""
    try:
        _filesystem(folder)[0].makedirs(folder, exist_ok=True) if is_url(folder) else os.makedirs(
            folder, exist_ok=True
        )
    except OSError as error:
        raise ValueError(
            f"{folder}: cannot be created ({error.strerror or error}); pass a --workdir that can be written"
        ) from error


def _aside(path: str) -> str:
    """A hidden name beside the path that nobody else uses: processes on two machines can have the same id."""
    folder, name = os.path.split(path)
    return join(folder, f".{name}.{uuid.uuid4().hex}.tmp")


@contextlib.contextmanager
def atomic_path(path: str) -> Iterator[str]:
    """Give a local path beside `path` to write to; rename it on success, remove it on an exception."""
    aside = _aside(path)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    try:
        yield aside
        with open(aside, "rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(aside, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(aside)


@contextlib.contextmanager
def atomic_folder(folder: str) -> Iterator[str]:
    """Give a local folder to fill; it replaces `folder` on success and goes away on an exception."""
    aside = _aside(folder)
    os.makedirs(aside)
    try:
        yield aside
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@contextlib.contextmanager
def atomic_output(path: str) -> Iterator[IO[bytes]]:
    """Open `path` for writing so that it appears whole or not at all."""
    if not is_url(path):
        with atomic_path(path) as aside, open(aside, "wb") as stream:
            yield stream
        return
    filesystem, target = _filesystem(path)
    filesystem.makedirs(posixpath.dirname(target), exist_ok=True)
    aside = _aside(target)
    try:
        with filesystem.open(aside, "wb") as stream:
            yield stream
        filesystem.mv(aside, target)
    finally:
        if filesystem.exists(aside):
            filesystem.rm(aside)


def write_bytes(path: str, data: bytes) -> None:
    with atomic_output(path) as stream:
        stream.write(data)


# Hashes


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no blanks: equal values have equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """SHA-256 of the value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def file_sha256(path: str) -> str:
    hasher = hashlib.sha256()
    with open_input(path) as stream:
        while chunk := stream.read(_CHUNK):
            hasher.update(chunk)
    return hasher.hexdigest()


# Manifests


def _as_json(record: Any) -> dict[str, Any]:
    """A manifest's or block's fields; `asdict` alone would break the counters among them."""
    values = {each.name: getattr(record, each.name) for each in fields(record)}
    return {**values, "files": [asdict(entry) for entry in record.files]}


@dataclass(frozen=True)
class FileEntry:
    """One file of a stage: path relative to the stage's folder, size in bytes, rows where it has any."""

    path: str
    bytes: int
    sha256: str
    rows: int | None = None


@dataclass(frozen=True)
class Manifest:
    """What a finished stage holds and what it was made from. Nothing in it depends on time, place or machine.

    Attributes:
        stage: name of the stage.
        version: the stage's version of its own code.
        parameters: those that change bytes.
        inputs: upstream stage -> SHA-256 of its manifest.
        facts: what readers need to know (tokenizer, language, statistics).
        rows: kind of row -> count kept.
        drops: "kind:reason" -> count dropped.
        files: every data file.
    """

    stage: str
    version: int
    parameters: Mapping[str, Any]
    inputs: Mapping[str, str]
    files: tuple[FileEntry, ...]
    rows: Mapping[str, int] = field(default_factory=dict)
    drops: Mapping[str, int] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        text = json.dumps(_as_json(self), sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
        return (text + "\n").encode("utf-8", "surrogatepass")

    def paths(self, folder: str, prefix: str = "") -> list[str]:
        """Full paths of the files whose relative path begins with the prefix, in the manifest's order."""
        return [join(folder, entry.path) for entry in self.files if entry.path.startswith(prefix)]


def read_manifest(folder: str) -> Manifest:
    """Read a stage's manifest and check that every file it lists has the size it says.

    Raises:
        ValueError: no manifest, an unreadable one, or a listed file that is missing or has another size.
    """
    path = join(folder, MANIFEST)
    try:
        values = json.loads(read_bytes(path))
        files = tuple(FileEntry(**entry) for entry in values.pop("files"))
        manifest = Manifest(files=files, **values)
    except FileNotFoundError:
        raise ValueError(
            f"{path}: not there; this is no finished stage's folder, run its stage first"
        ) from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(
            f"{path}: not a manifest ({error}); delete the folder and run its stage again"
        ) from None
    for entry in manifest.files:
        found = file_size(join(folder, entry.path))
        if found != entry.bytes:
            state = "missing" if found is None else f"{found} bytes"
            raise ValueError(
                f"{join(folder, entry.path)}: {state}, but the manifest says {entry.bytes} bytes; "
                f"run {manifest.stage} again"
            )
    return manifest


def manifest_sha256(folder: str) -> str:
    return hashlib.sha256(read_bytes(join(folder, MANIFEST))).hexdigest()


def write_manifest(folder: str, manifest: Manifest) -> None:
    """Commit a stage: from here on it counts as done."""
    write_bytes(join(folder, MANIFEST), manifest.to_bytes())


def describe(folder: str, path: str, rows: int | None = None) -> FileEntry:
    """Measure a finished file of the stage's folder for its manifest."""
    full = join(folder, path)
    size = file_size(full)
    assert size is not None, full
    return FileEntry(path, size, file_sha256(full), rows)


# Blocks


@dataclass(frozen=True)
class BlockRecord:
    """What one block of a stage's work wrote, kept and dropped."""

    files: tuple[FileEntry, ...]
    rows: Mapping[str, int] = field(default_factory=dict)
    drops: Mapping[str, int] = field(default_factory=dict)
    facts: Mapping[str, int] = field(default_factory=dict)


def block_name(number: int) -> str:
    return f"block-{number:05d}"


def commit_block(folder: str, key: str, number: int, record: BlockRecord) -> None:
    """Make a block count as done; its data files are already in place.

    Args:
        folder: the stage's folder.
        key: digest of all that decides the stage's bytes; a block with another key is never reused.
        number: the block's number within the stage.
        record: its files (relative to the folder) and counts.
    """
    text = json.dumps({"key": key, **_as_json(record)}, sort_keys=True, indent=1)
    write_bytes(join(folder, BLOCKS, block_name(number) + ".json"), text.encode() + b"\n")


def _read_block(folder: str, path: str, key: str) -> BlockRecord | None:
    try:
        values = json.loads(read_bytes(join(folder, path)))
        if values.pop("key") != key:
            return None
        record = BlockRecord(files=tuple(FileEntry(**entry) for entry in values.pop("files")), **values)
    except (ValueError, TypeError, KeyError):
        return None
    whole = all(file_size(join(folder, entry.path)) == entry.bytes for entry in record.files)
    return record if whole else None


def finished_blocks(folder: str, key: str) -> dict[int, BlockRecord]:
    """The blocks of this stage that are whole and were made from the same inputs, by number."""
    blocks = {}
    for path in list_files(folder):
        match = re.fullmatch(rf"{BLOCKS}/block-(\d{{5,}})\.json", path)
        if match and (record := _read_block(folder, path, key)):
            blocks[int(match[1])] = record
    return blocks


def sweep(folder: str, blocks: Mapping[int, BlockRecord]) -> int:
    """Remove every file of the folder that no given block owns; returns how many were removed."""
    wanted = {KEY} | {f"{BLOCKS}/{block_name(number)}.json" for number in blocks}
    wanted |= {entry.path for record in blocks.values() for entry in record.files}
    # The manifest goes first: without it nothing else in the folder counts as done.
    doomed = [path for path in list_files(folder) if path not in wanted]
    for path in sorted(doomed, key=lambda path: path != MANIFEST):
        remove(join(folder, path))
    return len(doomed)


def sweep_aside(folder: str) -> None:
    """Remove what writers left that were killed while their run went on; for when nobody writes there any more."""
    for path in list_files(folder):
        if any(_ASIDE.fullmatch(name) for name in path.split("/")):
            remove(join(folder, path))


def merge_blocks(blocks: Mapping[int, BlockRecord]) -> BlockRecord:
    """All blocks as one record: files in the order of block numbers, counts added up."""
    files: list[FileEntry] = []
    rows: Counter[str] = Counter()
    drops: Counter[str] = Counter()
    facts: Counter[str] = Counter()
    for _, record in sorted(blocks.items()):
        files += record.files
        rows.update(record.rows)
        drops.update(record.drops)
        facts.update(record.facts)
    return BlockRecord(tuple(sorted(files, key=lambda entry: entry.path)), rows, drops, facts)


def claim(folder: str, key: str) -> None:
    """Say from what the folder's files are made; files that were made from something else are removed."""
    path = join(folder, KEY)
    if file_size(path) is None or read_bytes(path) != key.encode():
        sweep(folder, {})
        write_bytes(path, key.encode())


# Parquet


def parquet_writer(stream: IO[bytes], schema: pa.Schema) -> pq.ParquetWriter:
    """A writer whose files tell when a bit of them has changed: `read_rows` and Spark check every page's checksum."""
    return pq.ParquetWriter(stream, schema, compression="zstd", write_page_checksum=True)


def to_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values as an Arrow array, lists and structs (sequences in the order of the fields) column by column."""
    if pa.types.is_list(kind):
        offsets = pa.array(list(accumulate(map(len, values), initial=0)), pa.int32())
        inner = to_array(list(chain.from_iterable(values)), kind.value_type)
        return pa.ListArray.from_arrays(offsets, inner, type=kind)
    if pa.types.is_struct(kind):
        columns = list(zip(*values, strict=True)) or [()] * kind.num_fields
        arrays = [to_array(column, field.type) for column, field in zip(columns, kind, strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=list(kind))
    return pa.array(values, kind)


class ParquetRows:
    """Collects rows and writes them in row groups of a fixed size: equal rows give equal bytes however they come.

    A row is a sequence in the order of the schema's fields; so is a struct.
    """

    def __init__(self, stream: IO[bytes], schema: pa.Schema) -> None:
        self.schema = schema
        self.count = 0
        self._pending: list[Any] = []
        self._pending_count = 0
        self._rest = schema.empty_table()  # rows behind the last whole group
        self._writer = parquet_writer(stream, schema)

    def extend(self, rows: Iterable[Any]) -> None:
        given = list(rows)
        self._pending += given
        self._pending_count += self.count_rows(given)
        if self._pending_count >= ROW_GROUP_ROWS:
            self._flush()

    def count_rows(self, rows: Sequence[Any]) -> int:
        """How many rows of the file these are."""
        return len(rows)

    def to_table(self, rows: Sequence[Any]) -> pa.Table:
        """These as a table of the schema."""
        columns = zip(*rows, strict=True) if rows else repeat((), len(self.schema))
        arrays = [to_array(column, field.type) for column, field in zip(columns, self.schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _flush(self) -> None:
        table = pa.concat_tables([self._rest, self.to_table(self._pending)]).combine_chunks()
        whole = table.num_rows - table.num_rows % ROW_GROUP_ROWS
        self._write(table.slice(0, whole))
        self._rest = table.slice(whole)
        self._pending, self._pending_count = [], 0

    def _write(self, table: pa.Table) -> None:
        if table.num_rows:
            self._writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
            self.count += table.num_rows

    def close(self) -> None:
        self._flush()
        self._write(self._rest)
        self._writer.close()


@contextlib.contextmanager
def parquet_rows(
    path: str, schema: pa.Schema, writer: type[ParquetRows] = ParquetRows
) -> Iterator[ParquetRows]:
    """Write rows to a Parquet file that appears whole or not at all."""
    with atomic_output(path) as stream:
        rows = writer(stream, schema)
        yield rows
        rows.close()


def read_rows(path: str, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """Stream a Parquet file's rows as dicts, holding a batch at a time.

    Raises:
        ValueError: the file cannot be read, or its content has changed since it was written.
    """
    for batch in read_batches(path, columns, rows=1024):
        yield from batch.to_pylist()


def sum_column(paths: Iterable[str], column: str) -> int:
    """Sum of a column of whole numbers over Parquet files."""
    batches = chain.from_iterable(read_batches(path, [column]) for path in paths)
    return sum(pc.sum(batch.column(0)).as_py() or 0 for batch in batches)


def read_batches(
    path: str, columns: list[str] | None = None, *, rows: int = 1 << 16
) -> Iterator[pa.RecordBatch]:
    """Stream a Parquet file's rows, at most so many at a time; a column inside a list is named by its whole path.

    Raises:
        ValueError: the file cannot be read, or its content has changed since it was written.
    """
    with open_input(path) as stream:
        try:
            file = pq.ParquetFile(stream, page_checksum_verification=True)
            # In this thread: others would each keep memory of their own.
            yield from file.iter_batches(rows, columns=columns, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(
                f"{path}: not readable as Parquet ({error}); delete it and run its stage again"
            ) from error


# Arrow


def open_arrow(path: str | Path) -> pa.Table:
    """The rows of an Arrow IPC stream in a local file, memory-mapped: nothing is read before it is asked for.

    Raises:
        ValueError: it is no such file.
    """
    try:
        with pa.memory_map(str(path)) as source:
            return pa.ipc.open_stream(source).read_all()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"{path}: no readable Arrow stream ({reason}); delete it and run its stage again"
        ) from None
