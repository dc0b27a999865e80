"""Training of a linker: the loss beside a loop, real documents learnt by heart, and what the folder is good for."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")
import transformers

from model.data.collation import collate
from model.files import read_tensors
from model.luke.heads import ENTITY_LOSS
from pipeline.lookup.mentions import MentionTable
from pipeline.sequences.tokenizer import WordTokenizer, copy_tokenizer
from tasks.entities.__main__ import main
from tasks.entities.candidates import CandidateFinder
from tasks.entities.certainty import basis
from tasks.entities.disambiguation.entity_model import EntityModel, load_model
from tasks.entities.documents.document import Document
from tasks.entities.documents.reading import read_documents
from tasks.finetuning import epochs as loop
from tasks.linker_training.inputs import Input, inputs_of
from tasks.linker_training.task import Disambiguation
from tasks.linker_training.training import LinkerSettings, Source, train_linker
from tests.support.fine_tuned import contents
from tests.support.linking import pages_of, write_linkable
from tests.support.mentions import write_mentions
from tests.support.models import luke_of_transformers, save_tied
from tests.support.properties import given, settings, st

QUICK = LinkerSettings(learning_rate=1e-2, batch_size=4, epochs=8)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Path:
    """Real documents (`documents.jsonl`), a mention table (`mentions`), a random model (`weights`, `tokenizer`)."""
    folder = tmp_path_factory.mktemp("linking")
    write_linkable(folder, shared)
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
        changes.get("tokenizer", work / "tokenizer"),
        output,
        chosen,
        test=changes.get("test"),
        device="cpu",
    )


@pytest.fixture(scope="module")
def trained(work: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """By the command line, with what `train` gives for QUICK."""
    output, gold = tmp_path_factory.mktemp("trained"), str(work / "documents.jsonl")
    folders = {"mentions": "mentions", "model": "weights", "tokenizer": "tokenizer"}
    options = [text for name, file in folders.items() for text in (f"--{name}", str(work / file))]
    options += ["--learning-rate", "1e-2", "--batch-size", "4", "--epochs", "8", "--device", "cpu"]
    main(["train", "--train", gold, "--dev", gold, "--test", gold, "--output", str(output), *options])
    before = contents(output)
    train(work, output, test=work / "documents.jsonl")  # finished: it is the same run
    assert contents(output) == before
    return output


def gradients_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: each.grad.clone() for name, each in module.named_parameters() if each.grad is not None}


@pytest.mark.parametrize(("weight", "of_all"), [(0.0, 0.0), (1.0, 0.0), (1.0, 0.3)])
def test_loss_and_gradients_are_those_of_a_loop(
    model: EntityModel, finder: CandidateFinder, documents: list[Document], weight: float, of_all: float
) -> None:
    """Logits over the whole vocabulary, of which the candidates of one mention after the other are picked.

    Every third mention stands for a page that is none of its candidates: the softmax over the vocabulary alone has it.
    """
    strange = [with_other_pages(each) for each in documents]
    _, features = inputs_of(model, finder, strange, learns=True, beyond_candidates=of_all > 0)
    drawn = [features.drawn(index, 1, 0) for index in range(len(features.items))]
    task, module = Disambiguation(model, finder, weight, of_all), model.module
    module.eval().zero_grad()
    found = task.loss(module, task.collate(drawn, entities=True, pad_id=1))["loss"]
    found.backward()
    gradients = gradients_of(module)
    module.zero_grad()
    losses, outside = [], 0
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
            loss = of_all * (row.logsumexp(0) - row[mention.right.row])
            if mention.right.gold is None:
                outside += 1
            else:
                scores = torch.stack([row[number] + weight * prior for number, prior in pairs])
                loss = loss + scores.logsumexp(0) - scores[mention.right.gold]
            losses.append(loss)
    expected = torch.stack(losses).mean()
    expected.backward()
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    assert len(losses) > 20
    assert (outside > 5) == (of_all > 0)
    assert gradients.keys() == gradients_of(module).keys()
    for name, gradient in gradients_of(module).items():
        torch.testing.assert_close(gradients[name], gradient, rtol=1e-3, atol=1e-5)
    module.zero_grad()


def with_other_pages(document: Document) -> Document:
    """The same, but every third mention has the title of the one two before it."""
    given = document.mentions or ()
    titles = [given[n - 2 if n % 3 == 2 else n].title for n in range(len(given))]
    return replace(document, mentions=tuple(replace(m, title=t) for m, t in zip(given, titles, strict=True)))


def test_what_is_asked_has_the_right_page(
    model: EntityModel, finder: CandidateFinder, documents: list[Document]
) -> None:
    """Each mention is asked in one window, and its gold candidate is the page that the document names."""
    _, features = inputs_of(model, finder, documents, learns=True)
    asked = [each for item in features.items for each in item.asked]
    titles = sorted(m.title for d in documents for m in d.mentions or () if m.title)
    rows = sorted(int(each.rows[each.right.gold]) for each in asked if each.right.gold is not None)
    assert rows == sorted(each.right.row for each in asked)
    ids = {title: target.entity_id for title in titles if (target := finder.targets.get(title))}
    assert rows == sorted(row for title in titles if (row := ids[title]) is not None)
    assert features.counts["asked"] == len(asked) == len(titles)
    assert len(features.items) > len(documents)  # there are windows


def test_optional_mentions_are_not_asked(
    model: EntityModel, finder: CandidateFinder, documents: list[Document]
) -> None:
    """Nothing else changes where they are: their entity is [MASK], as before."""
    given = documents[0].mentions or ()
    some = tuple(replace(m, optional=n % 3 == 0) for n, m in enumerate(given))
    _, before = inputs_of(model, finder, documents[:1], learns=False)
    _, features = inputs_of(model, finder, [replace(documents[0], mentions=some)], learns=False)
    optional = -(-len(given) // 3)
    assert features.counts == before.counts | {"optional": optional, "asked": len(given) - optional}
    golds = [[each.right.gold for item in of.items for each in item.asked] for of in (before, features)]
    assert len(golds[0]) == len(golds[1])
    assert sum(each is None for each in golds[1]) == optional
    assert all(one in (None, other) for one, other in zip(golds[1], golds[0], strict=True))


def test_what_is_wrong_is_left_out_and_counted(
    work: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "documents.jsonl"
    wrong = {"id": "x", "text": "Ann", "mentions": [{"start": 0, "end": 9}]}
    path.write_text((work / "documents.jsonl").read_text() + f"{{\n{json.dumps(wrong)}\n")
    source = Source.read(path, skips_wrong=True)
    assert source.left_out == {"wrong_place": 1, "documents_left_out": 1}
    assert f"left out: {path}:" in caplog.text
    assert len(source.documents) == 1 + len(read_documents(work / "documents.jsonl"))
    assert Source.read(work / "documents.jsonl", skips_wrong=True).left_out == {"wrong_place": 0}
    with pytest.raises(ValueError, match="not JSON"):
        Source.read(path, skips_wrong=False)


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
            wanted = model.mask_row if each.place in asked else each.right.row
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


def test_what_a_page_links_itself_does_not_count_for_it(
    model: EntityModel, finder: CandidateFinder, documents: list[Document], tmp_path: Path
) -> None:
    """Candidates, and what can be learnt, are as by a table that was made without the page's links."""
    own, features = inputs_of(model, finder, documents[:1], learns=False, own_links=True)
    pages = pages_of(documents)
    pages.blocks[0][0]["links"] = []
    write_mentions(tmp_path, pages)
    other = CandidateFinder(MentionTable(str(tmp_path)))
    titled = {
        title: target.entity_id
        for page in pages.pages
        if (target := finder.targets.get(title := page["title"])) and target.entity_id is not None
    }
    moved = replace(model, row_of=lambda candidate: titled.get(candidate.title, -1))
    without, wanted = inputs_of(moved, other, documents[:1], learns=False)
    priors = [
        [[(each.title, each.prior) for each in found.items] for found in split.asked[0].candidates]
        for split in (own, without)
    ]
    assert priors[0] == priors[1]
    assert features.counts == wanted.counts
    counted, _ = inputs_of(model, finder, documents[:1], learns=False)
    assert counted.asked[0].candidates != own.asked[0].candidates
    task = Disambiguation(model, finder, 1.0)
    answers = [[replace(m, title=None) for m in documents[0].mentions or ()]]
    scores = [task.score(split, answers, (), None)["disambiguation"] for split in (own, counted)]
    right = Disambiguation(moved, other, 1.0).score(without, answers, (), None)["disambiguation"]
    assert scores[0] == right != scores[1]


