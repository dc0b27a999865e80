"""Entities found in texts, against brute force on real articles and on small vocabularies."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from pipeline.lookup.annotator import Annotation, Annotator
from pipeline.lookup.entities import UNK_ID, EntityVocab
from pipeline.lookup.names import compose_in_place
from pipeline.storage.files import file_sha256
from tasks.io.annotations import EntityMention, open_annotator
from tests.support import oracle_tables as oracle
from tests.support.mentions import ARTICLES, DUMP, Table, pages_of_dump, small_pages, write_mentions
from tests.support.oracle_tables import Row
from tests.support.properties import given, settings, st

MOST = 6_000  # characters of wikitext of an article: more would take the oracle long


def meanings(table: Table, page: str | None, link_probability: float, commonness: float) -> dict[str, Row]:
    """The row of the mention table that each name stands for."""
    if page is None:
        rows = sorted(table.mentions, key=lambda row: (-row["link_count"], row["title"]))
        first = {row["mention"]: row for row in reversed(rows)}
        chosen = [row for row in first.values() if row["commonness"] >= commonness]
    else:
        names = next(row["names"] for row in table.page_names if row["page"] == page)
        links = {(each["mention"], each["title"]) for each in names}
        chosen = [row for row in table.mentions if (row["mention"], row["title"]) in links]
    return {row["mention"]: row for row in chosen if row["link_probability"] >= link_probability}


def annotate_by_force(
    text: str, table: Table, page: str | None, link_probability: float = 0.01, commonness: float = 0.5
) -> list[Annotation]:
    """The annotations by a look at every span of the text that is a name."""
    folded, places = text, [*range(len(text) + 1)]
    if table.profile == "paper":
        parts = [oracle.fold(character) for character in text]
        folded = "".join(parts)
        places = [place for place, part in enumerate(parts) for _ in part] + [len(text)]
    rows = meanings(table, page, link_probability, commonness)
    found = []
    for start, end in oracle.longest_spans(folded, rows):
        row = rows[folded[start:end]]
        entity_id = UNK_ID if row["entity_id"] is None else row["entity_id"]
        facts = (row["title"], entity_id, row["link_probability"], row["commonness"])
        found.append(Annotation(places[start], places[end], *facts))
    return found


@pytest.mark.parametrize("profile", ["fixed", "paper"])
def test_real_articles_are_annotated_as_by_force(shared: Path, tmp_path: Path, profile: str) -> None:
    pages = pages_of_dump(shared / "data/wikipedia/enwiki-2006-500.xml.bz2", MOST)
    table = write_mentions(tmp_path, pages, profile, size=40)
    annotator = Annotator.open(tmp_path, min_link_probability=0.05)
    texts = {
        page["title"]: "\n".join(row["text"] for row in pages.paragraphs if row["page_id"] == page["page_id"])
        for page in pages.pages
    }
    found = annotator.annotate(everything := "\n".join(texts.values()))
    assert found == annotate_by_force(everything, table, None, 0.05)
    for title, text in texts.items():
        annotations = annotator.annotate(text, title)
        assert annotations == annotate_by_force(text, table, title, 0.05), title
        found += annotations
    assert len(found) > 1000
    assert {each.entity_id for each in found} > {UNK_ID, 3, 4}
    assert any(row["ambiguous"] for row in table.page_names)
    assert any(row["link_probability"] < 0.05 for row in table.mentions)


SPELLED = st.text(alphabet="ab A.日é\u0301", min_size=1, max_size=24)
TEXTS = SPELLED.map(lambda text: compose_in_place(text)[0])  # as a dump's are
LINKS = st.lists(
    st.tuples(st.integers(0, 23), st.integers(1, 4), st.sampled_from(["A", "B", "To a", "None"])), max_size=6
)


@settings(max_examples=10)
@given(
    st.lists(st.tuples(TEXTS, LINKS), min_size=3, max_size=3),
    TEXTS,
    st.sampled_from(["fixed", "paper"]),
    st.sampled_from([0.01, 0.4]),
    st.sampled_from([0.0, 0.5, 1.0]),
)
def test_small_vocabularies_are_used_as_by_force(
    tmp_path_factory: pytest.TempPathFactory,
    articles: list[tuple[str, list[tuple[int, int, str]]]],
    text: str,
    profile: str,
    link_probability: float,
    commonness: float,
) -> None:
    table = write_mentions(folder := tmp_path_factory.mktemp("mentions"), small_pages(articles), profile, size=4)
    annotator = Annotator.open(folder, min_link_probability=link_probability, min_commonness=commonness)
    for each in (text, *(own for own, _ in articles)):
        for page in (None, "A", "B"):
            expected = annotate_by_force(each, table, page, link_probability, commonness)
            assert annotator.annotate(each, page) == expected
        assert annotator.annotate(each, "To_a") == annotator.annotate(each, "A")


ODD = ["Ann\u00a0met ab\na and  Bob.", "\n ab\ta\r\nAnn", "ab\n\na", "e\u0301 Ann"]


@pytest.mark.parametrize("text", ODD)
@pytest.mark.parametrize("page", [None, "B"])
def test_names_are_found_however_they_are_spelled(tmp_path: Path, table: Table, text: str, page: str | None) -> None:
    annotator = Annotator.open(tmp_path / "mentions")
    composed, places = compose_in_place(text)
    annotations = annotator.annotate(composed, page)
    found = [replace(each, start=places[each.start], end=places[each.end]) for each in annotations]
    assert annotator.annotate(text, page) == found
    assert found or page


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return write_mentions(tmp_path / "mentions", small_pages(ARTICLES), size=4)


def titles_of(annotations: list[Annotation], text: str) -> list[tuple[str, str, int]]:
    return [(text[each.start : each.end], each.title, each.entity_id) for each in annotations]


def test_what_is_known_of_a_page_stands_before_what_is_common(tmp_path: Path, table: Table) -> None:
    """C's own Ann is B; its ab is two pages and left out; without a page both are what they mostly are."""
    annotator, text = Annotator.open(tmp_path / "mentions"), "Ann: ab and ab a, Bob."
    assert titles_of(annotator.annotate(text, "C"), text) == [("Ann", "B", UNK_ID), ("Bob", "B", UNK_ID)]
    found = [("ab", "A", 3), ("ab a", "None", UNK_ID), ("Bob", "B", UNK_ID)]
    assert titles_of(annotator.annotate(text), text) == [("Ann", "A", 3), *found]
    assert annotator.annotate(text, "B")[0].commonness == pytest.approx(3 / 4)


