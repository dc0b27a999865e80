"""Probabilities against torch's, the temperature against a fine grid; choices of tasks have the loss of training."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from model.files import read_json
from tasks.finetuning.inference import logits_of
from tasks.finetuning.registry import TASKS
from tasks.io.data_folder import split_file
from tasks.io.probabilities import LARGEST, Choices, calibration, fit_temperature, of_classes, sigmoid, softmax
from tasks.serving.predict import load
from tasks.task import Outputs
from tests.support.fine_tuned import EXAMPLES


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


def drawn(temperature: float, count: int, seed: int = 0) -> Choices:
    """Choices whose right alternatives are drawn with the probabilities at a temperature."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(scale=2, size=(count, 4)).astype(np.float32)
    shares = torch.softmax(torch.from_numpy(scores).double() / temperature, -1).numpy()
    right = np.array([generator.choice(4, p=row) for row in shares])
    return scores, right[:, None] == np.arange(4)


def torch_loss(choices: Choices, temperature: float) -> float:
    """The negative log likelihood by torch, and what the temperature itself costs."""
    scores, is_right = (torch.from_numpy(each) for each in choices)
    shares = (scores.double() / temperature).softmax(-1)
    return float(-(shares * is_right).sum(-1).log().sum()) + math.log(temperature) ** 2 / 2


@pytest.mark.parametrize("temperature", [0.3, 6.0])
@pytest.mark.parametrize("count", [1, 10, 2000])
def test_the_temperature_is_that_of_a_fine_grid(temperature: float, count: int) -> None:
    choices = drawn(temperature, count)
    found = fit_temperature(lambda: iter([choices]))
    grid = np.exp(np.linspace(-math.log(LARGEST), math.log(LARGEST), 1501))
    best = grid[np.argmin([torch_loss(choices, each) for each in grid])]
    assert found == pytest.approx(best, rel=4e-3, abs=1e-3)
    if count == 2000:
        assert found == pytest.approx(temperature, rel=0.2)


def test_several_right_alternatives_count_together() -> None:
    scores, is_right = drawn(2.0, 500)
    both = is_right | np.roll(is_right, 1, axis=1)
    found = fit_temperature(lambda: iter([(scores[:200], both[:200]), (scores[200:], both[200:])]))
    grid = np.exp(np.linspace(-2, 2, 4001))
    assert found == pytest.approx(grid[np.argmin([torch_loss((scores, both), each) for each in grid])], rel=2e-3)


def test_little_and_faultless_data_leave_the_temperature_near_1() -> None:
    def all_right(count: int, scale: float) -> Iterator[Choices]:
        scores = np.tile(np.array([[scale, 0.0]], np.float32), (count, 1))
        yield scores, scores > 0

    assert fit_temperature(lambda: iter(())) == 1
    assert 0.9 < fit_temperature(lambda: all_right(50, 20.0)) <= 1
    assert 0.2 < fit_temperature(lambda: all_right(10_000, 5.0)) < 1
    assert 1 < fit_temperature(lambda: ((scores, ~right) for scores, right in all_right(1, 2.0))) < 3


@pytest.mark.parametrize("task", TASKS)
def test_fine_tuning_fits_it_on_dev(folder: Path, task: str) -> None:
    """Its folder has the temperature, and the choices of classes have the loss of training."""
    output = folder / f"{task}-luke"
    predictor, said = load(output, device="cpu"), read_json(output / "metrics.json")["calibration"]
    written = read_json(output / "config.json")["calibration_temperature"]
    assert predictor.temperature == said["temperature"] == written != 1
    dataset = predictor.task.read(split_file(EXAMPLES / task, "dev"))
    features = predictor.task.featurize(dataset, predictor.inputs).items
    of_model = predictor.task, predictor.module, features
    logits = logits_of(*of_model, entities=predictor.entities, device="cpu", batch_size=16)
    outputs = Outputs(dataset, features, logits)
    again = calibration(predictor.task, outputs)
    assert again == pytest.approx(said, abs=1e-3)
    choices = list(predictor.task.choices(outputs))
    for name, temperature in (("loss", said["temperature"]), ("loss_at_temperature_1", 1.0)):
        total = sum(torch_loss(each, temperature) - math.log(temperature) ** 2 / 2 for each in choices)
        assert said[name] == pytest.approx(total / said["choices"], abs=1e-4)
    assert said["choices"] == sum(len(scores) for scores, _ in choices) >= 10
    if task in ("ner", "entity_typing", "relation_classification"):
        with torch.inference_mode():
            batch = predictor.task.collate(features, entities=predictor.entities)
            trained = predictor.task.loss(predictor.module, batch)["loss"].item()
        assert said["loss_at_temperature_1"] == pytest.approx(trained, abs=1e-4)
