"""A model before the first step: what it keeps of one that was fine-tuned, which answers it starts with, and that its
words ignore entities.
"""

import json
import shutil
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from model.files import read_weights
from model.hf.load import load_luke
from model.luke.attention import EntityAwareAttention, SelfAttention
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.finetuning.prepare import load_pretrained
from tasks.finetuning.registry import TASKS
from tasks.finetuning.results import configuration
from tasks.finetuning.variants import VARIANTS
from tests.support.fine_tuned import QUICK, bert, fine_tune, fine_tuned, prepared, reconfigured
from tests.support.mentions import small_pages, write_mentions


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights, a tokenizer, and each task fine-tuned from them, with entities and without."""
    path = fine_tuned(tmp_path_factory.mktemp("pretrained"), TASKS)
    for task in TASKS:
        fine_tune(task, path, "roberta")
    return path


ENTITY_TABLE, WORD_TABLE = "entity_embeddings.token.weight", "word_embeddings.token.weight"


PAIRS = [(task, task) for task in TASKS] + [*pairwise([*TASKS, *TASKS])][: len(TASKS)]  # each after itself and another


@pytest.mark.parametrize("variant", ["luke", "roberta"])
@pytest.mark.parametrize(("earlier", "task"), PAIRS)
def test_a_fine_tuned_encoder_goes_on_with_a_task(folder: Path, earlier: str, task: str, variant: str) -> None:
    """With the table of the other task's entities and its markers only where both are the task's own."""
    if task == "extractive_qa" != earlier and variant == "luke":  # Wikipedia's entities are gone
        with pytest.raises(ValueError, match=rf"-luke: fine-tuned for {earlier}, which keeps no entity"):
            prepared(folder, task=task, weights=f"{earlier}-luke")
        return
    run = prepared(folder, task=task, profile="paper", variant=variant, weights=f"{earlier}-luke")
    before = {
        name.removeprefix("luke."): tensor
        for name, tensor in read_weights(folder / f"{earlier}-luke").items()
        if name.startswith("luke.")
    }
    now = run.module.luke.state_dict()
    tables = {ENTITY_TABLE, WORD_TABLE}
    queries = {name for name in before if "2" in name or "_to_" in name} if variant == "roberta" else set()
    assert set(now) == set(before) - queries
    assert [name for name in set(now) - tables if not torch.equal(now[name], before[name])] == []
    words = WordTokenizer.load(folder / "tokenizer").vocab
    own = earlier == task
    markers = TASKS[task].WORD_MARKERS
    if own:
        assert torch.equal(now[WORD_TABLE], before[WORD_TABLE])
    else:
        assert torch.equal(now[WORD_TABLE][: len(words)], before[WORD_TABLE][: len(words)])
        wanted = before[WORD_TABLE][[words[initial] for initial in markers.values()]]
        assert torch.equal(now[WORD_TABLE][len(words) :], wanted)
    rows = TASKS[task].ENTITY_ROWS
    if own and (rows is not None or variant == "luke"):
        assert torch.equal(now[ENTITY_TABLE], before[ENTITY_TABLE])
    else:
        mask = 2 if TASKS[earlier].ENTITY_ROWS is None else 1  # [PAD], [UNK], [MASK], ...; or [PAD], [MASK]
        kept = [0 if row == 0 else mask for row in rows or (0,)]
        assert torch.equal(now[ENTITY_TABLE], before[ENTITY_TABLE][kept])


@pytest.mark.parametrize("variant", ["luke", "roberta"])
@pytest.mark.parametrize(("earlier", "task"), PAIRS)
def test_entities_around_an_encoder_that_was_fine_tuned_without_start_as_words(
    folder: Path, earlier: str, task: str, variant: str
) -> None:
    """As around RoBERTa; for each task, since there are none that could be kept."""
    luke = prepared(folder, task=task, profile="paper", variant=variant, weights=f"{earlier}-roberta").module.luke
    before = read_weights(folder / f"{earlier}-roberta")
    now = luke.state_dict()
    words = WordTokenizer.load(folder / "tokenizer")
    assert torch.equal(now[WORD_TABLE][: words.vocab_size], before[f"luke.{WORD_TABLE}"][: words.vocab_size])
    markers = TASKS[task].WORD_MARKERS
    assert len(now[WORD_TABLE]) == words.vocab_size + len(markers)
    if earlier == task:
        assert torch.equal(now[WORD_TABLE], before[f"luke.{WORD_TABLE}"])
    assert luke.entities_are_new
    rows = TASKS[task].ENTITY_ROWS or ((0, 1, 2) if variant == "luke" else (0,))
    mask = now[WORD_TABLE][words.mask_id]
    assert torch.equal(now[ENTITY_TABLE], torch.stack([mask * (row > 0) for row in rows]))


def test_a_tokenizer_that_has_the_markers_as_words_is_none_of_the_weights(folder: Path) -> None:
    """Its ids are those of the markers that the earlier task gave the model."""
    words = WordTokenizer.load(folder / "tokenizer")
    words.vocab_size += 1
    for task in ("ner", "relation_classification"):
        with pytest.raises(ValueError, match=r"give the tokenizer that the weights were trained with"):
            load_pretrained(
                TASKS[task], VARIANTS["luke"], folder / "relation_classification-luke", words,
                folder / "tokenizer", dropout=0.0,
            )  # fmt: skip


@pytest.mark.parametrize("before", [0.0, 0.3])
@pytest.mark.parametrize("variant", ["luke", "roberta"])
@pytest.mark.parametrize("task", TASKS)
def test_dropout_is_fine_tunings_and_not_pretrainings(
    folder: Path, tmp_path: Path, task: str, variant: str, before: float
) -> None:
    dropout = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), before)
    weights = reconfigured(folder / "weights", tmp_path / "weights", **dropout)
    for hyperparameters, wanted in (
        (QUICK, 0.1),
        (replace(QUICK, dropout=0.0), 0.0),
        (replace(QUICK, dropout=0.4), 0.4),
    ):
        run = prepared(folder, hyperparameters, task=task, variant=variant, weights=weights)
        found = {
            name: part.p if isinstance(part, nn.Dropout) else part.dropout
            for name, part in run.module.named_modules()
            if isinstance(part, nn.Dropout | SelfAttention)
        }
        assert set(found.values()) == {wanted}
        kinds = {".".join(name for name in each.split(".") if not name.isdigit()) for each in found}
        parts = {f"luke.{name}.dropout" for name in ("word_embeddings", "entity_embeddings", "layers")}
        assert kinds == {*parts, "dropout", "luke.layers.attention"}  # the first is the classifier's
        model = configuration(run)["model"]
        assert model["hidden_dropout_prob"] == model["attention_probs_dropout_prob"] == wanted


@pytest.mark.parametrize("task", TASKS)
def test_inputs_longer_than_those_of_pretraining_are_told_or_windows(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, task: str
) -> None:
    shutil.copytree(folder / "weights", tmp_path / "weights")
    for most in (None, 97, 24):  # the model has 96 positions
        if most:
            (tmp_path / "weights" / "pretraining.json").write_text(json.dumps({"max_words": most}))
        caplog.clear()
        train = prepared(folder, task=task, weights=tmp_path / "weights").features["train"].items
        told = [each for each in caplog.messages if "inputs of train are longer" in each]
        longer = [len(item.word_ids) for item in train if len(item.word_ids) > 24]
        if TASKS[task].READS_IN_WINDOWS:
            assert not told
            assert bool(longer) == (most != 24)
            continue
        wanted = f"up to 24 words, but {len(longer)} of {len(train)} inputs of train are longer, up to {max(longer)};"
        assert [wanted in each for each in told] == ([True] if most == 24 else [])


@pytest.mark.parametrize("value", [-0.1, 1.0, 1.5])
def test_a_dropout_that_cannot_be_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match=rf"dropout is {value}, but must be at least 0 and below 1"):
        replace(QUICK, dropout=value)


def test_a_task_that_is_unknown_is_no_start(folder: Path) -> None:
    reconfigured(folder / "ner-luke", folder / "other", task="parsing")
    with pytest.raises(ValueError, match=r"other: fine-tuned for 'parsing'; wanted one of entity_typing, "):
        prepared(folder, task="ner", weights="other")


def test_the_classifier_starts_at_the_shares_of_the_classes(folder: Path) -> None:
    """Of spans those of each class, of mentions and a passage's entities of those that have a label."""
    run = prepared(folder, task="ner")
    labels = Counter(label for feature in run.features["train"].items for label in feature.labels.tolist())
    entities = sum(labels.values()) - labels[0]
    assert 0 < entities < labels[0] / 20  # what makes the bias worth its while
    wanted = [(1 + labels[row]) / (labels.total() + len(run.labels)) for row in range(len(run.labels))]
    assert run.module.classifier.bias.softmax(0).tolist() == pytest.approx(wanted, rel=1e-4)
    for task in ("entity_typing", "cloze_qa"):
        run = prepared(folder, task=task)
        found = np.concatenate([feature.label.reshape(-1, len(run.labels)) for feature in run.features["train"].items])
        shares = (1 + found.sum(axis=0)) / (2 + len(found))
        assert run.module.classifier.bias.sigmoid().tolist() == pytest.approx(shares.tolist(), rel=1e-4)
    assert prepared(folder, task="relation_classification").module.classifier.bias is None
    assert not prepared(folder, task="extractive_qa").module.classifier.bias.any()


