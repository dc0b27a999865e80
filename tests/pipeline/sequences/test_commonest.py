"""The commonest labels of held-out mentions: whose links count, ties, names that are not there."""

import tracemalloc
from collections.abc import Sequence as SequenceOf
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline import schemas, storage
from pipeline.lookup.held_out import is_held_out
from pipeline.sequences.commonest import held_out_counts, write_commonest
from pipeline.sequences.packing import Sequence
from pipeline.sequences.shards import shard
from pipeline.sequences.tokenizer import WordTokenizer
from pipeline.sequences.tokenizer_training import train_tokenizer
from tests.support.manifests import write_manifest
from tests.support.mentions import finished_table

SHARE = 0.5
UNSEEN = next(page for page in range(100) if is_held_out(page, SHARE))
SEEN = next(page for page in range(100) if not is_held_out(page, SHARE))
# Mention, entity id, title, links to the title, links of the mention, occurrences.
ROWS = [
    ("Paris", 3, "Paris", 6, 15, 20),
    ("Paris", 5, "Paris (Texas)", 4, 15, 20),
    ("Paris", None, "Paris (hero)", 3, 15, 20),
    ("Paris", None, "Paris (plant)", 2, 15, 20),
    ("Rome", 4, "Rome", 1, 1, 9),
    ("Éire", 6, "Ireland", 2, 2, 2),
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    train_tokenizer(["Paris Rome Oslo Éire and a few other words"] * 3, folder, 300)
    return folder


def write_held_out(folder: Path, tokenizer: Path, *files: list[list[tuple[str, int]]]) -> None:
    """Files of sequences, each of mentions with their labels, between other words."""
    encode = WordTokenizer.load(tokenizer).encode
    schema = schemas.sequences(300).schema
    entries = []
    for number, rows in enumerate(files):
        path = f"held_out/block-{number:05d}.arrow"
        with shard(str(folder / path), schema) as writer:
            for row in rows:
                words, starts, ends = list[int](), list[int](), list[int]()
                for text, _ in row:
                    (before, mention) = encode(["and a few", text], [True, True])
                    words += before
                    starts.append(len(words))
                    words += mention
                    ends.append(len(words))
                writer.extend(number, [Sequence(words, [label for _, label in row], starts, ends)])
        entries.append(storage.describe(str(folder), path, len(rows)))
    write_manifest(folder, "BuildSequences", entries, parameters={"held_out": SHARE})


def write_links(folder: Path, *links: tuple[int, str, str]) -> None:
    """A folder of ResolveLinks: the page, the mention and the title of each link, in two files."""
    files = []
    for number, rows in enumerate((links[::2], links[1::2])):
        path = f"links/part-{number}.parquet"
        with storage.parquet_rows(str(folder / path), schemas.LINKS.schema) as writer:
            writer.extend((*link, "page") for link in rows)
        files.append(storage.describe(str(folder), path, len(rows)))
    write_manifest(folder, "ResolveLinks", files)


def labels(
    tmp_path: Path,
    tokenizer: Path,
    *files: list[list[tuple[str, int]]],
    profile: str = "fixed",
    rows: Any = ROWS,
    links: SequenceOf[tuple[int, str, str]] = (),
) -> pa.Table:
    finished_table(tmp_path / "mentions", profile, rows)
    write_held_out(tmp_path / "sequences", tokenizer, *files)
    write_links(tmp_path / "links", *links)
    path = tmp_path / "commonest.arrow"
    folders = {name: str(tmp_path / name) for name in ("sequences", "links", "mentions")}
    count = write_commonest(str(path), **folders, tokenizer=str(tokenizer))
    table = storage.open_arrow(path)
    assert count == len(table)
    return table


def test_labels_are_parallel_to_the_annotations(tmp_path: Path, tokenizer: Path) -> None:
    first, last = [[("Paris", 5), ("Oslo", 1)], [("Éire", 6)]], [[("Paris", 3), ("Paris", 1)]]
    table = labels(tmp_path, tokenizer, first, [], last)
    # Six links of Paris end at 3, four at 5, and five outside the vocabulary.
    assert table["commonest"].to_pylist() == [[3, -1], [6], [3, 3]]
    assert table["commonest_known"].to_pylist() == [[3, -1], [6], [3, 3]]
    assert table.schema.metadata == {b"sequences": storage.manifest_sha256(str(tmp_path / "sequences")).encode()}


def test_counts_are_of_each_text_beside_its_own_links(tmp_path: Path, tokenizer: Path) -> None:
    own = [("Paris", "Paris (Texas)"), ("Paris", "Paris (plant)"), ("Éire", "Ireland"), ("Rome", "Rome")]
    own += [("Rome", "Romulus"), ("Oslo", "Oslo")]  # that the table does not have
    links = [(UNSEEN, *link) for link in own] + [(SEEN, "Éire", "Ireland")]
    held_out = [[("Paris", 5), ("Oslo", 1)], [("Éire", 6), ("Rome", 4), ("Paris", 1)]]
    labels(tmp_path, tokenizer, held_out, links=links)
    folders = {name: str(tmp_path / name) for name in ("sequences", "links", "mentions")}
    offsets, places, counts = held_out_counts(**folders, tokenizer=str(tokenizer))
    tables = list(counts)
    assert offsets.tolist() == [0, 2, 5]
    paris = {3: 6, 5: 3, 1: 4}
    assert [tables[place] for place in places] == [paris, {}, {6: 1}, {}, paris]


def test_links_of_held_out_pages_do_not_count(tmp_path: Path, tokenizer: Path) -> None:
    """Also those that are in no sequence; those of other pages do."""
    links = [(UNSEEN, "Paris", "Paris")] * 3 + [(SEEN, "Paris", "Paris (Texas)"), (UNSEEN, "Rome", "Rome")]
    table = labels(tmp_path, tokenizer, [[("Paris", 3)], [("Rome", 4)]], links=links)
    # Three of the six links to Paris are these: Texas has four, the two outside the vocabulary five together.
    assert table["commonest"].to_pylist() == [[1], [-1]]
    assert table["commonest_known"].to_pylist() == [[5], [-1]]


def test_of_equals_the_first_in_the_table_wins(tmp_path: Path, tokenizer: Path) -> None:
    own = [(UNSEEN, "Paris", title) for title in ("Paris", "Paris", "Paris (hero)")]
    table = labels(tmp_path, tokenizer, [[("Paris", 3)]], links=own)
    assert table["commonest"].to_pylist() == [[3]]
    assert table["commonest_known"].to_pylist() == [[3]]


def test_texts_without_case_stand_for_all_names_that_become_them(tmp_path: Path) -> None:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [*special, "and", "a", "few", "par", "##is", "u", "s", ".", "eire"]
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "tokenizer" / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
    rows = [
        ("PARIS", 5, "Paris (Texas)", 4, 4, 4),
        ("Paris", 3, "Paris", 6, 7, 20),
        ("Paris", 5, "Paris (Texas)", 1, 7, 20),
    ]
    rows += [("U.S.", 4, "United States", 2, 2, 2), ("us", 7, "Us", 9, 9, 9), ("Éire", 6, "Ireland", 2, 2, 2)]
    held_out = [[("Paris", 5), ("paris", 3), ("U. S.", 4)], [("EIRE", 6), ("few", 1)]]
    table = labels(tmp_path, tmp_path / "tokenizer", held_out, rows=rows)
    # Of both spellings six links end at 3 and five at 5.
    assert table["commonest"].to_pylist() == [[3, 3, 4], [6, -1]]
    own = [(UNSEEN, "Paris", "Paris")] * 2 + [(UNSEEN, "PARIS", "Paris (Texas)"), (UNSEEN, "a", "A")]
    own += [(UNSEEN, "Paris", "Paris (Texas)")]
    table = labels(tmp_path / "own", tmp_path / "tokenizer", held_out, rows=rows, links=own[:2])
    assert table["commonest"].to_pylist() == [[5, 5, 4], [6, -1]]
    table = labels(tmp_path / "more", tmp_path / "tokenizer", held_out, rows=rows, links=own)
    assert table["commonest"].to_pylist() == [[3, 3, 4], [6, -1]]
    paper = [("paris", 5, "Paris (Texas)", 4, 4, 4), ("eire", 6, "Ireland", 2, 2, 2)]
    table = labels(tmp_path / "paper", tmp_path / "tokenizer", held_out, rows=paper, profile="paper")
    assert table["commonest"].to_pylist() == [[5, 5, -1], [6, -1]]


def test_nothing_held_out(tmp_path: Path, tokenizer: Path) -> None:
    assert len(labels(tmp_path, tokenizer)) == 0
    assert len(labels(tmp_path / "empty", tokenizer, [])) == 0


def test_texts_are_not_held(tmp_path: Path, tokenizer: Path) -> None:
    rows = [[("Paris", 3), ("Rome", 4), (f"a few words {number}", 1), ("Éire", 6)] for number in range(1100)]
    labels(tmp_path, tokenizer, [])  # what is loaded at first use is not counted
    write_held_out(tmp_path / "many", tokenizer, rows)
    manifest = storage.read_manifest(str(tmp_path / "many"))
    files = [replace(manifest.files[0], path=f"held_out/block-{number:05d}.arrow") for number in range(8)]
    for entry in files[1:]:
        (tmp_path / "many" / entry.path).hardlink_to(tmp_path / "many" / files[0].path)
    storage.write_manifest(str(tmp_path / "many"), replace(manifest, files=tuple(files)))
    paths = {"mentions": str(tmp_path / "mentions"), "tokenizer": str(tokenizer)}
    own = [("Paris", "Paris")] * 5 + [("Rome", "Rome"), ("Éire", "Ireland"), ("Éire", "Ireland")]
    write_links(tmp_path / "own", *((UNSEEN, *link) for link in own))
    tracemalloc.start()
    folders = {"sequences": str(tmp_path / "many"), "links": str(tmp_path / "own")}
    count = write_commonest(str(tmp_path / "commonest"), **folders, **paths)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    table = storage.open_arrow(tmp_path / "commonest")
    # All links to Rome and Ireland are the held-out pages' own.
    assert table["commonest"].to_pylist() == [[1, -1, -1, -1]] * count
    assert table["commonest_known"].to_pylist() == [[5, -1, -1, -1]] * count
    assert count == 8 * len(rows)
    assert peak < 100 * 4 * count, "bytes for each annotation, a batch of texts included"
