"""Entities of the user's own: found by their names, told apart by their descriptions, and refused where wrong."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from pipeline.lookup.mentions import MentionTable
from tasks.linking.candidates import CandidateFinder
from tasks.linking.formats.formats import page
from tasks.linking.formats.wikitext import document
from tasks.linking.own import read_own
from tests.support.asked import Linking
from tests.support.contexts import write_context_table

ACME: dict[str, Any] = {"id": "c1", "name": "Acme Ltd", "aliases": ["Acme", "Ann"], "description": "sells anvils"}
OTHER: dict[str, Any] = {"id": 2, "name": "Acme Ltd", "description": "met people"}


def write(path: Path, *entities: object) -> Path:
    path.write_text("".join(f"{json.dumps(each)}\n" for each in entities))
    return path


def named(document: dict[str, Any]) -> list[tuple[str, str | None, str | None]]:
    return [(each["mention"], each["title"], each["own_id"]) for each in document["mentions"]]


def test_their_names_are_found_beside_the_dumps(run: Linking, table: Path, tmp_path: Path) -> None:
    """Of names that overlap the longer one; those of one's own are as likely as all pages of a name together."""
    own = write(tmp_path / "own.jsonl", ACME, OTHER, {"id": "b", "name": "Bob met Ann"})
    text = b"Bob met Ann, and ACME LTD paid Acme; Bob. Acmeville"
    [line], _, status = run("link", "--mentions", table, "--own", own, "--candidates", data=text)
    assert status == 0
    assert named(line) == [("Bob met Ann", "Bob met Ann", "b"), ("Acme", "Acme Ltd", "c1"), ("Bob", "B", None)]
    given = [{"start": 17, "end": 25}, {"start": 8, "end": 11}]
    document = json.dumps({"text": text.decode(), "mentions": given}).encode()
    [line], _, _ = run("link", "--mentions", table, "--own", own, "--candidates", data=document)
    ltd, ann = (each["candidates"] for each in line["mentions"])
    assert [(each["title"], each["own_id"], each["prior"]) for each in ltd] == [
        ("Acme Ltd", "c1", 0.5), ("Acme Ltd (2)", "2", 0.5),
    ]  # fmt: skip
    assert [(each["title"], each["own_id"], each["prior"]) for each in ann] == [
        ("Acme Ltd", "c1", 0.5), ("A", None, 0.25), ("B", None, 0.25),
    ]  # fmt: skip


def test_descriptions_and_the_words_of_names_choose(run: Linking, table: Path, models: Path, tmp_path: Path) -> None:
    own = write(tmp_path / "own.jsonl", ACME, OTHER)
    contexts = write_context_table(
        tmp_path / "contexts", {"A": dict.fromkeys(["sells", "anvils", "met", "people"], 1.0)}
    ).folder
    command = ["link", "--mentions", table, "--own", own, "--contexts", contexts]
    for more in ([], ["--model", models / "export/model", "--device", "cpu"]):
        for text, identity in (("Acme Ltd sells anvils.", "c1"), ("Acme Ltd met people.", "2")):
            [line], err, status = run(*command, *more, data=text.encode())
            assert status == 0, err
            assert line["mentions"][0]["own_id"] == identity


def test_they_are_no_pages_of_a_wiki(run: Linking, table: Path, tmp_path: Path) -> None:
    own = write(tmp_path / "own.jsonl", ACME)
    [answer], _, _ = run("link", "--mentions", table, "--own", own, data=b"Acme and Bob")
    wiki = "https://en.wikipedia.org/wiki/"
    shown = page(wiki).answer({"line": 1}, answer)
    assert re.search(rf'<p dir="auto"><mark [^>]*>Acme</mark> and <a href="{wiki}B"[^>]*>Bob</a></p>', shown)
    assert document(answer).endswith("\nAcme and [[B|Bob]]\n\n")


def test_titles_differ_from_all_others(table: Path, tmp_path: Path) -> None:
    mentions = MentionTable(str(table))
    taken = [{"id": number, "name": "A"} for number in ("1", "2")]
    own = read_own(write(tmp_path / "own.jsonl", *taken), mentions)
    assert [*own.by_title] == ["A (1)", "A (2)"]
    found = CandidateFinder(mentions, own=own).of("A")
    assert {each.title: each.prior for each in found.items} == {"A": 0.5, "A (1)": 0.25, "A (2)": 0.25}


@pytest.mark.parametrize(
    ("entity", "said"),
    [
        ({"name": "B"}, "no field 'id'"),
        ({"id": "x"}, "no field 'name'; wanted a text"),
        ({"id": "x", "name": " -"}, "a name or alias has no letter and no digit"),
        ({"id": "x", "name": "B", "aliases": ["C", ""]}, "a name or alias has no letter"),
        ({"id": "x", "name": "B", "aliases": "C"}, 'aliases is "C"; wanted a list of texts'),
        ({"id": "x", "name": "B", "description": 1}, "description is 1; wanted a text"),
        ({"id": "c1", "name": "B"}, r"id 'c1' was there before, at .*own\.jsonl:1; wanted one for each"),
        ([], "wanted a JSON object"),
    ],
)
def test_wrong_lines_are_named(table: Path, tmp_path: Path, entity: object, said: str) -> None:
    with pytest.raises(ValueError, match=rf"own\.jsonl:2: .*{said}"):
        read_own(write(tmp_path / "own.jsonl", ACME, entity), MentionTable(str(table)))
