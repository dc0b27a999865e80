"""FetchQids: the items of Wikidata that a dump's pages are linked to, from the table page_props of the same dump."""

import logging
import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline import storage
from pipeline.dump import page_props
from pipeline.dump.download import download, table_source
from pipeline.dump.fetch import Progress
from pipeline.dump.page_props import PageProps

logger = logging.getLogger("pipeline")

PROPERTY = "wikibase_item"
_PATH = "qids/block-00000.parquet"
_QID = re.compile(rb"Q[1-9]\d{0,17}")
_AT_ONCE = 1 << 14  # rows
_FEW = 0.5  # of a dump's pages: fewer with an item may mean that the file is of another dump
Integers = NDArray[np.int64]


def open_items(path: str) -> PageProps:
    """The rows that link pages to items. Raises: ValueError: there is no such file, or it is another one."""
    return PageProps(path, PROPERTY)


def fetch(part: str, folder: str, progress: Progress) -> str:
    """Download the table that belongs to a dump one of whose files has this name, unless it is there; its path."""
    source = table_source(part, page_props.TABLE)
    path = os.path.join(folder, "parts", source.name)
    if not os.path.exists(path):
        with progress(f"download {source.name}") as show:
            download(source, path, show)
    return path


def build(
    path: str, folder: str, pages: Sequence[str], dbname: str, *, schema: pa.Schema, is_fetched: bool
) -> storage.Result:
    """Write the table `qids`: the pages of the dump that have an item.

    `pages` are the files of ExtractPages' table, whose ids are held, 8 bytes each; `dbname` is empty where the dump
    has none. A file that `is_fetched` came from where the dump did, and so belongs to it. Raises: ValueError: the
    file is damaged, of another wiki, or knows none of the pages.
    """
    ids = np.sort(read_page_ids(pages))
    has_item = np.zeros(len(ids), np.bool_)
    read = 0
    with open_items(path) as items, storage.parquet_rows(storage.join(folder, _PATH), schema) as table:
        if dbname and items.database and items.database != dbname:
            raise ValueError(
                f"corpus.page_props {path}: is of the wiki {items.database}, the dump of {dbname}; give {dbname}'s"
            )
        for numbers, qids in read_items(items):
            read += len(numbers)
            rows, is_page = find(numbers, ids)
            if len(twice := rows[has_item[rows] | is_repeated(rows)]):
                raise ValueError(
                    f"{path}: has two items of page {ids[twice[0]]}; wanted one; download it again"
                )
            has_item[rows] = True
            table.extend(zip(numbers[is_page].tolist(), np.array(qids)[is_page].tolist(), strict=True))
    found = int(has_item.sum())
    check_share(found, len(ids), read, path, is_fetched=is_fetched)
    source = {"name": os.path.basename(path), "sha256": storage.file_sha256(path)}
    return storage.Result(
        (storage.describe(folder, _PATH, found),),
        rows={"qids": found},
        drops={
            reason: count
            for reason, count in (("properties:other", items.others), ("qids:not_in_dump", read - found))
            if count
        },
        facts={"source": source, "pages": len(ids), "pages_without_qid": len(ids) - found},
    )


def read_page_ids(paths: Sequence[str]) -> Integers:
    """The ids of the pages in files of the table `pages`."""
    batches = (batch for path in paths for batch in storage.read_batches(path, ["page_id"]))
    chunks = [batch.column(0) for batch in batches]
    ids: Integers = pa.chunked_array(chunks, pa.int64()).to_numpy()
    return ids


def read_items(items: PageProps) -> Iterator[tuple[Integers, list[str]]]:
    """Page ids and the QIDs of their items, many at a time. Raises: ValueError: a value is no QID."""

    def pairs() -> Iterator[tuple[int, str]]:
        for page_id, value in items:
            if not _QID.fullmatch(value):
                items.fail(value, f"a QID, as Q42, for the {PROPERTY} of page {page_id}")
            yield page_id, value.decode()

    rows = pairs()
    while batch := list(islice(rows, _AT_ONCE)):
        numbers, qids = zip(*batch, strict=True)
        yield np.array(numbers, np.int64), list(qids)


def find(numbers: Integers, ids: Integers) -> tuple[Integers, NDArray[np.bool_]]:
    """(the places among sorted ids of the numbers that are there, which numbers these are)."""
    places = np.searchsorted(ids, numbers)
    is_there = places < len(ids)
    is_there[is_there] = ids[places[is_there]] == numbers[is_there]
    return places[is_there], is_there


def is_repeated(numbers: Integers) -> NDArray[np.bool_]:
    """Return whether each number has stood before it."""
    repeated = np.ones(len(numbers), np.bool_)
    repeated[np.unique(numbers, return_index=True)[1]] = False
    return repeated


def check_share(found: int, pages: int, read: int, path: str, *, is_fetched: bool) -> None:
    """See whether a file can belong to the dump: most pages of a Wikipedia have an item, of a Wiktionary few have.

    Raises: ValueError where no page has one in a file that somebody gave.
    """
    if found >= _FEW * pages:
        return
    problem = (
        f"{path}: has items for {found:,} of the dump's {pages:,} pages, and for {read - found:,} others"
    )
    if not found and not is_fetched:
        raise ValueError(f"corpus.page_props {problem}; is it another wiki's? Leave it out to go on without")
    logger.warning("corpus.page_props %s; is it of the same wiki and date?", problem)
