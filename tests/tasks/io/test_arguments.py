"""Arguments that the command lines share."""

import argparse
from pathlib import Path

import pytest

from tasks.io.arguments import OneFolder


def test_one_folder_is_a_path_and_several_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mentions", action=OneFolder)
    assert parser.parse_args(["--mentions", "a"]).mentions == Path("a")
    with pytest.raises(SystemExit):
        parser.parse_args(["--mentions", "a", "b"])
    assert "--mentions: wanted one folder, found a, b" in capsys.readouterr().err
