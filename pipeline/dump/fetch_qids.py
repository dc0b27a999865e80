"""FetchQids: the items of Wikidata that a dump's pages are linked to, and which pages are disambiguation pages.

Both are from the table page_props of the same dump. Where it names disambiguation pages, it decides which are some; a
wiki that never does lacks MediaWiki's extension for them, and the templates on its pages decide.
"""

import logging
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline import schemas, storage
from pipeline.dump import page_props
from pipeline.dump.download import download, table_source
from pipeline.dump.fetch import Progress
from pipeline.dump.page_props import PageProps

logger = logging.getLogger("pipeline")

PROPERTIES = PROPERTY, DISAMBIGUATION = "wikibase_item", "disambiguation"
_TABLES = schemas.TABLES["FetchQids"]
_PATHS = {name: f"{name}/block-00000.parquet" for name in _TABLES}
_QID = re.compile(rb"Q[1-9]\d{0,17}")
_AT_ONCE = 1 << 14  # rows
_FEW = 0.5  # of a dump's pages: fewer with an item may mean that the file is of another dump
Integers = NDArray[np.int64]


def fetch(part: str, folder: str, progress: Progress) -> str:
    """Download the table that belongs to a dump one of whose files has this name, unless it is there; its path."""
    source = table_source(part, page_props.TABLE)
    path = os.path.join(folder, "parts", source.name)
    if not os.path.exists(path):
        with progress(f"download {source.name}") as show:
            download(source, path, show)
    return path


def build(path: str, folder: str, pages: Sequence[str], dbname: str, *, is_fetched: bool) -> storage.Result:
    """Write the tables `qids` and `disambiguations`: the pages of the dump that have an item, and disambiguation pages.

    `pages` are the files of ExtractPages' table; 13 bytes are held for each page. `dbname` is empty where the dump
    has none. A file that `is_fetched` came from where the dump did, and so belongs to it. Raises: ValueError: the
    file is damaged, of another wiki, or knows none of the pages.
    """
    ids = np.sort(read_page_ids(pages))
    own_items, is_ambiguous = np.zeros(len(ids), np.int32), np.zeros(len(ids), np.bool_)
    read = named = 0
    with ExitStack() as stack:
        items = stack.enter_context(PageProps(path, PROPERTIES))
        tables = {
            name: stack.enter_context(storage.parquet_rows(storage.join(folder, at), _TABLES[name].schema))
            for name, at in _PATHS.items()
        }
        if dbname and items.database and items.database != dbname:
            raise ValueError(
                f"corpus.page_props {path}: is of the wiki {items.database}, the dump of {dbname}; give {dbname}'s"
            )
        for numbers, qids, ambiguous in read_items(items):
            read += len(numbers)
            rows, is_page = find(numbers, ids)
            np.add.at(own_items, rows, 1)
            tables["qids"].extend(zip(numbers[is_page].tolist(), np.array(qids)[is_page].tolist(), strict=True))
            is_ambiguous[find(ambiguous, ids)[0]] = True
            named += len(ambiguous)
        if len(twice := ids[own_items > 1]):
            raise ValueError(f"{path}: two items of page {twice[0]}; wanted one; download it again")
        if not named:
            is_ambiguous = np.isin(ids, read_page_ids(pages, "is_disambiguation"))
        tables["disambiguations"].extend([(number,) for number in ids[is_ambiguous].tolist()])
    counts = {"qids": int(own_items.sum()), "disambiguations": int(is_ambiguous.sum())}
    found = counts["qids"]
    check_share(found, len(ids), read, path, is_fetched=is_fetched)
    source = {"name": os.path.basename(path), "sha256": storage.file_sha256(path)}
    drops = {"properties:other": items.others, "qids:not_in_dump": read - found}
    files = tuple(storage.describe(folder, _PATHS[name], count) for name, count in counts.items())
    facts = {"source": source, "pages": len(ids), "pages_without_qid": len(ids) - found}
    return storage.Result(files, counts, +Counter(drops), facts)


def read_page_ids(paths: Sequence[str], *where: str) -> Integers:
    """The ids of the pages in files of a table; of those alone where this column of it is true."""
    batches = (batch for path in paths for batch in storage.read_batches(path, ["page_id", *where]))
    chunks = [batch.column(0).filter(batch.column(1)) if where else batch.column(0) for batch in batches]
    ids: Integers = pa.chunked_array(chunks, pa.int64()).to_numpy()
    return ids


def read_items(items: PageProps) -> Iterator[tuple[Integers, list[str], Integers]]:
    """Page ids, their QIDs, and ids of disambiguation pages, many at a time. Raises: ValueError: a value is no QID."""

    def checked() -> Iterator[tuple[int, str, bytes]]:
        for page_id, name, value in items:
            if name == PROPERTY and not _QID.fullmatch(value):
                items.fail(value, f"a QID, as Q42, for the {PROPERTY} of page {page_id}")
            yield page_id, name, value

    rows = checked()
    while batch := list(islice(rows, _AT_ONCE)):
        pairs = [(page_id, value.decode()) for page_id, name, value in batch if name == PROPERTY]
        numbers, qids = zip(*pairs, strict=True) if pairs else ((), ())
        ambiguous = [page_id for page_id, name, _ in batch if name == DISAMBIGUATION]
        yield np.array(numbers, np.int64), list(qids), np.array(ambiguous, np.int64)


def find(numbers: Integers, ids: Integers) -> tuple[Integers, NDArray[np.bool_]]:
    """(the places among sorted ids of the numbers that are there, which numbers these are)."""
    places = np.searchsorted(ids, numbers)
    is_there = places < len(ids)
    is_there[is_there] = ids[places[is_there]] == numbers[is_there]
    return places[is_there], is_there


def check_share(found: int, pages: int, read: int, path: str, *, is_fetched: bool) -> None:
    """See whether a file can belong to the dump: most pages of a Wikipedia have an item, of a Wiktionary few have.

    Raises: ValueError where no page has one in a file that somebody gave.
    """
    if found >= _FEW * pages:
        return
    problem = f"{path}: has items for {found:,} of the dump's {pages:,} pages, and for {read - found:,} others"
    if not found and not is_fetched:
        raise ValueError(f"corpus.page_props {problem}; is it another wiki's? Leave it out to go on without")
    logger.warning("corpus.page_props %s; is it of the same wiki and date?", problem)
