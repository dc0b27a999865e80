"""Sequences on disk: what is read is what was written, in an order that covers an epoch."""

import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from model.data.shards import HELD_OUT, Corpus, count_entities, count_known, epoch_order, random_bits
from tests.support.properties import given, settings, st
from tests.support.shards import ENTITIES, WORDS, random_rows, write_arrow, write_sequences


def test_sequences_are_as_written(tmp_path: Path) -> None:
    rows = random_rows(40)
    corpus = Corpus(write_sequences(tmp_path, rows))
    assert len(corpus) == 40
    for row, index in zip(rows, range(40), strict=True):
        sequence = corpus[index]
        for column, value in row.items():
            read = getattr(sequence, column)
            assert (read if column == "page_id" else read.tolist()) == value
    assert corpus.word_starts.tolist() == [index % 2 == 0 for index in range(WORDS)]
    with pytest.raises(IndexError):
        corpus[40]


def test_empty_shards_and_files_that_the_manifest_does_not_list_are_no_obstacle(tmp_path: Path) -> None:
    folder = write_sequences(tmp_path, random_rows(9), shards=12)
    (folder / "sequences" / "block-00099.arrow").write_bytes(b"left over")
    assert len(Corpus(folder)) == 9


def test_fingerprint_follows_the_manifest(tmp_path: Path) -> None:
    first = Corpus(write_sequences(tmp_path / "a", random_rows(5, seed=0))).fingerprint
    assert Corpus(write_sequences(tmp_path / "b", random_rows(5, seed=0))).fingerprint == first
    assert Corpus(write_sequences(tmp_path / "c", random_rows(5, seed=1))).fingerprint != first


def test_cut_file_is_refused(tmp_path: Path) -> None:
    folder = write_sequences(tmp_path, random_rows(9))
    path = folder / "sequences" / "block-00001.arrow"
    content = path.read_bytes()
    path.write_bytes(content[:-10])
    expected = f"{path}: {len(content) - 10} bytes, manifest says {len(content)}; run BuildSequences again"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        Corpus(folder)
    path.unlink()
    with pytest.raises(ValueError, match="no such file, but the manifest lists it"):
        Corpus(folder)


def test_file_of_another_format_is_refused(tmp_path: Path) -> None:
    folder = write_sequences(tmp_path, random_rows(9))
    path = folder / "sequences" / "block-00001.arrow"
    path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(ValueError, match=r"block-00001\.arrow: not an Arrow IPC stream"):
        Corpus(folder)


def change_manifest(folder: Path, change: Any) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda manifest: manifest["facts"].pop("mask_id"), r"manifest\.json: facts mask_id are missing"),
        (lambda manifest: manifest.pop("facts"), "keys facts and files wanted"),
        (lambda manifest: manifest["files"].pop(), r"word_starts\.arrow is not listed"),
        (lambda manifest: manifest["facts"].update(word_vocab_size=61), "60 rows, but word_vocab_size is 61"),
    ],
)
def test_wrong_manifest_is_refused(tmp_path: Path, change: Any, message: str) -> None:
    folder = write_sequences(tmp_path, random_rows(9))
    change_manifest(folder, change)
    with pytest.raises(ValueError, match=message):
        Corpus(folder)


def test_missing_and_broken_manifest_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such file; give the folder that BuildSequences wrote"):
        Corpus(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match="not JSON"):
        Corpus(tmp_path)


def test_held_out_sequences_are_a_part_of_their_own(tmp_path: Path) -> None:
    folder = write_sequences(tmp_path, random_rows(9), held_out=random_rows(4, seed=7))
    assert (len(Corpus(folder)), len(Corpus(folder, HELD_OUT))) == (9, 4)
    assert [Corpus(folder, HELD_OUT)[index].word_ids.tolist() for index in range(4)] == [
        row["word_ids"] for row in random_rows(4, seed=7)
    ]
    assert Corpus(folder, HELD_OUT).fingerprint == Corpus(folder).fingerprint


def test_no_held_out_sequences_are_no_error(tmp_path: Path) -> None:
    corpus = Corpus(write_sequences(tmp_path, random_rows(9)), HELD_OUT)
    assert len(corpus) == 0
    assert count_entities(corpus).tolist() == [0] * ENTITIES


