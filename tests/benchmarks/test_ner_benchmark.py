"""What decides the meaning of the figures of `benchmarks.tasks.ner`; nothing is measured here."""

from pathlib import Path

import pytest

from benchmarks.harness.workloads import ROOT
from benchmarks.tasks import ner as script
from benchmarks.tasks import ner_workloads as workloads
from model.luke.config import LukeConfig
from tasks.ner import task
from tasks.ner.columns import read_columns
from tasks.ner.spans import enumerate_spans

EXAMPLES = ROOT / "examples" / "ner"
TINY = LukeConfig(vocab_size=400, entity_vocab_size=5, hidden_size=16, entity_emb_size=8, num_hidden_layers=2,
                  num_attention_heads=2, intermediate_size=32, max_position_embeddings=514)  # fmt: skip


def test_medians_are_set_against_one_way() -> None:
    seconds = {script.ONE: (9.0, 4.0, 6.0), "ours, a": (2.0, 3.0, 1.0)}
    rows = [
        {"round": n, "variant": name, "seconds": value, "cpu_seconds": value * (1 + (name == script.ONE))}
        for name, values in seconds.items()
        for n, value in enumerate(values)
    ]
    speed = script.medians(rows, 12)
    assert [row["s"] for row in speed] == [6.0, 2.0]
    assert [row["sentences/s"] for row in speed] == [2.0, 6.0]
    assert [row["x transformers"] for row in speed] == [1.0, 3.0]
    assert [row["x transformers by CPU time"] for row in speed] == [1.0, 6.0]


@pytest.mark.parametrize(
    ("sentences", "difference", "passed"), [(3, 1e-5, True), (0, 0.0, False), (3, 0.1, False)]
)
def test_other_logits_or_none_at_all_fail(sentences: int, difference: float, passed: bool) -> None:
    same = {"sentences": sentences, "largest difference": difference, "standard deviation": 1.0}
    assert [row["passed"] for row in script.checks(same)] == [passed]


def test_questions_hold_every_span_of_the_sentence() -> None:
    for sentence in read_columns(EXAMPLES / "dev.txt").sentences:
        text, spans = workloads.question(sentence)
        wanted = enumerate_spans(len(sentence.words), task.MAX_SPAN_LENGTH)
        assert len(spans) == len(wanted)
        for (start, end), (first, last) in zip(spans, wanted, strict=True):
            assert text[start:end].replace(" ", "") == "".join(sentence.words[first:last])


def test_sentences_are_from_all_over_the_file(tmp_path: Path) -> None:
    text = "".join(f"-DOCSTART- O\n\n{name}1 I-X\n\n{name}2 O\n\n" for name in "abc")
    (tmp_path / "data.txt").write_text(text)
    found = workloads.sample(tmp_path / "data.txt", 3)
    assert [[s.words[0] for s in d.sentences] for d in found.documents] == [["a1"], ["b1"], ["c1"]]


def test_both_say_the_same_by_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "preset", lambda size: TINY)
    data = str(EXAMPLES / "dev.txt")
    found = workloads.speed(size="tiny", data=data, sentences=4, rounds=1, device="cpu", threads=1)
    names = {*workloads.THEIRS, *workloads.OURS} - {*workloads.ON_A_GPU}
    assert {row["variant"] for row in found["rows"]} == names
    assert [row["passed"] for row in script.checks(found["same"])] == [True]
