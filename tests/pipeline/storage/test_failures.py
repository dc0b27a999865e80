"""Unexpected errors in words that depend on the page alone."""

import logging
from pathlib import Path

import pytest

from pipeline import schemas, storage
from tests.support import ROOT


def raised(error: Exception, depth: int = 0) -> Exception:
    """An error that was raised below so many calls."""

    def fall(left: int) -> None:
        if left == 0:
            raise error
        fall(left - 1)

    try:
        fall(depth)
    except Exception as caught:
        return caught
    raise AssertionError


def test_the_first_of_each_kind_has_its_calls() -> None:
    failures = storage.Failures()
    described = [failures.describe(raised(error)) for error in (KeyError("a"), KeyError("b"), OSError("c"))]
    assert [(kind, message) for kind, message, _ in described] == [
        ("KeyError", "'a'"),
        ("KeyError", "'b'"),
        ("OSError", "c"),
    ]
    first, second, other = (calls.split("\n") for *_, calls in described)
    assert second == [""]
    for calls in (first, other):
        assert [call.split(":")[0] for call in calls] == [__name__] * 2
        assert [call.split()[1] for call in calls] == ["raised", "fall"]
    assert str(ROOT) not in "".join(first)


def test_a_deep_fall_is_cut_and_keeps_its_end() -> None:
    *_, calls = storage.Failures().describe(raised(RecursionError("x"), depth=500))
    assert calls.count("\n") == 19
    assert "raised" not in calls


def test_a_message_is_the_same_on_every_machine() -> None:
    """No address, no surrogate that Arrow refuses, and no page in full."""
    _, message, _ = storage.Failures().describe(ValueError(f"<x at 0x7f3a5c> \ud800 {'y' * 5000}"))
    assert message == f"<x at 0x...> ? {'y' * 5000}"[:1000]


def test_one_error_of_each_kind_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tables = {
        "rejected/block-0.parquet": [(7, "broken_xml", "", ""), (8, "KeyError", "'a'", "module:1 f\nmodule:2 g")],
        "rejected/block-1.parquet": [(9, "KeyError", "'b'", "module:1 f"), (10, "KeyError", "'c'", "")],
        "rejected/block-2.parquet": [(11, "OSError", "no", "module:3 h")],
        "pages/block-2.parquet": [],
    }
    files = []
    for path, rows in tables.items():
        with storage.parquet_rows(str(tmp_path / path), schemas.LOST_PAGES.schema) as table:
            table.extend(rows)
        files.append(storage.describe(str(tmp_path), path, len(rows)))
    with caplog.at_level(logging.WARNING, "pipeline"):
        storage.log_failures(str(tmp_path), files)
    assert [record.getMessage() for record in caplog.records] == [
        "page 8: KeyError: 'a'\nmodule:1 f\nmodule:2 g",
        "page 11: OSError: no\nmodule:3 h",
    ]