@pytest.mark.parametrize("part", ["sequences", "held_out"])
def test_a_pickled_corpus_is_its_folder(tmp_path: Path, part: str) -> None:
    folder = write_sequences(tmp_path, random_rows(500), held_out=random_rows(4, seed=7))
    corpus = Corpus(folder, part)
    content = pickle.dumps(corpus)
    assert len(content) < 1000
    again = pickle.loads(content)  # noqa: S301, as a worker of the loader does
    assert (len(again), again.fingerprint, again.part) == (len(corpus), corpus.fingerprint, part)
    assert again[3].word_ids.tolist() == corpus[3].word_ids.tolist()


@pytest.mark.parametrize("chosen", [None, [], [0], [3, 17, 18, 39], list(range(40))])
def test_entities_are_counted_over_all_or_chosen_sequences(tmp_path: Path, chosen: list[int] | None) -> None:
    rows = random_rows(40)
    corpus = Corpus(write_sequences(tmp_path, rows, held_out=random_rows(5, seed=9)))
    assert corpus.table.column("word_ids").num_chunks > 1
    ids = [entity for number in (range(40) if chosen is None else chosen) for entity in rows[number]["entity_ids"]]
    counts = count_entities(corpus, None if chosen is None else np.array(chosen, np.int64))
    assert counts.tolist() == [ids.count(entity) for entity in range(ENTITIES)]
    assert count_known(corpus).tolist() == [sum(entity >= 3 for entity in row["entity_ids"]) for row in rows]


@pytest.mark.parametrize("wrong", [-1, ENTITIES])
def test_entities_outside_the_vocabulary_are_refused(tmp_path: Path, wrong: int) -> None:
    rows = random_rows(3)
    rows[1]["entity_ids"][0] = wrong
    with pytest.raises(ValueError, match=rf"entity ids from .*{wrong}.*entity_vocab_size is {ENTITIES}"):
        count_entities(Corpus(write_sequences(tmp_path, rows)))


def test_no_sequences_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no sequences"):
        Corpus(write_sequences(tmp_path, []))


def test_missing_column_is_refused(tmp_path: Path) -> None:
    folder = write_sequences(tmp_path, random_rows(9))
    path = folder / "sequences" / "block-00000.arrow"
    write_arrow(path, pa.table({"page_id": [1, 2, 3]}))
    change_manifest(folder, lambda manifest: manifest["files"][0].update(bytes=path.stat().st_size))
    with pytest.raises(ValueError, match="columns word_ids, entity_ids, entity_starts, entity_ends are missing"):
        Corpus(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"entity_ends": [99]}, "sequence 0 has an entity outside"),
        ({"entity_ends": [1]}, "sequence 0 has an entity outside"),
        ({"entity_starts": [-1]}, "sequence 0 has an entity outside"),
        ({"entity_ids": [4, 5]}, "sequence 0 has entity columns of different lengths"),
        ({"word_ids": list(range(31))}, "sequence 0 has 31 words, wanted 1 to 30"),
    ],
)
def test_spans_outside_the_words_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    row = {"word_ids": [5, 6, 7], "entity_ids": [4], "entity_starts": [1], "entity_ends": [2], "page_id": 1}
    corpus = Corpus(write_sequences(tmp_path, [row | change]))
    with pytest.raises(ValueError, match=message):
        corpus[0]


@settings(max_examples=60, deadline=None)
@given(length=st.integers(1, 400), seed=st.integers(0, 2**63), epoch=st.integers(0, 1000))
def test_an_epoch_visits_each_sequence_once(length: int, seed: int, epoch: int) -> None:
    order = epoch_order(length, seed=seed, epoch=epoch)
    assert sorted(order.tolist()) == list(range(length))
    assert np.array_equal(order, epoch_order(length, seed=seed, epoch=epoch))


def test_order_differs_by_seed_and_epoch_and_mixes_the_whole_corpus() -> None:
    orders = {(seed, epoch): epoch_order(3000, seed=seed, epoch=epoch) for seed in (0, 1) for epoch in (0, 1)}
    for a in orders:
        for b in orders:
            if a < b:
                # Two independent shuffles agree in one place on average.
                assert (orders[a] == orders[b]).sum() < 12
    # The first tenth of an epoch comes from all tenths of the corpus.
    counts = np.bincount(orders[0, 0][:300] // 300, minlength=10)
    assert counts.min() > 10


def test_random_bits_differ_in_every_argument() -> None:
    drawn = {
        random_bits(seed, epoch, stream=stream, index=index).random_raw()
        for seed in range(3)
        for epoch in range(3)
        for stream in range(2)
        for index in range(3)
    }
    assert len(drawn) == 54
