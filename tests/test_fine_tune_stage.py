"""The stage FineTune: a killed one goes on from its checkpoint, and leaves what an unbroken one does."""

import json
from pathlib import Path
from typing import Any

import pytest
from fine_tuned_for_tests import EXAMPLES, pretrained

from tasks import ner, training
from tasks.run import Run
from tasks.task import Hyperparameters
from tasks.training import parts_of_step
from workflows import FineTune

THREE = Hyperparameters(learning_rate=2e-3, head_learning_rate=5e-3, batch_size=16, epochs=3)


def stage(folder: Path, workdir: Path) -> FineTune:
    return FineTune(
        workdir=str(workdir),
        task="ner",
        data=str(EXAMPLES / "ner"),
        weights=str(folder / "weights"),
        tokenizer=str(folder / "tokenizer"),
        device="cpu",
        seed=1,
    )


def contents(folder: str) -> dict[str, bytes]:
    """All but how long it took."""
    files = [path for path in Path(folder).rglob("*") if path.is_file() and path.name != "run.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_killed_stage_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretrained(tmp_path)
    monkeypatch.setitem(ner.PRESETS, "demo", THREE)
    whole, broken = (stage(tmp_path, tmp_path / name) for name in ("whole", "broken"))
    whole.run()
    visited: list[int] = []

    def parts(run: Run, step: int) -> Any:
        visited.append(step)
        if len(visited) == 7:
            raise KeyboardInterrupt
        return parts_of_step(run, step)

    monkeypatch.setattr(training, "parts_of_step", parts)
    with pytest.raises(KeyboardInterrupt):
        broken.run()
    assert not broken.complete()
    again = stage(tmp_path, tmp_path / "broken")
    again.run()
    assert visited == [*range(7), *range(4, 12)]
    assert again.complete()
    assert contents(again.folder) == contents(whole.folder)
    manifest = json.loads((Path(again.folder) / "manifest.json").read_text())
    assert not any("checkpoint" in entry["path"] for entry in manifest["files"])
