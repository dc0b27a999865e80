"""`python -m tasks.predict`, with a model that is loaded once, and `python -m tasks.linking` in this process."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tasks.predict import main
from tasks.serving.predict import Predictor


class Command:
    """The command for a model: called with stdin and options, it gives what is on stdout and stderr."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], model: Predictor, folder: Path
    ) -> None:
        self.monkeypatch, self.capsys, self.folder = monkeypatch, capsys, folder
        monkeypatch.setattr("tasks.predict.load", lambda *given, **settings: model)

    def __call__(self, data: bytes | str, *options: object, status: int = 0) -> tuple[str, str]:
        """Raises: AssertionError where it ends with another status."""
        content = data if isinstance(data, bytes) else data.encode()
        self.monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        code: object = 0
        try:
            main([str(self.folder), *map(str, options)])
        except SystemExit as ended:
            code = ended.code
        out, told = self.capsys.readouterr()
        if isinstance(code, str):  # what Python prints at its end
            code, told = 1, f"{told}{code}\n"
        assert code == status, told
        return out, told


class Linking:
    """The command: called with its words, and with stdin, it gives the objects on stdout, stderr, and the status."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *words: object, data: bytes = b"") -> tuple[list[dict[str, Any]], str, object]:
        from tasks.linking.__main__ import main  # needs what a machine that only trains has not

        self.monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="ascii"))
        status: object = 0
        try:
            main([str(word) for word in words])
        except SystemExit as ended:
            status = ended.code
        out, err = self.capsys.readouterr()
        return objects(out), err, status


def objects(text: str) -> list[dict[str, Any]]:
    """Objects of JSON one after another, each in a line or in several."""
    found, text = [], text.strip()
    while text:
        value, end = json.JSONDecoder().raw_decode(text)
        found.append(value)
        text = text[end:].lstrip()
    return found


def lines(*values: Mapping[str, Any]) -> str:
    """Objects as lines of JSON."""
    return "".join(f"{json.dumps(each)}\n" for each in values)