def test_real_documents_are_learnt_by_heart(work: Path, trained: Path) -> None:
    """A random model answers worse; the entity table, its bias and the head of words stay as they were."""
    metrics = json.loads((trained / "metrics.json").read_text())
    assert metrics["dev"]["accuracy"] == 1.0
    assert metrics["test"] == metrics["dev"]
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


@pytest.fixture(scope="module")
def theirs(work: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random LukeForMaskedLM of transformers, whose entities have other rows than the table's, and lack one."""
    folder = tmp_path_factory.mktemp("theirs")
    copy_tokenizer(work / "tokenizer", folder)
    targets = MentionTable(str(work / "mentions")).targets
    titles = {m.title for d in read_documents(work / "documents.jsonl") for m in d.mentions or () if m.title}
    known = sorted(title for title in titles if targets.get(title))
    names = ["[MASK]", "[PAD]", "[UNK]", "A page of another dump", *known[1:], "[MASK2]"]
    (folder / "entity_vocab.json").write_text(json.dumps({name: row for row, name in enumerate(names)}))
    words = WordTokenizer.load(folder).vocab_size
    sizes = {"vocab_size": words, "entity_vocab_size": len(names), "max_position_embeddings": 98}
    save_tied(luke_of_transformers("LukeForMaskedLM", **sizes), folder)
    return folder


def test_a_luke_of_transformers_is_trained_and_stays_one(
    work: Path, theirs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is written links as training said, tells its entities, and loads in transformers."""
    chosen = replace(QUICK, epochs=1, softmax_weight=0.1)
    (tmp_path / "export").mkdir()
    (tmp_path / "export/model").symlink_to(theirs)
    gold, table, output = str(work / "documents.jsonl"), str(work / "mentions"), str(tmp_path / "linker")
    options = ["--learning-rate", "1e-2", "--batch-size", "4", "--epochs", "1", "--softmax-weight", "0.1"]
    options += ["--model", str(tmp_path / "export"), "--mentions", table, "--device", "cpu"]
    main(["train", "--train", gold, "--dev", gold, "--output", output, *options])
    capsys.readouterr()
    metrics = train(work, tmp_path / "linker", chosen, weights=theirs, tokenizer=theirs)
    assert "entities_sha256" not in metrics
    assert metrics["data"]["dev"]["gold_not_in_model"] > 0  # type: ignore[index]
    main(["link", gold, "--local", "--model", output, "--mentions", table, "--device", "cpu"])
    (tmp_path / "answers.jsonl").write_text(capsys.readouterr().out)
    main(["score", gold, str(tmp_path / "answers.jsonl"), "--mentions", table])
    assert json.loads(capsys.readouterr().out)["disambiguation"] == metrics["dev"]["disambiguation"]  # type: ignore[index]
    for name in ("entity_vocab.json", "config.json", "vocab.json"):
        assert (tmp_path / "linker" / name).read_bytes() == (theirs / name).read_bytes()
    kind = transformers.LukeForMaskedLM
    loaded, said = kind.from_pretrained(tmp_path / "linker", output_loading_info=True)
    assert not any(said.values())
    before, after = kind.from_pretrained(theirs).state_dict(), loaded.state_dict()
    same = {name for name in before if torch.equal(before[name], after[name])}
    table = {"luke.entity_embeddings.entity_embeddings.weight", "entity_predictions.decoder.weight"}
    words = {name for name in before if name.startswith("lm_head") and name != "lm_head.decoder.weight"}
    # Of the last layer no word is asked for; without decay, biases then stay.
    idle = {f"luke.encoder.layer.1.attention.self.{name}.bias" for name in ("query", "w2e_query")}
    assert same == table | words | idle | {"entity_predictions.bias"}


@pytest.fixture(scope="module")
def pieces(documents: list[Document], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer as BERT's, whose pieces are letters."""
    folder = tmp_path_factory.mktemp("pieces")
    letters = sorted({letter for each in documents for letter in each.text.lower() if letter.isalnum()})
    lines = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]
    (folder / "vocab.txt").write_text("".join(f"{line}\n" for line in lines))
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 64}')
    return folder


