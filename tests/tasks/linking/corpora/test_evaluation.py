"""A model's answers to annotated documents, and their figures: those of the commands `link` and `score`."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from pipeline import storage
from tasks.linking.corpora import evaluation
from tasks.linking.corpora.evaluation import EvaluationSettings, sample, with_distinct_ids
from tasks.linking.documents.document import Document
from tasks.linking.documents.reading import read_documents
from tasks.linking.linker import Linker
from tasks.linking.open import LinkerSettings, open_linker, with_certainty
from tests.support.asked import Linking
from tests.support.contexts import write_context_table
from tests.support.linking import SENTENCES, write_model
from tests.support.mentions import ARTICLES, small_pages, write_mentions

Row = dict[str, Any]
ASKED = ("A", "C")  # of three held-out pages, by the hashes of their ids
GOLD = [
    ("A", "Ann met Bob.", [("Ann", "A"), ("Bob", "B")]),
    ("note", "Bob, Ann and ab.", [("Bob", "B"), ("Ann", "B"), ("ab", "To a")]),
    ("C", "ab saw Ann", [("ab", "Elsewhere"), ("Ann", None)]),
]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("evaluation"))


def made(folder: Path) -> Path:
    """A mention table, a random model of its entities, the dump's pages and other documents as gold ones."""
    write_mentions(folder / "mentions", small_pages(ARTICLES), size=4)
    write_context_table(folder / "contexts", {"A": {"and": 1.0}, "B": {"met": 1.0, "saw": 2.0}})
    write_model(folder, SENTENCES, 4)
    pages = [
        row("ABC"[number], text, [(start, start + size, title) for start, size, title in links])
        for number, (text, links) in enumerate(ARTICLES)
    ]
    write(folder / "held_out.jsonl", pages)
    texts = [
        row(name, text, [(text.index(word), text.index(word) + len(word), title) for word, title in mentions])
        for name, text, mentions in GOLD
    ]
    write(folder / "gold.jsonl", texts)
    (folder / "nothing.jsonl").touch()
    return folder


def row(name: str, text: str, mentions: list[tuple[int, int, str | None]]) -> Row:
    inside = [each for each in mentions if each[1] <= len(text)]
    fields = ("start", "end", "title")
    return {"id": name, "text": text, "mentions": [dict(zip(fields, each, strict=True)) for each in inside]}


def write(path: Path, rows: list[Row]) -> None:
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))


