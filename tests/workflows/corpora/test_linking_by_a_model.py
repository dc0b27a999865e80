"""A model chooses the pages of a corpus as it does those of the command `link`."""

import json
from pathlib import Path

import pytest
import torch

from model.exchange.export import export
from model.files import save_model
from model.luke.heads import LukeForPretraining
from pipeline import storage
from pipeline.dump.containers import Block
from pipeline.sequences.tokenizer_training import train_tokenizer
from pipeline.storage.failures import PageGate
from tasks.entities.__main__ import main
from tests.support.fine_tuned import CONFIG
from tests.support.mentions import ARTICLES, small_pages, write_mentions
from workflows.corpora.linking import DocumentLinker

TEXTS = ["Ann met Bob.", "Bob, Ann and ab.", "None is here", "ab saw Ann", "Ann ann Bob ab Ann"]


@pytest.mark.parametrize("local", [False, True])
def test_as_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], local: bool) -> None:
    mentions, documents = tmp_path / "mentions", tmp_path / "texts/a.jsonl"
    write_mentions(mentions, small_pages(ARTICLES), size=4).vocab.write(str(mentions / "vocabulary"))
    train_tokenizer(["Ann met Bob and Ann, @ #."] * 4, tmp_path / "tokenizer", CONFIG.vocab_size)
    words = len(json.loads((tmp_path / "tokenizer/vocab.json").read_text()))
    torch.manual_seed(0)
    config = type(CONFIG)(**{**vars(CONFIG), "vocab_size": words, "entity_vocab_size": 4})
    save_model(tmp_path / "pretrain", LukeForPretraining(config).eval())
    model = tmp_path / "export/model"
    vocabulary = mentions / "vocabulary/entity_vocab.json"
    export(tmp_path / "pretrain", model, tokenizer=tmp_path / "tokenizer", entity_vocab=vocabulary)
    documents.parent.mkdir()
    lines = [json.dumps({"id": number, "text": text}) for number, text in enumerate(TEXTS)]
    documents.write_text("\n".join(lines))

    command = ["link", str(documents), "--mentions", str(mentions), "--model", str(model), "--device", "cpu"]
    main([*command, *["--local"] * local])
    answers = [json.loads(line)["mentions"] for line in capsys.readouterr().out.splitlines()]
    links = [[each["probability"] * each["link_probability"] for each in answer] for answer in answers]
    probabilities = [link for answer in links for link in answer]
    least = (min(probabilities) + max(probabilities)) / 2
    assert min(probabilities) < least
    threads = torch.get_num_threads()
    work = DocumentLinker(
        {
            "documents": str(documents.parent),
            "mentions": str(mentions),
            "model": str(model),
            "contexts": "",
            "calibration": "",
            "local": local,
            "min_probability": least,
            "min_link_probability": 0.01,
        }
    )
    gate = PageGate(str(tmp_path / "gate"), ())
    result = work(Block(0, str(documents), 0, 1 << 20), str(tmp_path / "linked"), gate)
    gate.close()
    torch.set_num_threads(threads)
    rows = storage.read_rows(str(tmp_path / "linked/paragraphs/block-00000.parquet"))
    assert [[tuple(each.values()) for each in row["links"]] for row in rows] == [
        [
            (each["start"], each["end"], each["title"])
            for each, link in zip(*pair, strict=True)
            if link >= least
        ]
        for pair in zip(answers, links, strict=True)
    ]
    assert result.drops == {"links:below_min_probability": sum(each < least for each in probabilities)}
