"""The choices of calibrate, beside fine grids and loops; and that link then answers what was calibrated."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from pipeline.lookup.annotator import Annotator
from pipeline.lookup.mentions import MentionTable
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.io.records import Record
from tasks.linking.calibration import calibration
from tasks.linking.calibration.calibration import (
    MOST_DISCOUNT,
    best_threshold,
    calibrate,
    fit_discount,
    fit_weights,
    likeliest,
)
from tasks.linking.calibration.outcomes import Outcomes, Row
from tasks.linking.candidates import Candidate, CandidateFinder, Candidates
from tasks.linking.certainty import Certainty, reliability
from tasks.linking.documents.document import Document, Mention, Skipped, to_json
from tasks.linking.documents.reading import read_documents
from tasks.linking.guesses import EXACT
from tasks.linking.linker import Linker
from tasks.linking.model.entity_model import load_model
from tasks.linking.scores.pairs import Pair, resolver
from tasks.linking.scores.scores import linking_scores
from tests.support.asked import Linking
from tests.support.contexts import write_context_table
from tests.support.linking import linker_of, pages_of, write_model
from tests.support.mentions import small_pages, write_mentions
from tests.support.properties import given, st

# Outcomes that are drawn


Values = tuple[float, float, float, float, float, float]  # weights, unknown offset, temperature and discount


def drawn(values: Values, count: int = 4000) -> Outcomes:
    """Mentions whose pages are drawn with the probabilities of these values."""
    certainty, generator, rows = Certainty(*values), np.random.default_rng(1), []
    for _ in range(count):
        size = int(generator.integers(1, 6))
        counts = np.sort(generator.integers(1, 30, size))[::-1]
        priors, logits = counts / counts.sum(), generator.normal(scale=2, size=size)
        contexts, is_unknown = generator.uniform(size=size), generator.uniform(size=size) < 0.3
        counted = np.log(priors), contexts, generator.uniform(-1, 1, size)
        scores = scores_of(certainty, counted, logits, is_unknown)
        right = certainty.probabilities(shares_of(scores), size / counts.sum())
        place = int(generator.choice(size + 1, p=[*right, max(0.0, 1 - right.sum())]))
        items = tuple(Candidate(str(n), None, float(prior)) for n, prior in enumerate(priors))
        given = shares_of(scores_of(Certainty(), counted, logits, is_unknown))
        found = Candidates(EXACT, items, int(counts.sum()))
        rows.append(Row(str(place), found, given, *counted[1:], is_unknown.tolist()))
    return Outcomes.of(rows)


def scores_of(certainty: Certainty, counted: Any, logits: Any, is_unknown: Any) -> Any:
    log_priors, contexts, coherence = counted
    by_counts = log_priors + certainty.context_weight * contexts + certainty.coherence_weight * coherence
    return certainty.prior_weight * by_counts + logits + certainty.unknown_offset * is_unknown


def shares_of(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def loss(outcomes: Outcomes, certainty: Certainty) -> float:
    """The negative log likelihood mention by mention, where shares were taken with the weights of Certainty()."""
    found = 0.0
    for number, size in enumerate(outcomes.sizes):
        columns = (
            outcomes.shares, outcomes.is_unknown, outcomes.log_priors, outcomes.contexts, outcomes.coherence,
        )  # fmt: skip
        shares, is_unknown, *counted = (each[number, :size] for each in columns)
        logits = np.log(shares) - scores_of(Certainty(), counted, 0.0, is_unknown)
        scores = scores_of(certainty, counted, logits, is_unknown)
        right = certainty.probabilities(shares_of(scores), float(outcomes.open_shares[number]))
        hit = outcomes.is_right[number, :size]
        found -= float(np.log(right[hit].sum() if hit.any() else 1 - right.sum()))
    return found


@pytest.mark.parametrize("values", [(0.5, 4.0, 2.0, 1.0, 1.5, 0.25), (6.0, 9.0, 3.0, -2.0, 1.5, 0.05)])
def test_the_likeliest_values_are_found(values: Values) -> None:
    """Those by which the outcomes were drawn, nearly, and none around them is likelier."""
    outcomes = drawn(values)
    found, discount = fit_weights(outcomes, has_model=True), fit_discount(outcomes)
    weights = found.prior_weight, found.context_weight, found.coherence_weight, found.unknown_offset
    assert weights == pytest.approx(values[:4], rel=0.25, abs=0.25)
    assert discount == pytest.approx(values[5], abs=0.05)
    best = replace(found, temperature=values[4], discount=values[5])
    least = loss(outcomes, best)
    for step in (-0.05, 0.05):
        assert loss(outcomes, replace(best, discount=discount + step if discount > 0.05 else 0.2)) > least
    for name in ("prior_weight", "context_weight", "coherence_weight", "unknown_offset"):
        for factor in (0.7, 1.4):
            assert loss(outcomes, replace(best, **{name: getattr(best, name) * factor})) > least


def test_weights_are_those_of_a_loop_without_gradients() -> None:
    """The loss as it is written down, minimised without gradients; and with a weight that may not fall below 0.9."""
    generator = np.random.default_rng(1)
    features, is_own = generator.normal(size=(60, 4, 3)), np.arange(4) < generator.integers(2, 5, 60)[:, None]
    right = generator.integers(0, 2, 60)
    is_right = np.arange(4) == right[:, None]
    expected, variances = np.array([1.0, 0.0, 1.0]), np.array([0.25, 1.0, 4.0])

    def loss_of(weights: np.ndarray) -> float:
        found = ((weights - expected) ** 2 / variances).sum() / 2
        for rows, own, place in zip(features, is_own, right, strict=True):
            scores = rows[own] @ weights
            found += float(np.log(np.exp(scores).sum()) - scores[place])
        return found

    for least in (-np.inf, 0.9):
        lowest = np.array([-np.inf, -np.inf, least])
        found = likeliest(features, is_own, is_right, expected, variances, lowest)
        bounds = [(None if low == -np.inf else low, None) for low in lowest]
        theirs = minimize(loss_of, expected, bounds=bounds, method="L-BFGS-B", options={"gtol": 1e-8})
        np.testing.assert_allclose(found, theirs.x, atol=1e-3)
    assert found[2] == 0.9


def test_without_a_model_contexts_alone_are_weighed() -> None:
    outcomes = drawn((1.0, 4.0, 2.0, 0.0, 1.5, 0.0))
    by_counts = replace(outcomes, is_unknown=np.zeros_like(outcomes.is_unknown))
    found = fit_weights(by_counts, has_model=False)
    assert (found.prior_weight, found.unknown_offset) == (1.0, 0.0)
    assert (found.context_weight, found.coherence_weight) == pytest.approx((4.0, 2.0), rel=0.3)


def test_where_there_is_nothing_to_choose_weight_and_temperature_stay(small: Linker) -> None:
    """Candidates that stand alone tell the discount, and how often they are right."""
    only = Candidates(EXACT, (Candidate("A", None, 1.0),), 4)
    outcomes = Outcomes.of([Row(title, only, [1.0], np.zeros(1), np.zeros(1), [False]) for title in ("A", None)])
    assert fit_weights(outcomes, has_model=True) == Certainty()
    certainty, fit = calibrate(small, [page(None, None, None, "B", "C")], own_links=True)
    assert certainty.temperature == 1.0
    assert fit["right_among_candidates"] == 1


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.25, 0.5, 0.75, 0.9]), st.booleans()), min_size=1), st.integers(0, 9))
def test_the_threshold_is_that_of_loops(rows: list[tuple[float, bool]], unreached: int) -> None:
    known = sum(right for _, right in rows) + unreached

    def f1_and_count(least: float) -> tuple[float, int]:
        kept = [right for probability, right in rows if probability >= least]
        return 2 * sum(kept) / max(1, len(kept) + known), len(kept)

    probabilities, is_right = (np.array(each) for each in zip(*rows, strict=True))
    found = best_threshold(probabilities, is_right, known)
    assert f1_and_count(found) == max(map(f1_and_count, [0.0, 0.2, 0.3, 0.6, 0.8]))


# By the table alone


PAGE = "a a a b b"


@pytest.fixture
def small(tmp_path: Path) -> Linker:
    """ "a" links twice to A and once to B, "b" to B, and once to C from the first page alone."""
    ends = [["A", "A", "B", "B", "C"], ["A", "A", "B", "B", "B"]]
    articles = [(PAGE, [(2 * n, 1, end) for n, end in enumerate(each)]) for each in ends]
    write_mentions(tmp_path / "mentions", small_pages([*articles, ("", []), ("", [])], "ABDE"))
    return linker_of(tmp_path / "mentions")


def page(*titles: str | None) -> Document:
    mentions = tuple(Mention(2 * n, 2 * n + 1, title) for n, title in enumerate(titles))
    return Document("here", "A", PAGE, mentions, (0, len(PAGE)))


def test_own_links_do_not_count(small: Linker, tmp_path: Path, run: Linking) -> None:
    """Without the first page C is nowhere, so that its link is one to none of the candidates."""
    document = page("A", "A", "B", "B", "C")
    _, with_own = calibrate(small, [document])
    _, fit = calibrate(small, [document], own_links=True)
    names = ("mentions", "in_knowledge_base", "with_candidates", "right_among_candidates")
    assert [with_own[name] for name in names] == [5, 5, 5, 5]
    assert [fit[name] for name in names] == [5, 4, 5, 4]
    gold, table = tmp_path / "gold.jsonl", tmp_path / "mentions"
    gold.write_text(json.dumps(to_json(document)))
    asked = ["calibrate", "--documents", gold, "--mentions", table, "--output", tmp_path / "calibration.json"]
    [written], *_ = run(*asked, "--own-links")
    assert written["fit"].items() >= fit.items()


def test_pages_whose_words_the_contexts_have_are_refused(small: Linker, tmp_path: Path) -> None:
    """Contexts that read no page, or all of them but those that are held out."""
    document = page("A", "A", "B", "B", "C")
    for held_out, is_read in ((1.0, False), (0.0, True)):
        contexts = write_context_table(tmp_path / str(held_out), {"A": {"a": 1.0}}, held_out)
        linker = replace(small, contexts=contexts)
        calibrate(linker, [document])
        if is_read:
            with pytest.raises(ValueError, match=r"here: 'A' is a page that .* has read; give pages that"):
                calibrate(linker, [document], own_links=True)
        else:
            calibrate(linker, [document], own_links=True)


def test_optional_mentions_tell_nothing(small: Linker) -> None:
    """As if they were not there. The table knows no QIDs, so that titles tell pages."""
    document = page("A", "A", "B", "B", "C")
    given = document.mentions or ()
    changed = [replace(each, qid="Q7", optional=number in (1, 4)) for number, each in enumerate(given)]
    some = [given[number] for number in (0, 2, 3)]
    found, expected = (calibrate(small, [replace(document, mentions=tuple(each))]) for each in (changed, some))
    assert found == expected
    assert found[1]["mentions"] == 3


def test_what_is_left_out_of_documents_is_counted(small: Linker, tmp_path: Path, run: Linking) -> None:
    gold, output = tmp_path / "gold.jsonl", tmp_path / "calibration.json"
    wrong = {"id": "x", "text": "Ann", "mentions": [{"start": 0, "end": 9}]}
    gold.write_text(f"{{\n{json.dumps(to_json(page('A', 'B')))}\n{json.dumps(wrong)}\n{{\n")
    asked = ["calibrate", "--documents", gold, "--mentions", tmp_path / "mentions", "--output", output]
    [written], err, _ = run(*asked, "--on-error", "skip")
    fit = written["fit"]
    assert [fit[name] for name in ("mentions_left_out", "documents_left_out")] == [1, 2]
    assert f"left out: {gold}:3: mentions[0]: start, end spans 0 to 9" in err
    assert f"(the first at {gold}:1)" in err


def test_a_page_that_is_no_candidate_is_discounted_for(small: Linker) -> None:
    """Not so a page that the dump lacks: it tells the threshold alone, and the error of all."""
    certain, fit = calibrate(small, [page("A", "A", "A", "B", "B")])
    unsure, _ = calibrate(small, [page("A", "A", "A", "D", "E")])
    assert certain.discount == 0.0 < unsure.discount
    assert fit["expected_calibration_error"] == fit["expected_calibration_error_of_all"]
    never, _ = calibrate(small, [page("A", *["D"] * 4)])
    assert never.discount == pytest.approx(MOST_DISCOUNT, abs=1e-3)
    lacking, fit = calibrate(small, [page("A", "A", "A", None, "No such")])
    assert lacking.discount == 0.0
    assert (fit["in_knowledge_base"], fit["right_among_candidates"]) == (3, 3)
    # A is right three times, and what is said of "b" is wrong twice.
    sure = [float(lacking.probabilities(each, 0.5).max()) for each in ([2 / 3, 1 / 3], [3 / 4, 1 / 4])]
    assert fit["expected_calibration_error"] == pytest.approx(1 - sure[0])
    assert fit["expected_calibration_error_of_all"] == pytest.approx((3 * (1 - sure[0]) + 2 * sure[1]) / 5)
    assert calibrate(small, [page("A")], min_probability=0.25)[0].min_probability == 0.25
    with pytest.raises(ValueError, match="none of 2 mentions has its page among its candidates; give"):
        calibrate(small, [page("D", None)])


# By a model, and by the command


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Path:
    """A real document (`documents.jsonl`), a mention table (`mentions`), a random model (`weights`, `tokenizer`)."""
    folder = tmp_path_factory.mktemp("calibration")
    [document] = read_documents(shared / "data/entity-linking/wned-wiki.jsonl", Skipped())[:1]
    (folder / "documents.jsonl").write_text(json.dumps(to_json(document)))
    table = write_mentions(folder / "mentions", pages_of([document]))
    write_model(folder, [document.text], len(table.vocab), initializer_range=0.3)
    return folder


@pytest.mark.parametrize("is_global", [True, False])
def test_link_answers_what_was_calibrated(work: Path, is_global: bool) -> None:
    table = MentionTable(str(work / "mentions"))
    model = load_model(work / "weights", table, WordTokenizer.load(work / "tokenizer"), device="cpu")
    linker = Linker(CandidateFinder(table), Annotator(table), model=model, is_global=is_global)
    documents = read_documents(work / "documents.jsonl")
    certainty, fit = calibrate(linker, documents)
    assert certainty.prior_weight != 1
    assert certainty.temperature != 1
    calibrated = replace(linker, certainty=replace(certainty, min_probability=0.0))
    records = [Record("here", {"text": each.text, "mentions": to_json(each)["mentions"]}) for each in documents]
    answers = [each for answer in calibrated.answer(records) for each in answer["mentions"]]
    golds = [mention.title for each in documents for mention in each.mentions or ()]
    pairs = [
        (each["probability"], each["title"] == gold) for each, gold in zip(answers, golds, strict=True) if each["title"]
    ]
    error = reliability(*zip(*pairs, strict=True))["expected_calibration_error"]
    assert fit["expected_calibration_error"] == pytest.approx(error, abs=1e-5)
    # The weights are those of the local way, whichever way they are for; given ones are taken.
    local, _ = calibrate(replace(linker, is_global=False), documents)
    weights = [
        (each.prior_weight, each.context_weight, each.coherence_weight, each.unknown_offset)
        for each in (certainty, local)
    ]
    assert weights[0] == weights[1]
    assert calibrate(linker, documents, weights=local) == (certainty, fit)
    assert calibrate(linker, documents, weights=Certainty(prior_weight=3.0))[0].prior_weight == 3.0
    # The threshold is on these probabilities, too.
    kept = [right for probability, right in pairs if probability >= certainty.min_probability]
    assert fit["f1"] == pytest.approx(2 * sum(kept) / (len(kept) + len(golds)), abs=1e-5)


def test_names_are_linked_where_that_has_the_best_f1(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other threshold of what is found in the text has a better one; a model that finds names is not asked.

    A name that is linked once is right wherever it is found with that page.
    """
    table = MentionTable(str(work / "mentions"))
    linker = Linker(CandidateFinder(table), Annotator(table), recognize=lambda texts: [[] for _ in texts])
    [document] = documents = read_documents(work / "documents.jsonl")
    assert calibrate(linker, documents)[0].min_detected == 0  # one document says little
    monkeypatch.setattr(calibration, "LEAST_SEARCHED", 1)
    certainty, _ = calibrate(linker, documents)

    def named(mention: Mention) -> tuple[str, str | None]:
        return document.text[mention.start : mention.end], mention.title

    gold = {*(document.mentions or ())}
    names = {*map(named, gold)}

    def answered(least: float) -> tuple[list[float], float]:
        local = replace(linker, recognize=None, certainty=certainty, min_detected=least)
        [answer] = local.answer([Record("here", {"text": document.text})])
        found = [Mention(each["start"], each["end"], each["title"]) for each in answer["mentions"]]
        links = [each for each in found if each.title]
        again = [each for each in links if named(each) in names]
        pair = Pair.of(replace(document, mentions=(*gold, *(set(again) - gold))), links, resolver(linker.finder))
        return [each["confidence"] for each in answer["mentions"]], linking_scores([pair])["micro"]["f1"]

    confidences, all_of_them = answered(0.0)
    best = max(answered(least + 1e-6)[1] for least in confidences)
    assert answered(certainty.min_detected)[1] == max(best, all_of_them) > 0


