"""The functions that give the figures of `benchmarks.tasks.linking` their meaning; nothing is measured here."""

import json
from pathlib import Path

import pytest

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from benchmarks.tasks import linking as script
from benchmarks.tasks import linking_workloads as workloads
from tests.support.mentions import ARTICLES, small_pages, write_mentions

TEXT = "Ann and ab met Bob."


def test_the_command_is_counted(tmp_path: Path) -> None:
    """A mention without a page does not count."""
    (table := tmp_path / "mentions").mkdir()
    write_mentions(table, small_pages(ARTICLES), size=5)
    documents = tmp_path / "documents.jsonl"
    lines = [{"text": TEXT}, {"text": TEXT, "mentions": [{"start": 8, "end": 10}, {"start": 11, "end": 14}]}]
    documents.write_text("".join(json.dumps(line) + "\n" for line in lines))
    given, found = ["--mentions", str(table), str(documents)], ["--find-mentions"]
    counted = [workloads.link(arguments=[*given, *more], rounds=2, threads=1) for more in ([], found)]
    assert [[row["mentions"] for row in each["rows"]] for each in counted] == [[4, 4], [6, 6]]
    row = script.command_row("given", counted[0])
    seconds = sum(each["cpu_seconds"] for each in counted[0]["rows"]) / 2
    assert (row["linked"], row["mentions/s"]) == (4, pytest.approx(4 / seconds))
    assert row["largest MB"] > 10
    assert script.command_row("given", {"failure": "no"})["mentions/s"] is None
