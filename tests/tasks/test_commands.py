"""The public command lines of model/ and tasks/ start as they are documented."""

import runpy
import sys

import pytest

COMMANDS = ("model.pretrain", "model.evaluation", "model.hf", "model.sizes")
COMMANDS += ("tasks.predict", "tasks.export", "tasks.score", "tasks.linking")


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
