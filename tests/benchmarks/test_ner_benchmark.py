"""The functions that give the figures of `benchmarks.tasks.ner` their meaning; nothing is measured here."""

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


def test_questions_hold_every_span_of_the_sentence() -> None:
    for sentence in read_columns(EXAMPLES / "dev.txt").sentences:
        text, spans = workloads.question(sentence)
        wanted = enumerate_spans(len(sentence.words), task.MAX_SPAN_LENGTH)
        assert len(spans) == len(wanted)
        for (start, end), (first, last) in zip(spans, wanted, strict=True):
            assert text[start:end].replace(" ", "") == "".join(sentence.words[first:last])


def test_both_say_the_same_by_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "preset", lambda size: TINY)
    data = str(EXAMPLES / "dev.txt")
    found = workloads.speed(size="tiny", data=data, sentences=4, rounds=1, device="cpu", threads=1)
    names = {*workloads.THEIRS, *workloads.OURS} - {*workloads.ON_A_GPU}
    assert {row["variant"] for row in found["rows"]} == names
    assert [row["passed"] for row in script.checks(found["same"])] == [True]
