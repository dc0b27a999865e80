"""Probabilities, against torch's."""

import numpy as np
import pytest
import torch

from tasks.io.probabilities import of_classes, sigmoid, softmax


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_probabilities_are_torchs(temperature: float) -> None:
    scores = np.random.default_rng(1).normal(scale=30, size=(50, 4)).astype(np.float32)
    scores[0] = (-np.inf, 900, 1, -900)
    scaled = torch.from_numpy(scores).double() / temperature
    assert np.abs(softmax(scores, temperature) - scaled.softmax(-1).numpy()).max() < 1e-12
    assert np.abs(sigmoid(scores, temperature) - scaled.sigmoid().numpy()).max() < 1e-12


def test_classes_come_in_falling_order_and_of_equals_the_first_before() -> None:
    shares = np.array([0.1, 0.4, 0.1, 0.4 + 1e-9])
    assert list(of_classes("abcd", shares).items()) == [("d", 0.4), ("b", 0.4), ("a", 0.1), ("c", 0.1)]
    assert list(of_classes("abcd", shares, 3)) == ["d", "b", "a"]
    assert len(of_classes("abcd", shares, 9)) == 4