def test_thresholds_are_the_least_that_is_taken(tmp_path: Path, table: Table) -> None:
    """Half of Ann's links go to A; a third of Bob's places are links. A name left out hides no shorter one."""
    text = "Ann Bob ab a"

    def found(**thresholds: float) -> list[str]:
        annotations = Annotator.open(tmp_path / "mentions", **thresholds).annotate(text)
        return [text[each.start : each.end] for each in annotations]

    assert found() == ["Ann", "Bob", "ab a"]
    assert found(min_commonness=0.51) == ["Bob", "ab a"]
    assert found(min_link_probability=1 / 3) == ["Ann", "Bob", "ab a"]
    assert found(min_link_probability=0.34) == ["Ann", "ab a"]


def test_pages_are_known_by_title_and_redirect(tmp_path: Path, table: Table) -> None:
    annotator = Annotator.open(tmp_path / "mentions")
    assert [annotator.has_page(page) for page in ("A", " To_a ", "None", "")] == [True, True, False, False]
    with pytest.raises(ValueError, match=rf"{DUMP} has no article or redirect 'No such'"):
        annotator.annotate("Ann", "No_such")


def test_the_vocabulary_has_to_be_the_tables(tmp_path: Path, table: Table) -> None:
    folder = tmp_path / "mentions"
    table.vocab.write(str(tmp_path))
    for ending in ("parquet", "tsv", "jsonl", "json"):
        Annotator.open(folder, vocabulary=tmp_path / f"entity_vocab.{ending}")
    titles = (*table.vocab.titles, "Another")
    EntityVocab(titles, (0,) * 5, (-1,) * 5).write(str(tmp_path / "other"))
    with pytest.raises(ValueError, match=rf"mentions: made from {DUMP} .*\(4 entities\) than .*/other \(5\)"):
        Annotator.open(folder, vocabulary=tmp_path / "other")


def test_other_folders_are_refused(tmp_path: Path, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"nowhere: no such folder"):
        Annotator.open(tmp_path / "nowhere")
    (tmp_path / "mentions/pages.tries").unlink()
    with pytest.raises(ValueError, match=r"pages\.tries: missing, .* run BuildMentionTable again"):
        Annotator.open(tmp_path / "mentions")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="pip install marisa-trie"):
        Annotator.open(tmp_path / "mentions")


def test_texts_of_unknown_pages_are_annotated_by_commonness(tmp_path: Path, table: Table) -> None:
    """As question answering asks; and the vocabulary that a model of transformers brings has to be the table's."""
    annotate, text = open_annotator(tmp_path / "mentions", tmp_path), "Ann: ab and ab a, Bob."
    annotator = Annotator.open(tmp_path / "mentions")

    def mentions(page: str | None) -> list[EntityMention]:
        found = annotator.annotate(text, page)
        return [EntityMention(each.start, each.end, each.entity_id) for each in found]

    assert annotate(text, "C") == mentions("C")
    assert annotate(text, "No such") == annotate(text, None) == mentions(None)
    titles = (*table.vocab.titles, "Another")
    EntityVocab(titles, (0,) * 5, (-1,) * 5).write(str(tmp_path))
    with pytest.raises(ValueError, match=r"\(4 entities\) than .*/entity_vocab\.json \(5\)"):
        open_annotator(tmp_path / "mentions", tmp_path)


def test_weights_of_another_table_are_refused(tmp_path: Path, table: Table) -> None:
    mentions, weights = tmp_path / "mentions", tmp_path / "weights"
    weights.mkdir()
    vocabulary, manifest = table.vocab.digest(), file_sha256(f"{mentions}/manifest.json")
    inputs = '{"inputs": {"BuildSequences": "", "BuildMentionTable": "SUM"}}'
    for name, text, right, message in (
        ("config.json", '{"entities_sha256": "SUM"}', vocabulary, "fine-tuned with"),
        ("manifest.json", inputs, manifest, "not the mention table beside which"),
    ):
        (weights / name).write_text(text.replace("SUM", "ab" * 32))
        with pytest.raises(ValueError, match=message):
            open_annotator(mentions, weights)
        (weights / name).write_text(text.replace("SUM", right))
        assert open_annotator(mentions, weights)("Ann", None)
