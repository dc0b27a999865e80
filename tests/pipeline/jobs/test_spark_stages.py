"""Spark's joins and counts, against plain Python."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline import storage
from pipeline.jobs import entity_vocab, mention_table
from pipeline.jobs import links as links_module
from pipeline.jobs import redirects as redirects_module
from pipeline.jobs.extract_pages import SCHEMAS
from pipeline.jobs.spark import read, write_parts
from pipeline.lookup import mentions
from pipeline.lookup.entities import EntityVocab

pytestmark = pytest.mark.slow

PAGES = ["A", "B", "C", "Both"]
REDIRECTS = {
    "to A": "A",
    "to to A": "to A",
    **{f"chain {number}": f"chain {number + 1}" for number in range(40)},
    "chain 40": "B",
    "dead": "Nowhere",
    "to dead": "dead",
    "self": "self",
    "loop 1": "loop 2",
    "loop 2": "loop 3",
    "loop 3": "loop 1",
    "into loop": "loop 2",
    "Both": "C",
}


def follow(title: str, max_hops: int | None) -> tuple[str | None, int | None, str]:
    """The plain way along redirects, one hop after another; a bounded one cannot notice a loop."""
    seen, hops = [title], 0
    while seen[-1] in REDIRECTS and seen[-1] not in PAGES and (max_hops is None or hops < max_hops):
        following = REDIRECTS[seen[-1]]
        hops += 1
        if max_hops is None and following in seen:
            return None, None, "loop"
        seen.append(following)
    if hops == 0:
        return title, 0, "page"
    return seen[-1], hops, "redirect" if seen[-1] in PAGES else "missing"


@pytest.mark.parametrize("max_hops", [None, 1])
def test_redirects_equal_the_plain_way(spark: Any, max_hops: int | None) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    pages = spark.createDataFrame([(title,) for title in PAGES], "title string")
    redirects = spark.createDataFrame(list(REDIRECTS.items()), "source string, target string")
    rows = redirects_module.resolve_redirects(pages, redirects, max_hops=max_hops).collect()
    found = {row["title"]: (row["canonical"], row["hops"], row["status"]) for row in rows}
    expected = {title: follow(title, max_hops) for title in {*PAGES, *REDIRECTS}}
    assert len(rows) == len(found)
    assert found == expected


PARAGRAPHS = [
    (1, "The ape saw an Ape and apes.", [("ape", 4, "Ape"), ("Ape", 15, "A"), ("ape", 23, "Ape")]),
    (2, "😀😀 日本 is Japan, an ape.", [("日本", 3, "Japan"), ("Japan", 9, "Japan"), ("ape", 19, "Gone")]),
    (2, "Nothing is linked here, not one ape.", []),
    (3, "Redirected: apes", [("apes", 12, "to Ape")]),
]
TITLES = [
    ("Ape", "Ape", 0, "page"),
    ("to Ape", "Ape", 1, "redirect"),
    ("Japan", "Japan", 0, "page"),
    ("A", None, 2, "loop"),
    ("Gone", "Further", 1, "missing"),
]
PAGE_ROWS = [
    ("Ape", 1, False),
    ("Japan", 2, True),
    ("Unlinked", 3, False),
    ("[MASK]", 4, False),
    ("[MASK2]", 5, False),
]


@pytest.fixture(scope="module")
def tables(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = str(tmp_path_factory.mktemp("tables") / "paragraphs.parquet")
    rows = [
        {
            "page_id": page_id,
            "title": "",
            "paragraph": 0,
            "section": "",
            "text": text,
            "links": [
                {"start": at, "end": at + len(anchor), "target": target} for anchor, at, target in links
            ],
        }
        for page_id, text, links in PARAGRAPHS
    ]
    for row in rows:
        for link, (anchor, _, _) in zip(
            row["links"], {text: links for _, text, links in PARAGRAPHS}[row["text"]], strict=True
        ):
            assert row["text"][link["start"] : link["end"]] == anchor
    pq.write_table(pa.Table.from_pylist(rows, SCHEMAS["paragraphs"]), path)
    paragraphs = read(spark, [path], 2)
    titles = spark.createDataFrame(TITLES, "title string, canonical string, hops int, status string")
    return {
        "paragraphs": paragraphs,
        "titles": titles,
        "pages": spark.createDataFrame(PAGE_ROWS, "title string, page_id long, is_disambiguation boolean"),
        "annotations": links_module.links(paragraphs, titles),
        "entities": spark.createDataFrame([("Ape", 3)], "title string, entity_id int"),
    }


def test_links_and_coverage(tables: dict[str, Any]) -> None:
    rows = Counter((row["mention"], row["title"], row["status"]) for row in tables["annotations"].collect())
    assert rows == {
        ("ape", "Ape", "page"): 2,
        ("Ape", "A", "loop"): 1,
        ("日本", "Japan", "page"): 1,
        ("Japan", "Japan", "page"): 1,
        ("ape", "Further", "missing"): 1,
        ("apes", "Ape", "redirect"): 1,
    }
    assert links_module.link_coverage(tables["annotations"]) == {
        "loop": 1,
        "missing": 1,
        "page": 4,
        "redirect": 1,
    }


@pytest.fixture(scope="module")
def counted(tables: dict[str, Any]) -> Any:
    return entity_vocab.count_links(tables["annotations"], tables["pages"])


@pytest.mark.parametrize(
    ("parameters", "titles", "drops"),
    [
        ({"size": 10}, ("Ape", "Japan"), {}),
        ({"size": 4}, ("Ape",), {"below_vocab_size": 1}),
        ({"size": 10, "min_count": 3}, ("Ape",), {"below_min_count": 1}),
        ({"size": 10, "disambiguation": False}, ("Ape",), {"disambiguation": 1}),
        ({"size": 10, "min_count": 3, "disambiguation": False}, ("Ape",), {"below_min_count": 1}),
        ({"size": 4, "forced": {"Unlinked"}}, ("Unlinked",), {"below_vocab_size": 2}),
        ({"size": 5, "forced": {"Unlinked"}}, ("Ape", "Unlinked"), {"below_vocab_size": 1}),
        ({"size": 9, "forced": {"Japan"}, "min_count": 9}, ("Japan",), {"below_min_count": 1}),
        ({"size": 9, "forced": {"Japan"}, "disambiguation": False}, ("Ape", "Japan"), {}),
        ({"size": 9, "forced": {"[MASK]", "[MASK2]"}}, ("Ape", "Japan"), {}),
    ],
)
def test_vocabulary(
    counted: Any, parameters: dict[str, Any], titles: tuple[str, ...], drops: dict[str, int]
) -> None:
    entities = entity_vocab.choose_entities(counted, **parameters)
    facts = {"Ape": (3, 1), "Japan": (2, 2), "Unlinked": (0, 3)}
    assert entities.vocab.titles[3:] == titles
    assert list(zip(entities.vocab.link_counts, entities.vocab.page_ids, strict=True))[3:] == [
        facts[title] for title in titles
    ]
    assert entities.ids == {title: number for number, title in enumerate(titles, start=3)}
    assert {reason: count for reason, count in entities.drops.items() if count} == {
        f"entities:{reason}": count for reason, count in drops.items()
    }


def test_titles_without_a_page_can_be_entities(tables: dict[str, Any]) -> None:
    """Not those of loops; and their mentions find them."""
    counted = entity_vocab.count_links(tables["annotations"], tables["pages"], missing=True)
    vocab = entity_vocab.choose_entities(counted, 10).vocab
    assert vocab.titles[3:] == ("Ape", "Japan", "Further")
    assert vocab.link_counts[3:] == (3, 2, 1)
    assert vocab.page_ids[3:] == (1, 2, -1)
    rows = zip(range(len(vocab)), vocab.link_counts, vocab.page_ids, vocab.titles, strict=True)
    columns = "entity_id int, link_count long, page_id long, title string"
    frame = tables["pages"].sparkSession.createDataFrame(list(rows), columns)
    found = {tuple(row) for row in mention_table.entity_titles(frame, tables["pages"]).collect()}
    assert found == {("Ape", 3), ("Japan", 4), ("Further", 5)}


def test_a_vocabulary_made_elsewhere_keeps_its_ids(counted: Any, tables: dict[str, Any]) -> None:
    """A title that is a redirect here stands for its page, unless another entity has the page's own title."""
    titles = ("[PAD]", "[UNK]", "[MASK]", "to Ape", "Elsewhere", "Ape", "A", "Japan")
    given = EntityVocab(titles, (9,) * 8, (99,) * 8)
    entities = entity_vocab.fit_entities(counted, tables["titles"], given)
    assert entities.vocab.titles == titles
    assert entities.vocab.link_counts == (0, 0, 0, 0, 0, 3, 0, 2)
    assert entities.vocab.page_ids == (-1, -1, -1, -1, -1, 1, -1, 2)
    assert entities.ids == {"Ape": 5, "Japan": 7}
    assert entities.drops == {"entities:not_in_dump": 2, "entities:same_page": 1}
    without = EntityVocab(titles[:5], (0,) * 5, (-1,) * 5)
    assert entity_vocab.fit_entities(counted, tables["titles"], without).ids == {"Ape": 3}


