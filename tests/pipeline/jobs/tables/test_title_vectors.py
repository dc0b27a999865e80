"""Vectors of titles as pages make them, beside those of a whole matrix."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix

pytest.importorskip("pyspark", reason="the tables are made with Spark")

from pipeline import schemas, storage
from pipeline.jobs.tables import title_vectors as module
from pipeline.jobs.tables.title_vectors import directions, title_vectors
from tests.support import oracle_contexts as oracle

SIZE = schemas.VECTOR_SIZE


def write_pages(folder: Path, pages: list[list[int]]) -> list[str]:
    """Files of the table `page_titles`, with every other page."""
    paths = []
    for number in range(2):
        own = pages[number::2]
        table = pa.table([range(len(own)), own], schema=schemas.PAGE_TITLES.schema)
        path = str(folder / f"{number}.parquet")
        with storage.atomic_output(path) as stream, storage.parquet.parquet_writer(stream, table.schema) as writer:
            writer.write_table(table)
        paths.append(path)
    return paths


def random_pages(count: int, titles: int) -> list[list[int]]:
    """Pages of ten kinds, whose titles are mostly of their own kind; the first titles are on more of them."""
    generator, found = np.random.default_rng(0), []
    for page in range(count):
        own = titles * generator.beta(1, 2, size=12) // 10 * 10 + page % 10
        found.append(sorted({*own.astype(int).tolist(), int(generator.integers(titles))} & {*range(titles)}))
    return found


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAGES_AT_ONCE", 37)
    monkeypatch.setattr(module, "_ROWS_PER_BATCH", 50)


@pytest.mark.parametrize(
    ("count", "titles", "most"), [(400, 160, 160), (400, 160, 120), (90, 160, 1000), (20, 30, 30), (1, 1, 1)]
)
def test_vectors_are_those_of_the_whole_matrix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, titles: int, most: int
) -> None:
    """Their products are, since directions have no sign, when there were passes enough for the last directions."""
    monkeypatch.setattr(module, "MOST_TITLES", most)
    monkeypatch.setattr(module, "_PASSES", 200)
    pages = random_pages(count, titles) if titles > 1 else [[0]]
    parts = [*title_vectors(write_pages(tmp_path, pages), titles)]
    assert all(len(part) <= 50 and part.dtype == np.float16 for part in parts)
    found = np.concatenate(parts).astype(np.float64)
    assert found.shape == (titles, SIZE)
    expected = oracle.vectors(pages, titles, most)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=0.06)


def test_few_passes_find_nearly_as_much(tmp_path: Path) -> None:
    """Directions that are nearly as strong as those that are left out take many; they matter as little."""
    pages = random_pages(400, 160)
    found = np.concatenate([*title_vectors(write_pages(tmp_path, pages), 160)]).astype(np.float64)
    both = (each @ each.T for each in (found, oracle.vectors(pages, 160)))
    own, theirs = (each[np.triu_indices(160, 1)] for each in both)
    assert np.corrcoef(own, theirs)[0, 1] > 0.95


def test_titles_of_the_same_pages_have_the_same_place(tmp_path: Path) -> None:
    """And one that is on no page has no direction."""
    pages = [[*page, 200] if 3 in page else page for page in random_pages(400, 160)]
    found = np.concatenate([*title_vectors(write_pages(tmp_path, pages), 201)]).astype(np.float64)
    np.testing.assert_allclose(found[200], found[3], atol=0.01)
    assert not found[170].any()


@pytest.mark.parametrize("shape", [(300, 200), (40, 200), (200, 40), (5, 0)])
def test_directions_are_singular_vectors(shape: tuple[int, int]) -> None:
    """The largest ones; as many as the matrix has, where it has few. The tenth that matters least is left out here."""
    generator = np.random.default_rng(0)
    rank = min(*shape, 90)
    matrix = generator.normal(size=(shape[0], rank)) * 0.9 ** np.arange(rank) @ generator.normal(size=(rank, shape[1]))
    blocks = [csr_matrix(matrix[first : first + 64].astype(np.float32)) for first in range(0, len(matrix), 64)]
    found, strengths = directions(lambda: iter(blocks), shape[1])
    expected = np.linalg.svd(matrix, compute_uv=False)[:SIZE] if rank else np.zeros(0)
    assert len(strengths) <= len(expected)
    assert found.shape == (shape[1], len(strengths))
    first = len(expected) * 9 // 10
    np.testing.assert_allclose(strengths[:first], expected[:first][: len(strengths)], rtol=1e-2)
    np.testing.assert_allclose(found.T @ found, np.eye(len(strengths)), atol=1e-4)
