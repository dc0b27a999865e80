"""Statistics of sequences, against counting by hand."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import schemas
from pipeline.sequences.packing import Sequence
from pipeline.sequences.shards import shard
from pipeline.sequences.statistics import describe_sequences, summary

Rows = tuple[list[int], list[tuple[int, int, int]]]
MENTIONS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20), st.integers(1, 5)), max_size=4)
SEQUENCES = st.lists(st.tuples(st.lists(st.integers(0, 99), min_size=1, max_size=30), MENTIONS), max_size=8)


@given(SEQUENCES, SEQUENCES)
def test_statistics_equal_counting(
    tmp_path_factory: pytest.TempPathFactory, first: list[Rows], second: list[Rows]
) -> None:
    folder = tmp_path_factory.mktemp("shards")
    paths = [str(folder / "a.arrow"), str(folder / "b.arrow")]
    for path, rows in zip(paths, (first, second), strict=True):
        with shard(path, schemas.sequences(100).schema) as writer:
            for words, mentions in rows:
                ids, starts, sizes = zip(*mentions, strict=True) if mentions else ((), (), ())
                ends = [start + size for start, size in zip(starts, sizes, strict=True)]
                writer.extend(1, [Sequence(words, list(ids), list(starts), ends)])
    found = describe_sequences(paths)
    rows = first + second
    mentions = [mention for _, each in rows for mention in each]
    assert found["sequences"] == len(rows)
    assert found["words"] == sum(len(words) for words, _ in rows)
    assert found["annotations"] == len(mentions)
    assert found["unknown_entities"] == sum(number == 1 for number, _, _ in mentions)
    assert found["unknown_share"] == (found["unknown_entities"] / len(mentions) if mentions else 0)
    for name, sizes in {
        "words_per_sequence": [len(words) for words, _ in rows],
        "entities_per_sequence": [len(each) for _, each in rows],
        "words_per_mention": [size for _, _, size in mentions],
    }.items():
        assert found[name] == {str(size): count for size, count in sorted(Counter(sizes).items())}


@given(st.lists(st.integers(0, 40), min_size=1, max_size=60))
def test_summary_equals_sorting(values: list[int]) -> None:
    found = summary({str(size): count for size, count in Counter(values).items()})
    ordered = sorted(values)
    assert found["mean"] == pytest.approx(sum(values) / len(values))
    for name, share in (("median", 50), ("p95", 95)):
        assert found[name] == ordered[-(-share * len(values) // 100) - 1]
    assert found["largest"] == ordered[-1]


def test_summary_of_nothing() -> None:
    assert summary({}) == {"mean": 0.0, "median": 0, "p95": 0, "largest": 0}