@pytest.mark.parametrize("task", ["ner", "entity_typing", "cloze_qa"])
def test_the_published_profile_starts_at_zero_and_is_else_the_same(folder: Path, task: str) -> None:
    ours, theirs = (prepared(folder, task=task, profile=profile).module.state_dict() for profile in ("fixed", "paper"))
    assert not theirs["classifier.bias"].any()
    assert ours.pop("classifier.bias").any()
    others = {name for name, value in ours.items() if not torch.equal(value, theirs[name])}
    assert all("word_to_entity_query" in name for name in others)
    assert bool(others) is (task == "ner")


@pytest.mark.parametrize(
    ("weights", "profile", "are_hidden"),
    [("bert", "fixed", True), ("bert", "paper", False), ("weights", "fixed", False)],
)
@pytest.mark.parametrize("task", sorted(TASKS.keys() - {"cloze_qa"}))  # the small vocabulary lacks its marker
def test_words_begin_without_the_entities_that_the_weights_lack_and_without_those_of_spans(
    folder: Path, task: str, weights: str, profile: str, are_hidden: bool
) -> None:
    if not (folder / "bert").is_dir():
        bert(folder / "bert")
    tokenizer = "bert" if weights == "bert" else "tokenizer"
    run = prepared(folder, task=task, profile=profile, weights=weights, tokenizer=tokenizer)
    [attention] = [part for part in run.module.modules() if isinstance(part, EntityAwareAttention)]
    has_entities = task != "extractive_qa"  # whose entities a mention table finds
    hidden = torch.zeros_like(attention.query.weight)
    are_hidden |= task == "ner" and profile == "fixed"
    wanted = hidden if are_hidden and has_entities else attention.query.weight
    assert torch.equal(attention.word_to_entity_query.weight, wanted)
    for query in (attention.entity_to_word_query, attention.entity_to_entity_query):
        assert torch.equal(query.weight, attention.query.weight)


