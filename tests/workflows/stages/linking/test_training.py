"""FineTune for entity_disambiguation: on documents of the user, or pages of the dump; what does not fit is refused."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from pipeline import storage
from tasks.finetuning import epochs as loop
from tasks.finetuning.finetune import changed
from tasks.finetuning.prepare import Run
from tasks.linker_training.training import LinkerSettings, train_linker
from tasks.task import presets
from tests.support.linking import write_linkable
from workflows import BuildDocuments, FineTune, Tune

DISAMBIGUATION = "entity_disambiguation"


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Path:
    """`data` with train, dev and test, a mention table, random weights and their tokenizer."""
    folder = tmp_path_factory.mktemp("linker")
    write_linkable(folder, shared)
    (folder / "data").mkdir()
    for name in ("train", "dev", "test"):
        (folder / "data" / f"{name}.jsonl").write_bytes((folder / "documents.jsonl").read_bytes())
    return folder


def stage_of(work: Path, workdir: Path, **changes: Any) -> FineTune:
    given = {"data": "data", "weights": "weights", "tokenizer": "tokenizer", "mentions": "mentions"}
    folders = {name: str(work / folder) for name, folder in given.items()}
    values = {"task": DISAMBIGUATION, "task_preset": "tiny", "device": "cpu", "seed": 1, "epochs": 1}
    return FineTune(**{"workdir": str(workdir), **folders, **values, **changes})


def contents(folder: str) -> dict[str, bytes]:
    """All but how long it took."""
    files = [path for path in Path(folder).rglob("*") if path.is_file() and path.name != "run.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_documents_of_the_user_are_learnt_as_by_the_function(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed one goes on, and nothing but the given folders is needed."""
    made = stage_of(work, tmp_path / "work", softmax_weight=0.5, learning_rate=2e-3)
    assert made.requires() == {}
    steps: list[int] = []
    parts = loop.parts_of_step

    def interrupted(run: Run, step: int) -> Any:
        steps.append(step)
        if step == 2 and len(steps) == 3:
            raise KeyboardInterrupt
        return parts(run, step)

    monkeypatch.setattr(loop, "parts_of_step", interrupted)
    made.check()
    made.check_needs()
    with pytest.raises(KeyboardInterrupt):
        made.run()
    assert not made.complete()
    again = stage_of(work, tmp_path / "work", softmax_weight=0.5, learning_rate=2e-3)
    again.run()
    assert again.complete()
    preset = changed(presets(DISAMBIGUATION)["tiny"], {"learning_rate": 2e-3, "epochs": 1})
    settings = LinkerSettings(preset.learning_rate, preset.batch_size, preset.epochs, softmax_weight=0.5)
    data = work / "data"
    metrics = train_linker(
        data / "train.jsonl", data / "dev.jsonl", work / "mentions", work / "weights", work / "tokenizer",
        tmp_path / "alone", settings, test=data / "test.jsonl", seed=1, device="cpu",
    )  # fmt: skip
    written = contents(again.folder)
    assert contents(str(tmp_path / "alone")).items() <= written.items()
    assert again.manifest().facts["metrics"] == json.loads(json.dumps(metrics))
    assert f"accuracy {metrics['dev']['accuracy']:.1%}" in again.headline(again.manifest())


