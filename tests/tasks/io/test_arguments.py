"""Arguments that the command lines share."""

import argparse
import re
from collections.abc import Callable

import pytest

from tasks.io.arguments import positive, share


@pytest.mark.parametrize(
    ("kind", "good", "bad", "wanted"),
    [
        (positive, {"1": 1, "20": 20}, ["0", "-1", "1.5", "", "x"], "a number, 1 or more"),
        (share, {"0": 0.0, "0.5": 0.5, "1": 1.0}, ["-0.1", "1.1", "nan", "x"], "a number from 0 to 1"),
    ],
)
def test_numbers_are_those_that_are_wanted(
    kind: Callable[[str], float], good: dict[str, float], bad: list[str], wanted: str
) -> None:
    assert {text: kind(text) for text in good} == good
    for text in bad:
        with pytest.raises(argparse.ArgumentTypeError, match=f"{re.escape(text)}: wanted {wanted}"):
            kind(text)
