"""What decides the meaning of the figures of `benchmarks.tasks.tasks`: splits, cells, and going on."""

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from benchmarks.harness import report
from benchmarks.tasks import splits as workloads
from benchmarks.tasks import tasks as script
from benchmarks.tasks import token_classification as peer
from tasks.finetuning.registry import TASKS
from tasks.finetuning.variants import VARIANTS
from tasks.ner import task as ner
from tasks.questions import extractive
from tasks.relations import relation_classification
from tests.support.fine_tuned import bert


def test_wikigold_is_split_by_documents(shared: Path) -> None:
    units = workloads.units_of("wikigold", shared / "data")
    text = (shared / "data/ner/wikigold.conll.txt").read_text()
    sizes = {split: len(documents) for split, documents in units.items()}
    assert sum(sizes.values()) == text.count("-DOCSTART-") == 145
    lines = Counter(line for line in text.splitlines() if line and not line.startswith("-DOCSTART-"))
    assert (
        Counter(line for part in units.values() for unit in part for line in unit.split("\n") if line)
        == lines
    )
    assert 0.15 < sizes["test"] / 145 < 0.25
    assert 0.05 < sizes["dev"] / 145 < 0.15
    assert len({unit for part in units.values() for unit in part}) == 145


@pytest.mark.parametrize(
    ("data", "task", "sizes"),
    [
        ("wikigold", ner, None),
        ("wnut17", ner, (3394, 1009, 1287)),
        ("semeval2010-task8", relation_classification, (6507, 1493, 2717)),
        ("wiki80-0.01", relation_classification, (400, 568, 5032)),
        ("wiki80-0.1", relation_classification, (3920, 568, 5032)),
    ],
)
def test_the_tasks_read_what_is_written(
    shared: Path, tmp_path: Path, data: str, task: ModuleType, sizes: tuple[int, ...] | None
) -> None:
    workloads.write_data(data, shared / "data", tmp_path, (1, 1, 1))
    read = [task.read(tmp_path / f"{split}.txt") for split in workloads.SPLITS]
    found = tuple(len(each.sentences if task is ner else each.examples) for each in read)
    assert found == sizes or (sizes is None and sum(found) == 1696)
    if data == "wikigold":
        assert sum(task.describe(each)["entities"] for each in read) == 3558
        assert not any(each.has_documents for each in read), "a sentence has no context"


def test_squad_is_split_by_articles(shared: Path, tmp_path: Path) -> None:
    workloads.write_data("squad", shared / "data", tmp_path, (1, 1, 1))
    read = {split: extractive.read(tmp_path / f"{split}.json") for split in workloads.SPLITS}
    pages = {split: {each.page for each in dataset.examples} for split, dataset in read.items()}
    assert pages["test"] == {"Genghis Khan", "Huguenot", "Immune system"}
    assert pages["dev"] == {"Adult contemporary music", "Exhibition game"}
    assert len(pages["train"]) == 15
    assert not pages["train"] & (pages["dev"] | pages["test"])
    assert [len(dataset.examples) for dataset in read.values()] == [3625, 314, 700]
    assert {len(each.answers) for each in read["train"].examples} == {1}
    workloads.write_data("squad", shared / "data", tmp_path, (0.1, 1, 1))
    some = extractive.read(tmp_path / "train.json").examples
    assert {each.id for each in some} < {each.id for each in read["train"].examples}
    assert len({each.passage for each in some}) == 70


def test_a_share_is_part_of_the_whole_and_of_larger_shares(shared: Path, tmp_path: Path) -> None:
    parts = []
    for share in (0, 0.1, 0.3):
        workloads.write_data("semeval2010-task8", shared / "data", tmp_path, (share, 1, 1))
        parts.append((tmp_path / "train.txt").read_text().splitlines())
    assert [len(part) for part in parts[1:]] == pytest.approx([651, 1952], abs=5)
    assert len(parts[0]) == 1
    assert set(parts[0]) <= set(parts[1]) <= set(parts[2])


@pytest.mark.parametrize("name", ["wikigold", "wnut17"])
def test_few_sentences_are_500_of_train(shared: Path, tmp_path: Path, name: str) -> None:
    """As the task reads them: in WNUT-17 most sentences end with a line that holds a tab."""
    whole, few = (workloads.units_of(each, shared / "data") for each in (name, f"{name}-500"))
    assert all(few[split] == whole[split] for split in ("dev", "test"))
    read = {}
    for each in (name, f"{name}-500"):
        workloads.write_data(each, shared / "data", tmp_path, (1, 1, 1))
        read[each] = [tuple(sentence.words) for sentence in ner.read(tmp_path / "train.txt").sentences]
    assert len(read[f"{name}-500"]) == 500
    assert not Counter(read[f"{name}-500"]) - Counter(read[name])


