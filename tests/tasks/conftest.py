"""Fixtures of several tests of tasks: tiny fine-tuned models, a tokenizer, and the command `tasks.predict`."""

from pathlib import Path

import pytest

from pipeline.sequences.tokenizer import WordTokenizer
from tasks.finetuning.registry import TASKS
from tasks.serving.predict import Predictor, load
from tests.support.asked import Command
from tests.support.fine_tuned import fine_tuned


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights (`weights`), a tokenizer (`tokenizer`), and each task fine-tuned (`TASK-luke`): only to read."""
    return fine_tuned(tmp_path_factory.mktemp("models"), TASKS)


@pytest.fixture(scope="session")
def tokenizer(folder: Path) -> WordTokenizer:
    return WordTokenizer.load(folder / "tokenizer")


@pytest.fixture(scope="session")
def model(folder: Path) -> Predictor:
    return load(folder / "ner-luke", device="cpu")


@pytest.fixture
def ask(folder: Path, model: Predictor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys, model, folder / "ner-luke")
