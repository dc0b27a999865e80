"""Scores of linked documents, by brute force and beside neleval."""

import collections
import collections.abc
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from pipeline.lookup.annotator import Annotator
from pipeline.lookup.mentions import MentionTable
from tasks.io.records import Record
from tasks.linking.candidates import CandidateFinder
from tasks.linking.certainty import reliability
from tasks.linking.documents.document import Mention
from tasks.linking.documents.reading import read_documents
from tasks.linking.formats.formats import elevant
from tasks.linking.linker import Linker
from tasks.linking.scores.disambiguation import disambiguation_scores, interval_of
from tasks.linking.scores.pairs import Pair
from tasks.linking.scores.scores import linking_scores, score_files
from tests.support.mentions import ARTICLES, small_pages, write_mentions
from tests.support.properties import example, given, st


@pytest.fixture(scope="module")
def neleval() -> Any:
    """neleval, whose import asks `collections` for what is in `collections.abc` since Python 3.10."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collections, "Sequence", collections.abc.Sequence, raising=False)
        return pytest.importorskip("neleval.evaluate")


NAMES = {"precision": "precision", "recall": "recall", "f1": "fscore"}  # ours, and theirs
PLACES = [(0, 3), (0, 2), (4, 7), (8, 9)]
LINKS = st.lists(
    st.tuples(st.sampled_from(PLACES), st.sampled_from([None, "A", "B", "C"])), unique_by=lambda each: each[0]
)


@given(st.lists(st.tuples(LINKS, LINKS), max_size=4))
@example([([((0, 3), "A"), ((8, 9), None)], [((0, 3), "A"), ((4, 7), "C")]), ([((0, 2), None)], []), ([], [])])
@example([])
@pytest.mark.filterwarnings("ignore:Strict P/R")
def test_links_are_scored_as_neleval_does(neleval: Any, documents: list[tuple[Any, Any]]) -> None:
    """Its `strong_link_match`: of all documents together, and of each, for the mean."""
    annotation = pytest.importorskip("neleval.annotation")
    document = pytest.importorskip("neleval.document")

    def as_theirs(number: int, mentions: list[tuple[tuple[int, int], str | None]]) -> Any:
        found = [
            annotation.Annotation(str(number), *place, [annotation.Candidate(title or "NIL", 1.0, "")])
            for place, title in mentions
        ]
        return document.Document(str(number), found)

    def theirs(numbers: Sequence[int]) -> dict[str, float]:
        gold, found = ([as_theirs(number, documents[number][side]) for number in numbers] for side in (0, 1))
        results = neleval.Evaluate(found, gold, measures=["strong_link_match"])()["strong_link_match"]
        counts = {
            "gold": results["rtp"] + results["fn"],
            "predicted": results["ptp"] + results["fp"],
            "correct": results["ptp"],
        }
        return counts | {ours: results[name] for ours, name in NAMES.items()}

    pairs = [Pair(*([Mention(*at, title) for at, title in side] for side in each), "") for each in documents]
    scores = linking_scores(pairs)
    assert scores["micro"] == pytest.approx(theirs(range(len(documents))))
    each = [theirs([number]) for number, pair in enumerate(documents) if any(pair)]
    means = {name: sum(one[name] for one in each) / max(1, len(each)) for name in NAMES}
    assert scores["macro"] == pytest.approx(means)


# Ann and Bob are names, "ab a" is linked to a title without a page; "D" is nothing that the dump has.
TITLES = st.sampled_from([None, "A", "B", "To a", "to_a", "None", "D"])
SPANS = [(0, 3), (4, 7), (8, 11), (12, 16)]
TEXT = "Ann Bob abc ab a"
DOCUMENTS = st.lists(st.tuples(st.sampled_from(SPANS), TITLES), max_size=4, unique_by=lambda each: each[0])
ENDS = {"A": "A", "B": "B", "To a": "A", "to_a": "A", "None": "None", "D": None, None: None}
# The candidates of each span by hand, the commonest first: "abc" is no name.
CANDIDATES = {(0, 3): ["A", "B"], (4, 7): ["B"], (8, 11): [], (12, 16): ["None"]}


@pytest.fixture(scope="module")
def finder(table: Path) -> CandidateFinder:
    return CandidateFinder(MentionTable(str(table)))


def write(path: Path, documents: list[list[tuple[tuple[int, int], str | None]]], **more: object) -> Path:
    lines = [
        {
            "id": number,
            "text": TEXT,
            "mentions": [{"start": start, "end": end, "title": title} for (start, end), title in mentions],
            **more,
        }
        for number, mentions in enumerate(documents)
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@given(st.lists(st.tuples(DOCUMENTS, DOCUMENTS), min_size=1, max_size=3))
def test_scores_are_those_of_loops(
    tmp_path_factory: pytest.TempPathFactory, finder: CandidateFinder, documents: list[tuple[Any, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("scores")
    gold = write(folder / "gold", [each for each, _ in documents])
    found = write(folder / "found", [each for _, each in documents])
    scores = score_files(gold, found, finder, first_new=4)
    mentions = [(number, *each) for number, (each_gold, _) in enumerate(documents) for each in each_gold]
    known = [(number, span, ENDS[title]) for number, span, title in mentions if ENDS[title]]
    assert scores["mentions"] == {
        "gold": len(mentions),
        "in_knowledge_base": len(known),
        "without_title": sum(title is None for _, _, title in mentions),
        "title_not_in_dump": sum(title == "D" for _, _, title in mentions),
        "optional": 0,
    }
    answers = {
        (number, span): ENDS[title] or title
        for number, (_, each_found) in enumerate(documents)
        for span, title in each_found
        if title
    }
    right = [answers.get((number, span)) == title for number, span, title in known]
    reached = [title in CANDIDATES[span] for _, span, title in known]
    ambiguous = [span == (0, 3) and title in ("A", "B") for _, span, title in known]
    overall, several = scores["disambiguation"]["overall"], scores["disambiguation"]["ambiguous"]
    of_entity = [is_right for (_, _, title), is_right in zip(known, right, strict=True) if title == "A"]  # of id 3
    grown = score_files(gold, found, finder, first_new=3)["disambiguation"]
    for figures in (scores["disambiguation"]["earlier"], grown["new"]):
        assert figures["mentions"] == len(of_entity)
        assert figures["accuracy"] == sum(of_entity) / max(1, len(of_entity))
    assert scores["disambiguation"]["new"]["mentions"] == grown["earlier"]["mentions"] == 0
    count = max(1, len(known))
    assert overall["mentions"] == len(known)
    assert overall["accuracy"] == pytest.approx(sum(right) / count)
    assert overall["candidate_recall"] == pytest.approx(sum(reached) / count)
    assert overall["prior"] == pytest.approx(sum(CANDIDATES[s][:1] == [t] for _, s, t in known) / count)
    assert several["mentions"] == sum(ambiguous)
    hits = sum(one and other for one, other in zip(right, ambiguous, strict=True))
    assert several["accuracy"] == pytest.approx(hits / max(1, sum(ambiguous)))
    micro = scores["linking"]["micro"]
    assert (micro["gold"], micro["predicted"], micro["correct"]) == (len(known), len(answers), sum(right))


WORDS_OF_A = [((0, 3), "A"), ((4, 7), "A"), ((8, 11), "A"), ((12, 16), "A")]


@given(st.lists(st.tuples(DOCUMENTS, DOCUMENTS, st.floats(0, 1)), min_size=1, max_size=3))
@example([(WORDS_OF_A, [WORDS_OF_A[n] for n in (0, 2, 3, 1)], 0.0625)])
@example([([], [], 0.0), ([], [], 0.0), ([WORDS_OF_A[n] for n in (2, 3, 1)], WORDS_OF_A[1:], 0.0001)])
def test_calibration_is_that_of_loops(
    tmp_path_factory: pytest.TempPathFactory, finder: CandidateFinder, documents: list[tuple[Any, Any, float]]
) -> None:
    """Of answers with a page at a gold mention in the knowledge base; the places of the second document tell none."""
    folder = tmp_path_factory.mktemp("scores")
    gold, found = write(folder / "gold", [each for each, *_ in documents]), folder / "found"
    lines, expected = [], list[tuple[float, bool]]()
    for number, (golds, answered, probability) in enumerate(documents):
        titles = {span: ENDS[title] for span, title in golds}
        mentions = []
        for (start, end), title in answered:
            tells = {} if number == 1 else {"probability": probability * start / 12}
            mentions.append({"start": start, "end": end, "title": title, **tells})
        for told in mentions:
            title, wanted = told["title"], titles.get((told["start"], told["end"]))
            if title and wanted and "probability" in told:
                expected.append((told["probability"], (ENDS[title] or title) == wanted))
        lines.append(json.dumps({"id": number, "text": TEXT, "mentions": mentions}))
    found.write_text("\n".join(lines))
    calibration = score_files(gold, found, finder)["calibration"]
    interval = calibration.pop("expected_calibration_error_interval")
    assert interval is None or interval[0] <= calibration["expected_calibration_error"] <= interval[1]
    assert calibration == reliability([each for each, _ in expected], [right for _, right in expected])
    assert calibration["mentions"] == len(expected)


@given(st.lists(st.tuples(DOCUMENTS, DOCUMENTS, st.sets(st.sampled_from(SPANS))), min_size=1, max_size=3))
def test_optional_mentions_are_as_if_neither_they_nor_their_answers_were_there(
    tmp_path_factory: pytest.TempPathFactory, finder: CandidateFinder, documents: list[tuple[Any, ...]]
) -> None:
    folder, paths, optional = tmp_path_factory.mktemp("scores"), list[Path](), 0
    for number in (0, 1):
        path = write(folder / "gold", [each[number] for each in documents])
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line, (gold, _, spans) in zip(lines, documents, strict=True):
            ignored = spans & {span for span, _ in gold}
            optional += len(ignored) * (number == 0)
            kept = [each for each in line["mentions"] if (each["start"], each["end"]) not in ignored]
            paths += [folder / f"whole-{number}", folder / f"without-{number}"]
            with paths[-2].open("a") as whole, paths[-1].open("a") as without:
                without.write(json.dumps({**line, "mentions": kept}) + "\n")
                for each in line["mentions"]:
                    if number == 0 and each not in kept:
                        each["optional"] = True
                whole.write(json.dumps(line) + "\n")
    scores = score_files(folder / "whole-0", folder / "whole-1", finder)
    assert scores["mentions"].pop("optional") == optional
    expected = score_files(folder / "without-0", folder / "without-1", finder)
    assert expected["mentions"].pop("optional") == 0
    assert scores == expected


QIDS = {"A": "Q5", "To a": "Q5", "to_a": "Q5", "B": "Q7", "D": "Q8"}


@given(st.lists(st.tuples(DOCUMENTS, DOCUMENTS), min_size=1, max_size=3))
def test_qids_tell_pages_as_titles_do(
    tmp_path_factory: pytest.TempPathFactory, tables: dict[str, CandidateFinder], documents: list[Any]
) -> None:
    """Beside each there is a label, another page's title or none, which counts where the table has no QIDs."""
    folder, labels = tmp_path_factory.mktemp("scores"), {"Q5": "B", "Q7": "A", "Q8": "X"}
    gold = write(folder / "gold", [each for each, _ in documents])
    found = write(folder / "found", [each for _, each in documents])
    paths = [folder / "by-qid", folder / "by-label"]
    lines = [json.loads(line) for line in gold.read_text().splitlines()]
    for each in (each for line in lines for each in line["mentions"]):
        if qid := QIDS.get(each["title"]):
            each |= {"title": labels[qid], "qid": qid}
    paths[0].write_text("\n".join(map(json.dumps, lines)))
    for each in (each for line in lines for each in line["mentions"]):
        each.pop("qid", None)
    paths[1].write_text("\n".join(map(json.dumps, lines)))
    by_title, by_qid = (score_files(path, found, tables["with"]) for path in (gold, paths[0]))
    unknown = by_title["mentions"]["title_not_in_dump"]
    assert by_title.pop("titles_not_in_dump") == ({"D": unknown} if unknown else {})
    assert by_qid.pop("titles_not_in_dump") == ({"X (Q8)": unknown} if unknown else {})
    assert by_qid == by_title
    for finder in (tables["without"], None):
        told, label = (score_files(path, found, finder) for path in paths)
        titles, labelled = (each.pop("titles_not_in_dump") for each in (told, label))
        assert titles == {f"{title} (Q8)" if title == "X" else title: n for title, n in labelled.items()}
        assert told == label


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CandidateFinder]:
    """With the QIDs of A and B, and without any."""
    found = {}
    for name, qids in (("with", {0: "Q5", 1: "Q7"}), ("without", {})):
        folder = tmp_path_factory.mktemp(name)
        write_mentions(folder, small_pages(ARTICLES), size=4, qids=qids)
        found[name] = CandidateFinder(MentionTable(str(folder)))
    return found