def test_cells_are_told_apart_and_can_be_run() -> None:
    cells = [cell for each in script.LISTS.values() for cell in each]
    assert len({cell.name for cell in cells}) == len(cells)
    for cell in cells:
        presets = TASKS[cell.task].PRESETS
        replace(presets[cell.preset], **cell.changes)
        assert cell.variant in (*VARIANTS, script.PEER)
        assert cell.data in workloads.DATA


FACTS = {"machine": {}, "versions": {}, "commit": "", "changed": False, "load before": 0.0}


def options(folder: Path, **changes: Any) -> argparse.Namespace:
    values = {
        "command": "the command",
        "quick": False,
        "list": "tasks",
        "only": "",
        "jobs": 1,
        "weights": None,
        "start": None,
        "shared": folder,
        "mentions": None,
        "keep": None,
        "device": "cpu",
        "notes": [],
    }
    return argparse.Namespace(**{**values, "output": folder / "results" / "tasks.json", **changes})


def outcome(cell: Any, f1: float = 0.5) -> dict[str, Any]:
    scores = {"f1": f1, "precision": 0.5, "recall": 0.5, "predicted": 3}
    return {"name": cell.name, "cell": asdict(cell), "commit": "c", "cpu_seconds": 60.0} | {
        "kept_epoch": 2, "hyperparameters": {"epochs": 3, "learning_rate": 1e-4, "head_learning_rate": 1e-3},
        "metrics": {"dev": scores, "test": scores},
    }  # fmt: skip


def test_what_is_done_is_kept_and_what_failed_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def run(cell: Any, given: argparse.Namespace) -> dict[str, Any]:
        asked.append(cell.name)
        if len(asked) == 2:
            return {"name": cell.name, "cell": asdict(cell), "commit": "c", "failure": "exit status 1: x"}
        return outcome(cell)

    monkeypatch.setattr(script, "run", run)
    monkeypatch.setattr(report, "environment_facts", lambda *given: FACTS)
    monkeypatch.setattr(script, "read_options", lambda: options(tmp_path, only="^semeval.*seed1$"))
    with pytest.raises(SystemExit, match="failed: semeval2010-task8-roberta-seed1"):
        script.main()
    assert "exit status 1: x" in (tmp_path / "results" / "tasks.md").read_text()
    script.main()
    assert asked == [f"semeval2010-task8-{variant}-seed1" for variant in ("luke", "roberta", "roberta")]
    found = json.loads((tmp_path / "results" / "tasks.json").read_text())
    assert [record["name"] for record in found["cells"]] == [asked[1], asked[0]]
    assert [(line["found"], line["met"]) for line in found["targets"]] == [(0.5, False)] * 2
    assert "exit status" not in (tmp_path / "results" / "tasks.md").read_text()
    assert capsys.readouterr().out.count("50.00") > 4


def test_bf16_is_held_against_what_a_seed_changes() -> None:
    """Also where some records come from the file of a run that was stopped."""
    cells = [cell for cell in script.PRECISION if cell.data == "wikigold-500"]
    scores = {"float32": (0.50, 0.53, 0.51), "bf16": (0.53, 0.54, 0.55)}
    records = [outcome(cell, scores[cell.changes["precision"]][cell.seed - 1]) for cell in cells]
    for known in (records, json.loads(json.dumps(records[:3])) + records[3:]):
        [found] = script.precisions(known)
        assert (found["float32: test F1"], found["bf16: least to best"]) == ("51.33", "53.00 to 55.00")
        assert (found["difference"], found["of seeds in float32"]) == ("+2.67", "3.00")
        assert (found["float32: seeds"], found["bf16: seeds"], found["within"]) == (3, 3, True)
    worse = [
        outcome(cell, 0.45) if cell.changes["precision"] == "bf16" else outcome(cell, 0.5) for cell in cells
    ]
    assert [row["within"] for row in script.precisions(worse)] == [False]
    assert script.precisions(records[:3]) == [], "there is nothing beside"


def test_the_longest_cells_begin_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def run(cell: Any, given: argparse.Namespace) -> dict[str, Any]:
        asked.append(cell)
        return outcome(cell)

    monkeypatch.setattr(script, "run", run)
    monkeypatch.setattr(report, "environment_facts", lambda *given: FACTS)
    monkeypatch.setattr(script, "read_options", lambda: options(tmp_path, only="^(semeval|wikigold).*seed1"))
    script.main()
    assert [(cell.data, cell.variant) for cell in asked] == [
        ("wikigold", "luke"),
        ("wikigold", "roberta"),
        ("semeval2010-task8", "luke"),
        ("semeval2010-task8", "roberta"),
    ]


