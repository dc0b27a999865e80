"""Tables: Parquet and both kinds of Arrow, several files of one table, and values that JSON has not."""

import datetime
import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.io.data_folder import split_file, split_files
from tasks.io.records import read_records
from tasks.io.tables import is_table, read_rows, shards

ROWS = [{"a": 1, "b": ["x"]}, {"a": 2, "b": []}, {"a": 3, "b": ["y", "z"]}]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """A table in the format that the name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        create = pa.ipc.new_file if path.suffix == ".feather" else pa.ipc.new_stream
        with create(str(path), table.schema) as writer:
            writer.write_table(table)
    return path


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])
def test_kinds_of_tables(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"x{suffix}", ROWS)
    assert is_table(path)
    records = read_records(path)
    assert [record.values for record in records] == ROWS
    assert [(record.where, record.line) for record in records] == [(f"{path}: row {n}", n) for n in (1, 2, 3)]


def test_what_json_has_not_is_text_or_null(tmp_path: Path) -> None:
    day, price = datetime.date(2020, 1, 2), decimal.Decimal("1.50")
    row = {
        "day": day, "price": price, "text": "é".encode(), "image": b"\xff", "nan": float("nan"),
        "ok": [0.5, None],
    }  # fmt: skip
    [found] = read_rows(write(tmp_path / "x.parquet", [row]))
    assert found == {
        "day": "2020-01-02", "price": "1.50", "text": "é", "image": None, "nan": None, "ok": [0.5, None],
    }  # fmt: skip


@pytest.mark.parametrize(
    "name", ["train-{:05}-of-00003.parquet", "train/data-{:05}-of-00003.arrow", "validation-{:05}-of-00003.parquet"]
)
def test_several_files_of_a_split_are_one_table(tmp_path: Path, name: str) -> None:
    paths = [write(tmp_path / name.format(number), [row]) for number, row in enumerate(ROWS)]
    split = "dev" if name.startswith("val") else "train"
    assert split_file(tmp_path, split) == paths[0]
    records = read_records(paths[0])
    assert [record.values for record in records] == ROWS
    assert records[2].where == f"{paths[2]}: row 1"


def test_files_of_a_data_folder(tmp_path: Path) -> None:
    train = [write(tmp_path / f"train-{number:05}-of-00002.parquet", ROWS) for number in range(2)]
    dev, test = (write(tmp_path / "val.parquet", ROWS), write(tmp_path / "test" / "data-00000-of-00001.arrow", ROWS))
    (tmp_path / "labels.txt").write_text("x")
    assert split_files(tmp_path) == {
        "train": train[0], "train 2": train[1], "dev": dev, "test": test, "labels": tmp_path / "labels.txt",
    }  # fmt: skip


def test_a_table_beside_another_file_of_the_split_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "train-00000-of-00001.parquet", ROWS)
    write(tmp_path / "train" / "data-00000-of-00001.arrow", ROWS)
    with pytest.raises(ValueError, match=r"found train/data-0.*, train-0.* for the split 'train'; give"):
        split_file(tmp_path, "train")


@pytest.mark.parametrize("name", ["train.parquet", "train-00003-of-00003.parquet", "train-00000-of-00000.parquet"])
def test_other_names_stand_for_themselves(name: str) -> None:
    assert shards(Path(name)) == [Path(name)]
