"""The report's sample pages: a function of the pages, complete or said to be cut, every link with its end."""

import hashlib
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline import schemas, storage
from pipeline.lookup.entities import ALIASES
from pipeline.storage.tries import write_numbers
from workflows.report.sample_pages import sample_pages

HOSTILE = "<script>alert(1)</script>"
STATUSES = {
    "A": ("A", "page"), "a": ("A", "redirect"), "B": ("B", "page"), "loop": (None, "loop"),
    HOSTILE: (HOSTILE, "page"), "gone": None, "dreamt": None,
}  # fmt: skip
IN_VOCABULARY = ["A", "a", HOSTILE, "dreamt"]  # a title without a page can be an entity, too
Page = dict[str, Any]


def random_pages(count: int, seed: int = 0) -> list[Page]:
    """Pages of 0 to 12 paragraphs of up to 4,000 characters, with links that do not overlap."""
    draw = random.Random(seed)
    pages = []
    for number in range(count):
        paragraphs = []
        for _ in range(draw.choice([0, 1, 2, 5, 12])):
            text = "".join(draw.choice("ab 😀é") for _ in range(draw.choice([1, 50, 4000])))
            places = sorted(
                draw.sample(range(len(text) + 1), min(len(text) // 9 * 2, 2 * draw.randint(0, 9)))
            )
            links = [
                {"start": start, "end": end, "target": draw.choice([*STATUSES])}
                for start, end in zip(places[::2], places[1::2], strict=True)
            ]
            paragraphs.append({"section": draw.choice(["", "S"]), "text": text, "links": links})
        pages.append({"page_id": 10 + 3 * number, "title": f"page {number}", "paragraphs": paragraphs})
    return pages


def write_extracted(folder: Path, blocks: list[list[Page]]) -> str:
    """The folder of ExtractPages."""
    files = []
    for number, pages in enumerate(blocks):
        rows: dict[str, list[dict[str, Any]]] = {"pages": [], "paragraphs": []}
        for page in pages:
            ids = {"page_id": page["page_id"], "title": page["title"]}
            rows["pages"].append(
                {**ids, "is_disambiguation": False, "paragraph_count": len(page["paragraphs"])}
            )
            rows["paragraphs"] += [
                {**ids, "paragraph": place, **paragraph} for place, paragraph in enumerate(page["paragraphs"])
            ]
        for table, content in rows.items():
            path = f"{table}/block-{number:05d}.parquet"
            (folder / table).mkdir(parents=True, exist_ok=True)
            schema = schemas.TABLES["ExtractPages"][table].schema
            pq.write_table(pa.Table.from_pylist(content, schema), folder / path, row_group_size=5)
            files.append(storage.describe(str(folder), path, len(content)))
    storage.write_manifest(str(folder), storage.Manifest("ExtractPages", 3, {}, {}, tuple(files)))
    return str(folder)


def write_ends(folder: Path) -> tuple[str, str]:
    """The folders of ResolveRedirects and BuildEntityVocab, as far as they are read."""
    titles, vocab = folder / "titles_stage", folder / "vocab"
    (titles / "titles").mkdir(parents=True)
    vocab.mkdir()
    rows = [(title, *found) for title, found in STATUSES.items() if found]
    table = {
        name: [row[place] for row in rows] for place, name in enumerate(("title", "canonical", "status"))
    }
    pq.write_table(pa.table(table), titles / "titles/block-00000.parquet")
    entry = storage.describe(str(titles), "titles/block-00000.parquet", len(rows))
    storage.write_manifest(str(titles), storage.Manifest("ResolveRedirects", 2, {}, {}, (entry,)))
    write_numbers(str(vocab / ALIASES), [(title, 3 + place) for place, title in enumerate(IN_VOCABULARY)])
    return str(titles), str(vocab)


def read(folder: Path, pages: list[Page], blocks: int = 3) -> dict[str, Any]:
    size = -(-len(pages) // blocks) or 1
    extracted = write_extracted(
        folder / "pages", [pages[at : at + size] for at in range(0, len(pages), size)]
    )
    return sample_pages(extracted, *write_ends(folder))


def in_order_of_hashes(pages: list[Page]) -> list[str]:
    with_text = [page for page in pages if page["paragraphs"]]
    with_text.sort(key=lambda page: hashlib.sha256(str(page["page_id"]).encode()).digest())
    return [page["title"] for page in with_text]


def link_count(page: Page) -> int:
    return sum(len(paragraph["links"]) for paragraph in page["paragraphs"])


def test_the_sample_is_that_of_brute_force(tmp_path: Path) -> None:
    pages = random_pages(80)
    found = read(tmp_path, pages)
    chance = in_order_of_hashes(pages)[:20]
    densest = [
        page["title"] for page in sorted(pages, key=lambda page: (-link_count(page), page["page_id"]))[:4]
    ]
    assert [page["title"] for page in found["pages"]] == chance + [
        title for title in densest if title not in chance
    ]
    assert {page["title"] for page in found["pages"] if page["by"] == "links"} == set(densest)
    assert found["of"] == sum(bool(page["paragraphs"]) for page in pages) < 80


def test_what_is_shown_is_the_beginning_and_counted(tmp_path: Path) -> None:
    pages = {page["title"]: page for page in random_pages(60, seed=1)}
    found = read(tmp_path, list(pages.values()))
    cut = 0
    for shown in found["pages"]:
        page = pages[shown["title"]]
        assert shown["paragraphs"] == len(page["paragraphs"])
        assert shown["links"] == link_count(page)
        assert shown["shown"] == len(shown["text"]) >= 1
        texts = [
            "".join(part if isinstance(part, str) else part[0] for part in parts)
            for _, parts in shown["text"]
        ]
        assert texts == [paragraph["text"] for paragraph in page["paragraphs"][: shown["shown"]]]
        rest = page["paragraphs"][shown["shown"] :]
        assert sum(map(len, texts)) <= 8000
        assert not rest or sum(map(len, texts)) + len(rest[0]["text"]) > 8000
        cut += bool(rest)
        for (_, parts), paragraph in zip(shown["text"], page["paragraphs"], strict=False):
            links = [part for part in parts if not isinstance(part, str)]
            assert len(links) == len(paragraph["links"])
            for (anchor, number), link in zip(links, paragraph["links"], strict=True):
                assert anchor == paragraph["text"][link["start"] : link["end"]]
                known = STATUSES[link["target"]] or (link["target"], "missing")
                wanted = [known[0] or link["target"], known[1], link["target"] in IN_VOCABULARY]
                assert found["targets"][number] == wanted
    assert cut
    assert {target[1] for target in found["targets"]} == {"page", "redirect", "missing", "loop"}


def test_a_page_of_one_long_paragraph_is_cut_and_says_so(tmp_path: Path) -> None:
    links = [{"start": at, "end": at + 2, "target": "A"} for at in (0, 7999, 8500)]
    paragraphs = [{"section": HOSTILE, "text": "x" * 9000, "links": links}] * 2
    (page,) = read(tmp_path, [{"page_id": 1, "title": HOSTILE, "paragraphs": paragraphs}])["pages"]
    assert (page["shown"], page["paragraphs"], page["cut"], page["links"]) == (1, 2, 1000, 6)
    assert page["text"] == [[HOSTILE, [["xx", 0], "x" * 7998]]], "a link across the cut is plain text"


@pytest.mark.parametrize("paragraphs", [[], [{"section": "", "text": "Alone.", "links": []}]])
def test_corpora_with_nothing_to_link(tmp_path: Path, paragraphs: list[dict[str, Any]]) -> None:
    found = read(tmp_path, [{"page_id": 1, "title": "T", "paragraphs": paragraphs}])
    assert found["targets"] == []
    assert [page["text"] for page in found["pages"]] == [[["", ["Alone."]]]] * len(paragraphs)
