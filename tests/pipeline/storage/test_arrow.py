"""Single values of mapped columns, beside what pyarrow says of them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline import storage
from tests.support.properties import given, st

VALUES = {
    pa.string(): st.text(),
    pa.int32(): st.integers(-(1 << 31), (1 << 31) - 1),
    pa.int64(): st.integers(-(1 << 63), (1 << 63) - 1),
    pa.float64(): st.floats(allow_nan=False),
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
@given(st.data())
def test_cells_are_those_of_pyarrow(tmp_path_factory: pytest.TempPathFactory, kind: pa.DataType, data: Any) -> None:
    """Of columns with and without nothing, of nothing alone, and of those inside of lists."""
    values = data.draw(st.lists(st.none() | VALUES[kind], min_size=1, max_size=20))
    path = tmp_path_factory.mktemp("cells") / "rows.arrow"
    schema = pa.schema({"plain": kind, "lists": pa.list_(pa.struct({"inside": kind}))})
    lists = [[{"inside": value}] * (row % 3) for row, value in enumerate(values)]
    with storage.arrow_writer(str(path), schema) as writer:
        for first in (0, 1):
            writer.write_batch(pa.record_batch([values[first:], lists[first:]], schema=schema))
    check_cells(path)


def check_cells(path: Path) -> None:
    """Read each value of a file in both ways."""
    for batch in storage.open_arrow(path).to_batches():
        inside = batch.column("lists")
        for column in (batch.column("plain"), inside.offsets, *inside.values.flatten()):
            if len(column):
                read = storage.cells(column)
                assert [read(row) for row in range(len(column))] == column.to_pylist()
