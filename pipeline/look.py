"""Any artefact as readable text: `python -m pipeline.look FOLDER_OR_FILE [--rows N] [--table NAME] [--page TITLE]`."""

import argparse
import glob
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline import storage

_MAX_CELL = 300
_UNPRINTABLE = {number: f"\\x{number:02x}" for number in (*range(9), *range(11, 32), 127)}


def describe_manifest(manifest: storage.Manifest) -> Iterator[str]:
    """The manifest's content, a line each."""
    yield f"{manifest.stage} (version {manifest.version})"
    for title, values in (
        ("parameters", manifest.parameters),
        ("made from", manifest.inputs),
        ("kept", manifest.rows),
        ("dropped", dict(sorted(manifest.drops.items(), key=lambda drop: (-drop[1], drop[0])))),
        ("facts", manifest.facts),
    ):
        if values:
            yield f"\n{title}"
            width = max(len(name) for name in values)
            yield from (f"  {name:<{width}}  {_cell(value)}" for name, value in values.items())


def _cell(value: Any) -> str:
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str):
        text = json.dumps(text, ensure_ascii=False, default=str)
    # What comes from a dump must not steer the terminal.
    text = text.translate(_UNPRINTABLE).replace("\n", "\\n")
    return text if len(text) <= _MAX_CELL else text[:_MAX_CELL] + f"… ({len(text):,} characters)"


def mark_links(text: str, links: list[Mapping[str, Any]]) -> str:
    """A paragraph with each link as `[[anchor -> target]]`."""
    parts, at = [], 0
    for link in links:
        parts += [text[at : link["start"]], f"[[{text[link['start'] : link['end']]} -> {link['target']}]]"]
        at = link["end"]
    return "".join([*parts, text[at:]])


def describe_row(row: Mapping[str, Any]) -> Iterator[str]:
    """A row, a line each column; a paragraph's links are marked in its text."""
    shown = {name: _cell(value) for name, value in row.items()}
    if {"text", "links"} <= row.keys():
        shown["text"] = mark_links(row["text"], row["links"]).translate(_UNPRINTABLE)
        shown["links"] = _cell(len(row["links"]))
    width = max(map(len, shown))
    yield from (f"  {name:<{width}}  {value}" for name, value in shown.items())


def read_table(path: str) -> tuple[pa.Schema, int, Iterator[dict[str, Any]]]:
    """Schema, number of rows, and rows of a Parquet or Arrow file."""
    if path.endswith(".parquet"):
        with open(path, "rb") as stream:
            file = pq.ParquetFile(stream)
            return file.schema_arrow, file.metadata.num_rows, storage.read_rows(path)
    table = storage.open_arrow(path)
    rows = (row for batch in table.to_batches() for row in batch.to_pylist())
    return table.schema, table.num_rows, rows


def describe_file(path: str, rows: int) -> Iterator[str]:
    """A data file: schema and first rows of a table, the first lines of a text."""
    if path.endswith((".parquet", ".arrow")):
        schema, count, content = read_table(path)
        yield f"{count:,} rows: " + ", ".join(f"{field.name} {field.type}" for field in schema)
        for number, row in enumerate(islice(content, rows)):
            yield f"- row {number}"
            yield from describe_row(row)
    elif path.endswith((".json", ".jsonl", ".tsv", ".txt", ".md")):
        with open(path, "rb") as stream:
            lines = stream.read(1 << 16).decode("utf-8", "replace").splitlines()
        yield from (f"  {_cell(line)}" for line in lines[:rows])
    else:
        yield f"  {storage.file_size(path) or 0:,} bytes"


def describe_folder(folder: str, rows: int, table: str | None) -> Iterator[str]:
    """A stage's folder: its manifest, then the first file of each of its tables."""
    manifest = storage.read_manifest(folder)
    groups: dict[str, list[storage.FileEntry]] = defaultdict(list)
    for entry in manifest.files:
        groups[os.path.dirname(entry.path) or entry.path].append(entry)
    if table and table not in groups:
        raise ValueError(f"{folder}: no table {table!r}; it has {', '.join(sorted(groups))}")
    yield from describe_manifest(manifest)
    for name, entries in sorted(groups.items()):
        if table in (None, name):
            count = sum(entry.rows or 0 for entry in entries)
            yield f"\n{name}: {len(entries)} files, {count:,} rows, {sum(entry.bytes for entry in entries):,} bytes"
            shown = next((entry for entry in entries if entry.rows), entries[0])
            yield from describe_file(storage.join(folder, shown.path), rows)


def describe_page(folder: str, page: str) -> Iterator[str]:
    """A page of the extraction, by title or id: its paragraphs under their headings, each link marked.

    Raises: ValueError: the folder holds no such page.
    """
    wanted = pc.field("title") == page
    if page.isdecimal():
        wanted |= pc.field("page_id") == int(page)
    found, section = False, ""
    for path in storage.read_manifest(folder).paths(folder, "pages/"):
        for row in pq.read_table(path, filters=wanted).to_pylist():
            found = True
            yield f"{_cell(row['title'])} (page {row['page_id']})"
            twin = path.replace("/pages/block", "/paragraphs/block")
            for paragraph in pq.read_table(twin, filters=pc.field("page_id") == row["page_id"]).to_pylist():
                if paragraph["section"] != section:
                    section = paragraph["section"]
                    yield f"\n== {_cell(section)} =="
                yield "\n" + mark_links(paragraph["text"], paragraph["links"]).translate(_UNPRINTABLE)
    if not found:
        raise ValueError(f"{folder}: no article {page!r}; redirects and rejected pages have no text")


def describe(path: str, rows: int, table: str | None = None) -> Iterator[str]:
    """A stage's folder or a single file."""
    if os.path.isfile(path):
        return describe_file(path, rows)
    inside = sorted(glob.glob(os.path.join(glob.escape(path), "*", storage.MANIFEST)))
    if inside and not os.path.exists(os.path.join(path, storage.MANIFEST)):
        names = ", ".join(os.path.basename(os.path.dirname(each)) for each in inside)
        raise ValueError(f"{path}: is no stage's folder; name one that is in it: {names}")
    return describe_folder(path, rows, table)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text}: wanted a whole number, 0 or more")
    return int(text)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pipeline.look", description=__doc__, allow_abbrev=False)
    parser.add_argument("paths", nargs="+", help="a stage's folder, or one Parquet, Arrow or text file")
    parser.add_argument("--rows", type=_count, default=3, help="rows of each table (default 3)")
    parser.add_argument("--table", help="show this table alone")
    parser.add_argument("--page", help="of extracted pages, show this one whole: a title or an id")
    options = parser.parse_args(arguments)
    failed = False
    try:
        for number, path in enumerate(options.paths):
            if len(options.paths) > 1:
                print("\n" * (number > 0) + f"== {path}")
            try:
                page = options.page and describe_page(path, options.page)
                for line in page or describe(path, options.rows, options.table):
                    print(line)
            except (ValueError, pa.ArrowException) as error:
                print(f"error: {error}", file=sys.stderr)
                failed = True
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
