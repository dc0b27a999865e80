"""Training of a linker: the loss beside a loop, real documents learnt by heart, and what the folder is good for."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from model.data.collation import collate
from model.files import read_tensors, save_model
from model.luke.heads import ENTITY_LOSS, LukeForPretraining
from pipeline.lookup.mentions import MentionTable
from pipeline.sequences.tokenizer import WordTokenizer
from pipeline.sequences.tokenizer_training import train_tokenizer
from tasks.entities.__main__ import main
from tasks.entities.candidates import CandidateFinder
from tasks.entities.disambiguation import EntityModel, load_model
from tasks.entities.documents.document import Document, to_json
from tasks.entities.documents.reading import read_documents
from tasks.finetuning import epochs as loop
from tasks.linking.inputs import Input, inputs_of
from tasks.linking.task import Disambiguation
from tasks.linking.training import LinkerSettings, train_linker
from tests.support.fine_tuned import CONFIG, contents
from tests.support.mentions import write_mentions
from tests.support.oracle_tables import Pages
from tests.support.properties import given, settings, st

QUICK = LinkerSettings(learning_rate=1e-2, batch_size=4, epochs=8)


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


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Path:
    """Real documents (`documents.jsonl`), a mention table (`mentions`), a random model (`weights`, `tokenizer`)."""
    folder = tmp_path_factory.mktemp("linking")
    documents = read_documents(shared / "data/entity-linking/wned-wiki.jsonl", [])[:2]
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
    return folder


@pytest.fixture(scope="module")
def model(work: Path) -> EntityModel:
    table = MentionTable(str(work / "mentions"))
    return load_model(work / "weights", table, WordTokenizer.load(work / "tokenizer"), device="cpu")


@pytest.fixture(scope="module")
def finder(work: Path) -> CandidateFinder:
    return CandidateFinder(MentionTable(str(work / "mentions")))


@pytest.fixture(scope="module")
def documents(work: Path) -> list[Document]:
    return read_documents(work / "documents.jsonl")


def train(work: Path, output: Path, chosen: LinkerSettings = QUICK, **changes: Path) -> dict[str, object]:
    gold = work / "documents.jsonl"
    return train_linker(
        changes.get("train", gold),
        changes.get("dev", gold),
        changes.get("mentions", work / "mentions"),
        changes.get("weights", work / "weights"),
        work / "tokenizer",
        output,
        chosen,
        device="cpu",
    )


@pytest.fixture(scope="module")
def trained(work: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """By the command line, with what `train` gives for QUICK."""
    output, gold = tmp_path_factory.mktemp("trained"), str(work / "documents.jsonl")
    folders = {"mentions": "mentions", "model": "weights", "tokenizer": "tokenizer"}
    options = [text for name, file in folders.items() for text in (f"--{name}", str(work / file))]
    options += ["--learning-rate", "1e-2", "--batch-size", "4", "--epochs", "8", "--device", "cpu"]
    main(["train", "--train", gold, "--dev", gold, "--output", str(output), *options])
    before = contents(output)
    train(work, output)  # finished: it is the same run
    assert contents(output) == before
    return output


def gradients_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: each.grad.clone() for name, each in module.named_parameters() if each.grad is not None}


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_loss_and_gradients_are_those_of_a_loop(
    model: EntityModel, finder: CandidateFinder, documents: list[Document], weight: float
) -> None:
    """Logits over the whole vocabulary, of which the candidates of one mention after the other are picked."""
    _, features = inputs_of(model, finder, documents, learns=True)
    drawn = [features.drawn(index, 1, 0) for index in range(len(features.items))]
    task, module = Disambiguation(finder, weight), model.module
    module.eval().zero_grad()
    found = task.loss(module, task.collate(drawn, entities=True, pad_id=1))["loss"]
    found.backward()
    gradients = gradients_of(module)
    module.zero_grad()
    losses = []
    for each in drawn:
        batch = collate([each.sequence], max_mention_words=30, entities=True)
        states, _ = module.asked(batch)[ENTITY_LOSS]
        head, table = module.heads[ENTITY_LOSS]
        logits = head(states, table.weight)
        for row, mention in zip(logits, each.asked, strict=True):
            question = mention.question
            pairs = [
                (int(r), float(p)) for r, p in zip(question.rows, question.log_prior, strict=True) if r >= 0
            ]
            scores = torch.stack([row[number] + weight * prior for number, prior in pairs])
            assert mention.gold is not None
            losses.append(scores.logsumexp(0) - scores[mention.gold])
    expected = torch.stack(losses).mean()
    expected.backward()
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    assert len(losses) > 30
    assert gradients.keys() == gradients_of(module).keys()
    for name, gradient in gradients_of(module).items():
        torch.testing.assert_close(gradients[name], gradient, rtol=1e-3, atol=1e-5)
    module.zero_grad()


def test_what_is_asked_has_the_right_page(
    model: EntityModel, finder: CandidateFinder, documents: list[Document]
) -> None:
    """Each mention is asked in one window, and its gold candidate is the page that the document names."""
    _, features = inputs_of(model, finder, documents, learns=True)
    asked = [each for item in features.items for each in item.asked]
    titles = sorted(m.title for d in documents for m in d.mentions or () if m.title)
    rows = sorted(int(each.rows[each.gold]) for each in asked if each.gold is not None)
    ids = {title: target.entity_id for title in titles if (target := finder.targets.get(title))}
    assert rows == sorted(row for title in titles if (row := ids[title]) is not None)
    assert features.counts["asked"] == len(asked) == len(titles)
    assert len(features.items) > len(documents)  # there are windows


@settings(max_examples=20)
@given(st.integers(0, 9), st.integers(0, 9), st.floats(0, 1))
def test_a_share_is_asked_for_and_the_rest_is_shown(
    model: EntityModel,
    finder: CandidateFinder,
    documents: list[Document],
    seed: int,
    epoch: int,
    share: float,
) -> None:
    _, features = inputs_of(model, finder, documents[:1], learns=True, share=share)
    for index, item in enumerate(features.items):
        drawn, again = (features.drawn(index, seed, epoch) for _ in range(2))
        assert len(drawn.asked) == max(1, round(share * len(item.asked)))
        assert drawn.sequence.entity_ids.tolist() == again.sequence.entity_ids.tolist()
        asked = {each.place for each in drawn.asked}
        for each in item.asked:
            assert each.gold is not None
            wanted = model.mask_row if each.place in asked else each.rows[each.gold]
            assert drawn.sequence.entity_ids[each.place] == wanted
        assert set(np.flatnonzero(drawn.sequence.entity_labels >= 0).tolist()) == asked
        assert [each.place for each in drawn.asked] == sorted(asked)


def test_other_mentions_are_asked_for_in_other_epochs(
    model: EntityModel, finder: CandidateFinder, documents: list[Document]
) -> None:
    _, features = inputs_of(model, finder, documents, learns=True, share=0.5)

    def places(item: Input) -> tuple[int, ...]:
        return tuple(each.place for each in item.asked)

    assert len({places(features.drawn(0, 1, epoch)) for epoch in range(9)}) > 1


def test_real_documents_are_learnt_by_heart(work: Path, trained: Path) -> None:
    """A random model answers worse; the entity table, its bias and the head of words stay as they were."""
    metrics = json.loads((trained / "metrics.json").read_text())
    assert metrics["dev"]["accuracy"] == 1.0
    assert metrics["dev"]["disambiguation"]["ambiguous"]["prior"] < 0.9
    before, after = (read_tensors(each / "model.safetensors") for each in (work / "weights", trained))
    same = {name for name in before if torch.equal(before[name], after[name])}
    assert same == {
        name
        for name in before
        if name.startswith("word_head") or name in ("entity_head.bias", "luke.entity_embeddings.token.weight")
    }


def test_link_and_score_take_the_folder(
    work: Path, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its own tokenizer; the scores are those of training."""
    gold, table = str(work / "documents.jsonl"), str(work / "mentions")
    main(["link", gold, "--local", "--model", str(trained), "--mentions", table, "--device", "cpu"])
    (tmp_path / "answers.jsonl").write_text(capsys.readouterr().out)
    main(["score", gold, str(tmp_path / "answers.jsonl"), "--mentions", table])
    scores = json.loads(capsys.readouterr().out)
    dev = json.loads((trained / "metrics.json").read_text())["dev"]
    assert scores["disambiguation"] == dev["disambiguation"]
    assert scores["linking"]["micro"]["f1"] == dev["f1"]


