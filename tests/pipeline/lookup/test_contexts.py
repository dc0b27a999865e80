"""The words of titles beside those of a text: as plain dictionaries and as scikit-learn have them."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("marisa_trie", reason="contexts are read with marisa-trie")

from pipeline.lookup import contexts
from pipeline.lookup.contexts import ContextTable, words_of
from tests.support import DATA, oracle_tables
from tests.support import oracle_contexts as oracle
from tests.support.contexts import write_context_table, write_contexts
from tests.support.manifests import write_manifest
from tests.support.mentions import pages_of_dump
from tests.support.oracle_tables import Pages


@pytest.fixture(scope="module")
def pages() -> Pages:
    return pages_of_dump(DATA / "wiki-40.xml.bz2", 1 << 20)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small enough for the tables to have several; and words that differ have the same low bits."""
    monkeypatch.setattr(contexts, "_ROWS_PER_BATCH", 7)
    monkeypatch.setattr(contexts, "_LOW_BITS", 7)


def texts_of(pages: Pages) -> list[str]:
    """Paragraphs, some of them together, nothing, and a text of unknown words."""
    texts = [row["text"] for row in pages.paragraphs]
    return [*texts, " ".join(texts[:9]), "", "qqqq zzzz"]


def test_cosines_are_those_of_plain_dictionaries(pages: Pages, tmp_path: Path) -> None:
    made = write_contexts(tmp_path, pages, held_out=0.1, most_words=12)
    table = ContextTable(str(tmp_path))
    titles = [row["title"] for row in made.rows]
    assert len(titles) > 20
    assert max(len(row["words"]) for row in made.rows) == 12
    lists = [titles[:3], [], ["no title", "", titles[0]], titles[::-1]]
    largest = 0.0
    for text in texts_of(pages):
        found = table.cosines(text, lists)
        assert [len(each) for each in found] == [len(each) for each in lists]
        for some, cosines in zip(lists, found, strict=True):
            assert cosines.dtype == np.float64
            expected = [made.cosine(text, title) for title in some]
            np.testing.assert_allclose(cosines, expected, rtol=0, atol=1e-6)
            largest = max(largest, *expected, 0.0)
    assert 0.5 < largest <= 1 + 1e-6
    assert table.cosines("a text", []) == []


def test_weights_are_those_of_scikit_learn(pages: Pages, tmp_path: Path) -> None:
    from sklearn.feature_extraction.text import TfidfTransformer

    made = write_contexts(tmp_path, pages, most_words=1 << 20)
    titles, words = [row["title"] for row in made.rows], sorted(made.words)
    ends = oracle_tables.resolve_titles(pages, "fixed")
    names = {page["page_id"]: page["title"] for page in pages.pages}

    def counted(texts: list[str]) -> np.ndarray:
        bags = [Counter(oracle.words_of(text)) for text in texts]
        return np.array([[bag[word] for word in words] for bag in bags])

    around = np.zeros((len(titles), len(pages.paragraphs)), np.int64)
    for number, row in enumerate(pages.paragraphs):
        linked = [oracle_tables.follow(link["target"], ends) for link in row["links"]]
        page = names[row["page_id"]]
        for title in [page, *(end for end, status in linked if status != "loop" and end != page)]:
            around[titles.index(title), number] += 1
    # Of one title every link counts, of more than 64 here.
    few = np.flatnonzero(around.sum(1) <= 64)
    paragraphs = counted([row["text"] for row in pages.paragraphs])
    weigh = TfidfTransformer(sublinear_tf=True).fit(paragraphs)
    expected = weigh.transform(counted(texts_of(pages))) @ weigh.transform(around[few] @ paragraphs).T
    table = ContextTable(str(tmp_path))
    found = [table.cosines(text, [[titles[row] for row in few]])[0] for text in texts_of(pages)]
    np.testing.assert_allclose(found, expected.toarray(), rtol=0, atol=1e-6)
    assert len(few) > 20


def test_pages_that_are_held_out_say_nothing(pages: Pages, tmp_path: Path) -> None:
    write_contexts(tmp_path, pages, held_out=1)
    table = ContextTable(str(tmp_path))
    (cosines,) = table.cosines(pages.paragraphs[0]["text"], [[page["title"] for page in pages.pages]])
    assert not cosines.any()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The well-read 2nd APE's; a_b", ["the", "well", "read", "2nd", "ape", "s", "a", "b"]),
        ("Straße, ΣΑΣ 日本", ["strasse", "σασ", "日", "本"]),
        ("... — \u0301", []),
        ("", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert words_of(text) == oracle.words_of(text) == words


def test_another_stages_folder_has_no_contexts(pages: Pages, tmp_path: Path) -> None:
    write_manifest(tmp_path / "pages", "ExtractPages")
    with pytest.raises(ValueError, match="made by ExtractPages; wanted the folder of BuildContexts"):
        ContextTable(str(tmp_path / "pages"))
    with pytest.raises(ValueError, match=r"manifest\.json: not there; run the stage that makes it"):
        ContextTable(str(tmp_path))
    write_contexts(tmp_path, pages)
    (tmp_path / "contexts.arrow").write_bytes(b"")
    with pytest.raises(ValueError, match=r"contexts\.arrow: 0 bytes, .*run BuildContexts"):
        ContextTable(str(tmp_path))


def test_coherence_is_of_the_titles_that_the_table_has(tmp_path: Path) -> None:
    """By their names, wherever they stand; a title without a row is near to none."""
    vectors = {"A": (1.0,), "B": (1.0, 1.0), "C": (0.0, 2.0)}
    table = write_context_table(tmp_path, {title: {} for title in vectors}, vectors=vectors)
    titles, weights = [["C", "none", "A"], ["B"], ["A"]], [[0.5, 0.5, 0.0], [1.0], [1.0]]
    found = table.coherence(["x", "y", "x"], titles, weights)
    assert [*map(len, found)] == [3, 1, 1]
    near = 0.5**0.5
    assert np.concatenate(found).tolist() == pytest.approx([near, 0.0, near, near, near])
    assert table.coherence([], [], []) == []
