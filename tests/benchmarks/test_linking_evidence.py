"""What decides the meaning of the figures of `benchmarks.evidence.linking`, beside plain loops."""

import json
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from benchmarks.evidence import gold_mentions
from benchmarks.evidence import linking as probe
from benchmarks.evidence.disambiguation import Probe
from benchmarks.evidence.gold_mentions import Documents
from model.files import save_model
from model.luke.heads import LukeForPretraining
from pipeline.lookup.annotator import Annotator
from pipeline.lookup.mentions import MentionTable
from pipeline.sequences.tokenizer import WordTokenizer
from pipeline.storage.manifests import Manifest, write_manifest
from tasks.linking.calibration.calibration import calibrate
from tasks.linking.candidates import CandidateFinder
from tasks.linking.certainty import Certainty, reliability
from tasks.linking.corpora.pages import ended
from tasks.linking.documents.reading import read_documents
from tasks.linking.linker import Linker, shares_by_counts
from tasks.linking.model.entity_model import EntityModel, load_model
from tests.support.contexts import write_context_table
from tests.support.mentions import ARTICLES, small_pages, write_mentions, write_tables
from tests.support.models import TINY, shake

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
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ExtractPages writes of the articles, a paragraph each."""
    folder = tmp_path_factory.mktemp("pages")
    rows = [{"title": "ABC"[row["page_id"]], **row} for row in small_pages(ARTICLES).blocks[0]]
    files = write_tables(folder, "paragraphs", [rows[:1], rows[1:]])
    write_manifest(str(folder), Manifest("ExtractPages", 1, {}, {}, tuple(files)))
    return folder


@pytest.fixture(scope="module")
def tokenizer_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    (folder / "vocab.txt").write_text("".join(f"{each}\n" for each in TOKENS))
    return folder


@pytest.fixture(scope="module")
def tokenizer(tokenizer_folder: Path) -> WordTokenizer:
    return WordTokenizer.load(tokenizer_folder)


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
def documents(table: MentionTable, gold: Path) -> Documents:
    found = Documents()
    linker = Linker(CandidateFinder(table), Annotator.open(Path(table.folder)))
    found.add(read_documents(gold)[1:], linker, are_pages=False)
    return found


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "pretrain"
    torch.manual_seed(0)
    config = {**vars(TINY), "vocab_size": len(TOKENS), "entity_vocab_size": 5}
    save_model(folder, shake(LukeForPretraining(type(TINY)(**config)).eval()))
    return folder


@pytest.fixture(scope="module")
def model(model_folder: Path, table: MentionTable, tokenizer: WordTokenizer) -> EntityModel:
    return load_model(model_folder, table, tokenizer, device="cpu")


def test_mentions_are_ambiguous_reachable_and_counted(documents: Documents) -> None:
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


def test_words_of_mentions_are_those_around_them(documents: Documents, tokenizer: WordTokenizer) -> None:
    for radius in (None, 1, 2, 100):
        found = gold_mentions.words_of_mentions(documents, tokenizer, radius)
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


def test_words_of_links_are_those_of_paragraphs(
    pages: Path, table: MentionTable, tokenizer: WordTokenizer
) -> None:
    """By redirects, too; page C and titles that are not asked for are left out."""
    resolve = partial(ended, table.targets)
    words, places, spans = gold_mentions.words_of_links(pages, {"C"}, resolve, {"B": 0, "A": 1}, tokenizer)
    texts = [Counter(tokenizer.encode_with_offsets(text)[0]) for text, _ in ARTICLES[:2]]
    assert [{word: words[row, word] for word in words[row].indices} for row in range(2)] == texts
    assert places.tolist() == [[1, 0], [1, 0], [1, 1], [1, 1]]
    ann, ab = (tokenizer.encode_with_offsets(text)[0] for text in ("Ann", "ab"))
    assert spans.tolist() == [[1, word] for word in (*ann, *ann, *ab, *ab)]


def test_what_is_right_and_how_sure_is_that_of_loops(
    table: MentionTable, tokenizer: WordTokenizer, gold: Path, documents: Documents
) -> None:
    """The first document chooses, as `calibrate` does; of the other there are errors with and without no page."""
    linker = Linker(CandidateFinder(table), Annotator.open(Path(table.folder)))
    choosing = read_documents(gold)[1:2]
    asked = Probe(documents.mentions, [0, 1], [2])
    material = probe.Material(linker, tokenizer, choosing, [], documents, asked, Counter(), Counter())
    chosen = replace(linker, certainty=calibrate(linker, choosing, min_probability=0.0)[0])
    shares = chosen.shares(documents.asked[1:])
    row = probe.certainty_row("the prior", material, chosen, shares)
    assert (row["temperature"], row["discount"]) == (chosen.certainty.temperature, chosen.certainty.discount)
    # Of the last document "ab" is right: A, of 3 of 4 links. "Bob" has no title, and B of a single link.
    ab, bob = (chosen.certainty.probabilities(*each).max() for each in (([0.75, 0.25], 4), ([1.0], 1)))
    assert row["before"] == pytest.approx(0.25)
    assert row["in the dump"] == pytest.approx(1 - ab)
    assert row["all"] == pytest.approx(reliability([ab, bob], [True, False])["expected_calibration_error"])
    assert probe.right_of(material, shares).tolist() == [1.0]
    assert probe.right_of(material, [[[0.25, 0.75], [1.0]]]).tolist() == [0.0]
    # Contexts that are for the other page change nothing for a linker without contexts.
    against = [np.linspace(0, 1, len(each.items)) for each in documents.asked[1].candidates]
    with_contexts = [documents.asked[0], documents.asked[1]._replace(contexts=against)]
    assert shares_by_counts(with_contexts[1], Certainty())[0][0] < 0.5
    found = probe.Found()
    found.add(probe.PRIOR, "", replace(material, documents=replace(documents, asked=with_contexts)), chosen)
    assert found.right[probe.PRIOR][0].tolist() == [1.0]


@pytest.mark.parametrize(("ways", "points"), [((5.5, 6.0), 6.0), ((6.5, 6.0), 6.5), ((4.0,), 4.0)])
def test_targets_are_those_of_the_better_way(ways: tuple[float, ...], points: float) -> None:
    differences = [
        {"method": f"{way} less {base}", "mean": mean, "from": mean - 6.2}
        for way, mean in zip(probe.WAYS, ways, strict=False)
        for base in (probe.PRIOR, probe.BAG)
    ]
    found = probe.targets(differences, [{"method": "the prior", "in the dump": 0.04}])
    wanted = [(points, points >= 5), (points - 6.2, points > 6.2), (0.04, True)]
    assert [(row["found"], row["met"]) for row in found] == wanted


def test_the_whole_on_a_tiny_dump(
    pages: Path, table: MentionTable, tokenizer_folder: Path, model_folder: Path, gold: Path, tmp_path: Path
) -> None:
    """The document that is a page is left out; what is read is what `Documents` has."""
    held_out = tmp_path / "held_out.jsonl"
    mentions = [
        {"start": start, "end": start + size, "title": title} for start, size, title in ARTICLES[1][1]
    ]
    held_out.write_text(json.dumps({"id": "B", "text": ARTICLES[1][0], "mentions": mentions}) + "\n")
    options = {"pages": pages, "mentions": table.folder, "tokenizer": tokenizer_folder, "held-out": held_out}
    options |= {"gold": gold, "models": model_folder, "threads": torch.get_num_threads()}
    write_context_table(tmp_path / "contexts", {"A": {"ab": 1.0}, "B": {"bob": 1.0}})
    options |= {"contexts": tmp_path / "contexts", "choosing": 1, "output": tmp_path / "result.json"}
    probe.main([word for name, value in options.items() for word in (f"--{name}", str(value))])
    found = json.loads((tmp_path / "result.json").read_text())
    assert {row["mentions"]: row["gold"] for row in found["mentions"]} == {
        "asked": 3,
        "left out: a wrong place": 0,
        "left out: no title, or none of the dump": 2,
        "left out: the page is not among the candidates": 1,
        "left out: the page is the only candidate": 2,
    }
    contexts, *ways = (way + end for way in (probe.CONTEXTS, *probe.WAYS) for end in ("", probe.ADAPTED))
    methods = [probe.BAG, contexts, *ways]
    assert [row["method"] for row in found["accuracy"]] == [probe.PRIOR, *methods]
    less = [f"{way} less {base}" for way in methods for base in probe.BASES]
    assert {row["method"] for row in found["differences"]} == {*less} - {
        f"{name} less {name}" for name in probe.BASES
    }
    assert found["accuracy"][0]["mean"] == pytest.approx(200 / 3), "of equal priors the first title is taken"
    assert [row["method"] for row in found["time"]] == ways[1:]
    assert len(found["bags of words"]) == 6
