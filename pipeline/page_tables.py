"""The tables of extracted pages: their columns, and how paragraphs become rows."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, repeat
from typing import Any

import pyarrow as pa

from pipeline.paragraphs import Extraction
from pipeline.storage import ParquetRows

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
