"""Tables that Spark computes have bytes that it does not decide."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline import storage
from pipeline.jobs.spark import SparkJob

pytestmark = pytest.mark.slow


def test_parts_are_kept_and_have_the_same_bytes(spark: Any, tmp_path: Path) -> None:
    schema = pa.schema([("word", pa.string()), ("number", pa.int64())])
    # Long and many enough that a column of a row group has several pages, which must not follow Spark's batches.
    rows = [(f"word {number % 1000} " + f"{number:07d}" * 40, number) for number in range(30_000)]

    def write(folder: Path, partitions: int) -> dict[int, storage.Result]:
        frame = spark.createDataFrame(rows, "word string, number long").repartition(partitions)
        job = SparkJob(spark, {}, str(folder), "key", parts=3)
        return job.write(frame, schema, "words", by="word", order=["word", "number"])

    whole = write(tmp_path / "whole", 1)
    broken = tmp_path / "broken"
    write(broken, 7)
    (broken / "blocks/block-00001.json").unlink()
    (broken / "words/block-00001.parquet").write_bytes(b"half")
    kept = (broken / "words/block-00000.parquet").stat().st_mtime_ns
    assert write(broken, 5) == whole
    assert (broken / "words/block-00000.parquet").stat().st_mtime_ns == kept
    assert sum(record.rows["words"] for record in whole.values()) == len(rows)
    assert pq.ParquetFile(tmp_path / "whole/words/block-00000.parquet").metadata.row_group(0).num_rows == 8192
