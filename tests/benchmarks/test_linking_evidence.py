"""What decides the meaning of the figures of `benchmarks.evidence.linking`, beside plain loops."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from benchmarks.evidence import linking as probe
from model.files import save_model
from model.luke.heads import LukeForPretraining
from pipeline.lookup.mentions import MentionTable
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.entities.candidates import CandidateFinder
from tasks.entities.disambiguation import EntityModel, disambiguate, load_model
from tasks.entities.documents.reading import read_documents
from tests.support.mentions import ARTICLES, small_pages, write_mentions
from tests.support.models import TINY, shake
from tests.support.shards import WORDS

LETTERS = [chr(code) for code in range(ord("a"), ord("z") + 1)]
TOKENS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *LETTERS,
    *(f"##{each}" for each in LETTERS),
    ",",
    ".",
    ";",
]
# "ab" is linked to A three times and to B once, "Ann" twice to A and once to B, "Bob" to B alone.
GOLD = [
    ("A", "ab", [(0, 2, "A")]),
    ("x", "ab, Ann, ab, Bob, ab a, ann", [(0, 2, "B"), (4, 7, "To a"), (9, 11, "C"), (13, 16, "B"), (18, 22, "None"),
                                        (24, 27, "Nowhere")]),
    ("y", "Bob and ab", [(8, 10, "A"), (0, 3, None)]),
]  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> MentionTable:
    folder = tmp_path_factory.mktemp("mentions")
    write_mentions(folder, small_pages(ARTICLES), size=5)  # A and B are in the vocabulary
    return MentionTable(str(folder))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> WordTokenizer:
    folder = tmp_path_factory.mktemp("tokenizer")
    (folder / "vocab.txt").write_text("".join(f"{each}\n" for each in TOKENS))
    return WordTokenizer.load(folder)


@pytest.fixture(scope="module")
def gold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gold") / "gold.jsonl"
    lines = [
        {
            "id": name,
            "text": text,
            "mentions": [dict(zip(("start", "end", "title"), each, strict=True)) for each in given],
        }
        for name, text, given in GOLD
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def documents(table: MentionTable, gold: Path) -> probe.Documents:
    found = probe.Documents()
    found.add(read_documents(gold)[1:], CandidateFinder(table), are_pages=False)
    return found


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "pretrain"
    torch.manual_seed(0)
    config = {**vars(TINY), "vocab_size": WORDS, "entity_vocab_size": 5}
    save_model(folder, shake(LukeForPretraining(type(TINY)(**config)).eval()))
    return folder


@pytest.fixture(scope="module")
def model(model_folder: Path, table: MentionTable, tokenizer: WordTokenizer) -> EntityModel:
    return load_model(model_folder, table, tokenizer, device="cpu")


def test_mentions_are_ambiguous_reachable_and_counted(documents: probe.Documents) -> None:
    found = [
        (each.index, each.place, each.label, np.exp(each.log_prior).tolist()) for each in documents.mentions
    ]
    assert found == [(0, 0, 1, [0.75, 0.25]), (0, 1, 0, [0.5, 0.5]), (1, 0, 0, [0.75, 0.25])]
    assert documents.counts == {
        "asked": 3,
        "left out: no title, or none of the dump": 2,
        "left out: the page is not among the candidates": 1,
        "left out: the page is the only candidate": 2,
    }


@pytest.mark.parametrize("radius", [None, 1, 2, 100])
def test_words_of_a_mention_are_those_around_it(
    documents: probe.Documents, tokenizer: WordTokenizer, radius: int | None
) -> None:
    found = probe.words_of(documents, tokenizer, radius)
    for row, mention in enumerate(documents.mentions):
        asked = documents.asked[mention.index]
        place = asked.mentions[mention.place]
        before, after = (
            tokenizer.encode_with_offsets(part)[0]
            for part in (asked.text[: place.start], asked.text[place.end :])
        )
        size = len(asked.text) if radius is None else radius
        wanted = Counter([*before[max(0, len(before) - size) :], *after[:size]])
        assert {word: found[row, word] for word in found[row].indices} == wanted


def test_candidates_outside_the_vocabulary_get_the_mean() -> None:
    assert probe.spread([7, None, 3, None], np.array([1.0, 0.5])).tolist() == [1.0, 0.75, 0.5, 0.75]
    assert probe.spread([None, None], np.zeros(0)).tolist() == [0.0, 0.0]


def test_a_score_is_a_logit_whatever_the_prior_weighs(model: EntityModel, documents: probe.Documents) -> None:
    """With the prior added again the shares are those of `disambiguate`."""
    for is_global, weight in ((False, 0.5), (False, 2.0), (True, 2.0)):
        scores = probe.luke_scores(model, documents, is_global=is_global, prior_weight=weight)
        found = disambiguate(model, documents.asked, is_global=is_global, prior_weight=weight)
        for each, score in zip(documents.mentions, scores, strict=True):
            shares = np.exp(weight * each.log_prior + score)
            np.testing.assert_allclose(shares / shares.sum(), found[each.index][each.place], atol=1e-9)
            assert abs(score[0] - score[1]) > 1e-3, "both candidates are known"
