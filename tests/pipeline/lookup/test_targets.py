"""The targets of links, looked up by title, by redirect, and by letters."""

import io
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from pipeline.lookup import targets as module
from pipeline.lookup.mentions import MentionTable
from pipeline.lookup.names import folded_words, initials_of
from pipeline.lookup.targets import Target
from tests.support.mentions import ARTICLES, small_pages, write_mentions
from tests.support.properties import given, st


@pytest.fixture
def table(tmp_path: Path) -> MentionTable:
    write_mentions(tmp_path, small_pages(ARTICLES), size=4)
    return MentionTable(str(tmp_path))


def test_titles_and_redirects_are_looked_up(table: MentionTable) -> None:
    found = Target("A", 0, 3)
    assert [table.targets.get(title) for title in ("A", "a", "To a", "to a")] == [found] * 4
    assert table.targets.get("B") == Target("B", 1, None)
    assert table.targets.get("None") == Target("None", None, None)  # linked, and no page
    assert [table.targets.get(title) for title in ("", "D", "To", "TO A")] == [None] * 4


def test_targets_are_looked_up_by_qid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From any batch of rows; of two pages with one QID the first."""
    monkeypatch.setattr(module, "_ROWS_PER_BATCH", 2)
    pages = small_pages([*ARTICLES, ("", [])])
    write_mentions(tmp_path, pages, size=4, qids={0: "Q50", 1: "Q7", 2: "Q50", 3: "Q123456789012"})
    targets = MentionTable(str(tmp_path)).targets
    assert targets.has_qids
    titles = {"Q50": "A", "Q7": "B", "Q123456789012": "D"} | dict.fromkeys(("Q5", "Q8", f"Q{10**18 - 1}"))
    found = {qid: targets.of_qid(qid) for qid in titles}
    assert {qid: target and target.title for qid, target in found.items()} == titles
    assert found["Q7"] == targets.get("B") == Target("B", 1, None, "Q7")
    assert targets.get("to a") == Target("A", 0, 3, "Q50")


def test_a_table_may_have_no_qids(table: MentionTable) -> None:
    assert not table.targets.has_qids
    assert table.targets.of_qid("Q5") is None


def test_titles_are_found_by_their_letters(table: MentionTable) -> None:
    assert table.targets.alike("TO-A!") == [Target("A", 0, 3)]
    assert table.targets.alike("NONE") == [Target("None", None, None)]
    assert table.targets.alike("?") == table.targets.alike("toad") == []


def test_names_are_found_by_their_letters(table: MentionTable) -> None:
    names = list(table.names())
    assert [names[number] for number in table.alike("ANN")] == ["Ann", "ann"]
    assert [names[number] for number in table.alike("a.b.")] == ["ab"]
    assert table.alike("...") == []


def test_the_commonest_candidates_are_read_alone(table: MentionTable) -> None:
    number = table.number("Ann")
    assert number is not None
    assert table.total_links(number) == 2
    everything = list(table.candidates(number))
    assert len(everything) == 2
    assert [*table.candidates(number, 1)] == everything[:1]
    assert [*table.candidates(number, 2)] == [*table.candidates(number, 9)] == everything


def test_titles_are_found_by_their_words_and_initials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By loops over all titles, entities first by their ids; words of too many titles find none by themselves."""
    monkeypatch.setattr(module, "_MOST_TITLES", 3)
    titles = ["Bank of Japan", "Bank", "Japan", "The Bank of Japan (film)", "\xc9cole de Paris", "Bank of England"]
    links = [(place, 1, title) for place, title in enumerate(["Japan", "Japan", "The Bank of Japan (film)"])]
    write_mentions(tmp_path, small_pages([("ABC", links), *(("", []) for _ in titles)], titles=["X", *titles]))
    found = MentionTable(str(tmp_path)).targets
    ranked = [target for title in titles if (target := found.get(title))]
    ranked.sort(key=lambda each: (each.entity_id is None, each.entity_id))

    def having(*words: str) -> set[str]:
        return {each.title for each in found.with_words(words)}

    assert having("japan") == {"Bank of Japan", "Japan", "The Bank of Japan (film)"}
    assert having("Bank") == having("nothing") == having() == set(), "it stands in four titles"
    assert having("BANK", "japan") == {"Bank of Japan", "The Bank of Japan (film)"}
    assert having("ecole") == {"\xc9cole de Paris"}
    by_rank = list(found.with_words(["Japan"]))
    assert by_rank == [each for each in ranked if "Japan" in each.title]
    for initials in ("BOJ", "BJ"):
        assert {each.title for each in found.with_initials(initials)} == {"Bank of Japan", "The Bank of Japan (film)"}
    assert not [*found.with_initials("TBOJ"), *found.with_initials("")]


@given(st.lists(st.tuples(st.text("ab c\xe9", min_size=1), st.none() | st.integers(0, 9)), max_size=60))
def test_words_of_titles_are_those_of_one_sort(
    tmp_path_factory: pytest.TempPathFactory, titles: list[tuple[str, int | None]]
) -> None:
    """By hash, then by the entity's id, then by row; in the bytes that numpy writes."""
    path = tmp_path_factory.mktemp("words") / "words.npy"
    entries = [
        (zlib.crc32(word.encode()), module._LAST if rank is None else rank, row)
        for row, (title, rank) in enumerate(titles)
        for word in folded_words(title) | {module._INITIALS + each for each in initials_of(title, "en")}
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MOST_TITLES", 5)
        assert module.write_words(str(path), titles, "en") == np.load(path).shape[1]
    counts = Counter(number for number, *_ in entries)
    kept = sorted(each for each in entries if counts[each[0]] <= 5)
    plain = io.BytesIO()
    np.save(plain, np.array([(each[0], each[2]) for each in kept], np.uint32).reshape(-1, 2).T)
    assert np.load(path).tolist() == [[each[0] for each in kept], [each[2] for each in kept]]
    assert path.read_bytes() == plain.getvalue() or len(kept) < 2, "of few numpy tells the order otherwise"