def test_cells_with_entities_want_a_mention_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [cell.name for cell in script.cells_of(options(tmp_path, only="^squad-[^=]*$"))]
    assert names == ["squad-roberta-seed1"]
    told = "squad-luke-seed1-entities-from-titles: left out, it takes the entities of a mention table: --mentions\n"
    assert capsys.readouterr().err.endswith(told)


def test_a_model_of_ours_starts_no_cell_of_the_peer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = options(tmp_path, list="ner", only="^wikigold-500.*seed1", start=tmp_path)
    assert [cell.variant for cell in script.cells_of(given)] == ["roberta", "luke"]
    assert "transformers reads no --start: export it, and give it as --weights" in capsys.readouterr().err


def test_quick_is_every_cell_on_less_data(tmp_path: Path) -> None:
    quick = script.cells_of(options(tmp_path, quick=True, mentions=tmp_path))
    assert [(cell.data, cell.variant) for cell in quick] == [
        (cell.data, cell.variant) for cell in script.CELLS
    ]
    assert {cell.shares for cell in quick} == {script.QUICK_SHARES}
    assert not {cell.name for cell in quick} & {cell.name for cell in script.CELLS}


def test_a_cell_runs_in_a_process_of_its_own(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bert(tmp_path / "bert")
    cell = replace(script.CELLS[2], shares=(0.02, 0, 0), changes={"epochs": 1, "max_words": 48}, wanted=None)
    given = options(tmp_path, weights=tmp_path / "bert", shared=shared, keep=tmp_path / "kept")
    record = script.run(cell, given)
    assert record.get("failure") is None
    assert record["hyperparameters"]["epochs"] == 1
    assert record["data_counts"]["dev"]["sentences"] > 0
    assert (tmp_path / "kept" / cell.name / "model.safetensors").is_file()
    assert "types" not in record["metrics"]["test"]
    goes_on = options(tmp_path, weights=tmp_path / "bert", shared=shared, start=tmp_path / "kept" / cell.name)
    again = script.run(cell, goes_on)
    assert again.get("failure") is None
    assert again["epochs"] != record["epochs"]
    monkeypatch.setattr(sys, "executable", "false")
    assert script.run(cell, given)["failure"] == "exit status 1: "


def test_the_peer_learns_and_is_scored_as_ours(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    bert(tmp_path / "bert")
    changes = {"epochs": 3, "learning_rate": 2e-3}
    cell = script.Cell("wikigold-500", "ner", script.PEER, shares=(0.1, 0.02, 0), changes=changes)
    given = options(tmp_path, weights=tmp_path / "bert", shared=shared)
    record = script.run(cell, given)
    assert record.get("failure") is None
    assert len(record["epochs"]) == 3
    assert record["metrics"]["dev"]["f1"] == max(each["f1"] for each in record["epochs"])
    data = tmp_path / "data"
    data.mkdir()
    workloads.write_data(cell.data, shared / "data", data, (0.02, 0.2, 0))
    hyper = replace(TASKS["ner"].PRESETS["tiny"], **changes)
    run = peer.prepare(data, tmp_path / "bert", hyper, 1, "cpu")
    [first, *_] = run.inputs["train"]
    assert labels_of(first) == [run.names.index(tag) for tag in run.sentences["train"][0].tags]
    pairs = zip(run.sentences["dev"], run.inputs["dev"], strict=True)
    whole = [(each, given) for each, given in pairs if len(labels_of(given)) == len(each.words)]
    assert 0 < len(whole) < len(run.inputs["dev"]), "the model is short"
    sentences, inputs = zip(*whole, strict=True)
    known = replace(run, sentences={"dev": sentences}, inputs={"dev": inputs})
    gold = [each["labels"] for each in inputs]
    size = hyper.batch_size
    for cut in (0, 1):
        told = [row if number else [0] * len(row) for number, row in enumerate(gold)] if cut else gold
        answers = iter([told[at : at + size] for at in range(0, len(told), size)])
        scores = peer.evaluate(replace(known, model=Answers(answers, len(run.names))), "dev")
        begins = [sum(tag.startswith("B") for tag in each.tags) for each in sentences]
        assert scores["precision"] == 1
        assert scores["recall"] == pytest.approx(sum(begins[cut:]) / sum(begins))


def labels_of(given: dict[str, Any]) -> list[int]:
    return [label for label in given["labels"] if label != peer.IGNORED]


class Answers:
    """A model that answers with the labels it is given."""

    def __init__(self, labels: Any, count: int) -> None:
        self.labels, self.count = labels, count

    def eval(self) -> None:
        pass

    def __call__(self, **batch: Any) -> Any:
        rows = [torch.tensor(row).clamp(min=0) for row in next(self.labels)]
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        return argparse.Namespace(logits=torch.nn.functional.one_hot(padded, self.count))
