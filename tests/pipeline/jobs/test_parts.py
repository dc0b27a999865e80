"""Files that tasks say they wrote; `tests/pipeline/jobs/test_spark_parts.py` tries it on tasks of Spark."""

from pathlib import Path

import pytest

from pipeline.jobs.spark_parts import Written, check_parts


def test_a_part_that_no_task_wrote_is_named(tmp_path: Path) -> None:
    """With those that others wrote, and said to lie where they do not."""
    written = [Written(4, "node1", "", "words/block-00004.parquet", 10, "00", 1)]
    with pytest.raises(ValueError, match=r"2 of 2 .* 4 \(node1: missing\), part 5 \(no task wrote it\);"):
        check_parts(str(tmp_path), "key", range(4, 6), written, {}, 0)


def test_the_workers_that_do_not_see_the_folder_are_named(tmp_path: Path) -> None:
    problems = {0: "node2: x is not there", 1: "", 2: "node1: x is not there", 3: "node1: x is not there"}
    written = [Written(part, "node", problem) for part, problem in problems.items()]
    with pytest.raises(ValueError, match=r"^node1: x is not there \(and 1 more such lines\)$"):
        check_parts(str(tmp_path), "key", range(4), written, {}, 0)