def test_answers_tell_pages_by_qid_too(tmp_path: Path, tables: dict[str, CandidateFinder]) -> None:
    """A QID that the table lacks is no page of it, whatever the title beside it says."""
    gold = write(tmp_path / "gold", [[(span, "A") for span in SPANS]])
    found = write(tmp_path / "found", [[(span, "A") for span in SPANS]])
    line = json.loads(found.read_text())
    for each, told in zip(
        line["mentions"],
        ({"qid": "Q5"}, {"title": "B", "qid": "Q5"}, {"title": None, "qid": "Q5"}, {"qid": "Q8"}),
        strict=True,
    ):
        each |= told
    found.write_text(json.dumps(line))
    micro = score_files(gold, found, tables["with"])["linking"]["micro"]
    assert (micro["gold"], micro["predicted"], micro["correct"]) == (4, 4, 3)


def test_documents_of_pages_can_be_left_out(tmp_path: Path, finder: CandidateFinder) -> None:
    """B is a page, To_a a redirect to one; None is linked, and no page."""
    lines = [{"id": name, "text": "Ann", "mentions": []} for name in ("B", "To_a", "None", "D")]
    gold = tmp_path / "gold"
    gold.write_text("\n".join(map(json.dumps, lines)))
    scores = score_files(gold, gold, finder, leaves_out_pages=True)
    assert (scores["documents"], scores["documents_of_pages"]) == (2, 2)
    gold.write_text("\n".join(map(json.dumps, lines[:2])))
    with pytest.raises(ValueError, match="gold: all 2 documents have the title of a page of the dump as id"):
        score_files(gold, gold, finder, leaves_out_pages=True)


