"""The stage EvaluateLinking: what tells an evaluation apart, what model it asks, and the figures in the report."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tasks.linking.corpora import evaluation
from tests.support.stages import run_of
from tests.tasks.linking.corpora.test_evaluation import asked, made, opened, read, row
from workflows import EvaluateLinking, ExportHuggingFace, Pretrain
from workflows.report.linking import SCORES, linked_texts


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("evaluation"))


def test_the_report_shows_what_was_scored(work: Path, tmp_path: Path) -> None:
    """Also where a file of the user's is called as the dump's pages are."""
    gold = tmp_path / "held-out pages"
    gold.write_text(json.dumps(row("alone", "Ann or none", [(0, 3, "A"), (7, 11, "None")])))
    questions = asked(work, "held_out")._replace(gold=gold)
    evaluation.build(str(tmp_path / "linking"), opened(work), questions)
    folders = {"EvaluateLinking": tmp_path / "linking", "BuildMentionTable": work / "mentions"}
    stages: Any = {
        name: SimpleNamespace(folder=str(folder), read_json=lambda name, at=folder: json.loads((at / name).read_text()))
        for name, folder in folders.items()
    }
    figures, texts = stages["EvaluateLinking"].read_json(SCORES), linked_texts(stages)
    assert figures
    assert texts
    for of_dump, scores in zip((True, False), figures["sets"], strict=True):
        shown = [each["mentions"] for each in texts["documents"] if (each["id"] != "alone") == of_dump]
        known = [mention for mentions in shown for mention in mentions if not mention["lacks"]]
        right = sum(mention["kind"] == "right" for mention in known)
        overall = scores["methods"]["global"]["disambiguation"]["overall"]
        assert (len(known), right) == (overall["mentions"], round(overall["accuracy"] * overall["mentions"]))
        assert scores["of_dump"] == of_dump
    assert texts["documents"][0]["id"] == "alone"


def of(gold: object) -> EvaluateLinking:
    return EvaluateLinking(settings=run_of(linking={"gold": str(gold)}))


def test_a_file_is_known_by_what_is_in_it(work: Path, tmp_path: Path) -> None:
    """The same documents in another format, or further blanks, are no other evaluation; another title is."""
    first = read(work / "gold.jsonl")
    hashes = []
    for number, rows in enumerate((first, first, [*first[1:], row("A", "Ann", [(0, 3, "B")])])):
        path = tmp_path / str(number) / "gold.jsonl"
        path.parent.mkdir()
        path.write_text(json.dumps(rows) if number == 1 else "\n".join(map(json.dumps, rows)))
        hashes.append(of(path).hash8)
    assert hashes[0] == hashes[1] != hashes[2]
    assert of("").hash8 not in hashes
    with pytest.raises(ValueError, match=r"^linking.gold .*no\.jsonl: cannot be read \(No such file"):
        of(tmp_path / "no.jsonl").check()
    (tmp_path / "bad.jsonl").write_text('{"text": "Ann", "mentions": [{"start": 0, "end": 9}]}')
    with pytest.raises(ValueError, match=r"^linking.gold .*bad\.jsonl:1: .* spans 0 to 9"):
        of(tmp_path / "bad.jsonl").check()


def test_a_model_that_cannot_be_exported_is_asked_as_it_was_pretrained(tmp_path: Path) -> None:
    for head, kind in (("released", ExportHuggingFace), ("paper", Pretrain)):
        run = run_of(pretraining={"entity_head": head}, sequences={"tokenizer": str(tmp_path)})
        assert isinstance(EvaluateLinking(settings=run).model_stage(), kind)
