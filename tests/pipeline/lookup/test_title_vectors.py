"""Vectors of titles as they are read, and coherence beside loops over mentions and candidates."""

from pathlib import Path

import numpy as np
import pytest

from pipeline import schemas, storage
from pipeline.lookup.title_vectors import TitleVectors, coherence, unit, write_vectors
from tests.support.properties import given, st

SIZE = schemas.VECTOR_SIZE


def test_vectors_are_those_that_were_written(tmp_path: Path) -> None:
    """In several batches, in any order, some of them twice, and of no row."""
    vectors = np.random.default_rng(0).normal(size=(20, SIZE)).astype(np.float16)
    entry = write_vectors(str(tmp_path), [vectors[:7], vectors[7:7], vectors[7:]])
    assert (entry.path, entry.rows) == ("vectors.arrow", 20)
    assert storage.open_arrow(tmp_path / entry.path).schema == schemas.TITLE_VECTORS.schema
    rows = np.array([19, -1, 0, 7, 6, 7, -1])
    found = TitleVectors(str(tmp_path)).of(rows)
    assert found.dtype == np.float64
    expected = [vectors[row].astype(np.float64) if row >= 0 else np.zeros(SIZE) for row in rows]
    np.testing.assert_array_equal(found, expected)
    assert TitleVectors(str(tmp_path)).of(np.zeros(0, np.int64)).shape == (0, SIZE)


def test_no_titles_have_no_vectors(tmp_path: Path) -> None:
    write_vectors(str(tmp_path), [])
    np.testing.assert_array_equal(TitleVectors(str(tmp_path)).of(np.array([-1])), np.zeros((1, SIZE)))


Mention = tuple[str, list[tuple[int, float]]]  # the name, and titles with their weights
VECTORS = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0], [-1.0, 0.5], [0.0, 0.0]])
NAMED = st.dictionaries(
    st.sampled_from("abcd"), st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0.25, 0.5, 1.0])), max_size=4)
)


def by_loops(mentions: list[Mention]) -> list[list[float]]:
    """Each mention's candidates, against those of every other name once."""
    found = []
    for name, candidates in mentions:
        others = {other: theirs for other, theirs in mentions if other != name}
        total = sum((weight * VECTORS[title] for of in others.values() for title, weight in of), np.zeros(2))
        lengths = [np.linalg.norm(VECTORS[title]) * np.linalg.norm(total) for title, _ in candidates]
        found.append(
            [
                float(VECTORS[title] @ total / length) if length > 1e-6 else 0.0
                for (title, _), length in zip(candidates, lengths, strict=True)
            ]
        )
    return found


@given(NAMED, st.lists(st.sampled_from("abcd"), max_size=9))
def test_coherence_is_that_of_loops(named: dict[str, list[tuple[int, float]]], order: list[str]) -> None:
    mentions = [(name, named[name]) for name in order if name in named]
    numbers = {name: number for number, name in enumerate(named)}
    found = coherence(
        VECTORS,
        [np.array([title for title, _ in of], np.int64) for _, of in mentions],
        [np.array([weight for _, weight in of], np.float64) for _, of in mentions],
        np.array([numbers[name] for name, _ in mentions], np.int64),
    )
    expected = by_loops(mentions)
    assert [*map(len, found)] == [*map(len, expected)]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_what_is_left_by_rounding_is_nothing() -> None:
    """The sum of all less a mention's own is not 0 to the bit, where no other mention has candidates."""
    weights = np.array([0.1, 0.7, 0.2])
    one, two = coherence(
        VECTORS * np.pi, [np.array([0, 1, 2]), np.zeros(0, np.int64)], [weights, np.zeros(0)], np.array([0, 1])
    )
    assert (one.tolist(), two.tolist()) == ([0.0, 0.0, 0.0], [])


def test_unit_vectors() -> None:
    assert unit(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist() == [[0.6, 0.8], [0.0, 0.0]]


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vectors.arrow").write_bytes(b"no vectors")
    with pytest.raises(ValueError, match=r"vectors\.arrow: no readable Arrow stream"):
        TitleVectors(str(tmp_path))
