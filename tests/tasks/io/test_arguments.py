"""Arguments that the command lines share."""

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.io.arguments import fine_tuned_folder, positive, share, weight


def test_the_newest_fine_tuning_of_a_work_directory_is_taken(tmp_path: Path) -> None:
    assert fine_tuned_folder(tmp_path / "model") == tmp_path / "model", "no work directory"
    names = {
        "FineTune (ner, luke, seed 42)": "a",
        "TunedFineTune (cloze_qa, luke, seed 1)": "b",
        "BuildSequences": "c",
    }
    (tmp_path / "stages.json").write_text(json.dumps(names))
    assert fine_tuned_folder(tmp_path) == tmp_path / "b"
    assert fine_tuned_folder(tmp_path, "ner") == tmp_path / "a"
    with pytest.raises(ValueError, match="no finished fine-tuning of relation_classification"):
        fine_tuned_folder(tmp_path, "relation_classification")


@pytest.mark.parametrize(
    ("kind", "good", "bad", "wanted"),
    [
        (positive, {"1": 1, "20": 20}, ["0", "-1", "1.5", "", "x"], "a number, 1 or more"),
        (share, {"0": 0.0, "0.5": 0.5, "1": 1.0}, ["-0.1", "1.1", "nan", "x"], "a number from 0 to 1"),
        (weight, {"0": 0.0, "2.5": 2.5}, ["-1", "inf", "nan", "x"], "a number, 0 or more"),
    ],
)
def test_numbers_are_those_that_are_wanted(
    kind: Callable[[str], float], good: dict[str, float], bad: list[str], wanted: str
) -> None:
    assert {text: kind(text) for text in good} == good
    for text in bad:
        with pytest.raises(argparse.ArgumentTypeError, match=f"{re.escape(text)}: wanted {wanted}"):
            kind(text)
