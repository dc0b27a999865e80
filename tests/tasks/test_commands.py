"""The public command lines of model/ and tasks/ start as they are documented."""

import os
import runpy
import subprocess
import sys

import pytest

from tests.support import ROOT

COMMANDS = (
    "model.pretrain",
    "model.evaluation",
    "model.hf",
    "tasks.ner",
    "tasks.entity_typing",
    "tasks.relation_classification",
    "tasks.cloze_qa",
    "tasks.extractive_qa",
    "tasks.predict",
    "tasks.export",
    "tasks.annotate",
    "tasks.linking",
)


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize("module", COMMANDS)
def test_a_command_says_how_it_is_used(
    module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [module, "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(module, run_name="__main__")
    assert not ended.value.code
    assert capsys.readouterr().out.startswith(f"usage: python -m {module} ")


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
def test_sizes_of_a_preset(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["model.sizes", "base"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("model.sizes", run_name="__main__")
    assert not ended.value.code
    assert capsys.readouterr().out.splitlines()[-1].split() == ["all", "253,988,473"]


def test_scores_that_nobody_reads_are_no_error() -> None:
    """As behind `| head -1`."""
    reader, writer = os.pipe()
    os.close(reader)
    gold = ROOT / "examples" / "ner" / "test.txt"
    command = [sys.executable, "-m", "tasks.ner", "score", gold, gold]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")
