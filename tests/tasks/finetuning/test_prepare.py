"""A model before the first step: it answers with the frequencies of train, and its words ignore entities."""

from collections import Counter
from pathlib import Path

import pytest
import torch

from model.exchange.load import load_luke
from model.luke.attention import EntityAwareAttention
from model.luke.encoder import LukeModel
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.finetuning.prepare import Run, prepare
from tasks.finetuning.registry import TASKS
from tasks.finetuning.variants import VARIANTS
from tasks.task import PROFILES
from tests.support.fine_tuned import EXAMPLES, QUICK, bert, pretrained
from tests.support.mentions import write_mentions
from tests.support.oracle_tables import Pages


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pretrained")
    pretrained(path)
    return path


def run_of(folder: Path, task: str, profile: str = "fixed") -> Run:
    return prepare(
        TASKS[task], VARIANTS["luke"], QUICK, EXAMPLES / task, folder / "weights", folder / "tokenizer",
        seed=1, device="cpu", profile=profile, progress=False,
    )  # fmt: skip


def test_spans_start_at_the_shares_of_the_classes(folder: Path) -> None:
    run = run_of(folder, "ner")
    labels = Counter(label for feature in run.features["train"].items for label in feature.labels.tolist())
    entities = sum(labels.values()) - labels[0]
    assert 0 < entities < labels[0] / 20  # what makes the bias worth its while
    wanted = [(1 + labels[row]) / (labels.total() + len(run.labels)) for row in range(len(run.labels))]
    assert run.module.classifier.bias.softmax(0).tolist() == pytest.approx(wanted, rel=1e-4)


def test_types_start_at_the_share_of_mentions_that_have_them(folder: Path) -> None:
    run = run_of(folder, "entity_typing")
    mentions = [feature.label.tolist() for feature in run.features["train"].items]
    having = [sum(column) for column in zip(*mentions, strict=True)]
    wanted = [(1 + count) / (2 + len(mentions)) for count in having]
    assert run.module.classifier.bias.sigmoid().tolist() == pytest.approx(wanted, rel=1e-4)


def test_entities_of_a_passage_start_at_the_share_that_are_answers(folder: Path) -> None:
    run = run_of(folder, "cloze_qa")
    labels = [label for feature in run.features["train"].items for label in feature.label.tolist()]
    wanted = (1 + sum(labels)) / (2 + len(labels))
    assert run.module.classifier.bias.sigmoid().tolist() == pytest.approx([wanted], rel=1e-4)


def test_relations_and_answers_have_no_such_bias(folder: Path) -> None:
    assert run_of(folder, "relation_classification").module.classifier.bias is None
    assert not run_of(folder, "extractive_qa").module.classifier.bias.any()


@pytest.mark.parametrize("task", ["ner", "entity_typing", "cloze_qa"])
def test_the_published_profile_starts_at_zero_and_is_else_the_same(folder: Path, task: str) -> None:
    ours, theirs = (run_of(folder, task, profile).module.state_dict() for profile in ("fixed", "paper"))
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
    tokenizer = folder / ("bert" if weights == "bert" else "tokenizer")
    run = prepare(
        TASKS[task], VARIANTS["luke"], QUICK, EXAMPLES / task, folder / weights, tokenizer,
        seed=1, device="cpu", profile=profile, progress=False,
    )  # fmt: skip
    [attention] = [part for part in run.module.modules() if isinstance(part, EntityAwareAttention)]
    has_entities = task != "extractive_qa"  # whose entities a mention table finds
    hidden = torch.zeros_like(attention.query.weight)
    are_hidden |= task == "ner" and profile == "fixed"
    wanted = hidden if are_hidden and has_entities else attention.query.weight
    assert torch.equal(attention.word_to_entity_query.weight, wanted)
    assert torch.equal(attention.entity_to_word_query.weight, attention.query.weight)


@pytest.mark.parametrize("profile", PROFILES)
def test_entities_of_a_mention_table_start_as_what_their_titles_say(
    folder: Path, tmp_path: Path, profile: str
) -> None:
    """In a model that has none; by the words of its tokenizer, without what stands in brackets for the most part."""
    bert(tmp_path / "bert")
    titles = ("Abraham Lincoln", "Bear (animal)", "Ada")
    pages = [{"page_id": n, "title": title, "is_disambiguation": False} for n, title in enumerate(titles)]
    links = [{"start": 0, "end": 3, "target": titles[number]} for number in (0, 0, 0, 1, 1, 2)]
    text = "the end of the river and the old king"
    table = write_mentions(
        tmp_path / "mentions", Pages(pages, [], [[{"page_id": 0, "text": text, "links": links}]])
    )
    assert table.vocab.titles[3:] == titles
    found: dict[str, LukeModel] = {}
    for name, weights, tokenizer in (
        ("new", tmp_path / "bert", tmp_path / "bert"),
        ("known", folder / "weights", folder / "tokenizer"),
    ):
        found[name] = prepare(
            TASKS["extractive_qa"], VARIANTS["luke"], QUICK, EXAMPLES / "extractive_qa", weights, tokenizer, seed=1,
            device="cpu", profile=profile, progress=False, mentions=tmp_path / "mentions",
        ).module.luke  # fmt: skip
    words = found["new"].word_embeddings.token.weight
    tokenizer = WordTokenizer.load(tmp_path / "bert")

    def mean(title: str) -> torch.Tensor:
        [ids] = tokenizer.encode([title], [True])
        return words[ids].mean(dim=0) - words.mean(dim=0)

    names = [title.removesuffix(" (animal)") for title in titles]
    wanted = torch.stack([mean(name) + 0.3 * mean(title) for name, title in zip(names, titles, strict=True)])
    entities = found["new"].entity_embeddings.token.weight
    assert torch.allclose(entities[3:], wanted * 0.1 / wanted.std(), atol=1e-6)
    assert entities[3:].std() == pytest.approx(0.1)
    assert torch.equal(entities[1:3], words[[tokenizer.mask_id] * 2])
    assert not entities[0].any()
    assert not entities.requires_grad
    assert found["new"].config.entity_vocab_size == 6
    before = load_luke(
        str(folder / "weights"), use_entity_aware_attention=True
    ).entity_embeddings.token.weight
    assert torch.equal(found["known"].entity_embeddings.token.weight, before)
