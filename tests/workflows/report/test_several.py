"""Several runs side by side: what differs, what is the same, and reports that are not there."""

import html
import json
from pathlib import Path
from typing import Any

import pytest

from pipeline import storage
from tests.support import report as report_for_tests
from workflows.report.several import Reported, beside, comparison, figures, labels, main

CELL = {"task": "ner", "variant": "luke", "seed": 1, "is_example": True, "scores": {"test": {"f1": 87.25}}}


def run(name: str, **changes: Any) -> Reported:
    content = {**report_for_tests.content(), "compared": {"experiments": [CELL]}, **changes}
    return Reported(name, content, {}, {"workdir": name, "preset": "tiny", "pretraining.seed": name[-1]})


def test_figures_stand_side_by_side() -> None:
    both = dict(figures(run("run 1")))
    assert both["known entities named right"].startswith("37.5% (")
    assert both["known entity right, equal titles"] == "31.2% of 2"
    assert both["linked right, " + report_for_tests.linked.HOSTILE + ", global"] == "75.0% of 1,200"
    assert both["ner, luke, seed 1, test: F1"] == "87.2 (example data)"
    assert both["in running text"] == "4"
    page = comparison([run("run 1"), run("run 2", training=None, linking=None)])
    assert "<script>alert" not in page
    assert page.count("<figure") == page.count("<svg") == 3, "the second run has no curves"
    assert "pretraining.seed" in page
    assert ">workdir<" not in page
    assert ">preset<" not in page, "it is the same"
    assert "script-src 'none'" in html.unescape(page)


def test_names_that_come_again_are_numbered() -> None:
    assert labels(["work", "hour", "work"]) == ["work", "hour", "work (2)"]


def test_columns_stand_beside_each_other() -> None:
    assert beside([{"a": "1", "b": "2"}, {"a": "1", "c": "4"}]) == {"a": ["1", "1"], "b": ["2", ""], "c": ["", "4"]}


def test_the_command_names_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([str(tmp_path / "nothing")]) == 1
    assert "nothing: no such folder" in capsys.readouterr().err
    assert main([str(tmp_path)]) == 1
    assert "no finished Report there; run it first" in capsys.readouterr().err
    report = tmp_path / "report-0a1b2c3d"
    report.mkdir()
    (tmp_path / storage.STAGES).write_text(json.dumps({"Report": report.name}))
    assert main([str(tmp_path)]) == 1
    assert "its index.html is gone; run Report again" in capsys.readouterr().err
    (report / "index.html").touch()
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{report}/index.html\n"
    monkeypatch.chdir(tmp_path.parent)
    assert main([tmp_path.name]) == 0
    assert capsys.readouterr().out == f"{tmp_path.name}/{report.name}/index.html\n"
    (report / "results.json").write_text("{}")
    assert main([str(tmp_path), str(tmp_path), "--output", str(tmp_path / "out.html")]) == 1
    assert "an older version; run Report again" in capsys.readouterr().err
    assert not (tmp_path / "out.html").exists()
