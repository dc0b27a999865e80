"""Fine-tuning around XLM-R's words: what is exported answers alike, and has the same words in transformers."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from tasks.io.records import Record
from tasks.serving.export import export
from tasks.serving.predict import load
from tests.support.fine_tuned import CONFIG, QUICK, finetune
from tests.support.unigram import pieces, write_unigram

TEXT = "Abraham Lincoln was born in Kentucky ( 東京 ) ."
PLACES = [match.span() for match in re.finditer(r"\S+", TEXT)]
TYPED = {"text": TEXT, "start": PLACES[5][0], "end": PLACES[5][1]}


@pytest.mark.parametrize(
    ("task", "kind", "asked", "spans"),
    [("entity_typing", "XLMRoberta", TYPED, PLACES[5:6]), ("ner", "Bert", {"words": TEXT.split()}, PLACES)],
)
def test_an_export_answers_alike(
    tmp_path: Path, task: str, kind: str, asked: dict[str, Any], spans: list[tuple[int, int]]
) -> None:
    """Also around a BERT whose configuration has another padding than its tokenizer, as that of multilingual E5."""
    import transformers

    write_unigram(tmp_path / "xlmr")
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "initializer_range")
    sizes = {name: getattr(CONFIG, name) for name in names}
    torch.manual_seed(0)
    of_kind = getattr(transformers, f"{kind}Config"), getattr(transformers, f"{kind}Model")
    config = of_kind[0](vocab_size=len(pieces()) + 3, max_position_embeddings=98, **sizes)
    of_kind[1](config, add_pooling_layer=False).save_pretrained(tmp_path / "xlmr")
    finetune(tmp_path, tmp_path / task, QUICK, task=task, weights="xlmr", tokenizer="xlmr")
    export(tmp_path / task, tmp_path / "out")
    ours, theirs = (load(tmp_path / name, device="cpu") for name in (task, "out"))
    answers = ours.predict([asked])
    assert answers == theirs.predict([asked])
    assert answers[0].get("entities") or answers[0]["labels"]
    [item] = theirs.task.featurize(theirs.task.from_records([Record("x", asked)]), theirs.inputs).items
    assert theirs.module.luke.config.pad_token_id == theirs.inputs.tokenizer.pad_id == 1
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert tokenizer(TEXT, entity_spans=spans)["input_ids"] == item.word_ids.tolist()
