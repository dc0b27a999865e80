"""The command: documents in, links out, line by line; and what it says of bad input."""

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from tasks.linking.linker import Linker
from tests.support import DATA
from tests.support.asked import Linking

SENTENCE = "Ann met Bob."
ANN = {"mention": "Ann", "start": 0, "end": 3, "title": "A", "page_id": 0, "qid": "Q5", "entity_id": 3}
BOB = {"mention": "Bob", "start": 8, "end": 11, "title": "B", "page_id": 1, "qid": None, "entity_id": None}
# Of three "Ann" two are links, of three "Bob" one.
FOUND = [
    {**ANN, "probability": 0.5, "confidence": 0.333333, "reason": None, "link_probability": 0.666667, "step": "exact"},
    {**BOB, "probability": 1.0, "confidence": 0.333333, "reason": None, "link_probability": 0.333333, "step": "exact"},
]
GIVEN = [{**each, "confidence": each["probability"], "link_probability": None} for each in FOUND]


def test_a_line_of_text_is_a_document(run: Linking, table: Path) -> None:
    lines, err, status = run("link", "--mentions", table, data=f"\ufeff{SENTENCE}\r\n\n{SENTENCE} é😀 Bob".encode())
    assert lines[0] == {"id": 1, "text": SENTENCE, "mentions": FOUND}
    assert [lines[1]["id"], len(lines)] == [3, 2]
    last = lines[1]["mentions"][-1]
    assert (last["start"], last["end"]) == (16, 19)
    assert err == "5 mentions, candidates by: 5 exact\n"
    assert status == 0


def test_a_file_can_be_a_document(run: Linking, table: Path, tmp_path: Path) -> None:
    for name, text in (("a.txt", "Ann\nAnn"), ("{b", "{Bob}")):
        (tmp_path / name).write_text(text)
    lines, _, _ = run("link", tmp_path / "a.txt", tmp_path / "{b", "--input", "files", "--mentions", table)
    assert [(line["id"], line["text"], len(line["mentions"])) for line in lines] == [
        (f"{tmp_path}/a.txt", "Ann\nAnn", 2),
        (f"{tmp_path}/{{b", "{Bob}", 1),
    ]
    [stdin], _, _ = run("link", "--input", "files", "--mentions", table, data=b"Ann\nAnn")
    assert (stdin["id"], stdin["text"]) == ("stdin", "Ann\nAnn")


def test_lines_of_several_files_have_ids_of_their_own(run: Linking, table: Path, tmp_path: Path) -> None:
    for name, text in (("a.txt", "Ann\n\nAnn\n"), ("b.jsonl", '{"id": 7, "text": "Bob"}')):
        (tmp_path / name).write_text(text)
    names = (tmp_path / "a.txt", tmp_path / "b.jsonl", "-")
    lines, _, _ = run("link", *names, "--mentions", table, data=b"Ann")
    assert [line["id"] for line in lines] == [f"{tmp_path}/a.txt:1", f"{tmp_path}/a.txt:3", 7, 1]
    lines, _, status = run("link", *names, tmp_path / "none", "--mentions", table, data=b"Ann")
    assert (lines, status) == ([], f"error: {tmp_path}/none: no such file; wanted documents, or - for those on stdin")


