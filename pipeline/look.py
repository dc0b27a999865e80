"""Show artefacts as text: a work directory, a stage's folder, or a file.

python -m pipeline.look work                  the finished stages, with their rows, drops, sizes and times
python -m pipeline.look work --stage Pretrain the folder of a stage: its values, drops, and first rows
python -m pipeline.look work --name Paris     the pages that a name can stand for
python -m pipeline.look work --page Paris     the text of a page with its links
python -m pipeline.look work/pages-0b2f3c4d --table paragraphs --rows 5
"""

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from glob import escape, glob
from itertools import chain, islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline import storage

_MAX_CELL = 300
# What comes from a dump must not steer the terminal: its controls, ends of lines, and the direction of writing.
_CONTROLS = [*range(9), *range(11, 32), *range(127, 160), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F)]
_CONTROLS += range(0x2066, 0x206A)
UNPRINTABLE = {number: ascii(chr(number))[1:-1] for number in _CONTROLS}


def describe_manifest(folder: str, manifest: storage.Manifest) -> Iterator[str]:
    """The content of a folder's manifest, a line each; what it is made from by folders, if they are there."""
    yield f"{folder}\n{manifest.stage} (version {manifest.version})"
    workdir = os.path.dirname(os.path.abspath(folder))
    beside = glob(os.path.join(escape(workdir), "*", storage.MANIFEST)) if manifest.inputs else []
    folders = {storage.manifest_sha256(each): os.path.basename(each) for each in map(os.path.dirname, beside)}
    for title, values in (
        ("parameters", manifest.parameters),
        ("made from", {stage: folders.get(sha256, sha256) for stage, sha256 in manifest.inputs.items()}),
        ("kept", manifest.rows),
        ("dropped", dict(sorted(manifest.drops.items(), key=lambda drop: (-drop[1], drop[0])))),
        ("facts", manifest.facts),
    ):
        if named := dict(flat("", values)):
            yield f"\n{title}"
            width = max(map(len, named))
            yield from (f"  {name:<{width}}  {_cell(value)}" for name, value in named.items())


