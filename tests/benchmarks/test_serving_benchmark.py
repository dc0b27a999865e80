"""A rehearsal of `benchmarks.tasks.serving` on a small table, and what its figures mean; no wait is too long here."""

import argparse
import json
from pathlib import Path

import pytest

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")
pytest.importorskip("fastapi", reason="the service is made of it")
pytest.importorskip("uvicorn", reason="the service runs in it")

from benchmarks.harness.report import Report
from benchmarks.tasks import linking_workloads as workloads
from benchmarks.tasks import serving as script
from tests.support.clients import KINDS, honest
from tests.support.mentions import ARTICLES, small_pages, write_mentions

TEXTS = [f"{n} Ann met Bob, and Bob and Ann met ab; " + "nobody else was there. " * 4 for n in range(6)]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    write_mentions(folder := tmp_path_factory.mktemp("mentions"), small_pages(ARTICLES), size=5)
    return folder


def write_texts(folder: Path) -> Path:
    """Write the texts as paragraphs of a document, with one that is too short to be asked."""
    path = folder / "documents.jsonl"
    path.write_text(json.dumps({"text": "\n".join(["Ann", *TEXTS]), "mentions": []}))
    return path


@pytest.mark.slow
def test_among_all_others_honest_clients_are_answered(table: Path, tmp_path: Path) -> None:
    documents, asked = write_texts(tmp_path), str(tmp_path / "asked.jsonl")
    service = ["--mentions", str(table)]
    options = argparse.Namespace(
        service=service, quick=True, documents=documents, notes=[], command="", output=tmp_path / "found.json"
    )
    report = Report("A rehearsal", options, ())
    script.measure(options, report, asked)
    rows = {name: found for name, (_, found) in report.sections.items()}
    assert [(row["wrong"], row["answers"] > 0) for row in rows["Honest clients"]] == [(0, True)] * 2
    assert [row for row in rows["Other clients"] if not row["right"]] == []
    assert {row["clients"] for row in rows["Other clients"]} == KINDS.keys()
    assert all(row["resident, MB"] > 10 for row in rows["Memory among all"] + rows["Memory after requests"])
    assert [row["passed"] for row in rows["Checks"]][1:3] == [True, True]


@pytest.mark.slow
def test_a_wrong_answer_is_found(table: Path, tmp_path: Path) -> None:
    """Each text once: every other one with its mentions, and one of them with another answer than the linker's."""
    service, asked = ["--mentions", str(table)], tmp_path / "asked.jsonl"
    workloads.answers(arguments=service, documents=str(write_texts(tmp_path)), most=6, output=str(asked))
    pairs = [json.loads(line) for line in asked.read_text().splitlines()]
    assert [len(document.get("mentions", ())) for document, _ in pairs] == [0, 5] * 3
    assert {len(answer) for _, answer in pairs} == {5}
    pairs[3][1][0]["title"] = "Elsewhere"
    asked.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    with script.served(service) as (process, port):
        found = honest(port=port, asked=str(asked), clients=2, requests=len(pairs))
        assert script.sizes(process)["own, MB"] > 10
    assert (found["statuses"], found["wrong"]) == ({"200": 6}, [pairs[3][0]])
    row = script.wait_row("all", found)
    assert (row["answers"], row["refused"], row["wrong"]) == (6, 0, 1)
    assert 0 < row["median, s"] <= row["95 %, s"] <= row["longest, s"] == max(found["waits"])
