"""Shared parts of the question answering tasks: nested JSON files, predictions, and the official scores."""

import json
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from tasks.io.probabilities import rounded, softmax
from tasks.io.records import JSON_ERRORS, Record, as_record, children, parse_file, read_records, read_text
from tasks.task import Outputs, Task

N_BEST = 20
ARTICLE = re.compile(r"\b(a|an|the)\b")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


class Answer(NamedTuple):
    """Characters of a passage (half open), the text there, and the score that a model gives it."""

    text: str
    start: int
    end: int
    score: float


class Candidates(NamedTuple):
    """The possible answers to a question: `scores` (candidates), and the characters (candidates, 2) of each."""

    passage: str
    scores: np.ndarray
    spans: np.ndarray

    def answer(self, number: int) -> Answer:
        """One of them."""
        start, end = self.spans[number].tolist()
        return Answer(self.passage[start:end], start, end, float(self.scores[number]))


def ranked(candidates: Candidates, count: int) -> list[int]:
    """The numbers of the `count` best candidates with texts of their own, of equals the first."""
    scores, size = candidates.scores, count
    while True:
        least = np.partition(scores, -size)[-size] if len(scores) > size else -np.inf
        likely = np.flatnonzero(scores >= least)
        best: dict[str, int] = {}
        for number in likely[np.argsort(-scores[likely], kind="stable")].tolist():
            best.setdefault(candidates.answer(number).text, number)
        if len(best) >= count or len(likely) == len(scores):
            return [*best.values()][:count]
        size *= 4


def filled_text(record: Record, name: str) -> str:
    """A text that has more than blanks. Raises: ValueError naming the field."""
    text = record.text(name)
    if not text.strip():
        raise record.error(f"{name} is empty; wanted a text")
    return text


def listed_objects(record: Record, name: str, fields: Sequence[str]) -> list[Record]:
    """The objects in a list of a record, which Hugging Face may have as one object with a list for each of `fields`.

    Raises: ValueError naming the place of what is none, or lists of different lengths.
    """
    value = record.values.get(name)
    if not isinstance(value, dict):
        return children(record, name)
    lists = Record(f"{record.where}: {name}", value)
    columns = [lists.field(field, list, "a list") for field in fields]
    if len(set(map(len, columns))) > 1:
        sizes = " and ".join(f"{len(column)} in {field}" for field, column in zip(fields, columns, strict=True))
        raise lists.error(f"{sizes}; give one of each for each object")
    rows = enumerate(zip(*columns, strict=True))
    return [Record(f"{lists.where}[{number}]", dict(zip(fields, row, strict=True))) for number, row in rows]


def check_ids(records: Iterable[tuple[str, Record]]) -> None:
    """Raises: ValueError naming the first question whose id another one has."""
    seen: dict[str, Record] = {}
    for name, record in records:
        if name in seen:
            raise record.error(f"id {name!r} is that of {seen[name].where}, too; wanted one id a question")
        seen[name] = record


