"""ExtractPages: a block of the dump in; pages, paragraphs with links, redirects and rejected pages out."""

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, repeat
from typing import Any

import pyarrow as pa

from pipeline import storage
from pipeline.dump.containers import Block
from pipeline.dump.pages import Page, Rejected, read_pages
from pipeline.mediawiki.site import SiteInfo
from pipeline.mediawiki.titles import is_disambiguation, normalize_title
from pipeline.storage.blocks import BlockRecord, PageGate
from pipeline.storage.parquet import ParquetRows
from pipeline.wikitext.extract import extract
from pipeline.wikitext.paragraphs import Extraction

LINK_TYPE = pa.list_(pa.struct([("start", pa.int32()), ("end", pa.int32()), ("target", pa.string())]))
SCHEMAS = {
    "pages": pa.schema(
        [
            ("page_id", pa.int64()),
            ("title", pa.string()),
            ("is_disambiguation", pa.bool_()),
            ("paragraph_count", pa.int32()),
        ]
    ),
    "paragraphs": pa.schema(
        [
            ("page_id", pa.int64()),
            ("title", pa.string()),
            ("paragraph", pa.int32()),
            ("section", pa.string()),
            ("text", pa.string()),
            ("links", LINK_TYPE),
        ]
    ),
    "redirects": pa.schema([("source", pa.string()), ("target", pa.string()), ("fragment", pa.string())]),
    "rejected": pa.schema([("page_id", pa.int64()), ("title", pa.string()), ("reason", pa.string())]),
}


class ParagraphRows(ParquetRows):
    """Collects the paragraphs of pages, which come as their id, their title and what was extracted."""

    def count_rows(self, rows: Sequence[tuple[int, str, Extraction]]) -> int:
        return sum(len(extraction.texts) for _, _, extraction in rows)

    def to_table(self, rows: Sequence[tuple[int, str, Extraction]]) -> pa.Table:
        counts = [len(extraction.texts) for _, _, extraction in rows]

        def joined(column: str) -> list[Any]:
            return list(chain.from_iterable(getattr(extraction, column) for _, _, extraction in rows))

        def repeated(values: Iterable[Any]) -> list[Any]:
            return list(chain.from_iterable(map(repeat, values, counts)))

        links = pa.StructArray.from_arrays(
            [pa.array(joined(f"{field.name}s"), field.type) for field in LINK_TYPE.value_type],
            fields=list(LINK_TYPE.value_type),
        )
        offsets = pa.array(list(accumulate(joined("link_counts"), initial=0)), pa.int32())
        columns = {
            "page_id": repeated(page_id for page_id, _, _ in rows),
            "title": repeated(title for _, title, _ in rows),
            "paragraph": list(chain.from_iterable(map(range, counts))),
            "section": joined("sections"),
            "text": joined("texts"),
            "links": pa.ListArray.from_arrays(offsets, links, type=LINK_TYPE),
        }
        return pa.table(columns, schema=self.schema)


# What writes each table.
WRITERS: Mapping[str, type[ParquetRows]] = {
    **dict.fromkeys(SCHEMAS, ParquetRows),
    "paragraphs": ParagraphRows,
}
Rows = dict[str, list[tuple[Any, ...]]]


# What one block is


def page_rows(
    page: Page | Rejected, site: SiteInfo, profile: str, drops: Counter[str], *, deadly: bool = False
) -> Rows:
    """The rows that a page gives, by table ("paragraphs": one entry with all of them); a deadly page is rejected."""
    if isinstance(page, Rejected):
        return {"rejected": [(page.page_id, page.title, page.reason)]}
    title = normalize_title(page.title, site)[0]
    if deadly:
        return {"rejected": [(page.page_id, title, "worker_died")]}
    if page.redirect:
        return {"redirects": [(title, *page.redirect)]}
    try:
        extraction = extract(page.text, site, profile=profile)
    except Exception as error:  # whatever a page does to the parser, it does to itself alone
        return {"rejected": [(page.page_id, title, type(error).__name__)]}
    drops.update(extraction.drops)
    disambiguation = is_disambiguation(page.text, site)
    return {
        "pages": [(page.page_id, title, disambiguation, len(extraction.texts))],
        "paragraphs": [(page.page_id, title, extraction)],
    }


class PageExtractor:
    """Writes the pages, paragraphs, redirects and rejected pages of one block of the dump."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.site = SiteInfo.from_dict(arguments["site"])
        self.profile: str = arguments["profile"]
        self.allow_truncated: bool = arguments["allow_truncated"]

    def __call__(self, block: Block, folder: str, gate: PageGate) -> BlockRecord:
        counts: Counter[str] = Counter()
        links = 0
        paths = {table: f"{table}/{storage.block_name(block.number)}.parquet" for table in SCHEMAS}
        with contextlib.ExitStack() as stack:
            tables = {
                table: stack.enter_context(
                    storage.parquet_rows(storage.join(folder, path), SCHEMAS[table], WRITERS[table])
                )
                for table, path in paths.items()
            }
            for page in read_pages(
                block, self.site, counts, profile=self.profile, allow_truncated=self.allow_truncated
            ):
                deadly = not gate.enter(page.page_id)
                for table, rows in page_rows(page, self.site, self.profile, counts, deadly=deadly).items():
                    tables[table].extend(rows)
                    if table == "paragraphs":
                        links += sum(len(extraction.targets) for *_, extraction in rows)
        count = {table: writer.count for table, writer in tables.items()}
        files = tuple(storage.describe(folder, path, count[table]) for table, path in paths.items())
        facts = {"pages_read": counts.pop("pages_read", 0)}
        return BlockRecord(files, {**count, "links": links}, +counts, facts)
