"""Real documents, a mention table that has their names, and a random model, small enough to be trained in tests."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from model.files import save_model
from model.luke.heads import LukeForPretraining
from pipeline.sequences.tokenizer import WordTokenizer
from pipeline.sequences.tokenizer_training import train_tokenizer
from tasks.linking.documents.document import Document, LeftOut, to_json
from tasks.linking.documents.reading import read_documents
from tests.support.fine_tuned import CONFIG
from tests.support.mentions import write_mentions
from tests.support.oracle_tables import Pages


def pages_of(documents: Sequence[Document]) -> Pages:
    """A wiki of the documents, and of a page that links each mention's text to what the next one stands for."""
    mentions = list(
        dict.fromkeys(
            (d.text[m.start : m.end], m.title) for d in documents for m in d.mentions or () if m.title
        )
    )
    paragraphs = [
        {
            "page_id": number,
            "text": each.text,
            "links": [
                {"start": m.start, "end": m.end, "target": m.title} for m in each.mentions or () if m.title
            ],
        }
        for number, each in enumerate(documents)
    ]
    for number, (text, _) in enumerate(mentions):
        link = {"start": 0, "end": len(text), "target": mentions[number - 1][1]}
        paragraphs.append({"page_id": len(documents), "text": text, "links": [link]})
    titles = [*(each.id for each in documents), "Others"]
    titles += sorted({title for _, title in mentions} - set(titles))  # pages without a text
    pages = [
        {"page_id": number, "title": title, "is_disambiguation": False} for number, title in enumerate(titles)
    ]
    found = [{"page_id": number, "text": title, "links": []} for number, title in enumerate(titles)]
    return Pages(pages, [], [paragraphs + found])


def write_linkable(folder: Path, shared: Path) -> None:
    """Write documents (`documents.jsonl`), a mention table (`mentions`), and a model (`weights`, `tokenizer`)."""
    documents = read_documents(shared / "data/entity-linking/wned-wiki.jsonl", LeftOut())[1:3]
    lines = "".join(json.dumps(to_json(each)) + "\n" for each in documents)
    (folder / "documents.jsonl").write_text(lines)
    (folder / "mentions").mkdir()
    table = write_mentions(folder / "mentions", pages_of(documents))
    train_tokenizer([each.text for each in documents], folder / "tokenizer", CONFIG.vocab_size)
    words = WordTokenizer.load(folder / "tokenizer").vocab_size
    torch.manual_seed(0)
    config = replace(
        CONFIG, vocab_size=words, entity_vocab_size=len(table.vocab), hidden_size=64, entity_emb_size=32,
        initializer_range=0.1, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    save_model(folder / "weights", LukeForPretraining(config))
