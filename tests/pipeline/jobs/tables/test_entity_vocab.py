"""The pages that become entities: chosen from the corpus, or those of a vocabulary made elsewhere."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline import schemas, storage
from pipeline.jobs.tables.entity_vocab import choose_entities, count_links, fit_entities, with_qids
from pipeline.jobs.tables.mention_table import entity_titles, link_targets
from pipeline.lookup.entities import EntityVocab
from pipeline.mediawiki.site import SiteInfo

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def counted(tables: dict[str, Any]) -> Any:
    return count_links(tables["links"], tables["pages"])


def test_titles_without_a_page_can_be_entities(tables: dict[str, Any]) -> None:
    """Not those of loops; and their mentions find them."""
    counted = count_links(tables["links"], tables["pages"], missing=True)
    vocab = choose_entities(counted, 10).vocab
    assert vocab.titles[3:] == ("Ape", "Japan", "Further")
    assert vocab.link_counts[3:] == (3, 2, 1)
    assert vocab.page_ids[3:] == (1, 2, -1)
    rows = zip(range(len(vocab)), vocab.link_counts, vocab.page_ids, vocab.titles, strict=True)
    columns = "entity_id int, link_count long, page_id long, title string"
    frame = tables["pages"].sparkSession.createDataFrame(list(rows), columns)
    found = {tuple(row) for row in entity_titles(frame, tables["pages"]).collect()}
    assert found == {("Ape", 3), ("Japan", 4), ("Further", 5)}


def test_entities_are_ranked_by_links_then_title_in_code_points(spark: Any) -> None:
    counts = [("Zebra", 5), ("Ape", 5), ("😀", 5), ("Ångström", 5), ("ﬀ", 5), ("Rare", 1), ("Top", 9), ("None", 0)]
    ranked = ("Top", "Ape", "Zebra", "Ångström", "ﬀ", "😀", "Rare")
    for rows in (counts, counts[::-1]):
        frame = spark.createDataFrame([(*row, 7) for row in rows], "title string, link_count long, page_id long")
        for size in (4, 9, 20):
            entities = choose_entities(frame, size)
            assert entities.vocab.titles[3:] == ranked[: size - 3]
            assert entities.drops == {"entities:below_vocab_size": max(0, 10 - size)}


@pytest.mark.parametrize("target", ["Category:X", "Fr:X", "Wikipedia talk:X", "Simple:X", "Meatball:X"])
def test_redirects_to_other_namespaces_and_wikis_are_no_entities(tables: dict[str, Any], target: str) -> None:
    rows = [(1, "a", target, "missing"), (1, "b", "Star Trek: X", "missing"), (2, "c", "Japan", "page")]
    spark = tables["pages"].sparkSession
    annotations = spark.createDataFrame(rows, "page_id long, mention string, title string, status string")
    elsewhere = SiteInfo("en", "enwiki", "first-letter", ()).other_prefixes
    counted = count_links(annotations, tables["pages"], missing=True, elsewhere=elsewhere)
    assert choose_entities(counted, 10).vocab.titles[3:] == ("Japan", "Star Trek: X")


def test_a_vocabulary_made_elsewhere_keeps_its_ids(counted: Any, tables: dict[str, Any]) -> None:
    """A title that is a redirect here stands for its page, unless another entity has the page's own title."""
    titles = ("[PAD]", "[UNK]", "[MASK]", "to Ape", "Elsewhere", "Ape", "A", "Japan")
    given = EntityVocab(titles, (9,) * 8, (99,) * 8)
    entities = fit_entities(counted, tables["titles"], given)
    assert entities.vocab.titles == titles
    assert entities.vocab.link_counts == (0, 0, 0, 0, 0, 3, 0, 2)
    assert entities.vocab.page_ids == (-1, -1, -1, -1, -1, 1, -1, 2)
    assert entities.ids == {"Ape": 5, "Japan": 7}
    assert entities.drops == {"entities:not_in_dump": 2, "entities:same_page": 1}
    without = EntityVocab(titles[:5], (0,) * 5, (-1,) * 5)
    assert fit_entities(counted, tables["titles"], without).ids == {"Ape": 3}


def test_a_vocabulary_made_elsewhere_keeps_titles_without_a_page(tables: dict[str, Any]) -> None:
    """If titles without a page can be entities."""
    given = EntityVocab(("[PAD]", "[UNK]", "[MASK]", "Further", "to Ape"), (0,) * 5, (-1,) * 5)
    for missing, wanted in ((True, {"Further": 3, "Ape": 4}), (False, {"Ape": 4})):
        counted = count_links(tables["links"], tables["pages"], missing=missing)
        entities = fit_entities(counted, tables["titles"], given)
        assert entities.ids == wanted
        assert entities.vocab.link_counts[3] == missing


def test_entities_get_the_qids_of_their_pages(tmp_path: Path) -> None:
    """In the table, and by title in a file of their own, which is there only where some are known."""
    paths = [str(tmp_path / f"{number}.parquet") for number in range(2)]
    for path, rows in zip(paths, ([(1, "Q1"), (7, "Q7")], [(2, "Q2")]), strict=True):
        with storage.parquet_rows(path, schemas.QIDS.schema) as table:
            table.extend(rows)
    titles = ("[PAD]", "[UNK]", "[MASK]", "Ape", "Gone", "Japan")
    vocab = EntityVocab(titles, (0,) * 6, (-1, -1, -1, 1, -1, 2))
    assert with_qids(vocab, []) == vocab
    assert "entity_qids.json" not in {entry.path for entry in vocab.write(str(tmp_path / "none"))}
    found = with_qids(vocab, paths)
    assert found.qids == (None, None, None, "Q1", None, "Q2")
    (listed,) = [each for each in found.write(str(tmp_path / "some")) if each.path == "entity_qids.json"]
    assert listed.rows == 2
    assert json.loads((tmp_path / "some/entity_qids.json").read_text()) == {"Ape": "Q1", "Japan": "Q2"}
    assert EntityVocab.load(str(tmp_path / "some")) == found
    assert EntityVocab.load(str(tmp_path / "none")) == vocab


def test_targets_get_the_qids_of_their_pages(tables: dict[str, Any]) -> None:
    spark = tables["pages"].sparkSession
    anchors = spark.createDataFrame([("ape", "Ape"), ("x", "Gone")], "mention string, title string")
    qids = spark.createDataFrame([(1, "Q1"), (9, "Q9")], "page_id long, qid string")
    for given, wanted in ((qids, "Q1"), (None, None)):
        rows = link_targets(anchors, tables["entities"], tables["pages"], given).collect()
        assert {row["title"]: row["qid"] for row in rows if row["qid"] or row["title"] in ("Ape", "Gone")} == {
            "Ape": wanted,
            "Gone": None,
        }
