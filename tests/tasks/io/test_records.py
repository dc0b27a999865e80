"""JSON data files: both layouts, where records stand, and what is refused."""

import json
from pathlib import Path

import pytest

from tasks.io.data_folder import read_label_file
from tasks.io.records import read_records
from tasks.io.windows import character_span
from tests.support.properties import given, st

OBJECTS = [{"a": 1}, {"a": "[{,}]\n"}, {"b": {"c": [1, 2]}}]
OF_ARRAY = [": example 1", ": example 2", ": example 3"]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "data.anything"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("\n".join(map(json.dumps, OBJECTS)), [":1", ":2", ":3"]),
        ("\n" + "\n\n".join(map(json.dumps, OBJECTS)) + "\n\n", [":2", ":4", ":6"]),
        (json.dumps(OBJECTS, indent=1), OF_ARRAY),
        ("\ufeff \r\n [ " + " ,\r\n".join(map(json.dumps, OBJECTS)) + "]", OF_ARRAY),
    ],
)
def test_both_layouts_are_told_apart_and_places_are_right(tmp_path: Path, text: str, places: list[str]) -> None:
    records = read_records(written(tmp_path, text))
    assert [record.values for record in records] == OBJECTS
    assert [record.where.split("data.anything")[1] for record in records] == places


def test_a_line_separator_within_a_text_ends_no_line(tmp_path: Path) -> None:
    records = read_records(written(tmp_path, '{"a": "x\u2028y"}\n{"a": "z"}'))
    assert [record.values["a"] for record in records] == ["x\u2028y", "z"]


@given(st.lists(st.text(alphabet="abé ", max_size=3), min_size=1, max_size=6), st.data())
def test_character_spans_hold_the_words(words: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(words) - 1))
    end = data.draw(st.integers(start + 1, len(words)))
    first, last = character_span(words, (start, end))
    assert " ".join(words)[first:last] == " ".join(words[start:end])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"b": 1, "a": 0, "c": 2}', ("a", "b", "c")),
        ('["b", "a"]', ("b", "a")),
        ("b\n\n a(e1,e2)\n", ("b", "a(e1,e2)")),
    ],
)
def test_label_files(tmp_path: Path, text: str, names: tuple[str, ...]) -> None:
    assert read_label_file(written(tmp_path, text)) == names