def test_calibrate_writes_what_link_reads(work: Path, tmp_path: Path, run: Linking) -> None:
    table, gold, path = work / "mentions", work / "documents.jsonl", tmp_path / "calibration.json"
    model = ["--model", work / "weights", "--tokenizer", work / "tokenizer", "--device", "cpu"]
    asked = ["calibrate", "--documents", gold, "--mentions", table, "--output"]
    [values], *_ = run(*asked, path, *model)
    assert values == json.loads(path.read_text())
    assert values["made_for"]["mode"] == "local"
    link = ["link", gold, "--mentions", table, "--calibration", path]
    [[sure], *_], [[free], *_] = run(*link, *model, "--min-probability", 1), run(*link, *model)
    assert {each["title"] for each in sure["mentions"]} == {None} != {each["title"] for each in free["mentions"]}
    probabilities = [[each["probability"] for each in answer["mentions"]] for answer in (sure, free)]
    assert probabilities[0] == probabilities[1]
    for wrong, message in (
        ([*link], "calibration.json: made for model"),
        ([*link, *model, "--global"], "calibration.json: made for mode local, used with global"),
        ([*asked, tmp_path], f"--output {tmp_path}: a folder; give a file in it"),
    ):
        assert message in str(run(*wrong)[2])
    before = path.read_bytes()
    run(*asked, path, *model)
    assert path.read_bytes() == before
