from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import schemas
from pipeline.lookup.held_out import is_held_out
from pipeline.lookup.names import name_of
from pipeline.sequences.packing import Sequence
from pipeline.sequences.shards import ROWS_PER_BATCH, describe_sequences, shard, write_title_words
from pipeline.sequences.tokenizer import WordTokenizer
from pipeline.storage.arrow import open_arrow


def rows(count: int) -> list[tuple[int, Sequence]]:
    return [
        (1 << 40 | number, Sequence([number % 60000, 65535, 0], [number, 1], [0, number % 500], [1, 511]))
        for number in range(count)
    ]


def write(path: Path, rows: list[tuple[int, Sequence]], word_vocab_size: int = 50265) -> int:
    with shard(str(path), schemas.sequences(word_vocab_size).schema) as writer:
        for page_id, sequence in rows:
            writer.extend(page_id, [sequence])
    return writer.count


def test_rows_come_back(tmp_path: Path) -> None:
    count = 2 * ROWS_PER_BATCH + 3
    assert write(tmp_path / "a.arrow", rows(count)) == count
    table = open_arrow(tmp_path / "a.arrow")
    assert table.schema == schemas.sequences(50265).schema
    assert [(row.pop("page_id"), Sequence(**row)) for row in table.to_pylist()] == rows(count)
    with pa.memory_map(str(tmp_path / "a.arrow")) as source:
        assert [batch.num_rows for batch in pa.ipc.open_stream(source)] == [1024, 1024, 3]


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Mercury (planet)", "Mercury"),
        ("Paris, Texas", "Paris"),
        ("Springfield, Illinois (film)", "Springfield"),
        ("\u706b\u661f\uff08\u795e\u8a71\uff09", "\u706b\u661f"),
        ("Python", "Python"),
        ("1,000 (number)", "1,000"),
        ("(What's the Story) Morning Glory?", "(What's the Story) Morning Glory?"),
        (", he said", ", he said"),
    ],
)
def test_a_name_is_a_title_without_what_tells_it_apart(title: str, name: str) -> None:
    assert name_of(title) == name


def test_words_of_titles(shared: Path, tmp_path: Path) -> None:
    roberta = WordTokenizer.load(shared / "data/roberta-tokenizer")
    places = [f"Place {number}, Iowa" for number in range(ROWS_PER_BATCH)]
    titles = ["[PAD]", "[UNK]", "[MASK]", "Mercury (planet)", *places, "<mask>"]
    assert write_title_words(str(tmp_path), titles, roberta).rows == len(titles)
    table = open_arrow(tmp_path / "title_words.arrow")
    assert table.schema == schemas.title_words(roberta.vocab_size).schema
    rows = table.to_pylist()
    assert [row["title"] for row in rows] == titles
    assert [row["title_word_ids"] + row["name_word_ids"] for row in rows[:3]] == [[]] * 3
    for row, title in zip(rows[3:], titles[3:], strict=True):
        assert roberta.decode(row["title_word_ids"]) == f" {title}"
        assert roberta.decode(row["name_word_ids"]) == f" {name_of(title)}"
    assert roberta.mask_id not in rows[-1]["title_word_ids"], "a title is text, whatever it looks like"


def test_the_same_rows_give_the_same_bytes_however_they_come(tmp_path: Path) -> None:
    write(tmp_path / "a", [(7, sequence) for _, sequence in rows(1500)])
    with shard(str(tmp_path / "b"), schemas.sequences(50265).schema) as writer:
        writer.extend(7, (sequence for _, sequence in rows(1500)))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_shard_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    broken = [*(sequence for _, sequence in rows(3000)), None]
    with pytest.raises(AttributeError), shard(str(tmp_path / "a"), schemas.sequences(50265).schema) as writer:
        writer.extend(1, broken)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_word_ids_are_as_wide_as_the_vocabulary_needs() -> None:
    assert schemas.sequences(65536).schema.field("word_ids").type == pa.list_(pa.uint16())
    assert schemas.sequences(65537).schema.field("word_ids").type == pa.list_(pa.int32())


@given(st.binary(max_size=200))
def test_other_files_are_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("shard") / "broken.arrow"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"broken\.arrow: no readable Arrow stream"):
        open_arrow(path)


def test_a_cut_shard_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.arrow", rows(2000))
    data = (tmp_path / "a.arrow").read_bytes()
    (tmp_path / "cut.arrow").write_bytes(data[: len(data) // 2])
    for name in ("cut.arrow", "missing.arrow"):
        with pytest.raises(ValueError, match="run its stage again"):
            open_arrow(tmp_path / name)


@given(st.integers(0, 1 << 62), st.floats(0, 1), st.floats(0, 1))
def test_pages_held_out_at_one_share_are_so_at_larger_ones(page_id: int, one: float, other: float) -> None:
    small, large = sorted((one, other))
    assert is_held_out(page_id, small) <= is_held_out(page_id, large)
    assert not is_held_out(page_id, 0)
    assert is_held_out(page_id, 1)


def test_the_share_of_pages_that_is_held_out() -> None:
    """Of 100,000 pages, one in a hundred: 1,000, give or take four standard deviations."""
    count = sum(is_held_out(page_id, 0.01) for page_id in range(100_000))
    assert abs(count - 1000) < 4 * (1000 * 0.99) ** 0.5


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