def test_titles_of_a_white_list_are_followed(spark: Any, tables: dict[str, Any]) -> None:
    names = ["to Ape", "Japan", "A", "Gone", "Elsewhere", "Japan"]
    assert entity_vocab.pages_of(spark, names, tables["titles"]) == {"to Ape": "Ape", "Japan": "Japan"}
    assert entity_vocab.pages_of(spark, [], tables["titles"]) == {}


def count_mentions(tables: dict[str, Any], path: Path, profile: str, **parameters: int) -> list[Any]:
    """The rows of the mention table; (mention, title) stands once."""
    settings = {"min_links": 1, "max_characters": 100, **parameters}
    anchors = mention_table.count_anchors(tables["annotations"], profile=profile, **settings)
    names = str(path / mentions.NAMES)
    count, longest = mention_table.write_names(anchors, names)
    rows = mention_table.count_mentions(
        tables["paragraphs"],
        anchors,
        tables["entities"],
        names_path=names,
        longest=longest,
        profile=profile,
    ).collect()
    assert len({row["mention"] for row in rows}) == count
    assert max(len(row["mention"]) for row in rows) == longest
    return rows


def test_mention_table(tables: dict[str, Any], tmp_path: Path) -> None:
    rows = {(row["mention"], row["title"]): row for row in count_mentions(tables, tmp_path, "fixed")}
    columns = ("entity_id", "link_count", "total_links", "occurrences")
    assert {key: tuple(row[name] for name in columns) for key, row in rows.items()} == {
        # Three links, one of them inside "apes", and one place that is no link.
        ("ape", "Ape"): (3, 2, 3, 4),
        ("ape", "Further"): (None, 1, 3, 4),
        ("Ape", "A"): (None, 1, 1, 1),
        ("apes", "Ape"): (3, 1, 1, 2),
        ("Japan", "Japan"): (None, 1, 1, 1),
        ("日本", "Japan"): (None, 1, 1, 1),
    }
    assert rows["ape", "Ape"]["link_probability"] == pytest.approx(3 / 4)
    assert rows["ape", "Ape"]["commonness"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("parameters", "names"),
    [({"min_links": 2}, {"ape"}), ({"max_characters": 3}, {"ape", "Ape", "日本"})],
)
def test_rare_and_long_mentions_are_left_out(
    tables: dict[str, Any], tmp_path: Path, parameters: dict[str, int], names: set[str]
) -> None:
    assert {row["mention"] for row in count_mentions(tables, tmp_path, "fixed", **parameters)} == names


