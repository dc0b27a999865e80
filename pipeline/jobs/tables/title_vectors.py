"""The vectors of titles, a part of BuildContexts: latent semantic analysis (Deerwester et al., 1990) of links.

A page is a row of a matrix, and a title a column: it is there where the page links to the title, or has it, and weighs
the more the fewer pages do. A title's vector has its place in the directions in which rows differ most.
Pages are read from disk, block by block, several times. In memory there are forty bytes a title, and up to
1.1 GB for the commonest half million.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from pipeline import schemas, storage
from pipeline.lookup.contexts import TITLE_NUMBERS
from pipeline.storage.tries import TextMap

PAGE_TITLES = "page_titles"
MOST_TITLES = 1 << 19  # those on most pages, whose directions are found; all others are placed in these
_ROWS_PER_BATCH = 1 << 14
_PAGES_AT_ONCE = 1 << 13
_MORE_DIRECTIONS = 10  # than are wanted, by which these converge sooner
_PASSES, _SEED = 6, 20_201_116

Integers = NDArray[np.int64]
Floats = NDArray[np.float32]


def titles_of_pages(paragraphs: DataFrame, links: DataFrame, folder: str) -> DataFrame:
    """The table `page_titles`. `folder` is the stage's, where titles have their numbers."""

    def number(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = TextMap(storage.join(folder, TITLE_NUMBERS))
        for batch in batches:
            lists = batch.column("titles").to_pylist()
            found = [sorted(number for each in of if (number := numbers.get(each)) is not None) for of in lists]
            columns = [batch.column("page_id"), pa.array(found, pa.list_(pa.int32()))]
            yield pa.record_batch(columns, schema=schemas.PAGE_TITLES.schema)

    pairs = paragraphs.select("page_id", "title").unionByName(links.select("page_id", "title"))
    pages = pairs.groupBy("page_id").agg(F.collect_set("title").alias("titles"))
    return pages.mapInArrow(number, "page_id long, titles array<int>")


def title_vectors(paths: Sequence[str], titles: int) -> Iterator[NDArray[np.float16]]:
    """(titles, size) in parts: the vector of each title, as long as the title's weight.

    The weight is 1 + ln((1 + all pages) / (1 + pages that have the title)).
    """
    pages, total = np.zeros(titles, np.int64), 0
    for offsets, numbers in read_pages(paths):
        pages += np.bincount(numbers, minlength=titles)
        total += len(offsets) - 1
    weights = (1 + np.log((1 + total) / (1 + pages))).astype(np.float32)

    def blocks(columns: NDArray[np.int32], width: int) -> Iterator[csr_matrix]:
        """The matrix, whose rows are of length 1, in these of its columns; -1: a title that has none."""
        for offsets, numbers in read_pages(paths):
            values = weights[numbers]
            lengths = np.sqrt(np.add.reduceat(values**2, offsets[:-1]))
            values /= np.repeat(lengths, np.diff(offsets))
            places = columns[numbers]
            is_kept = places >= 0
            ends = np.concatenate([[0], np.cumsum(is_kept)])[offsets]
            yield csr_matrix((values[is_kept], places[is_kept], ends), (len(offsets) - 1, width))

    common = np.full(titles, -1, np.int32)
    chosen = np.sort(np.argsort(-pages, kind="stable")[:MOST_TITLES])
    common[chosen] = np.arange(len(chosen))
    found, strengths = directions(lambda: blocks(common, len(chosen)), len(chosen))
    for first in range(0, titles, MOST_TITLES):
        width = min(MOST_TITLES, titles - first)
        own = np.full(titles, -1, np.int32)
        own[first : first + width] = np.arange(width)
        vectors = np.zeros((width, schemas.VECTOR_SIZE), np.float32)
        for rows, columns in zip(blocks(common, len(chosen)), blocks(own, width), strict=True):
            vectors[:, : len(strengths)] += columns.T @ (rows @ found)
        vectors[:, : len(strengths)] /= strengths
        lengths = np.linalg.norm(vectors, axis=1)
        vectors *= (weights[first : first + width] / np.where(lengths > 0, lengths, 1))[:, None]
        for start in range(0, width, _ROWS_PER_BATCH):
            yield vectors[start : start + _ROWS_PER_BATCH].astype(np.float16)


def directions(blocks: Callable[[], Iterator[csr_matrix]], width: int) -> tuple[Floats, Floats]:
    """The right singular vectors (columns, size) of a matrix that have the largest singular values, and these (size).

    By subspace iteration (Halko et al., 2011). A matrix has at most as many as it has columns or rows that differ.
    """
    count = min(width, schemas.VECTOR_SIZE + _MORE_DIRECTIONS)
    found = np.random.default_rng(_SEED).standard_normal((width, count), np.float32)
    with threadpool_limits(1):  # several add numbers in another order, which gives other bytes
        for _ in range(_PASSES):
            basis = np.linalg.qr(found).Q
            found[:] = 0
            for block in blocks():
                found += block.T @ (block @ basis)
        squares, turns = np.linalg.eigh(basis.T @ found)
        strengths = np.sqrt(np.maximum(squares[::-1], 0))[: schemas.VECTOR_SIZE]
        is_there = strengths > 1e-3 * strengths.max(initial=0)  # others are rounding
        return (basis @ turns[:, ::-1])[:, : schemas.VECTOR_SIZE][:, is_there], strengths[is_there]


def read_pages(paths: Sequence[str]) -> Iterator[tuple[Integers, NDArray[np.int32]]]:
    """(offsets, numbers) of some pages at a time: the titles of page `i` are `numbers[offsets[i] : offsets[i + 1]]`."""
    for path in paths:
        for batch in storage.read_batches(path, ["titles"], rows=_PAGES_AT_ONCE):
            lists = batch.column(0)
            lengths = lists.value_lengths().to_numpy()
            yield np.concatenate([[0], np.cumsum(lengths)]), lists.flatten().to_numpy()
