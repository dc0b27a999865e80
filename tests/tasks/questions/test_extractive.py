"""Extractive question answering: SQuAD 1.1's layout, features of all windows, n-best answers, entities."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model.luke.batch import IGNORED
from model.luke.encoder import LukeModel
from pipeline.sequences.tokenizer import WordTokenizer
from pipeline.sequences.tokenizer_training import train_tokenizer
from tasks.io.annotations import EntityMention
from tasks.io.records import Record
from tasks.questions import extractive, extractive_format
from tasks.task import InputSettings, LabelledBatch, Outputs
from tests.support import ROOT
from tests.support.fine_tuned import bare, written
from tests.support.models import TINY, shake
from tests.support.properties import given, settings, st

EXAMPLES = ROOT / "examples" / "extractive_qa"
PASSAGE = "The poet (born 1901) lived in Pell."
QUESTION = {"id": "q1", "question": "When?", "answers": [{"answer_start": 15, "text": "1901"}]}


def squad(*questions: dict[str, Any], passage: Any = PASSAGE, **changes: Any) -> dict[str, Any]:
    article = {"title": "The_Po%C3%A8t", "paragraphs": [{"context": passage, "qas": list(questions)}]}
    return {"version": "1.1", "data": [article], **changes}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> WordTokenizer:
    folder = tmp_path_factory.mktemp("tokenizer")
    train_tokenizer((EXAMPLES / "train.json").read_text().splitlines(), folder, 500)
    return WordTokenizer.load(folder)


def featurize(dataset: extractive.Dataset, tokenizer: WordTokenizer, **changes: Any) -> Any:
    arguments = {"max_words": 64, "profile": "fixed", **changes}
    return extractive.TASK.featurize(dataset, InputSettings(tokenizer, ("start", "end"), {}, **arguments))


def test_a_file_is_read(tmp_path: Path) -> None:
    more = {**QUESTION, "id": "q2", "answers": [{"answer_start": 4, "text": "poet"}] * 2}
    dataset = extractive.TASK.read(written(tmp_path, squad(QUESTION, more)))
    first, second = dataset.examples
    assert (first.id, first.question, first.passage, first.page) == ("q1", "When?", PASSAGE, "The Poèt")
    assert first.answers == ((15, "1901"),)
    assert second.spans == [(4, 8), (4, 8)]
    assert extractive.TASK.describe(dataset) == {
        "questions": 2,
        "passages": 1,
        "answers": 3,
        "answers_not_at_offset": 0,
    }


def test_rows_of_hugging_face_say_the_same(tmp_path: Path) -> None:
    [wanted] = extractive.TASK.read(written(tmp_path, squad(QUESTION))).examples
    answers = {"text": ["1901"], "answer_start": [15]}
    row = {"id": "q1", "title": "The Poèt", "context": PASSAGE, "question": "When?", "answers": answers}
    [found] = extractive.TASK.read(written(tmp_path, row)).examples
    for name in ("id", "question", "passage", "page", "answers"):
        assert getattr(found, name) == getattr(wanted, name)


def test_answers_that_are_not_at_their_offset_are_counted(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    wrong = {**QUESTION, "id": "q2", "answers": [{"answer_start": 14, "text": "1901"}]}
    before = {"answer_start": -5, "text": "Pell"}
    blank = {**QUESTION, "id": "q3", "answers": [before, {"answer_start": 3, "text": " "}]}
    half = {**QUESTION, "id": "q4", "answers": [*wrong["answers"], *QUESTION["answers"]]}
    dataset = extractive.TASK.read(written(tmp_path, squad(QUESTION, wrong, blank, half)))
    assert extractive.TASK.describe(dataset)["answers_not_at_offset"] == 3
    features = featurize(dataset, tokenizer)
    assert features.counts["questions_without_span"] == 2
    labels = [feature.label.tolist() for feature in features.items]
    assert labels[1] == labels[2] == [IGNORED, IGNORED]
    assert labels[0] == labels[3] != [IGNORED, IGNORED], "the first answer that is at its offset"


def test_long_questions_and_answers_are_counted(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    passage = "Pell " * 40
    question = {"id": "q", "question": "who " * 90, "answers": [{"answer_start": 0, "text": passage[:-1]}]}
    other = {"id": "r", "question": "who?", "answers": [{"answer_start": 1, "text": "ell Pell"}]}
    features = featurize(extractive.TASK.read(written(tmp_path, squad(question, other, passage=passage))), tokenizer)
    counts = {"questions_cut": 1, "answers_too_long": 1, "answers_inside_tokens": 1}
    assert {name: features.counts[name] for name in counts} == counts
    assert features.counts["windows"] == len(features.items)
    for feature in features.items:
        assert len(feature.word_ids) <= 64
        separators = np.flatnonzero(feature.word_ids == tokenizer.sep_id).tolist()
        assert separators[1] == separators[0] + 1 == feature.first - 1
        assert separators[2] == len(feature.word_ids) - 1 == feature.first + len(feature.characters)
    assert max(feature.first for feature in features.items) == 30 + 3, "half of the words are for the passage"


def one_hot(features: list[extractive.WindowFeature]) -> list[np.ndarray]:
    """Logits of a model that points at what it was taught, and at nothing where it was taught nothing."""
    found = []
    for feature in features:
        scores = np.zeros((len(feature.word_ids), 2), dtype=np.float32)
        if feature.label[0] > 0:
            scores[feature.label, [0, 1]] = 10
        found.append(scores)
    return found


@pytest.mark.parametrize("max_words", [512, 128])
def test_real_answers_survive(shared: Path, max_words: int) -> None:
    """Every gold span comes back exactly unless it cuts a word or number in two, or is too long."""
    dataset = extractive.TASK.read(shared / "data" / "squad" / "squad1.1-mixed20-dev.json")
    assert len(dataset.examples) == 4639
    roberta = WordTokenizer.load(shared / "data" / "roberta-tokenizer")
    features = featurize(dataset, roberta, max_words=max_words)
    predictions = extractive.TASK.decode(Outputs(dataset, features.items, one_hot(features.items)))
    lost = [
        example
        for example, found in zip(dataset.examples, predictions, strict=True)
        if (found[0].start, found[0].text) != example.answers[0]
    ]
    in_two = [example for example in lost if cuts_a_word(example)]
    assert features.counts["answers_inside_tokens"] == len(in_two) == 18
    assert features.counts["answers_too_long"] == len(lost) - len(in_two) == 3
    assert {example.answers[0][1] for example in in_two} >= {"fourteen", "15", "southwest", "1 million"}
    if max_words == 128:
        assert len(features.items) > 2 * len(dataset.examples)


def cuts_a_word(example: extractive_format.Example) -> bool:
    """Return whether a letter or digit stands on both sides of an end of the answer."""
    start, text = example.answers[0]
    padded = f" {example.passage} "
    ends = (padded[start : start + 2], padded[start + len(text) : start + len(text) + 2])
    return any(pair.isalnum() for pair in ends)


def test_the_paper_keeps_the_tokenizer_s_tokens(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    question = {**QUESTION, "answers": [{"answer_start": 4, "text": "poet (born 1901)"}]}
    dataset = extractive.TASK.read(written(tmp_path, squad(question, passage="The poet (born 1901).")))
    [feature] = featurize(dataset, tokenizer, profile="paper").items
    passage = feature.word_ids[feature.first : -1].tolist()
    assert passage == tokenizer.encode(["The poet (born 1901)."], [True])[0]
    split = featurize(dataset, tokenizer).items[0]
    assert tokenizer.decode(split.word_ids[split.first : -1].tolist()) == "The poet (born 1901)."


def test_blanks_are_no_answers(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    dataset = extractive.TASK.from_records([Record("x", {"question": "who?", "text": "a \n\n b"})])
    [item] = featurize(dataset, tokenizer).items
    assert (item.characters[:, 0] == item.characters[:, 1]).any()
    [found] = extractive.TASK.decode(Outputs(dataset, [item], [np.zeros((len(item.word_ids), 2))]))
    assert [answer.text for answer in found] == ["a", "a \n\n b", "b"]


def annotate(text: str, page: str | None) -> list[EntityMention]:
    """The names that this page has, and one that is not in the vocabulary."""
    names = {"Pell": 5, "poet": 4 if page == "The Poèt" else 6, "lived": 1}
    return [
        EntityMention(text.index(name), text.index(name) + len(name), entity)
        for name, entity in names.items()
        if name in text
    ]


def test_entities_come_from_the_annotator(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    question = {**QUESTION, "question": "Which poet?"}
    dataset = extractive_format.annotated(extractive.TASK.read(written(tmp_path, squad(question))), annotate, 7)
    assert extractive.TASK.describe(dataset)["entities"] == 3
    assert extractive.TASK.describe(dataset)["entities_outside_vocabulary"] == 1
    [item] = featurize(dataset, tokenizer).items
    assert item.entity_ids.tolist() == [4, 5, 4]
    spans = [tokenizer.decode(item.word_ids[start:end].tolist()) for start, end in item.ends.tolist()]
    assert spans == [" poet", " Pell", " poet"]
    with pytest.raises(ValueError, match="annotator gave entity 5, but the model has 5 entities; give the"):
        extractive_format.annotated(dataset, annotate, 5)


def test_entities_of_each_window(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    """Those that a window has as a whole, at most 128 of them; the others' words stand there without them."""
    passage = "Pell " * 200
    record = Record("x", {
        "question": "Where is Pell?", "text": passage,
        "question_entities": [{"start": 9, "end": 13, "entity_id": 9}],
        "entities": [{"start": 5 * n, "end": 5 * n + 4, "entity_id": 3 + n} for n in range(200)],
    })  # fmt: skip
    dataset = extractive.TASK.from_records([record])
    items = featurize(dataset, tokenizer, max_words=512).items
    sizes = [len(item.entity_ids) for item in items]
    assert max(sizes) == 128
    for item in items:
        for (start, end), entity in zip(item.ends.tolist(), item.entity_ids.tolist(), strict=True):
            assert tokenizer.decode(item.word_ids[start:end].tolist()).strip() == "Pell"
            if start >= item.first:
                assert item.characters[start - item.first, 0] == 5 * (entity - 3)
    features = featurize(dataset, tokenizer, max_words=512)
    assert features.counts["entities_cut"] == 201 - 128