def read_predictions(path: Path) -> dict[str, str]:
    """Texts by question id: one JSON object, or SuperGLUE's lines with `idx` and `label`.

    Raises: ValueError for anything else, and for a question that is answered twice.
    """

    repeated: list[str] = []

    def noting_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        repeated.extend(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        return dict(pairs)

    try:
        values = json.loads(read_text(path), object_pairs_hook=noting_repeated)
    except json.JSONDecodeError:
        values = None  # lines
    except JSON_ERRORS:
        values = parse_file(path, read_text(path))  # which says what is wrong
    if isinstance(values, dict) and set(values) != {"idx", "label"}:
        if repeated:
            raise ValueError(f"{path}: {repeated[0]!r} stands there twice; wanted one text a question")
        record = as_record(str(path), values)
        return {name: record.text(name) for name in values}
    records = read_records(path)
    named = [(str(record.field("idx", int, "a question's number")), record) for record in records]
    check_ids(named)
    return {name: record.text("label") for name, record in named}


def predicted_texts(path: Path, read: Callable[[Path], Any]) -> dict[str, str]:
    """Texts by question id: predictions, or else the first answers of a data set that `read` takes.

    Raises: what `read_predictions` does for a file that is neither.
    """
    try:
        return read_predictions(path)
    except ValueError:
        with suppress(ValueError):
            return {name: texts[0] for name, texts in gold_answers(read(path)).items() if texts}
        raise


def gold_answers(dataset: Any) -> dict[str, list[str]]:
    """The texts of the right answers to each question of a data set, by id."""
    return {example.id: [text for _, text in example.answers] for example in dataset.examples}


def answer_object(candidates: Candidates, temperature: float, top: int | None) -> dict[str, Any]:
    """The best answer as JSON (`answer`, `start`, `end`, `score`, `probability`), and the best as `n_best`.

    There are `top` of them with texts of their own, 20 for None.
    """
    if not len(candidates.scores):
        return {"answer": "", "n_best": []}
    shares = softmax(candidates.scores, temperature)
    found = []
    for number in ranked(candidates, top or N_BEST):
        text, start, end, score = candidates.answer(number)
        probability = rounded(shares[number])
        found.append({"answer": text, "start": start, "end": end, "score": score, "probability": probability})
    return {**found[0], "n_best": found}


# Scores


def normalise(text: str) -> str:
    """A text as the official scripts compare it: lower case, no ASCII punctuation, no a, an, the, single blanks."""
    return " ".join(ARTICLE.sub(" ", text.lower().translate(NO_PUNCTUATION)).split())


def token_f1(predicted: str, gold: str) -> float:
    """F1 over the words of both, normalised, each as often as it is there; 0 where one has none."""
    ours, theirs = normalise(predicted).split(), normalise(gold).split()
    same = (Counter(ours) & Counter(theirs)).total()
    return 2 * same / (len(ours) + len(theirs)) if same else 0.0


def best_texts(names: Iterable[str], predictions: Sequence[Sequence[Answer]]) -> dict[str, str]:
    """The text of the best answer to each question, by id; empty where there is no answer."""
    return {name: best[0].text if best else "" for name, best in zip(names, predictions, strict=True)}


def answer_scores(gold: Mapping[str, Sequence[str]], predicted: Mapping[str, str]) -> dict[str, Any]:
    """`exact_match` and `f1` as SQuAD 1.1's and ReCoRD's scripts have them, but as fractions of 1.

    The best over the gold answers, the mean over all questions of `gold` (answers by id); one that has no
    prediction counts 0. `predicted` are the questions that have a text.
    """
    sums = {"exact_match": 0.0, "f1": 0.0}
    for name, answers in gold.items():
        if name in predicted:
            sums["exact_match"] += normalise(predicted[name]) in map(normalise, answers)
            sums["f1"] += max(token_f1(predicted[name], answer) for answer in answers)
    return {
        **{metric: total / len(gold) for metric, total in sums.items()},
        "questions": len(gold),
        "predicted": sum(bool(predicted.get(name)) for name in gold),
        "missing": len(gold.keys() - predicted.keys()),
    }


class QuestionTask(Task[Any, Any], Protocol):
    """A task whose answers are texts of a passage."""

    PREDICTIONS_SUFFIX: str = ".json"
    READS_IN_WINDOWS: bool = True
    LABELS: tuple[str, ...]  # what the rows of the classifier find
    WANTED: str  # what a question has that can be learnt, and what to look at where none has it

    def label_names(self, datasets: Mapping[str, Any], listed: Sequence[str]) -> tuple[str, ...]:
        """Return LABELS.

        Raises: ValueError where a label file lists classes, or train has no answer to learn from.
        """
        if listed:
            names = ", ".join(listed[:3])
            raise ValueError(f"label file with {names}: question answering has no classes; remove it")
        train = datasets["train"]
        if not any(example.is_learnable for example in train.examples):
            raise ValueError(f"{train.path}: no question has {self.WANTED}")
        return self.LABELS

    def candidates(self, outputs: Outputs[Any, Any]) -> Iterator[Candidates]:
        """The candidates of each question."""

    def decode(self, outputs: Outputs[Any, Any]) -> list[tuple[Answer, ...]]:
        """The 20 best answers with texts of their own to each question, of its candidates."""
        return [tuple(map(each.answer, ranked(each, N_BEST))) for each in self.candidates(outputs)]

    def answers(
        self, outputs: Outputs[Any, Any], *, temperature: float = 1.0, top: int | None = None
    ) -> list[dict[str, Any]]:
        """`answer`, `start`, `end`, `score` and `probability` of each record, and the same of the `n_best`."""
        return [answer_object(each, temperature, top) for each in self.candidates(outputs)]

    def score(
        self, dataset: Any, predictions: Sequence[Sequence[Answer]], labels: Sequence[str], negative: str | None
    ) -> dict[str, Any]:
        """Exact match and F1 as in SQuAD 1.1's and ReCoRD's own scripts, as fractions of 1."""
        gold = gold_answers(dataset)
        return answer_scores(gold, best_texts(gold, predictions))

    def prediction_lines(self, dataset: Any, predictions: Sequence[Sequence[Answer]]) -> list[str]:
        """SQuAD's own layout, which is ReCoRD's, too: a JSON object of answers by question id."""
        texts = best_texts(gold_answers(dataset), predictions)
        return json.dumps(texts, ensure_ascii=False, indent=1).split("\n")

    def score_files(self, gold_path: Path, predictions_path: Path) -> dict[str, Any]:
        """Scores of a file of predictions; what it says of other questions is counted as `unknown`.

        That file may also be a data set, whose first answers are scored. Raises: ValueError where it has a
        prediction for no question.
        """
        gold = gold_answers(self.read(gold_path))
        predicted = predicted_texts(predictions_path, self.read)
        if not gold.keys() & predicted.keys():
            found = next(iter(predicted), "nothing")
            raise ValueError(
                f"{predictions_path}: none of the {len(gold)} questions is answered (found {found!r}, wanted ids such "
                f"as {next(iter(gold))!r}); give the predictions for this file"
            )
        return {**answer_scores(gold, predicted), "unknown": len(predicted.keys() - gold.keys())}