def test_nothing_of_another_run_stays(work: Path, theirs: Path, pieces: Path, tmp_path: Path) -> None:
    """RoBERTa's tokenizer would be read before BERT's."""
    few, output = replace(QUICK, epochs=1), tmp_path / "linker"
    train(work, output, few, weights=theirs, tokenizer=theirs)
    train(work, output, few, tokenizer=pieces)
    train(work, tmp_path / "fresh", few, tokenizer=pieces)
    assert contents(output) == contents(tmp_path / "fresh")


def test_a_tokenizer_beside_the_weights_is_copied_as_it_is(
    work: Path, theirs: Path, pieces: Path, tmp_path: Path
) -> None:
    """What transformers reads of its configuration stays, though we do not."""
    shutil.copytree(theirs, tmp_path / "theirs", ignore=shutil.ignore_patterns("vocab.json", "merges.txt"))
    shutil.copytree(pieces, tmp_path / "theirs", dirs_exist_ok=True)
    source, output = tmp_path / "theirs", tmp_path / "linker"
    train(work, output, replace(QUICK, epochs=1), weights=source, tokenizer=source)
    for name in ("vocab.txt", "tokenizer_config.json"):
        assert (output / name).read_bytes() == (source / name).read_bytes()


@pytest.mark.parametrize("kind", ["ours", "theirs"])
def test_inputs_are_as_long_as_those_of_pretraining(
    work: Path, theirs: Path, documents: list[Document], tmp_path: Path, kind: str
) -> None:
    """Where the model's folder tells; a linker's does, too, and training over other windows is another training."""
    given, words = (work / "weights", work / "tokenizer") if kind == "ours" else (theirs, theirs)
    weights = shutil.copytree(given, tmp_path / "weights")
    table, tokenizer = MentionTable(str(work / "mentions")), WordTokenizer.load(words)
    whole = load_model(weights, table, tokenizer, device="cpu")
    assert whole.max_words == whole.module.config.max_words
    few = replace(QUICK, epochs=1)
    before = train(work, tmp_path / "linker", few, weights=weights, tokenizer=words)
    for told, longest in ((24, 24), (10**6, whole.max_words), ("24", whole.max_words)):
        (weights / "pretraining.json").write_text(json.dumps({"max_words": told}))
        model = load_model(weights, table, tokenizer, device="cpu")
        assert (model.max_words, model.room) == (longest, longest - 2)
    (weights / "pretraining.json").write_text('{"max_words": 24}')
    after = train(work, tmp_path / "linker", few, weights=weights, tokenizer=words)
    assert after["run"] != before["run"]
    assert after["data"]["dev"]["windows"] > before["data"]["dev"]["windows"]  # type: ignore[index]
    assert load_model(tmp_path / "linker", table, tokenizer, device="cpu").max_words == 24
    how = {"is_global": True, "longer_mentions": False}
    made_for = [
        basis(CandidateFinder(table), folder, None, **how)["max_words"] for folder in (weights, given)
    ]
    assert made_for == [24, None]  # a calibration is for these windows


def test_what_training_begins_with_is_not_written_over(work: Path) -> None:
    before = contents(work)
    for name in ("weights", "tokenizer"):
        with pytest.raises(
            ValueError, match=f"{name}: what training begins with is there; give another folder"
        ):
            train(work, work / "mentions/.." / name)
    with pytest.raises(ValueError, match=r"documents.jsonl: a file; wanted a folder"):
        train(work, work / "documents.jsonl")
    assert contents(work) == before


def test_another_model_is_not_written_over(work: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    given = [f"--{name}={work / 'documents'}" for name in ("train", "dev")]
    given += [f"--model={work / 'weights'}", f"--mentions={work / 'mentions'}", f"--output={tmp_path}"]
    with pytest.raises(SystemExit, match=r"holds another model \(config\.json\); give a new folder"):
        main(["train", *given])
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


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
    with pytest.raises(
        ValueError, match=r"neither a folder of Pretrain nor a LUKE with its entity_vocab.json"
    ):
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