def test_what_is_outside_of_the_annotated_part_does_not_count(tmp_path: Path, finder: CandidateFinder) -> None:
    one, both = [((0, 3), "A")], [((0, 3), "A"), ((8, 11), "B")]
    for gold, found, whole in ((both, both, (2, 2)), (one, both, (1, 2)), (both, one, (2, 1))):
        answers = write(tmp_path / "found", [found])
        for annotated, counts in (([0, 4], (1, 1)), ([0, 16], whole)):
            path = write(tmp_path / "gold", [gold], annotated=annotated)
            micro = score_files(path, answers, finder)["linking"]["micro"]
            assert (micro["gold"], micro["predicted"]) == counts


def test_documents_without_answer_are_misses_and_counted(tmp_path: Path, finder: CandidateFinder) -> None:
    gold = write(tmp_path / "gold", [[((0, 3), "A")], [((0, 3), "A")]])
    found = write(tmp_path / "found", [[((0, 3), "A")]])
    found.write_text(found.read_text() + '\n{"error": "stdin:2: not JSON", "line": 2}\n')
    scores = score_files(gold, found, finder)
    assert (scores["documents_without_answer"], scores["answers_with_error"]) == (1, 1)
    assert scores["disambiguation"]["overall"]["accuracy"] == 0.5


