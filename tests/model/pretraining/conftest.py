"""A preset of 13 steps, and what whole runs of it write."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from model.luke.config import PRESETS
from model.pretraining.recipes import RECIPES
from tests.support.models import TINY
from tests.support.pretraining import SHORT, contents, run
from tests.support.shards import random_rows, write_sequences


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the preset "tiny" a model that is trained for 13 steps."""
    monkeypatch.setitem(PRESETS, "tiny", TINY)
    monkeypatch.setitem(RECIPES, "tiny", SHORT)


@pytest.fixture(scope="module")
def sequences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eleven sequences: an epoch ends within a batch, several times a run."""
    return write_sequences(tmp_path_factory.mktemp("sequences"), random_rows(11))


@pytest.fixture(scope="module")
def whole(sequences: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, bytes]]:
    """The files of a run with these changes that was never interrupted; each is made once."""

    @cache
    def made(**changes: Any) -> dict[str, bytes]:
        output = tmp_path_factory.mktemp("whole")
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(PRESETS, "tiny", TINY)
            patch.setitem(RECIPES, "tiny", SHORT)
            run(sequences, output, **changes)
        return contents(output)

    return made