def test_whatever_changes_the_result_is_in_the_identity(work: Path, tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = [
        {"seed": 2}, {"epochs": 3}, {"learning_rate": 1e-4}, {"batch_size": 2}, {"task_preset": "base"},
        {"masked_share": 0.5}, {"prior_weight": 0.5}, {"softmax_weight": 0.1}, {"own_links": True}, {"patience": 1},
        {"drop_weights": True}, {"precision": "bf16"}, {"gradient_checkpointing": True}, {"tokens_per_batch": 99},
    ]  # fmt: skip
    shutil.copytree(work / "data", tmp_path / "same")
    shutil.copytree(work / "data", tmp_path / "other")
    line = json.loads((work / "data/dev.jsonl").read_text().splitlines()[0])
    (tmp_path / "other/dev.jsonl").write_text(json.dumps({**line, "text": f"{line['text']}."}) + "\n")
    assert stage_of(work, tmp_path, data=str(tmp_path / "same")).hash8 == stage_of(work, tmp_path).hash8
    assert stage_of(work, tmp_path, profile="paper").hash8 == stage_of(work, tmp_path).hash8
    changes.append({"data": str(tmp_path / "other")})
    hashes = [stage_of(work, tmp_path, **each).hash8 for each in ({}, *changes)]
    twice = [each for each, one in zip(({}, *changes), hashes, strict=True) if hashes.count(one) > 1]
    assert not twice


def test_without_documents_they_are_pages_of_the_dump(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their own links are not counted; weights and table are the chain's, made with the parameters that are given."""
    stage = FineTune(workdir=str(tmp_path), task=DISAMBIGUATION, train_documents=7, held_out=0.2, seed=5)
    needed = {type(each).__name__: each for each in stage.upstream()}
    assert {"Pretrain", "BuildMentionTable", "BuildDocuments", "TrainTokenizer"} <= needed.keys()
    assert needed["BuildDocuments"].train_documents == 7
    assert {each.held_out for each in needed.values() if hasattr(each, "held_out")} == {0.2}
    assert needed["Pretrain"].seed == 42
    asked: dict[str, Any] = {}
    monkeypatch.setattr(
        "tasks.linker_training.training.train_linker",
        lambda *paths, **options: asked.update(paths=paths, options=options) or {},
    )
    monkeypatch.setattr(FineTune, "tokenizer_folder", lambda stage: "tokenizer")
    folder = Path(stage.clone(BuildDocuments).folder)
    folder.mkdir(parents=True)
    (folder / "held_out.jsonl").touch()
    with pytest.raises(ValueError, match=r"--held-out 0.2: no page of the dump is held out"):
        stage.train(tmp_path, {}, keeps_weights=True)
    (folder / "held_out.jsonl").write_text("{}\n")
    stage.train(tmp_path, {}, keeps_weights=True)
    train, dev, table, weights, _, _, settings = asked["paths"]
    assert (train, dev) == (folder / "train.jsonl", folder / "held_out.jsonl")
    assert (table, weights) == (Path(needed["BuildMentionTable"].folder), Path(needed["Pretrain"].folder))
    assert settings.own_links
    assert asked["options"]["test"] is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"variant": "luke_no_entities"}, r"--variant luke_no_entities: .*; wanted luke"),
        ({"data": ""}, r"--mentions .*/mentions: without --data the documents are pages of the dump"),
        ({"tag_column": "2"}, r"--tag-column 2: files of ner alone"),
        ({"negative_label": "none"}, r"--negative-label none: relations alone"),
        (
            {"task": "ner", "mentions": "", "softmax_weight": 0.1},
            r"--softmax-weight: of the task entity_disam",
        ),
    ],
)
def test_what_does_not_fit_is_refused(work: Path, tmp_path: Path, values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        stage_of(work, tmp_path, **values).check_needs()


def test_another_stages_folder_is_no_mention_table(work: Path, tmp_path: Path) -> None:
    """It is found before the weights, which may take days, are made."""
    other = tmp_path / "other"
    other.mkdir()
    manifest = storage.read_manifest(str(work / "mentions"))
    storage.write_manifest(str(other), replace(manifest, stage="BuildEntityVocab", files=()))
    with pytest.raises(
        ValueError, match=r"--mentions .*other: made by BuildEntityVocab; wanted the folder of"
    ):
        stage_of(work, tmp_path, mentions=str(other), weights="").check()


def test_bad_documents_are_named_and_searches_refused(work: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("train", "dev"):
        (tmp_path / f"data/{name}.jsonl").write_text(
            '{"id": "a", "text": "Ann.", "mentions": [{"start": 9}]}\n'
        )
    with pytest.raises(ValueError, match=r"--data .*train.jsonl:1: mentions"):
        _ = stage_of(work, tmp_path, data=str(tmp_path / "data")).hash8
    (tmp_path / "data/dev.jsonl").unlink()
    with pytest.raises(ValueError, match=r"the split 'dev'; give one dev"):
        _ = stage_of(work, tmp_path, data=str(tmp_path / "data")).hash8
    with pytest.raises(ValueError, match=r"--task entity_disambiguation: wanted one of entity_typing"):
        Tune(task=DISAMBIGUATION)