@pytest.mark.parametrize("number", range(len(ARTICLES)))
def test_a_page_s_own_links_do_not_count(tmp_path: Path, number: int) -> None:
    """Figures and answers are those by the table of a dump in which the page has no links."""
    text, links = ARTICLES[number]
    others = [*ARTICLES[:number], (text, []), *ARTICLES[number + 1 :]]
    places = [(start, start + size, target) for start, size, target in links if start + size <= len(text)]
    mentions = [{"start": start, "end": end, "title": title} for start, end, title in places]
    document = {"id": "page", "text": text, "mentions": mentions}
    gold, found = tmp_path / "gold", tmp_path / "found"
    gold.write_text(json.dumps(document))
    scores, answers = [], []
    for articles in (ARTICLES, others):
        folder = tmp_path / str(len(scores))
        write_mentions(folder, small_pages(articles), size=4)
        annotator = Annotator.open(folder)
        finder = CandidateFinder(annotator.table)
        own = finder.own_links(read_documents(gold)) if articles is ARTICLES else ()
        linker = Linker(finder, annotator, shows_candidates=True)
        [answer] = linker.answer([Record("here", document)], own)
        without_ids = json.loads(json.dumps(answer), object_hook=without_id)
        answers.append(without_ids)
        found.write_text(json.dumps(document | answer))
        scores.append(score_files(gold, found, finder, own_links=articles is ARTICLES))
    assert answers[0] == answers[1]
    assert scores[0] == scores[1]
    counted = score_files(gold, found, CandidateFinder(MentionTable(str(tmp_path / "0"))))
    assert counted["disambiguation"] != scores[0]["disambiguation"]