def read(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def linker(work: Path) -> Linker:
    return opened(work)


def opened(work: Path) -> Linker:
    parts = {name: str(work / name) for name in ("mentions", "contexts", "tokenizer")}
    return open_linker(LinkerSettings(**parts, model=str(work / "weights"), device="cpu"))


def asked(work: Path, held_out: str = "nothing", gold: str = "", most: int = 9, **more: bool) -> EvaluationSettings:
    path = work / f"{gold}.jsonl" if gold else None
    return EvaluationSettings(work / f"{held_out}.jsonl", path, most, more.get("leaves_out_pages", False))


def ways(work: Path) -> dict[str, list[str | Path]]:
    """The arguments of the commands for each method."""
    contexts: list[str | Path] = ["--contexts", work / "contexts"]
    model = ["--model", work / "weights", "--tokenizer", work / "tokenizer", "--device", "cpu", *contexts]
    return dict(zip(evaluation.METHODS, ([], contexts, model, [*model, "--global"]), strict=True))


def test_as_the_commands(work: Path, linker: Linker, tmp_path: Path, run: Linking) -> None:
    result = evaluation.build(str(tmp_path), linker, asked(work, gold="gold"))
    gold, table = work / "gold.jsonl", ["--mentions", work / "mentions"]
    [found] = json.loads((tmp_path / "scores.json").read_text())["sets"]
    assert (found["name"], found["documents"]) == ("gold.jsonl", len(GOLD))
    for method, flags in ways(work).items():
        linked, *_ = run("link", gold, *table, *flags, "--candidates")
        write(tmp_path / f"{method}.jsonl", linked)
        [scores], *_ = run("score", gold, tmp_path / f"{method}.jsonl", *table)
        assert [scores.pop(f"{what}_left_out") for what in ("mentions", "documents", "answers")] == [0, 0, 0]
        assert found["methods"][method] == scores
    of_set = {"set": "gold.jsonl", "of_dump": False}
    assert read(tmp_path / "answers.jsonl") == [each | of_set for each in linked]
    assert read(tmp_path / "documents.jsonl") == [each | of_set for each in read(gold)]
    assert [entry.path for entry in result.files] == ["answers.jsonl", "documents.jsonl", "scores.json"]
    assert result.rows == {"documents": 3, "mentions": 7}
    assert result.drops == {}


def test_pages_are_linked_as_if_the_dump_had_never_had_them(work: Path, linker: Linker, tmp_path: Path) -> None:
    """The links of a page's own count nowhere; ids that two sets have are told apart."""
    evaluation.build(str(tmp_path), linker, asked(work, "held_out", "gold"))
    pages, gold = json.loads((tmp_path / "scores.json").read_text())["sets"]
    assert (pages["name"], pages["documents"], pages["of"]) == ("held-out pages", 2, 2)
    prior = replace(linker, model=None, contexts=None)
    calibrated = with_certainty(prior, tmp_path / "calibration/prior.json", 0.0)
    by_hand = evaluation.score_files(
        *write_answers(work, calibrated, tmp_path / "by_hand"), linker.finder, own_links=True
    )
    assert pages["methods"]["prior"] == by_hand
    assert 0 < by_hand["mentions"]["in_knowledge_base"] == by_hand["mentions"]["gold"]
    ids = [each["id"] for each in read(tmp_path / "documents.jsonl")]
    assert ids == [*ASKED, *(f"{each} (gold.jsonl)" if each in ASKED else each for each in ("A", "note", "C"))]
    assert [each["id"] for each in read(tmp_path / "answers.jsonl")] == ids
    assert all("candidates" in mention for each in read(tmp_path / "answers.jsonl") for mention in each["mentions"])
    assert gold["documents"] == len(GOLD)
    write(tmp_path / "alone.jsonl", [each for each in read(work / "held_out.jsonl") if each["id"] == "B"])
    settings = EvaluationSettings(tmp_path / "alone.jsonl", None, 9, leaves_out_pages=False)
    evaluation.build(str(tmp_path / "alone"), linker, settings)
    [alone] = json.loads((tmp_path / "alone/scores.json").read_text())["sets"]
    counts = alone["methods"]["prior"]["mentions"]
    assert 0 < counts["in_knowledge_base"] < counts["gold"]  # no other page links to "None"


def test_other_held_out_pages_calibrate_as_the_command(
    work: Path, linker: Linker, tmp_path: Path, run: Linking
) -> None:
    """The file of each method is what `calibrate` writes of the pages that are not asked."""
    evaluation.build(str(tmp_path), linker, asked(work, "held_out", "gold"))
    choosing = [each for each in read(work / "held_out.jsonl") if each["id"] not in ASKED]
    assert json.loads((tmp_path / "scores.json").read_text())["calibrated_by"] == len(choosing) == 1
    write(tmp_path / "choosing.jsonl", choosing)
    options = ["--documents", tmp_path / "choosing.jsonl", "--own-links", "--mentions", work / "mentions"]
    for method, flags in ways(work).items():
        run("calibrate", *options, *flags, "--output", tmp_path / "by_command.json")
        theirs = json.loads((tmp_path / "by_command.json").read_text())
        ours = json.loads((tmp_path / f"calibration/{method}.json").read_text())
        assert theirs.pop("fit").items() >= ours.pop("fit").items()
        assert ours == theirs


def test_with_its_calibration_link_answers_as_the_stage(
    work: Path, linker: Linker, tmp_path: Path, run: Linking
) -> None:
    """One that is there is taken over, here with values far from any default."""
    settings, gold = asked(work, "held_out", "gold"), work / "gold.jsonl"
    evaluation.build(str(tmp_path / "before"), linker, settings)
    values = {"prior_weight": 0.1, "context_weight": 20.0, "temperature": 3.0, "discount": 0.3}
    for method in evaluation.METHODS:
        content = json.loads((tmp_path / f"before/calibration/{method}.json").read_text())
        path = tmp_path / f"after/calibration/{method}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**content, **values, "min_probability": 0.9}))
    evaluation.build(str(tmp_path / "after"), linker, settings)
    before, after = (
        json.loads((tmp_path / name / "scores.json").read_text())["sets"][1]["methods"] for name in ("before", "after")
    )
    table, answers = ["--mentions", work / "mentions"], tmp_path / "answers.jsonl"
    for method, flags in ways(work).items():
        certainty = ["--calibration", tmp_path / f"after/calibration/{method}.json", "--min-probability", 0]
        write(answers, run("link", gold, *table, *flags, *certainty)[0])
        [by_command], *_ = run("score", gold, answers, *table)
        for what in ("mentions", "documents", "answers"):
            del by_command[f"{what}_left_out"]
        assert after[method] == by_command != before[method]


def test_pages_that_tell_nothing_calibrate_nothing(work: Path, linker: Linker, tmp_path: Path) -> None:
    """The page B alone links to "None", so that without its links nothing is a candidate there."""
    pages = read(work / "held_out.jsonl")
    pages[1]["mentions"] = [each for each in pages[1]["mentions"] if each["title"] == "None"]
    write(tmp_path / "held_out.jsonl", pages)
    settings = EvaluationSettings(tmp_path / "held_out.jsonl", None, 9, leaves_out_pages=False)
    result = evaluation.build(str(tmp_path / "linking"), linker, settings)
    assert pages[1]["mentions"]
    assert json.loads((tmp_path / "linking/scores.json").read_text())["calibrated_by"] == 0
    assert [entry.path for entry in result.files] == ["answers.jsonl", "documents.jsonl", "scores.json"]


def test_pages_that_contexts_have_read_choose_nothing_and_are_counted(
    work: Path, linker: Linker, tmp_path: Path
) -> None:
    """As in a damaged dump, where a page of the same title was not held out."""
    contexts = write_context_table(tmp_path / "contexts", {"A": {"and": 1.0}}, held_out=0.0)
    by_read = replace(linker, contexts=contexts)
    result = evaluation.build(str(tmp_path / "linking"), by_read, asked(work, "held_out"))
    assert result.drops == {"documents:in_contexts": 1}
    assert json.loads((tmp_path / "linking/scores.json").read_text())["calibrated_by"] == 0


def write_answers(work: Path, linker: Linker, path: Path) -> tuple[Path, Path]:
    """The held-out pages that are asked, and the answers of a linker to them."""
    gold, lines = path.with_suffix(".gold"), []
    asked = [line for line in read(work / "held_out.jsonl") if line["id"] in ASKED]
    write(gold, asked)
    for document, line in zip(read_documents(gold), asked, strict=True):
        own = linker.finder.own_links([document])
        lines.append(line | linker.answer([evaluation.Record("here", line)], own)[0])
    write(path, lines)
    return gold, path


def test_answers_that_are_there_are_taken_over(
    work: Path, linker: Linker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped after any number of answers and begun again, the bytes are those of an unbroken run."""
    monkeypatch.setattr(evaluation, "AT_ONCE", 2)
    settings = asked(work, "held_out", "gold")
    whole = evaluation.build(str(tmp_path / "whole"), linker, settings)
    answered: list[int] = []
    chosen: list[int] = []
    answer, calibrate = evaluation.answer, evaluation.calibrate
    monkeypatch.setattr(evaluation, "answer", lambda *given: answered.append(1) or answer(*given))
    monkeypatch.setattr(evaluation, "calibrate", lambda *given, **more: chosen.append(1) or calibrate(*given, **more))
    parts = [1, 2]  # of a set, by each method
    methods = len(evaluation.METHODS)
    for number in (-3, 0, 3, 4, 11):  # below 0: calibrations

        def stop(done: int, total: int, last: int = number) -> None:
            assert total == 24
            if len(chosen) - methods + len(answered) > last:
                raise KeyboardInterrupt

        answered.clear()
        chosen.clear()
        folder = str(tmp_path / f"stopped-{number}")
        with pytest.raises(KeyboardInterrupt):
            evaluation.build(folder, linker, settings, progress=stop)
        assert evaluation.build(folder, linker, settings) == whole
        assert (len(chosen), len(answered)) == (methods, methods * sum(parts))
    for name in ("answers.jsonl", "documents.jsonl", "scores.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "stopped-3" / name).read_bytes()
    assert {*storage.list_files(str(tmp_path / "stopped-3"))} == {entry.path for entry in whole.files}
    assert not (tmp_path / "stopped-3/parts").exists()


def test_answers_to_other_documents_are_not_taken_over(
    work: Path, linker: Linker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that code has left which answers fewer documents together do not stand for more."""
    settings = asked(work, "held_out")
    whole = evaluation.build(str(tmp_path / "whole"), linker, settings)
    monkeypatch.setattr(evaluation, "AT_ONCE", 1)
    stop = iter([None] * (len(evaluation.METHODS) + 2))
    with pytest.raises(StopIteration):
        evaluation.build(str(tmp_path / "stopped"), linker, settings, progress=lambda done, total: next(stop))
    monkeypatch.undo()
    assert evaluation.build(str(tmp_path / "stopped"), linker, settings) == whole


def test_documents_are_chosen_and_counted(work: Path, linker: Linker, tmp_path: Path) -> None:
    settings = asked(work, "held_out", "gold", most=1, leaves_out_pages=True)
    result = evaluation.build(str(tmp_path), linker, settings)
    pages, gold = json.loads((tmp_path / "scores.json").read_text())["sets"]
    assert (pages["documents"], pages["of"], gold["documents"], gold["of"]) == (1, 2, 1, 1)
    assert read(tmp_path / "documents.jsonl")[1]["id"] == "note"
    assert result.drops == {"documents:over_limit": 1, "documents:of_pages": 2}
    (tmp_path / "pages").mkdir()
    write(tmp_path / "pages/gold.jsonl", [each for each in read(work / "gold.jsonl") if each["id"] != "note"])
    path = tmp_path / "pages/gold.jsonl"
    with pytest.raises(ValueError, match=r"^linking.gold .*gold.jsonl: the ids of all 2 documents are"):
        evaluation.build(str(tmp_path), linker, settings._replace(gold=path))
    result = evaluation.build(str(tmp_path / "nothing"), linker, asked(work))
    assert json.loads((tmp_path / "nothing/scores.json").read_text()) == {"calibrated_by": 0, "sets": []}
    assert result.rows == {"documents": 0, "mentions": 0}


def test_a_sample_keeps_the_order_and_grows() -> None:
    documents = [Document("", str(number), "", (), (0, 0)) for number in range(50)]
    before: set[str] = set()
    for most in (0, 1, 7, 49, 50, 60):
        ids = [each.id for each in sample(documents, most)]
        assert ids == sorted(ids, key=int)
        assert len(ids) == min(most, 50)
        assert before <= set(ids)
        before = set(ids)
    assert [each.id for each in sample(documents, 7)] != [each.id for each in documents[:7]]


def test_ids_are_told_apart(work: Path) -> None:
    a, taken, _ = read_documents(work / "gold.jsonl")
    found = with_distinct_ids([a, taken, replace(a, id="A (x)")], {"A"}, "x")
    assert [each.id for each in found] == ["A (x) (x)", "note", "A (x)"]
