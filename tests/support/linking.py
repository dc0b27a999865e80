"""A wiki of documents for a mention table, and a random model of its entities."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from model.files import save_model
from model.luke.heads import LukeForPretraining
from pipeline.lookup.annotator import Annotator
from pipeline.sequences.tokenizer import WordTokenizer
from pipeline.sequences.tokenizer_training import train_tokenizer
from tasks.linking.candidates import CandidateFinder
from tasks.linking.certainty import UNCALIBRATED, Certainty
from tasks.linking.documents.document import Document
from tasks.linking.linker import Linker
from tests.support.fine_tuned import CONFIG
from tests.support.oracle_tables import Pages


def pages_of(documents: Sequence[Document]) -> Pages:
    """A wiki of the documents, and of a page that links each mention's text to what the next one stands for."""
    mentions = list(
        dict.fromkeys((d.text[m.start : m.end], m.title) for d in documents for m in d.mentions or () if m.title)
    )
    paragraphs = [
        {
            "page_id": number,
            "text": each.text,
            "links": [{"start": m.start, "end": m.end, "target": m.title} for m in each.mentions or () if m.title],
        }
        for number, each in enumerate(documents)
    ]
    for number, (text, _) in enumerate(mentions):
        link = {"start": 0, "end": len(text), "target": mentions[number - 1][1]}
        paragraphs.append({"page_id": len(documents), "text": text, "links": [link]})
    titles = [*(each.id for each in documents), "Others"]
    titles += sorted({title for _, title in mentions} - set(titles))  # pages without a text
    pages = [{"page_id": number, "title": title, "is_disambiguation": False} for number, title in enumerate(titles)]
    found = [{"page_id": number, "text": title, "links": []} for number, title in enumerate(titles)]
    return Pages(pages, [], [paragraphs + found])


def linker_of(table: Path, certainty: Certainty = UNCALIBRATED, **more: Any) -> Linker:
    """A linker by a mention table, all of whose names it finds."""
    annotator = Annotator.open(table, min_commonness=0.0)
    return Linker(CandidateFinder(annotator.table), annotator, certainty=certainty, **more)


def write_model(folder: Path, texts: Sequence[str], entities: int, **changes: Any) -> None:
    """Write a random model (`weights`) with the words of these texts (`tokenizer`), and with so many entities."""
    train_tokenizer(texts, folder / "tokenizer", CONFIG.vocab_size)
    words = WordTokenizer.load(folder / "tokenizer").vocab_size
    torch.manual_seed(0)
    config = replace(CONFIG, vocab_size=words, entity_vocab_size=entities, **changes)
    save_model(folder / "weights", LukeForPretraining(config).eval())


SENTENCES = ["Ann met Bob and Ann, @ #."] * 4  # of small_pages