def without_id(values: dict[str, Any]) -> dict[str, Any]:
    """Without the number of an entity, which the vocabulary decides."""
    return {name: value for name, value in values.items() if name != "entity_id"}


def test_intervals_are_those_of_drawn_documents() -> None:
    """Documents of many mentions count more, and mentions of one document are alike."""
    chance = np.random.default_rng(1)
    documents = np.repeat(np.arange(80), chance.integers(1, 30, 80))
    values = (chance.random(len(documents)) < chance.random(80)[documents]).astype(float)
    sums, counts = np.bincount(documents, values), np.bincount(documents)
    drawn = chance.multinomial(80, np.full(80, 1 / 80), 20_000)
    low, high = np.percentile((drawn @ sums) / (drawn @ counts), [2.5, 97.5])
    assert interval_of(documents, values) == pytest.approx([low, high], abs=(high - low) / 15)
    assert interval_of(documents, np.ones(len(documents))) == [1.0, 1.0]
    assert interval_of(documents[:1], values[:1]) is None


def test_answers_count_by_the_look_up_that_has_found_their_page(table: Path) -> None:
    finder = CandidateFinder(MentionTable(str(table)))
    gold = [Mention(0, 3, "A"), Mention(8, 11, "B")]
    found = [Mention(0, 3, "A"), Mention(8, 11, "Nowhere")]
    pair = Pair(gold, found, "Ann met Bob.", ["Ann", "Bob"])
    steps = disambiguation_scores([pair], finder)["steps"]
    assert steps == {"exact": {"mentions": 1, "right": 1}, "none": {"mentions": 1, "right": 0}}


def test_elevants_answers_are_read_beside_its_gold(tmp_path: Path) -> None:
    """A file of its linked articles has both: answers are never scored as gold against themselves."""
    labels = [
        {"id": 1, "span": [0, 3], "entity_id": "Q5", "name": "Ann"},
        {"id": 2, "span": [8, 11], "entity_id": "Q6", "name": "Bob"},
    ]
    mention = {"mention": "Ann", "start": 0, "end": 3, "title": "A", "qid": "Q5"}
    other = {"mention": "Bob", "start": 8, "end": 11, "title": "C", "qid": "Q7"}
    document = {"text": "Ann met Bob.", "labels": labels}
    (tmp_path / "gold.jsonl").write_text("".join(f"{json.dumps({'id': n, **document})}\n" for n in (1, 2)))
    answers = ({"id": 1, **document, "mentions": [mention, other]}, {"id": 2, **document, "mentions": []})
    (tmp_path / "found.jsonl").write_text("".join(map(elevant, answers)))
    scores = score_files(tmp_path / "gold.jsonl", tmp_path / "found.jsonl")
    assert scores["disambiguation"]["overall"]["accuracy"] == 0.25
    assert scores["linking"]["micro"].items() >= {"correct": 1, "gold": 4, "predicted": 2}.items()
    lines = [json.loads(line) for line in (tmp_path / "found.jsonl").read_text().splitlines()]
    (tmp_path / "none.jsonl").write_text("".join(f"{json.dumps(line | {'entity_mentions': []})}\n" for line in lines))
    assert score_files(tmp_path / "gold.jsonl", tmp_path / "none.jsonl")["linking"]["micro"]["f1"] == 0