def flat(within: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Values by name, those of tables one by one under dotted names, but for the innermost tables."""
    for name, value in values.items():
        if isinstance(value, Mapping) and within.count(".") < 2:
            yield from flat(f"{within}{name}.", value)
        else:
            yield f"{within}{name}", value


def _cell(value: Any) -> str:
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
    text = (text if isinstance(text, str) else json.dumps(text, ensure_ascii=False, default=str)).replace("\n", "\\n")
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
        shown["text"] = mark_links(row["text"], row["links"])
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
    return table.schema, table.num_rows, chain.from_iterable(batch.to_pylist() for batch in table.to_batches())


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
    """A stage's folder: its manifest, then the first file of each of its tables; or one table alone."""
    manifest = storage.read_manifest(folder)
    groups: dict[str, list[storage.FileEntry]] = defaultdict(list)
    for entry in manifest.files:
        groups[os.path.dirname(entry.path) or entry.path].append(entry)
    if table and table not in groups:
        raise ValueError(f"{folder}: no table {table!r}; it has {', '.join(sorted(groups))}")
    if not table:
        yield from describe_manifest(folder, manifest)
    for name, entries in sorted(groups.items()):
        if table in (None, name):
            counts = [entry.rows for entry in entries if entry.rows is not None]
            rows_of = f"{sum(counts):,} rows, " if counts else ""
            yield f"\n{name}: {len(entries)} files, {rows_of}{sum(entry.bytes for entry in entries):,} bytes"
            shown = next((entry for entry in entries if entry.rows), entries[0])
            yield from describe_file(storage.join(folder, shown.path), rows)


def describe_page(folder: str, page: str) -> Iterator[str]:
    """A page of the extraction, by title or id: its paragraphs under their headings, each link marked.

    Raises: ValueError: the folder holds no such page.
    """
    wanted = pc.field("title") == page
    if page.isdecimal() and len(page) < 19:  # an id has 64 bits
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
                yield "\n" + mark_links(paragraph["text"], paragraph["links"])
    if not found:
        raise ValueError(f"{folder}: no article {page!r}; redirects and rejected pages have no text")


def describe_workdir(workdir: str) -> Iterator[str]:
    """The newest finished folder of each stage: its size, when it was made, drops, rows, and what is wrong with it."""
    finished = storage.finished_stages(workdir)
    sums: dict[str, str] = {}
    rows: list[tuple[str, ...]] = []
    for stage, name in finished.items():
        siblings = any(other.startswith(f"{stage} (") for other in finished)  # which are shown in its place
        folder = storage.join(workdir, name)
        try:
            manifest = storage.read_manifest(folder)
            sums[stage] = storage.manifest_sha256(folder)
        except ValueError as error:
            rows.append((stage, name, "", "", "", str(error)))
            continue
        other = [each for each, sha256 in manifest.inputs.items() if sums.get(each, sha256) != sha256]
        counts = (f"{count:,} {kind}" for kind, count in sorted(manifest.rows.items()))
        kept = ", ".join(counts) or f"{len(manifest.files)} files"
        kept += f" | made from another {' and '.join(other)}" if other else ""
        size, dropped = f"{manifest.total_bytes / 1e6:,.1f} MB", f"{sum(manifest.drops.values()):,}"
        if not siblings:
            rows.append((stage, name, size, _finished(folder), dropped, kept))
    header = ("stage", "folder", "size", "made (UTC)", "dropped", "kept")
    yield from aligned([header, *sorted(rows, key=lambda row: row[3])], "<<><><")


def aligned(rows: Sequence[Sequence[str]], sides: str = "<<<<") -> Iterator[str]:
    """Rows as lines, their columns as wide as the widest cell, which begin (<) or end (>) alike."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True))
        yield "  ".join(cells).rstrip()


def _finished(folder: str) -> str:
    """The time at which a stage had finished, as its run.json says."""
    try:
        record = json.loads(storage.read_bytes(storage.join(folder, "run.json")))
        started = datetime.fromisoformat(record["started"])
        return f"{started + timedelta(seconds=record['seconds']):%Y-%m-%dT%H:%M:%S}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def describe_name(folder: str, name: str) -> Iterator[str]:
    """The pages that a name can stand for, the commonest first. Raises: ValueError where it is never a link."""
    from pipeline.lookup.mentions import MentionTable

    table = MentionTable(folder)
    entry = table.get(table.as_named(name)[0])
    if not entry:
        raise ValueError(f"{folder}: {name!r} is no link's text")
    counts = f"{entry.total_links:,} links among {entry.occurrences:,} occurrences"
    yield f"{_cell(name)}: {counts}, link probability {entry.link_probability:.4f}"
    for target in entry.candidates:
        known = "" if target.entity_id is None else f"  entity {target.entity_id}"
        yield f"  {target.commonness:7.2%}  {target.link_count:>9,}  {_cell(target.title)}{known}"


def describe_sequences(folder: str, tokenizer: str, rows: int) -> Iterator[str]:
    """The first sequences as words, each mention with its entity's title."""
    from pipeline.sequences.tokenizer import WordTokenizer

    words = WordTokenizer.load(tokenizer)
    titles = storage.open_arrow(storage.join(folder, "title_words.arrow")).column("title")
    paths = storage.read_manifest(folder).paths(folder, "sequences/")
    found = (row for path in paths for row in read_table(path)[2])
    for number, row in enumerate(islice(found, rows)):
        ids, parts, at = row["word_ids"], [], 0
        mentions = sorted(zip(row["entity_starts"], row["entity_ends"], row["entity_ids"], strict=True))
        for start, end, entity in mentions:
            if start >= at:
                mention = words.decode(ids[start:end]).strip()
                parts += [words.decode(ids[at:start]), f" [[{mention} -> {titles[entity].as_py()}]]"]
                at = end
        parts.append(words.decode(ids[at:]))
        yield f"- sequence {number}, page {row['page_id']}"
        yield "  " + " ".join(part.strip() for part in parts).strip()


def is_workdir(path: str) -> bool:
    """Return whether a folder is a work directory."""
    return os.path.isfile(os.path.join(path, storage.STAGES))


def of_stage(path: str, stage: str) -> str:
    """A stage's folder: the path, or the newest of a work directory."""
    return storage.finished_folder(path, stage) if is_workdir(path) else path


def describe(path: str, options: argparse.Namespace) -> Iterator[str]:
    """Return what the options ask of a work directory, a stage's folder or a single file."""
    if options.stage is not None:
        path = storage.finished_folder(path, options.stage)
    if options.name is not None:
        return describe_name(of_stage(path, "BuildMentionTable"), options.name)
    if options.page is not None:
        return describe_page(of_stage(path, "ExtractPages"), options.page)
    if options.tokenizer is not None:
        return describe_sequences(of_stage(path, "BuildSequences"), options.tokenizer, options.rows)
    if os.path.isfile(path):
        return describe_file(path, options.rows)
    if is_workdir(path):
        return describe_workdir(path)
    return describe_folder(path, options.rows, options.table)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text}: wanted a whole number, 0 or more")
    return int(text)


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    kind = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.look", description=__doc__, allow_abbrev=False, formatter_class=kind
    )
    parser.add_argument("path", help="a work directory, a stage's folder, a table or a text")
    parser.add_argument("--rows", type=_count, default=3, help="rows of each table (default: %(default)s)")
    parser.add_argument("--stage", metavar="NAME", help="of a work directory, this stage's newest folder")
    parser.add_argument("--table", help="show only the table of this name")
    parser.add_argument("--page", help="of extracted pages, show this one whole: a title or an id")
    parser.add_argument("--name", help="of a mention table, show the pages that this name can stand for")
    parser.add_argument("--tokenizer", metavar="DIR", help="show sequences as words, by this tokenizer")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Print what the command line asks for; gives the exit status."""
    options = make_parser().parse_args(arguments)
    try:
        for line in describe(options.path, options):
            print(line.translate(UNPRINTABLE))
    except (ValueError, pa.ArrowException) as error:
        print(f"error: {error}".translate(UNPRINTABLE), file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
