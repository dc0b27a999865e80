"""Checkpoints know where they were made."""

import json
from pathlib import Path

import pytest
import torch

from model.luke.encoder import LukeModel
from model.training.checkpoints import STATE, environment, latest_checkpoint, save_checkpoint
from tests.support.models import TINY


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    module = LukeModel(TINY)
    optimizer = torch.optim.AdamW(module.parameters())
    save_checkpoint(tmp_path, step=3, module=module, optimizer=optimizer, run={"seed": 1}, figures={})
    return tmp_path


def test_the_same_environment_says_nothing(checkpoints: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = latest_checkpoint(checkpoints, {"seed": 1})
    assert found is not None
    assert found.step == 3
    assert not caplog.messages


@pytest.mark.parametrize("name", environment(1, "cpu"))
def test_another_environment_is_named(checkpoints: Path, caplog: pytest.LogCaptureFixture, name: str) -> None:
    path = checkpoints / "step-00000003" / STATE
    state = json.loads(path.read_text())
    now = state["environment"][name]
    state["environment"][name] = "another"
    path.write_text(json.dumps(state))
    assert latest_checkpoint(checkpoints, {"seed": 1}) is not None
    [message] = caplog.messages
    assert f"made with {name} 'another', now {now!r}; the bits may differ" in message


def test_an_environment_says_what_changes_bits() -> None:
    found = environment(2, "cpu")
    assert {"torch", "threads", "processor", "instructions", "device"} < set(found)
    assert (found["processes"], found["device"]) == (2, "cpu")
    if torch.cuda.is_available():
        assert environment(2, "cuda") != found
