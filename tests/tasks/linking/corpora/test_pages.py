"""A dump's held-out pages as annotated documents, against plain loops over the same paragraphs."""

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from pipeline import schemas, storage
from pipeline.lookup.held_out import is_held_out, page_hash
from pipeline.lookup.targets import Targets
from tasks.linking.corpora import pages as corpus
from tasks.linking.documents.document import Document
from tasks.linking.documents.reading import read_documents
from tests.support import DATA
from tests.support import oracle_tables as oracle
from tests.support.mentions import pages_of_dump, write_mentions

Row = dict[str, Any]
SHARE = 0.3
COLUMNS = schemas.PARAGRAPHS.schema.names


class Wiki:
    """The pages of a small dump, a mention table of them, and files of their paragraphs, whole pages in each."""

    def __init__(self, folder: Path, files: int = 3) -> None:
        self.folder = folder
        self.pages = pages_of_dump(DATA / "wiki-40.xml.bz2", 6000)
        write_mentions(folder / "mentions", self.pages, size=20)
        self.titles = {row["page_id"]: row["title"] for row in self.pages.pages}
        self.of_page = {
            page: list(rows) for page, rows in groupby(self.pages.paragraphs, key=lambda row: row["page_id"])
        }
        self.paths = self.write(files)

    def write(self, files: int) -> list[str]:
        ids, paths = list(self.of_page), []
        for number in range(files):
            paths.append(str(self.folder / f"{files}-{number}.parquet"))
            rows = [
                (page, self.titles[page], place, "", row["text"], row["links"])
                for page in ids[number * len(ids) // files : (number + 1) * len(ids) // files]
                for place, row in enumerate(self.of_page[page])
            ]
            write_paragraphs(paths[-1], rows)
        return paths

    def build(self, name: str, paths: Sequence[str] = (), share: float = SHARE, most: int = 1000) -> storage.Result:
        targets = Targets(str(self.folder / "mentions"), "en")
        options: dict[str, Any] = {"share": share, "most": most, "pages": len(self.pages.pages)}
        return corpus.build(paths or self.paths, str(self.folder / name), targets, **options)

    def documents(self, name: str) -> list[Document]:
        path = self.folder / name / corpus.FILE
        return read_documents(path) if path.stat().st_size else []


def write_paragraphs(path: str, rows: Sequence[tuple[object, ...]]) -> None:
    table = pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], schemas.PARAGRAPHS.schema)
    pq.write_table(table, path)


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Wiki:
    return Wiki(tmp_path_factory.mktemp("wiki"))


def ends_of(pages: oracle.Pages) -> dict[str, str]:
    """The page where each title ends, by the oracle; in a loop the title itself, as in the mention table."""
    return {title: row["canonical"] or title for title, row in oracle.resolve_titles(pages, "fixed").items()}


def test_documents_are_the_pages_paragraphs_with_their_links(wiki: Wiki) -> None:
    result = wiki.build("all")
    ends, wanted = ends_of(wiki.pages), []
    for page, rows in wiki.of_page.items():
        links = [
            (row["text"][link["start"] : link["end"]], ends.get(link["target"], link["target"]))
            for row in rows
            for link in row["links"]
        ]
        if links:
            wanted.append((page, "\n".join(row["text"] for row in rows), links))
    assert len({end for *_, links in wanted for _, end in links}) > 10
    held_out = [(page, text, links) for page, text, links in wanted if is_held_out(page, SHARE)]
    found = wiki.documents("all")
    assert [
        (each.id, each.text, [(each.text[m.start : m.end], m.title) for m in each.mentions or ()]) for each in found
    ] == [(wiki.titles[page], text, links) for page, text, links in held_out]
    lines = (wiki.folder / "all" / corpus.FILE).read_text().splitlines()
    assert [json.loads(line)["page_id"] for line in lines] == [page for page, *_ in held_out]
    mentions = sum(len(links) for *_, links in held_out)
    assert result.rows == {"held_out": len(found), "mentions": mentions}
    assert 0 < len(found) < len(wanted)
    assert result.drops == {
        corpus.NO_LINKS: len(wiki.pages.pages) - len(wanted),
        corpus.NOT_HELD_OUT: len(wanted) - len(held_out),
    }


def test_the_files_of_paragraphs_do_not_matter(wiki: Wiki) -> None:
    one, several = wiki.build("one", wiki.write(1), most=5), wiki.build("several", most=5)
    assert one == several
    found = [(wiki.folder / name / corpus.FILE).read_bytes() for name in ("one", "several")]
    assert found[0] == found[1]


def test_pages_are_chosen_by_their_hashes(wiki: Wiki) -> None:
    """A larger number adds pages; what is left out for the number is counted."""
    everything = wiki.build("all")
    ids = {title: page for page, title in wiki.titles.items()}
    of_all = [each.id for each in wiki.documents("all")]
    for most in (0, 2, 5):
        result = wiki.build("some", most=most)
        chosen = sorted(of_all, key=lambda title: page_hash(ids[title]))[:most]
        found = [each.id for each in wiki.documents("some")]
        assert found == [title for title in of_all if title in chosen]
        assert result.rows["held_out"] == most
        assert result.drops[corpus.OVER_LIMIT] == everything.rows["held_out"] - most


def test_a_page_may_be_longer_than_what_is_read_at_once(wiki: Wiki) -> None:
    """Its paragraphs come in several batches; one of two pages of a title is left out, and counted."""
    target = wiki.pages.pages[0]["title"]
    link = [{"start": 2, "end": 4, "target": target}]
    sizes = {1: 1500, 2: 2200, 3: 1}
    rows = [
        (page, "Long" if page == 2 else "Short", place, "", f"\U0001f40d an {place}", link)
        for page, size in sizes.items()
        for place in range(size)
    ]
    path = str(wiki.folder / "long.parquet")
    write_paragraphs(path, rows)
    assert list(corpus.linked_pages(path)) == [1, 2, 3]
    result = wiki.build("long", [path], share=1.0)
    short, long = wiki.documents("long")
    assert (short.id, long.id, long.text.count("\n")) == ("Short", "Long", 2199)
    assert [len(each.mentions or ()) for each in (short, long)] == [1500, 2200]
    for document in (short, long):
        assert {document.text[each.start : each.end] for each in document.mentions or ()} == {"an"}
    assert result.drops[corpus.SAME_TITLE] == 1


def test_without_a_page(wiki: Wiki) -> None:
    path = str(wiki.folder / "none.parquet")
    link = [{"start": 0, "end": 1, "target": "Is in no table"}]
    write_paragraphs(path, [(1, "No links", 0, "", "A text.", []), (2, "Nowhere", 0, "", "A text.", link)])
    result = wiki.build("none", [path], share=1.0)
    assert result.rows == {"held_out": 0, "mentions": 0}
    assert result.drops == {corpus.NO_LINKS: len(wiki.pages.pages), corpus.NO_TARGET: 1}