def test_entities_of_a_mention_table_start_as_what_their_titles_say(folder: Path, tmp_path: Path) -> None:
    """In a model that has none; by the words of its tokenizer, without what stands in brackets for the most part."""
    bert(tmp_path / "bert")
    titles = ("Abraham Lincoln", "Bear (animal)", "Ada")
    text = "the end of the river and the old king"
    links = [(0, 3, titles[number]) for number in (0, 0, 0, 1, 1, 2)]
    table = write_mentions(tmp_path / "mentions", small_pages([(text, links), ("", []), ("", [])], titles))
    assert table.vocab.titles[3:] == titles
    known, new = (
        prepared(folder, task="extractive_qa", mentions=tmp_path / "mentions", **given).module.luke
        for given in ({}, {"weights": tmp_path / "bert", "tokenizer": tmp_path / "bert"})
    )
    words = new.word_embeddings.token.weight
    tokenizer = WordTokenizer.load(tmp_path / "bert")

    def mean(title: str) -> torch.Tensor:
        [ids] = tokenizer.encode([title], [True])
        return words[ids].mean(dim=0) - words.mean(dim=0)

    names = [title.removesuffix(" (animal)") for title in titles]
    wanted = torch.stack([mean(name) + 0.3 * mean(title) for name, title in zip(names, titles, strict=True)])
    entities = new.entity_embeddings.token.weight
    assert torch.allclose(entities[3:], wanted * 0.1 / wanted.std(), atol=1e-6)
    assert entities[3:].std() == pytest.approx(0.1)
    assert torch.equal(entities[1:3], words[[tokenizer.mask_id] * 2])
    assert not entities[0].any()
    assert not entities.requires_grad
    assert new.config.entity_vocab_size == 6
    before = load_luke(
        str(folder / "weights"), use_entity_aware_attention=True, mask_word=tokenizer.mask_id
    ).entity_embeddings.token.weight
    assert torch.equal(known.entity_embeddings.token.weight, before)
