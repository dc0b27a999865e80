"""Linked documents in the report: what became of each mention, within bounds, and a sample that brute force finds."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pipeline.lookup.mentions import MentionTable
from tasks.linking.candidates import CandidateFinder
from tasks.linking.documents.document import Mention
from tests.support.linked import HOSTILE, answer, gold
from tests.support.mentions import small_pages, write_mentions
from workflows.report import linking as module
from workflows.report.linking import linked_documents, shown_document

REDIRECTS = {
    "Roma": "Rome", "Rome": "Rome", "Paris": "Paris", "Paris (Troy)": "Paris (Troy)", HOSTILE: HOSTILE,
}  # fmt: skip
TEXT = "In Rome he met Paris, then Anna, then nobody, then Bob in Gaul near <b>."


def known(mention: Mention) -> str | None:
    return REDIRECTS.get(mention.title or "")


def resolvers(lines: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [known] * len(lines)


def shown(document: Mapping[str, Any], found: Mapping[str, Sequence[tuple[str, float]]]) -> dict[str, Any]:
    return shown_document(document, answer(document, found), known)


def test_what_became_of_each_mention() -> None:
    mentions = {"Rome": "Roma", "Paris": "Paris (Troy)", "Anna": None, "Bob": None}
    document = gold("7", TEXT, mentions | {"Gaul": "Gallia_Celtica#Name", "<b>": HOSTILE})
    found = {"Rome": [("Rome", 0.75), (HOSTILE, 0.25)], "Paris": [("Paris", 0.5), ("Paris (Troy)", 0.4)]}
    found |= {"Anna": [], "nobody": [("Nobody", 1.0)], "he": [], "Bob": [("Bob", 0.9)], "<b>": []}
    result = shown(document, found)
    assert (result["id"], result["left_out"], result["cut"]) == ("7", 0, 0)
    parts = [part for part in result["text"] if not isinstance(part, str)]
    assert "".join(part if isinstance(part, str) else part[0] for part in result["text"]) == TEXT
    by_text = {text: result["mentions"][number] for text, number in parts}
    assert {
        text: (each["kind"], each["title"], each["gold"], each["lacks"]) for text, each in by_text.items()
    } == {
        "Rome": ("right", "Rome", "Rome", False), "he": ("unlinked", None, None, False),
        "Paris": ("wrong", "Paris", "Paris (Troy)", False), "Anna": ("unlinked", None, None, False),
        "nobody": ("extra", "Nobody", None, False), "Bob": ("wrong", "Bob", None, False),
        "Gaul": ("unlinked", None, "Gallia Celtica", True), "<b>": ("missed", None, HOSTILE, False),
    }  # fmt: skip
    assert by_text["Rome"]["probability"] == 0.75
    assert by_text["Rome"]["candidates"] == [["Rome", 0.75, 0.5, True], [HOSTILE, 0.25, 0.5, False]]
    assert by_text["Paris"]["candidates"] == [["Paris", 0.5, 0.5, False], ["Paris (Troy)", 0.4, 0.5, True]]


def test_what_is_optional_is_not_shown() -> None:
    """Neither is an answer at its place, as neither is scored."""
    document = gold("7", TEXT, {"Rome": "Roma", "Paris": "Paris"})
    document["mentions"][0]["optional"] = True
    result = shown(document, {"Rome": [("Rome", 0.75)], "Paris": [("Paris", 0.5)]})
    parts = [part for part in result["text"] if not isinstance(part, str)]
    assert [text for text, _ in parts] == ["Paris"]


def test_a_document_without_an_answer_is_shown_with_its_links() -> None:
    result = shown_document(gold("a", TEXT, {"Rome": "Rome"}), {}, known)
    assert [each["kind"] for each in result["mentions"]] == ["missed"]


def test_the_likeliest_candidates_are_shown_and_the_right_one() -> None:
    document = gold("a", TEXT, {"Rome": "Rome"})
    candidates = [(f"page {number}", 0.1 + number / 100) for number in range(8)] + [("Rome", 0.01)]
    (mention,) = shown(document, {"Rome": candidates})["mentions"]
    likeliest = [f"page {number}" for number in (7, 6, 5, 4, 3)]
    assert [each[0] for each in mention["candidates"]] == [*likeliest, "Rome"]
    assert mention["of"] == 9


def test_long_documents_are_cut_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Rome " * 1000
    mentions = [{"start": at, "end": at + 4, "title": "Rome"} for at in range(0, 5000, 5)]
    document = {"set": "s", "id": "a", "text": text, "mentions": mentions}
    few = shown_document({**document, "mentions": mentions[:3] + mentions[799:801]}, {}, known)
    assert (few["cut"], len(few["mentions"])) == (1000, 4), "one mention is after the 4,000th character"
    many = shown_document(document, {}, known)
    assert (many["cut"], len(many["mentions"]), many["left_out"]) == (4000, 200, 0)
    monkeypatch.setattr(module, "CHARACTERS", 7)
    across = shown_document(document, {}, known)
    assert across["text"] == [["Rome", 0], " Ro"], "a mention across the cut is plain text"


def test_titles_are_known_as_they_are_scored(tmp_path: Path) -> None:
    """A missing page that a held-out page alone links to is not known for it; it is for documents from elsewhere."""
    articles = [("ab cd", [(0, 2, "Alone"), (3, 2, "Both")]), ("cd", [(0, 2, "Both")]), ("", [])]
    write_mentions(tmp_path, small_pages(articles), size=4)
    finder = CandidateFinder(MentionTable(str(tmp_path)))
    page = gold("A", "ab cd", {"ab": "Alone", "cd": "Both"})
    lines = [{**page, "of_dump": True}, {**page, "id": "from elsewhere"}]
    mentions = [Mention(0, 2, title) for title in ("Alone", "Both", "To_a", "Nowhere")]
    ends = [[resolve(mention) for mention in mentions] for resolve in module.resolvers(finder, lines)]
    assert ends == [[None, "Both", "A", None], ["Alone", "Both", "A", None]]


def test_answers_are_shown_before_the_gold_mentions_that_they_overlap() -> None:
    result = shown(gold("a", TEXT, {"In Rome": "Rome", "Paris": "Paris"}), {"Rome": [("Rome", 0.75)]})
    assert [part[0] for part in result["text"] if not isinstance(part, str)] == ["Rome", "Paris"]
    assert result["left_out"] == 1


def written(folder: Path, documents: Sequence[Mapping[str, Any]], answers: Sequence[Mapping[str, Any]]) -> list[str]:
    paths = [folder / name for name in ("documents.jsonl", "answers.jsonl")]
    for path, lines in zip(paths, (documents, answers), strict=True):
        text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
        path.write_text(text, encoding="utf-8")
    return [str(path) for path in paths]


def test_the_sample_is_that_of_brute_force(tmp_path: Path) -> None:
    """Texts that hold other ends of lines are one line each."""
    documents = [gold(f"d{n}", f"{n}\u2028Rome\x85 \u0085", {"Rome": "Rome"} if n % 3 else None) for n in range(40)]
    answers = [answer(each, {"Rome": [("Rome", 1.0)]}) for each in documents if each["id"] != "d1"]
    answers.append({"line": 3, "error": "no text"})
    result = linked_documents(*written(tmp_path, documents, answers), resolvers)
    with_mentions = [each["id"] for each in documents if each["mentions"]]
    wanted = sorted(with_mentions, key=lambda name: hashlib.sha256(name.encode()).digest())[:8]
    assert [each["id"] for each in result["documents"]] == wanted
    assert result["of"] == 40
    assert {each["mentions"][0]["kind"] for each in result["documents"]} <= {"right", "missed"}


def test_no_document_with_a_mention(tmp_path: Path) -> None:
    result = linked_documents(*written(tmp_path, [gold("a", "Nothing.")], []), resolvers)
    assert result == {"of": 1, "characters": 4000, "documents": []}