def test_mention_table_as_the_paper_counted(tables: dict[str, Any], tmp_path: Path) -> None:
    rows = {(row["mention"], row["title"]): row for row in count_mentions(tables, tmp_path, "paper")}
    # Folded, "ape" is linked four times, on pages 1 and 2: four links on two pages, capped at 1.
    assert rows["ape", "Ape"]["total_links"] == 4
    assert rows["ape", "Ape"]["occurrences"] == 2
    assert rows["ape", "Ape"]["link_probability"] == 1.0


@pytest.mark.parametrize(
    ("profile", "ape", "japan"),
    [
        (
            "fixed",
            ([("Ape", "A"), ("ape", "Ape")], 0),
            [("Japan", "Japan"), ("ape", "Further"), ("日本", "Japan")],
        ),
        ("paper", ([], 1), [("ape", "Further"), ("japan", "Japan"), ("日本", "Japan")]),
    ],
)
def test_names_of_pages(
    tables: dict[str, Any], profile: str, ape: tuple[list[tuple[str, str]], int], japan: list[tuple[str, str]]
) -> None:
    """Folded, Ape and ape are one name, which links to two titles from its page; a page can have none."""
    found = mention_table.page_names(
        tables["annotations"], tables["pages"], profile=profile, max_characters=100
    )
    rows = {
        row["page"]: ([tuple(name) for name in row["names"]], row["ambiguous"]) for row in found.collect()
    }
    linked = {"Ape": ape, "Japan": (japan, 0), "Unlinked": ([("apes", "Ape")], 0)}
    assert rows == linked | {"[MASK]": ([], 0), "[MASK2]": ([], 0)}


def test_parts_are_kept_and_have_the_same_bytes(spark: Any, tmp_path: Path) -> None:
    schema = pa.schema([("word", pa.string()), ("number", pa.int64())])
    # Long and many enough that a column of a row group has several pages, which must not follow Spark's batches.
    rows = [(f"word {number % 1000} " + f"{number:07d}" * 40, number) for number in range(30_000)]

    def write(folder: Path, partitions: int) -> dict[int, storage.Result]:
        frame = spark.createDataFrame(rows, "word string, number long").repartition(partitions)
        return write_parts(
            frame, schema, str(folder), "words", "key", parts=3, by="word", order=["word", "number"]
        )

    whole = write(tmp_path / "whole", 1)
    broken = tmp_path / "broken"
    write(broken, 7)
    (broken / "blocks/block-00001.json").unlink()
    (broken / "words/block-00001.parquet").write_bytes(b"half")
    kept = (broken / "words/block-00000.parquet").stat().st_mtime_ns
    assert write(broken, 5) == whole
    assert (broken / "words/block-00000.parquet").stat().st_mtime_ns == kept
    assert sum(record.rows["words"] for record in whole.values()) == len(rows)
    assert pq.ParquetFile(tmp_path / "whole/words/block-00000.parquet").metadata.row_group(0).num_rows == 8192
