"""Checkpoints know where they were made."""

import errno
import fcntl
import json
import os
from pathlib import Path

import pytest
import torch

from model.luke.encoder import LukeModel
from model.training.checkpoints import (
    STATE,
    Checkpoint,
    Checkpoints,
    checkpoint_folders,
    environment,
    hold,
    remove_leftover,
)
from model.training.ranks import ALONE, Ranks
from tests.support.models import TINY


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    save(tmp_path, 3)
    return tmp_path / "checkpoints"


def save(output: Path, step: int) -> None:
    module = LukeModel(TINY)
    optimizer = torch.optim.AdamW(module.parameters())
    Checkpoints(output, {"seed": 1}).save(step, module, optimizer, {})


def restore(output: Path) -> Checkpoint | None:
    return Checkpoints(output, {"seed": 1}).restore(LukeModel(TINY))


def test_the_same_environment_says_nothing(checkpoints: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING"):
        found = restore(checkpoints.parent)
    assert found is not None
    assert found.step == 3
    assert not caplog.messages


@pytest.mark.parametrize("name", environment(ALONE))
def test_another_environment_is_named(checkpoints: Path, caplog: pytest.LogCaptureFixture, name: str) -> None:
    path = checkpoints / "step-00000003" / STATE
    state = json.loads(path.read_text())
    now = state["environment"][name]
    state["environment"][name] = "another"
    path.write_text(json.dumps(state))
    assert restore(checkpoints.parent) is not None
    [message] = caplog.messages
    assert f"made with {name} 'another', now {now!r}; the bits may differ" in message


def test_an_environment_says_what_changes_bits() -> None:
    found = environment(Ranks(count=2))
    assert {"torch", "threads", "processor", "instructions", "device"} < set(found)
    assert (found["processes"], found["device"]) == (2, "cpu")
    if torch.cuda.is_available():
        assert environment(Ranks(count=2, device=torch.device("cuda"))) != found


def steps(folder: Path) -> list[int]:
    return [int(path.name.removeprefix("step-")) for path in reversed(checkpoint_folders(folder))]


def test_the_last_whole_checkpoints_are_kept(checkpoints: Path) -> None:
    for step in (4, 5):
        save(checkpoints.parent, step)
    assert steps(checkpoints) == [4, 5]
    (checkpoints / "step-00000005" / STATE).write_text("{")
    save(checkpoints.parent, 6)
    assert steps(checkpoints) == [4, 6]


def test_what_another_run_has_left_does_not_count(tmp_path: Path) -> None:
    """The folders of later steps, of which a stage has removed the files, and those of a kill while one was written."""
    left = ["step-00000800", "step-00000900", ".partial-00000901"]
    for name in left:
        (tmp_path / "checkpoints" / name / "part").mkdir(parents=True)
    save(tmp_path, 100)
    save(tmp_path, 200)
    assert steps(tmp_path / "checkpoints") == [100, 200]
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == {"step-00000100", "step-00000200"}
    found = restore(tmp_path)
    assert found is not None
    assert found.step == 200


def test_what_a_killed_run_has_left_goes_unless_another_one_trains_there(checkpoints: Path) -> None:
    with hold(checkpoints):
        remove_leftover(checkpoints)
    assert (checkpoints / "step-00000003").is_dir()
    remove_leftover(checkpoints)
    assert not checkpoints.exists()
    remove_leftover(checkpoints)


def test_where_there_are_no_locks_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with hold(tmp_path):
        pass
    assert "cannot be locked (No locks available); let no other run train there" in caplog.text