def test_goes_on_after_an_interruption_with_the_same_bytes(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, parts = replace(QUICK, epochs=2), loop.parts_of_step
    train(work, tmp_path / "whole", few)
    steps = len((tmp_path / "whole/training.jsonl").read_text().splitlines())

    def interrupted(run: loop.Run, step: int) -> Sequence[loop.Part]:
        if step == steps - 1:
            raise KeyboardInterrupt
        return parts(run, step)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "parts_of_step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(work, tmp_path / "cut", few)
    assert not (tmp_path / "cut/metrics.json").exists()
    train(work, tmp_path / "cut", few)
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")


def test_parts_of_a_batch_change_no_gradient(work: Path, tmp_path: Path) -> None:
    """But what dropout draws: the model has none."""
    losses = []
    for tokens in (0, 150):
        output = tmp_path / str(tokens)
        chosen = replace(QUICK, epochs=1, learning_rate=1e-4, tokens_per_batch=tokens)
        train(work, output, chosen)
        lines = (output / "training.jsonl").read_text().splitlines()
        losses.append([json.loads(line)["gradient_norm"] for line in lines])
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)


def test_what_cannot_be_trained_on_is_refused(work: Path, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "luke"}')
    with pytest.raises(ValueError, match=r"training starts from a folder of Pretrain, not from its export"):
        train(work, tmp_path / "output", weights=tmp_path)
    line = {"id": "a", "text": "Ann met Bob.", "mentions": [{"start": 0, "end": 3, "title": "Ann (name)"}]}
    (tmp_path / "strange.jsonl").write_text(json.dumps(line))
    for name in ("train", "dev"):
        with pytest.raises(
            ValueError, match=r'strange.jsonl: no mention with its page .*"title_not_in_dump": 1'
        ):
            train(work, tmp_path / "output", QUICK, **{name: tmp_path / "strange.jsonl"})
    documents = read_documents(work / "documents.jsonl")
    (tmp_path / "mentions").mkdir()
    other = replace(documents[0], mentions=(documents[0].mentions or ())[:1])
    write_mentions(tmp_path / "mentions", pages_of([other]))
    with pytest.raises(
        ValueError, match=r"was fine-tuned with that of .*; give the mention table of that run"
    ):
        train(work, tmp_path / "output", weights=trained, mentions=tmp_path / "mentions")
    assert not (tmp_path / "output").exists()