def test_answers_do_not_wait_for_all_documents(
    run: Linking, table: Path, models: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With a model, which takes its time, some are answered together, and written."""
    sizes, answer = list[int](), Linker.answer
    monkeypatch.setattr(Linker, "answer", lambda self, records: sizes.append(len(records)) or answer(self, records))
    arguments: tuple[object, ...] = ("link", "--mentions", table, "--model", models / "export")
    arguments += ("--tokens-per-batch", 640)
    lines, _, _ = run(*arguments, data=b"Ann met Bob.\n" * 12)
    assert max(sizes) <= 5
    assert sum(sizes) == 12
    assert [line["mentions"] for line in lines] == [lines[0]["mentions"]] * 12
    names = [tmp_path / str(number) for number in range(5)]
    for name in names:
        name.write_text("Ann met Bob.")
    sizes.clear()
    run(*arguments, "--input", "files", *names)
    assert max(sizes) > 1


def test_mentions_can_be_given_or_found(run: Linking, table: Path) -> None:
    """A record's other fields stay, and a title that is given is no help."""
    record = {"id": "x", "text": SENTENCE, "more": [1], "mentions": [{"start": 8, "end": 11, "title": "A"}]}
    data = json.dumps(record).encode()
    [given], _, _ = run("link", "--mentions", table, data=data)
    assert given == {**record, "mentions": GIVEN[1:]}
    labelled = {**record["mentions"][0], "label": "PER", "candidates": ["old"]}
    [found], _, _ = run("link", "--mentions", table, data=json.dumps({**record, "mentions": [labelled]}).encode())
    assert found == {**record, "mentions": [{"label": "PER", **GIVEN[1]}]}
    [found], _, _ = run("link", "--find-mentions", "--mentions", table, data=data)
    assert found == {**record, "mentions": FOUND}
    wrong = {**record, "mentions": [{"start": 8, "end": 99}]}
    [found], _, status = run("link", "--find-mentions", "--mentions", table, data=json.dumps(wrong).encode())
    assert (found, status) == ({**record, "mentions": FOUND}, 0)
    zelda = {"text": SENTENCE, "index": [[0, 3], [4, 7]], "wikipedia_titles": ["B", "B"]}
    [answer], err, _ = run("link", "--mentions", table, data=json.dumps(zelda).encode())
    names = ("title", "page_id", "qid", "entity_id", "probability", "confidence", "link_probability")
    nothing = {**dict.fromkeys(names), "reason": "no_candidate", "step": "none"}
    assert answer["mentions"] == [GIVEN[0], {"mention": "met", "start": 4, "end": 7, **nothing}]
    assert err == "2 mentions, candidates by: 1 exact, 1 none\n"


def test_candidates_are_shown_on_request(run: Linking, table: Path) -> None:
    [answer], _, _ = run("link", "--candidates", "--mentions", table, data=b"ab")
    pages = [{name: of[name] for name in ("title", "page_id", "qid", "entity_id")} for of in (ANN, BOB)]
    nothing = dict.fromkeys(("cosine", "coherence", "model"))
    assert answer["mentions"][0]["candidates"] == [
        {**page, "prior": share, **nothing, "probability": share, "step": "exact"}
        for page, share in zip(pages, (0.75, 0.25), strict=True)
    ]
    [answer], _, _ = run("link", "--candidates", "--most-candidates", 1, "--mentions", table, data=b"ab")
    assert len(answer["mentions"][0]["candidates"]) == 1


def test_a_model_has_a_say(run: Linking, table: Path, models: Path) -> None:
    """Of A and B it knows A alone, so that the priors stay; a folder of Pretrain and its export say the same."""
    arguments = ("link", "--mentions", table, "--candidates")
    assert json.loads((models / "export/model/entity_qids.json").read_text()) == {"A": "Q5"}
    exported = run(*arguments, "--model", models / "export", data=b"ab met Bob.")
    assert run(*arguments, "--model", models / "export/model", data=b"ab met Bob.") == exported
    ours = run(*arguments, "--model", models / "weights", "--tokenizer", models / "tokenizer", data=b"ab met Bob.")
    assert exported == ours
    [answer], _, status = ours
    assert status == 0
    candidates = answer["mentions"][0]["candidates"]
    shares = [each["probability"] for each in candidates]
    assert shares == pytest.approx([0.75, 0.25])
    assert [each["model"] for each in candidates] == pytest.approx([0.5, 0.5], abs=1e-4)


def test_a_bad_line_costs_no_other_its_answer(run: Linking, table: Path) -> None:
    line, message = b'{"text": "Ann", "mentions": [{"start": 2, "end": 9}]}', "mentions[0]: start, end spans 2 to 9"
    record = json.dumps({"text": "Ann"}).encode()
    data = b"\n".join([record, line, record])
    for on_error, count, ends in (("report", 3, 1), ("skip", 2, 0), ("stop", 1, f"error: stdin:2: {message}")):
        lines, err, status = run("link", "--mentions", table, "--on-error", on_error, data=data)
        assert len(lines) == count
        assert lines[0]["mentions"][0]["title"] == "A"
        assert str(status).startswith(str(ends))
        if on_error == "report":
            assert lines[1]["line"] == 2
            assert lines[1]["error"].startswith(f"stdin:2: {message}")
            assert lines[2] == lines[0]
        if on_error == "skip":
            assert f"left out: 1: {message}" in err
            assert "(the first at stdin:2)" in err


@pytest.mark.parametrize(
    "beginning", ["-DOCSTART- (1)\nAnn\tB\tAnn\tA", '\ufeff<?xml version="1.0"?>', '[\n {"text": "Ann"}]']
)
def test_annotated_documents_are_no_text(run: Linking, table: Path, tmp_path: Path, beginning: str) -> None:
    """They are another format, unless one says that they are lines of text."""
    path = tmp_path / "gold"
    path.write_text(beginning)
    lines, _, status = run("link", path, "--mentions", table)
    assert lines == []
    assert re.match(
        rf"error: {path}: begins with '.*', as (annotated documents do|a JSON array does); make JSON lines of it, ",
        str(status),
    )
    lines, _, status = run("link", "--mentions", table, data=path.read_bytes())
    assert lines == []
    assert str(status).startswith("error: stdin: begins with ")
    lines, _, status = run("link", path, "--mentions", table, "--input", "lines")
    assert (len(lines), status) == (beginning.count("\n") + 1, 0)


def test_bad_options_and_inputs_are_named(
    run: Linking, table: Path, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(models)
    for arguments, message in (
        (["nowhere"], "error: nowhere: no such file; wanted documents"),
        (["."], "error: .: a folder; wanted files of documents"),
        (["--model", "export", "--device", "cuda:99"], "error: device 'cuda:99' is not there"),
    ):
        _, _, status = run("link", *arguments, "--mentions", table, data=b"Ann")
        assert str(status).startswith(message)
        assert "\n" not in str(status)
    for option, value in (("--most-candidates", "0"), ("--tokens-per-batch", "x"), ("--min-probability", "2")):
        _, err, status = run("link", option, value, "--mentions", table)
        assert (status, f"argument {option}: {value}: wanted" in err) == (2, True)
    _, _, status = run("score", DATA / "documents/ours.jsonl", DATA / "documents/ours.jsonl", "--leave-out-pages")
    assert status == "error: --leave-out-pages: the dump's pages are told by --mentions or --workdir"


# convert and score


def test_lines_that_are_no_documents_are_left_out_and_told(run: Linking, table: Path, tmp_path: Path) -> None:
    """Also where `link` has answered them: it asks for no mentions."""
    gold, found = tmp_path / "gold.jsonl", tmp_path / "found.jsonl"
    ann = {"text": "Ann", "mentions": [{"start": 0, "end": 3, "title": "A"}]}
    lines = [{"id": "a", **ann}, {"id": "b", "text": "Bob"}, {"id": "c", **ann}]
    texts = [json.dumps(each) for each in lines]
    gold.write_text("\n".join([texts[0], "{", texts[1], "{", texts[2]]))
    answers, _, _ = run("link", gold, "--mentions", table)
    found.write_text("\n".join(map(json.dumps, answers)))
    for arguments in (("convert", gold), ("score", gold, found)):
        lines, _, status = run(*arguments)
        assert str(status).startswith(f"error: {gold}:2: not JSON")
        assert [each["id"] for each in lines] == []
    converted, err, status = run("convert", "--on-error", "skip", gold)
    assert ([each["id"] for each in converted], status) == (["a", "c"], 0)
    assert re.match(rf"left out: 2: not JSON \(.*\) \(the first at {gold}:2\)\nleft out: 1: no field", err)
    [scores], err, _ = run("score", gold, found, "--mentions", table, "--on-error", "skip")
    counts = (
        "documents", "mentions_left_out", "documents_left_out", "answers_left_out", "answers_with_error",
    )  # fmt: skip
    assert [scores[name] for name in counts] == [2, 0, 3, 1, 2]
    figures = {"mentions": 2, "accuracy": 1.0, "candidate_recall": 1.0, "prior": 1.0}
    assert scores["disambiguation"]["overall"].items() > figures.items()
    assert f"none of the gold documents that remain (the first at {found}:3)\n" in err


def test_a_calibration_has_a_threshold_for_given_mentions_alone(run: Linking, table: Path, tmp_path: Path) -> None:
    """ "ab" is A in three of four links."""
    documents, calibration = tmp_path / "dev.jsonl", tmp_path / "calibration.json"
    given = {"id": "a", "text": "ab", "mentions": [{"start": 0, "end": 2, "title": "A"}]}
    documents.write_text(json.dumps(given))
    chosen = (
        "--documents", documents, "--output", calibration, "--mentions", table, "--min-probability", 0.99,
    )  # fmt: skip
    run("calibrate", *chosen)
    link = ("link", "--mentions", table, "--calibration", calibration)
    [answer], err, _ = run(*link, data=json.dumps(given).encode())
    assert answer["mentions"][0]["title"] is None
    assert err == "1 mentions, candidates by: 1 exact; 1 without a page, since none is probable enough\n"
    found = tmp_path / "found.jsonl"
    found.write_text(json.dumps(answer))
    for title, without in (("A", {"below_threshold": 1}), ("Elsewhere", {})):
        documents.write_text(json.dumps(given).replace('"A"', f'"{title}"'))
        [scores], _, _ = run("score", documents, found, "--mentions", table)
        assert scores["without_page"] == without
    [answer], err, _ = run(*link, data=b"ab")
    assert (answer["mentions"][0]["title"], err) == ("A", "1 mentions, candidates by: 1 exact\n")
    [answer], _, _ = run(*link, "--min-probability", 0.99, data=b"ab")
    assert answer["mentions"][0]["title"] is None


def test_no_input_is_overwritten(run: Linking, table: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold.jsonl"
    gold.write_text(
        content := json.dumps({"id": "a", "text": "Ann", "mentions": [{"start": 0, "end": 3, "title": "X"}]})
    )
    same = tmp_path / "same.jsonl"
    same.symlink_to(gold)
    for path in (gold, same):
        _, _, status = run("calibrate", "--documents", gold, "--mentions", table, "--output", path)
        assert status == f"error: --output {path}: the input {gold} would be overwritten; give another file"
    assert gold.read_text() == content


BROKEN_ANSWERS = [
    ("{", "not JSON"),
    ({"id": "a", "text": "Ann", "mentions": []}, "the id 'a' is there twice"),
    ({"id": "b", "text": "Bo", "mentions": []}, "the text of 'b' differs from that in "),
    ({"id": "b", "text": "Bob"}, "no field 'mentions'"),
    ({"id": "b", "text": "Bob", "mentions": [{"start": 0, "end": 4}]}, "mentions[0]: start, end spans 0 to 4"),
    (
        {"id": "b", "text": "Bob", "mentions": [{"start": 0, "end": 3, "title": "B", "probability": 2}]},
        "mentions[0]: probability is 2",
    ),
]  # fmt: skip


def test_broken_answers_are_left_out_and_told(run: Linking, tmp_path: Path) -> None:
    gold, found = tmp_path / "gold.jsonl", tmp_path / "found.jsonl"
    documents = [
        {"id": name, "text": text, "mentions": [{"start": 0, "end": 3, "title": "A"}]}
        for name, text in (("a", "Ann"), ("b", "Bob"))
    ]
    gold.write_text("\n".join(map(json.dumps, documents)))
    right = json.dumps(documents[0])
    broken = [each if isinstance(each, str) else json.dumps(each) for each, _ in BROKEN_ANSWERS]
    for line, (_, reason) in zip(broken, BROKEN_ANSWERS, strict=True):
        found.write_text(f"{right}\n{line}\n")
        _, _, status = run("score", gold, found)
        assert str(status).startswith(f"error: {found}:2: {reason}")
    found.write_text("\n".join([right, *broken]))
    [scores], err, _ = run("score", gold, found, "--on-error", "skip")
    assert scores["answers_left_out"] == len(broken) == err.count("left out: 1: ")
    assert scores["disambiguation"]["overall"]["accuracy"] == 0.5
    for content, told in (("", "no answer; wanted what link wrote"), ("{", "no answer; all are left out: 1: not JSON")):
        found.write_text(content)
        _, _, status = run("score", "--on-error", "skip", gold, found)
        assert str(status).startswith(f"error: {found}: {told}")