def batch_of(items: list[extractive.WindowFeature], *, entities: bool = True) -> LabelledBatch:
    return extractive.TASK.collate(items, entities=entities)


def test_the_loss_is_that_of_both_boundaries(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    dataset = extractive.TASK.read(EXAMPLES / "dev.json")
    items = featurize(dataset, tokenizer, max_words=38).items[:6]
    torch.manual_seed(3)
    module = extractive.TASK.head(LukeModel(TINY_WORDS), 2, entities=True).eval()
    batch = batch_of(items)
    with torch.inference_mode():
        rows = extractive.TASK.logits(module, batch)
        found = float(extractive.TASK.loss(module, batch)["loss"])
        unknown = float(
            extractive.TASK.loss(module, replace(batch, labels=torch.full_like(batch.labels, IGNORED)))["loss"]
        )
        labels = batch.labels.clone()
        labels[0] = IGNORED
        without_first = float(extractive.TASK.loss(module, replace(batch, labels=labels))["loss"])
    losses = []
    for item, scores in zip(items, rows, strict=True):
        assert len(scores) == len(item.word_ids)
        log = scores - np.log(np.exp(scores.astype(np.float64)).sum(axis=0))
        losses.append(-log[item.label, [0, 1]].sum() / 2)
    assert {item.label[0] == 0 for item in items} == {True, False}
    assert found == pytest.approx(np.mean(losses), rel=1e-5)
    assert unknown == 0
    assert without_first == pytest.approx(np.mean(losses[1:]), rel=1e-5)


TINY_WORDS = replace(TINY, vocab_size=500, entity_vocab_size=300)


def test_a_batch_has_the_entities_of_each_window(tokenizer: WordTokenizer) -> None:
    record = {"question": "Where is Pell?", "text": "Pell is here."}
    with_entity = {**record, "entities": [{"start": 0, "end": 4, "entity_id": 7}]}
    dataset = extractive.TASK.from_records([Record("x", record), Record("y", with_entity)])
    items = featurize(dataset, tokenizer).items
    inputs = batch_of(items).inputs
    assert inputs.entity_ids.tolist() == [7]
    assert [entities for _, entities in inputs.shape.lengths] == [0, 1]
    assert batch_of(items, entities=False).inputs.shape.entities == 0
    assert batch_of(items[:1]).inputs.shape.entities == 0
    torch.manual_seed(3)
    module = shake(extractive.TASK.head(LukeModel(TINY_WORDS), 2, entities=True).eval())
    with torch.inference_mode():
        together = extractive.TASK.logits(module, batch_of(items))
        alone = [extractive.TASK.logits(module, batch_of([item]))[0] for item in items]
    for left, right in zip(together, alone, strict=True):
        assert np.abs(left - right).max() < 1e-5
    assert np.abs(together[0] - together[1]).max() > 1e-3, "the entity is seen"


@pytest.mark.parametrize("entity", [TINY_WORDS.entity_vocab_size, 2**32 + 7])
def test_an_entity_that_the_model_lacks_is_refused(tokenizer: WordTokenizer, entity: int) -> None:
    """The number in a batch is narrower than one in a request."""
    given = {"entities": [{"start": 0, "end": 4, "entity_id": entity}]}
    record = Record("x", {"question": "Where is Pell?", "text": "Pell is here."} | given)
    items = featurize(extractive.TASK.from_records([record]), tokenizer).items
    with pytest.raises(ValueError, match=r"entity_ids .* wanted 0 to 299, the rows of the model's table"):
        batch_of(items).inputs.check(TINY_WORDS)


def test_given_entities(tokenizer: WordTokenizer) -> None:
    entities = [{"start": 0, "end": 3, "entity_id": number, "title": "Ada"} for number in (9, 1, None)]
    record = Record("x", {"question": "Who?", "context": "Ada sat.", "entities": entities})
    [example] = extractive.TASK.from_records([record]).examples
    assert example.passage_mentions == (EntityMention(0, 3, 9),)
    assert extractive_format.annotated(extractive.TASK.from_records([record]), annotate, 10).examples == (example,), (
        "given ones are kept"
    )


@pytest.mark.parametrize(("temperature", "top"), [(1.0, None), (0.7, 2), (3.0, 100)])
def test_probabilities_are_shares_of_all_spans(tokenizer: WordTokenizer, temperature: float, top: int | None) -> None:
    """Of every window; by hand."""
    passage = "Ada sat. " + " ".join(f"word{number}," for number in range(30)) + " Ada."
    dataset = extractive.TASK.from_records(
        [Record("x", {"question": "who?", "text": text}) for text in (passage, "Ada")]
    )
    items = featurize(dataset, tokenizer).items
    assert len(items) > 4
    generator = np.random.default_rng(4)
    logits = [generator.normal(size=(len(item.word_ids), 2)).astype(np.float32) for item in items]
    every: list[tuple[float, int, int]] = []
    for item, scores in zip(items[:-1], logits, strict=False):
        for first in np.flatnonzero(item.is_start).tolist():
            for last in range(first, min(first + 30, len(item.characters))):
                start, end = int(item.characters[first, 0]), int(item.characters[last, 1])
                every.append((float(scores[item.first + first, 0] + scores[item.first + last, 1]), start, end))
    every.sort(key=lambda each: -each[0])
    total = sum(math.exp(score / temperature) for score, _, _ in every)
    best: dict[str, tuple[float, int, int]] = {}
    for each in every:
        best.setdefault(passage[each[1] : each[2]], each)
    assert len(best) < len(every), "Ada is there twice"
    covered = sorted(tuple(span) for item in items[:-1] for span in item.characters[item.is_start].tolist())
    assert len(covered) == len(set(covered)), "a token may start an answer in one window alone"
    assert covered == sorted({tuple(span) for item in items[:-1] for span in item.characters.tolist()})
    [decoded, _] = extractive.TASK.decode(Outputs(dataset, items, logits))
    assert [(each.text, (each.score, each.start, each.end)) for each in decoded] == [*best.items()][:20]
    [found, _] = extractive.TASK.answers(Outputs(dataset, items, logits), temperature=temperature, top=top)
    wanted = [
        {"answer": text, "start": start, "end": end, "score": score} for text, (score, start, end) in best.items()
    ][: top or 20]
    assert bare(found["n_best"]) == wanted
    assert found == {**found["n_best"][0], "n_best": found["n_best"]}
    for each in found["n_best"]:
        assert each["probability"] == pytest.approx(math.exp(each["score"] / temperature) / total, abs=1e-6)


def test_a_text_without_tokens_has_no_answer() -> None:
    dataset = extractive.TASK.from_records([Record("x", {"question": "who?", "text": "Ada"})])
    assert extractive.TASK.answers(Outputs(dataset, [], [])) == [{"answer": "", "n_best": []}]
    assert extractive.TASK.decode(Outputs(dataset, [], [])) == [()]


logit = st.one_of(st.integers(-3, 3).map(float), st.just(-np.inf), st.floats(-5, 5, width=32))


@settings(max_examples=200)
@given(st.lists(st.tuples(logit, logit), max_size=25), st.integers(1, 8))
def test_sums_of_spans_equal_brute_force(rows: list[tuple[float, float]], longest: int) -> None:
    starts, ends = np.array(rows, dtype=np.float32).reshape(-1, 2).T
    every = [
        (float(starts[first] + ends[last]), first, last)
        for first in range(len(rows))
        for last in range(first, min(first + longest, len(rows)))
    ]
    sums, first, last = extractive.sums_of_spans(starts, ends, longest)
    found = list(zip(sums.tolist(), first.tolist(), last.tolist(), strict=True))
    assert found == [span for span in every if np.isfinite(span[0])]


def test_what_is_right_are_the_spans_of_all_answers(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    """Questions whose answers no span can be are left out."""
    answers = [{"answer_start": 0, "text": "Ada"}, {"answer_start": 4, "text": "sat"}]
    inside = [{"answer_start": 1, "text": "d"}]
    questions = [{"id": name, "question": "who?", "answers": given} for name, given in (("a", answers), ("b", inside))]
    dataset = extractive.TASK.read(written(tmp_path, squad(*questions, passage="Ada sat.")))
    items = featurize(dataset, tokenizer).items
    logits = [np.zeros((len(item.word_ids), 2), np.float32) for item in items]
    [(scores, is_right)] = extractive.TASK.choices(Outputs(dataset, items, logits))
    assert scores.shape == is_right.shape == (1, len(scores[0]))
    spans = next(iter(extractive.TASK.candidates(Outputs(dataset, items, logits)))).spans
    assert spans[is_right[0]].tolist() == [[0, 3], [4, 7]]
