"""Probabilities of candidates beside torch's softmax; their calibration beside loops; NIL by the command."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from pipeline.lookup.mentions import MentionTable
from tasks.io.records import Record
from tasks.linking.candidates import Candidate, CandidateFinder, Candidates, DetectedMention, LinkingExample
from tasks.linking.certainty import Certainty, error_interval, read_certainty, reliability, write_certainty
from tasks.linking.documents.document import Mention
from tasks.linking.guesses import EXACT
from tasks.linking.linker import Linker, basis_of, shares_by_counts
from tests.support.contexts import write_context_table
from tests.support.linking import linker_of as linker
from tests.support.properties import given, settings, st

SCORES = st.lists(st.floats(-30, 30), min_size=1, max_size=8)
# "ab" links three times to A and once to B; of five "ab" four are links.
SENTENCE = "ab met Bob."


@given(SCORES, st.floats(0.05, 20), st.floats(0, 1), st.integers(0, 1000), st.floats(0.1, 1))
def test_probabilities_are_those_of_torch(
    scores: list[float], temperature: float, discount: float, more_links: int, of_candidates: float
) -> None:
    """Beside the candidates there are pages that no link went to, and others, whose share temperature leaves."""
    links = len(scores) + more_links
    open_share = len(scores) / links
    shares = torch.tensor(scores, dtype=torch.float64).softmax(0).numpy() * of_candidates
    expected = (torch.tensor(scores, dtype=torch.float64) / temperature).softmax(0).numpy()
    expected *= of_candidates * (links - discount * len(scores)) / links
    found = Certainty(temperature=temperature, discount=discount).probabilities(shares, open_share)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


@given(SCORES)
def test_without_a_calibration_they_stay_as_they_are(scores: list[float]) -> None:
    shares = torch.tensor(scores, dtype=torch.float64).softmax(0).tolist()
    assert Certainty(prior_weight=3.0).probabilities(shares, 1 / 7).tolist() == shares
    assert Certainty(temperature=2.0, discount=1.0).probabilities([], 1.0).tolist() == []


def answers(linker: Linker, *spans: tuple[int, int]) -> list[dict[str, Any]]:
    given = {"mentions": [{"start": start, "end": end} for start, end in spans]} if spans else {}
    [answer] = linker.answer([Record("here", {"text": SENTENCE, **given})])
    mentions: list[dict[str, Any]] = answer["mentions"]
    return mentions


@pytest.mark.parametrize("weight", [0.0, 2.0, 8.0])
@pytest.mark.parametrize("by", ["context", "coherence"])
def test_the_document_says_which_page_is_meant(table: Path, tmp_path: Path, by: str, weight: float) -> None:
    """ "ab" has three links to A and one to B, and "Bob" one to B, which stays as sure as before.

    The text has "met" and "bob", which are as rare; and B is more like itself than like A.
    """
    words = {"B": {"met": 3.0, "sea": 4.0}, "C": {"bob": 1.0}} if by == "context" else {"A": {}, "B": {}}
    vectors = {} if by == "context" else {"A": (0.0, 2.0), "B": (3.0, 3.0)}
    contexts = write_context_table(tmp_path, words, vectors=vectors)
    gain = 0.6 / 2**0.5 if by == "context" else 1 - 0.5**0.5
    asked = linker(table, Certainty(**{f"{by}_weight": weight}), contexts=contexts, shows_candidates=True)
    found = answers(asked, (0, 2), (7, 10))
    shares = {each["title"]: each["probability"] for each in found[0]["candidates"]}
    odds = 3 / np.exp(weight * gain)
    assert shares == pytest.approx({"A": odds / (1 + odds), "B": 1 / (1 + odds)}, abs=1e-3)
    assert found[0]["title"] == ("A" if odds > 1 else "B")
    assert [each["prior"] for each in found[0]["candidates"]] == [0.75, 0.25]
    parts = [each["cosine" if by == "context" else "coherence"] for each in found[0]["candidates"]]
    assert parts[1] - parts[0] == pytest.approx(gain, abs=1e-3)
    assert found[1]["probability"] == 1.0
    if by == "coherence":  # a mention alone has no others
        [alone] = answers(asked, (0, 2))
        assert (alone["title"], alone["probability"]) == ("A", 0.75)


def test_a_name_counts_for_others_as_it_is_a_link(table: Path, tmp_path: Path) -> None:
    """ "A" and "C" are titles; as names that were found they are links with these probabilities."""
    vectors = {"A": (1.0, 0.0), "C": (0.0, 1.0)}
    asked = linker(table, contexts=write_context_table(tmp_path, {"A": {}, "C": {}}, vectors=vectors))
    mentions = [Mention(0, 2), Mention(3, 4), Mention(5, 6)]
    for probability in (1.0, 0.01):
        names = [DetectedMention(0, 2, 1.0), DetectedMention(3, 4, probability), DetectedMention(5, 6, 1.0)]
        found = asked.example("ab A C", mentions, detected=names)
        assert [each.title for each in found.candidates[0].items] == ["A", "B"]
        assert found.coherence
        expected = [probability / (1 + probability**2) ** 0.5, 0.0]
        assert found.coherence[0].tolist() == pytest.approx(expected)
    given = asked.example("ab A C", mentions)
    assert given.coherence
    assert given.coherence[0].tolist() == pytest.approx([0.5**0.5, 0.0])


def test_contexts_without_a_title_are_contexts(table: Path, tmp_path: Path) -> None:
    empty = write_context_table(tmp_path, {})
    asked = linker(table, contexts=empty).example(SENTENCE, [Mention(0, 2)])
    assert [each.tolist() for each in asked.contexts or ()] == [[0.0, 0.0]]


@given(st.lists(st.floats(0.01, 1.0), max_size=4), st.floats(0, 10))
def test_contexts_leave_what_belongs_to_other_pages(parts: list[float], weight: float) -> None:
    """The priors of candidates sum to less than 1."""
    priors = [part / (sum(parts) + 0.5) for part in parts]
    items = tuple(Candidate(str(n), None, prior, "words" * (n % 2)) for n, prior in enumerate(priors))
    contexts, coherence = np.linspace(0, 1, len(priors)), np.linspace(1, -1, len(priors))
    asked = LinkingExample("x", [Mention(0, 1)], [Candidates(EXACT, items)], None, [contexts], [coherence])
    certainty = Certainty(context_weight=weight, coherence_weight=2 * weight, guess_offset=-1.5)
    [found] = shares_by_counts(asked, certainty)
    sums = weight * contexts + 2 * weight * coherence - 1.5 * (np.arange(len(priors)) % 2)
    powers = [prior * np.exp(each) for prior, each in zip(priors, sums, strict=True)]
    assert list(found) == pytest.approx([sum(priors) * power / sum(powers) for power in powers])


def test_few_links_are_less_sure_than_many(table: Path) -> None:
    """ "ab" has four links to two pages, "Bob" one; a title counts as one."""
    found = answers(linker(table, Certainty(discount=0.5)), (0, 2), (7, 10))
    assert [each["probability"] for each in found] == pytest.approx([0.75 * 3 / 4, 1 / 2])
    assert CandidateFinder(MentionTable(str(table))).of("To a").links == 1


def test_below_the_threshold_no_page_is_given(table: Path) -> None:
    """Its place and the probability of what would be the answer stay."""
    for least, titles in ((0.75, ["A", "B"]), (0.751, [None, "B"]), (1.0, [None, "B"])):
        found = answers(linker(table, Certainty(min_probability=least)), (0, 2), (7, 10))
        assert [each["title"] for each in found] == titles
        assert [each["probability"] for each in found] == [0.75, 1.0]
        assert [each["page_id"] is None for each in found] == [title is None for title in titles]
        assert [each["reason"] for each in found] == [None if title else "below_threshold" for title in titles]
    [nothing] = answers(linker(table, Certainty(min_probability=1.0)), (0, 2))
    assert {nothing[name] for name in ("title", "page_id", "qid", "entity_id")} == {None}
    assert (nothing["mention"], nothing["start"], nothing["end"]) == ("ab", 0, 2)


def test_names_that_are_found_have_to_be_links_too(table: Path) -> None:
    """Of four "Bob" one is a link, so that here is a link to B with a probability of a third."""
    found = answers(linker(table))
    [(name, probability, is_link)] = [
        (each["mention"], each["probability"], each["link_probability"]) for each in found if each["mention"] == "Bob"
    ]
    assert (name, probability, is_link) == ("Bob", 1.0, 0.333333)
    assert [each["confidence"] for each in found if each["mention"] == "Bob"] == [is_link]
    given = (7, 10)
    for certainty, found, title, spans in (
        ({}, 0.33, "B", []),
        ({}, 0.34, None, []),
        ({"min_probability": 1.1}, 0.33, "B", []),
        ({"min_probability": 1.1}, 0.0, None, [given]),
        ({"min_probability": 1.0}, 0.34, "B", [given]),
    ):
        asked = linker(table, Certainty(**certainty), min_detected=found)
        every = answers(asked, *spans)
        [bob] = [each for each in every if each["mention"] == "Bob"]
        assert (bob["title"], bob["link_probability"]) == (title, None if spans else 0.333333)
        unsure = [each for each in every if each["title"] is None and each["probability"] is not None]
        assert asked.unsure.total() == len(unsure) == sum(each["title"] is None for each in every)


def test_a_calibration_is_read_as_it_was_written(table: Path, tmp_path: Path) -> None:
    used_for = basis_of(linker(table, is_global=True))
    certainty = Certainty(0.5, 4.0, 2.0, -1.5, 0.75, 0.125, -0.6, 0.4, 0.3, 0.2)
    assert 0 not in vars(certainty).values()
    write_certainty(tmp_path / "calibration.json", certainty, used_for, {"documents": 1})
    assert read_certainty(tmp_path / "calibration.json", used_for) == certainty
    assert used_for["mode"] == "prior"
    assert basis_of(linker(table)) == used_for  # local or global is a model's way


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"made_for": None}, "made_for is null; wanted a file that python -m tasks.linking calibrate"),
        *(
            ({name: "0" * 64}, rf"made for {name} 000000000000, used with [\w.]+; calibrate for that")
            for name in ("mentions", "contexts", "model", "mode", "most_candidates", "max_words")
        ),
        *(
            ({name: value}, f"{name} is .*; wanted a number.*; run BuildLinker or calibrate again")
            for name, value in {
                "unknown_offset": None, "coherence_weight": None, "temperature": 0, "discount": -1,
                "min_probability": "x", "prior_weight": True,
            }.items()
        ),
    ],
)  # fmt: skip
def test_a_calibration_of_something_else_is_refused(
    table: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    used_for = basis_of(linker(table))
    path = tmp_path / "calibration.json"
    write_certainty(path, Certainty(), used_for, {})
    values = json.loads(path.read_text())
    for name, value in changes.items():
        (values if name in values else values["made_for"])[name] = value
    path.write_text(json.dumps(values))
    with pytest.raises(ValueError, match=rf"^{path}: {message}"):
        read_certainty(path, used_for)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(0, 1) | st.sampled_from([0.0, 0.1, 0.3, 0.7, 1.0]), st.booleans()), max_size=20))
def test_calibration_is_that_of_loops(rows: list[tuple[float, bool]]) -> None:
    found = reliability([row[0] for row in rows], [row[1] for row in rows])
    assert [(each["from"], each["to"]) for each in found["bins"]] == [
        (number / 10, (number + 1) / 10) for number in range(10)
    ]
    edges, error = np.linspace(0, 1, 11), 0.0
    for number, each in enumerate(found["bins"]):
        low, high = edges[number], edges[number + 1]
        inside = [row for row in rows if low < row[0] <= high or (number == 0 and row[0] == 0)]
        assert each["mentions"] == len(inside)
        if inside:
            confidence, accuracy = (float(np.mean([row[place] for row in inside])) for place in (0, 1))
            assert (each["confidence"], each["accuracy"]) == pytest.approx((confidence, accuracy))
            error += len(inside) / len(rows) * abs(confidence - accuracy)
        else:
            assert each["confidence"] is each["accuracy"] is None
    assert found["mentions"] == len(rows)
    ordered = sorted(rows)
    assert found == reliability([row[0] for row in ordered], [row[1] for row in ordered])
    if not rows:
        assert found["expected_calibration_error"] is None
        return
    assert found["expected_calibration_error"] == pytest.approx(error)


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 1), st.booleans()), min_size=1, max_size=40))
def test_the_interval_of_the_calibration_error_is_the_jackknife(rows: list[tuple[int, float, bool]]) -> None:
    """Beside a plain one, which leaves out a document at a time."""

    def error(left: list[tuple[int, float, bool]]) -> float:
        figures = reliability([row[1] for row in left], [row[2] for row in left])
        return float(figures["expected_calibration_error"])

    found = error_interval(*zip(*rows, strict=True))
    documents = {row[0] for row in rows}
    if len(documents) < 2:
        assert found is None
        return
    without = [error([row for row in rows if row[0] != document]) for document in documents]
    half = 1.96 * ((len(without) - 1) ** 2 / len(without) * np.var(without, ddof=1)) ** 0.5
    expected = max(0.0, error(rows) - half), min(1.0, error(rows) + half)
    assert found == pytest.approx(expected, abs=1e-9)
