"""A model chooses the pages of a corpus, or finds its mentions, as it does for the command `link`."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from model.hf.export import export
from pipeline import storage
from pipeline.storage.blocks import Block, PageMarker
from tasks.linking.__main__ import main
from tasks.linking.corpora.linking import DocumentLinker
from tasks.linking.open import LinkerSettings
from tests.support.fine_tuned import fine_tuned
from tests.support.linking import SENTENCES, write_model
from tests.support.mentions import ARTICLES, small_pages, write_mentions

TEXTS = ["Ann met Bob.", "Bob, Ann and ab.", "None is here", "ab saw Ann", "Ann ann Bob ab Ann"]


@pytest.mark.parametrize("is_global", [False, True])
def test_as_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], is_global: bool) -> None:
    mentions, documents = tmp_path / "mentions", tmp_path / "texts/a.jsonl"
    write_mentions(mentions, small_pages(ARTICLES), size=4).vocab.write(str(mentions / "vocabulary"))
    write_model(tmp_path, SENTENCES, 4)
    model = tmp_path / "export/model"
    vocabulary = mentions / "vocabulary/entity_vocab.json"
    export(tmp_path / "weights", model, tokenizer=tmp_path / "tokenizer", entity_vocab=vocabulary)
    documents.parent.mkdir()
    lines = [json.dumps({"id": number, "text": text}) for number, text in enumerate(TEXTS)]
    documents.write_text("\n".join(lines))

    command = ["link", str(documents), "--mentions", str(mentions), "--model", str(model), "--device", "cpu"]
    main([*command, *["--global"] * is_global])
    answers = [json.loads(line)["mentions"] for line in capsys.readouterr().out.splitlines()]
    links = [[each["probability"] * each["link_probability"] for each in answer] for answer in answers]
    probabilities = [link for answer in links for link in answer]
    least = (min(probabilities) + max(probabilities)) / 2
    assert min(probabilities) < least
    rows, result = linked(
        documents, mentions, tmp_path, model=str(model), is_global=is_global, min_probability=least
    )
    assert rows == [
        [
            (each["start"], each["end"], each["title"])
            for each, link in zip(*pair, strict=True)
            if link >= least
        ]
        for pair in zip(answers, links, strict=True)
    ]
    assert result.drops == {"links:below_min_probability": sum(each < least for each in probabilities)}


def linked(
    documents: Path, mentions: Path, folder: Path, **changes: Any
) -> tuple[list[list[tuple[int, int, str]]], storage.Result]:
    """The links of each paragraph that the stage's work finds in a file, and what it counts."""
    settings = LinkerSettings(str(mentions), finds_all=True, device="cpu", min_probability=0.0)
    threads = torch.get_num_threads()
    work = DocumentLinker(
        {"documents": str(documents.parent), "settings": asdict(replace(settings, **changes))}
    )
    marker = PageMarker(str(folder / "page"), ())
    result = work(Block(0, str(documents), 0, 1 << 20), str(folder / "linked"), marker)
    marker.close()
    torch.set_num_threads(threads)
    rows = storage.read_rows(str(folder / "linked/paragraphs/block-00000.parquet"))
    return [[tuple(each.values()) for each in row["links"]] for row in rows], result


@pytest.mark.parametrize("language", ["", "none"])
def test_mentions_are_those_of_a_model_of_ner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], language: str
) -> None:
    mentions, documents = tmp_path / "mentions", tmp_path / "texts/a.jsonl"
    write_mentions(mentions, small_pages(ARTICLES), size=4)
    model = fine_tuned(tmp_path / "models", ("ner",)) / "ner-luke"
    documents.parent.mkdir()
    texts = ["Ann met Bob. Bob was born in Kentucky.", "Mr. Lincoln moved to Illinois! Ann did not."]
    documents.write_text("\n".join(json.dumps({"id": each, "text": each}) for each in texts))
    command = ["link", str(documents), "--mentions", str(mentions), "--ner", str(model), "--device", "cpu"]
    main([*command, *(["--language", language] if language else [])])
    answers = [json.loads(line)["mentions"] for line in capsys.readouterr().out.splitlines()]
    assert {each["title"] for answer in answers for each in answer} >= {"A", None}
    sure = max(
        each["label_probability"] * each["probability"] for of in answers for each in of if each["title"]
    )
    for least in (0.0, sure):
        rows, result = linked(
            documents, mentions, tmp_path, ner=str(model), language=language, min_probability=least
        )
        assert rows == [
            [
                (each["start"], each["end"], each["title"])
                for each in answer
                if each["title"] and each["label_probability"] * each["probability"] >= least
            ]
            for answer in answers
        ]
        assert result.drops["links:no_page"] == sum(each["title"] is None for of in answers for each in of)
        assert result.rows["links"] > 0
