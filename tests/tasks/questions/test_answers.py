"""Official scores of question answering, held against a step-by-step re-implementation; files of predictions."""

import re
import string
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tasks.finetuning.registry import TASKS
from tasks.io.data_folder import split_file
from tasks.questions.answers import Candidates, answer_scores, normalise, ranked, token_f1
from tests.support.fine_tuned import EXAMPLES
from tests.support.properties import given, settings, st


def official_normalise(text: str) -> str:
    """The four steps of the official scripts, one after another."""
    lowered = text.lower()
    kept = "".join(character for character in lowered if character not in set(string.punctuation))
    without_articles = re.sub(r"\b(a|an|the)\b", " ", kept)
    return " ".join(without_articles.split())


def official_f1(prediction: str, truth: str) -> float:
    prediction_words, truth_words = official_normalise(prediction).split(), official_normalise(truth).split()
    left, shared = Counter(truth_words), 0
    for word in prediction_words:
        if left[word] > 0:
            left[word] -= 1
            shared += 1
    if shared == 0:
        return 0
    precision, recall = shared / len(prediction_words), shared / len(truth_words)
    return (2 * precision * recall) / (precision + recall)


def official_scores(gold: dict[str, list[str]], predictions: dict[str, str]) -> tuple[float, float]:
    """Exact match and F1 in percent."""
    matches = f1 = 0.0
    for name, truths in gold.items():
        if name not in predictions:
            continue
        same = [official_normalise(predictions[name]) == official_normalise(truth) for truth in truths]
        matches += max(same)
        f1 += max(official_f1(predictions[name], truth) for truth in truths)
    return 100.0 * matches / len(gold), 100.0 * f1 / len(gold)


CASES = [
    ("The Cat", "cat", 1, 1),
    ("cat.", "a cat", 1, 1),
    ("", "", 1, 0),  # as in version 1.1: nothing in common has no F1
    ("", "cat", 0, 0),
    ("cat cat dog", "cat dog dog", 0, 2 / 3),
    ("twenty-one", "twenty one", 0, 0),
    ("“cat”", "cat", 0, 0),  # these marks are not ASCII
    ("Étude", "étude", 1, 1),
    ("theatre", "atre", 0, 0),
    ("cat\u00a0dog", "cat dog", 1, 1),
    ("U.S.", "us", 1, 1),
    ("a.n", "an", 1, 0),
]


@pytest.mark.parametrize(("predicted", "gold", "match", "f1"), CASES)
def test_cases(predicted: str, gold: str, match: float, f1: float) -> None:
    assert (normalise(predicted) == normalise(gold)) == match
    assert token_f1(predicted, gold) == pytest.approx(f1)
    assert token_f1(predicted, gold) == pytest.approx(official_f1(predicted, gold))


words = st.sampled_from(["the", "a", "An", "cat", "Cat's", "dog", "U.S.", "é", "E\u0301", "—", "“x”", "İ", "5%", "..."])
phrases = st.lists(words, max_size=6).map(" ".join)
texts = st.one_of(phrases, st.text(max_size=20), st.text(alphabet="athen .,'-\t\u3000", max_size=12))


@settings(max_examples=300)
@given(texts, texts)
def test_scores_of_a_pair_equal_the_official_ones(predicted: str, gold: str) -> None:
    assert normalise(predicted) == official_normalise(predicted)
    assert (normalise(predicted) == normalise(gold)) == (official_normalise(predicted) == official_normalise(gold))
    assert token_f1(predicted, gold) == pytest.approx(official_f1(predicted, gold))


@settings(max_examples=100)
@given(
    st.dictionaries(st.sampled_from("abcdef"), st.lists(phrases, min_size=1, max_size=3), min_size=1),
    st.dictionaries(st.sampled_from("abcdefgh"), phrases),
)
def test_scores_of_a_file_equal_the_official_ones(gold: dict[str, list[str]], found: dict[str, str]) -> None:
    scores = answer_scores(gold, found)
    matches, f1 = official_scores(gold, found)
    assert (100 * scores["exact_match"], 100 * scores["f1"]) == (pytest.approx(matches), pytest.approx(f1))
    assert scores["missing"] == len(set(gold) - set(found))
    assert scores["predicted"] == sum(bool(found.get(name)) for name in gold)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3), st.integers(-3, 3)), max_size=60), st.integers(1, 9))
def test_the_best_have_texts_of_their_own(rows: list[tuple[int, int, int]], count: int) -> None:
    passage = "ababcabc"
    spans = np.array([(start, start + length) for start, length, _ in rows], np.int64).reshape(-1, 2)
    scores = np.array([score for *_, score in rows], np.float32)
    wanted: dict[str, int] = {}
    for number in sorted(range(len(rows)), key=lambda number: (-rows[number][2], number)):
        wanted.setdefault(passage[slice(*spans[number])], number)
    assert ranked(Candidates(passage, scores, spans), count) == [*wanted.values()][:count]


@pytest.mark.parametrize("task", ["cloze_qa", "extractive_qa"])
def test_a_data_set_against_itself_scores_all(task: str, tmp_path: Path) -> None:
    """As the documentation says: the predictions may be the same examples; rows as well as the nested file."""
    gold = split_file(EXAMPLES / task, "test")
    module = TASKS[task]
    scores = module.score_files(gold, gold)
    assert (scores["exact_match"], scores["f1"], scores["missing"], scores["unknown"]) == (1.0, 1.0, 0, 0)
    (tmp_path / "other.json").write_text('{"data": [{"no": "questions"}]}')
    with pytest.raises(ValueError, match=r"other\.json"):
        module.score_files(gold, tmp_path / "other.json")
