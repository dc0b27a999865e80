"""A folder as BuildMentionTable leaves it, made from pages in plain Python, without Spark."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import schemas, storage
from pipeline.dump.containers import plan_blocks
from pipeline.dump.pages import Page, read_pages, read_site_info
from pipeline.lookup import mentions, page_names, targets
from pipeline.lookup.entities import EntityVocab
from pipeline.wikitext.extract import extract
from tests.support import oracle_tables as oracle
from tests.support.manifests import write_manifest
from tests.support.oracle_tables import Pages, Row

DUMP = "dump.xml.bz2"


@dataclass(frozen=True)
class Table:
    """The rows of the oracle that a folder was made from."""

    profile: str
    mentions: list[Row]
    page_names: list[Row]
    targets: list[Row]
    titles: dict[str, Row]
    vocab: EntityVocab


def pages_of_dump(path: Path, max_characters: int) -> Pages:
    """The redirects of a dump, and its articles of at most so much wikitext."""
    site = read_site_info(str(path))
    found = Pages([], [], [[]])
    for block in plan_blocks([str(path)], 1 << 40):
        for page in read_pages(block, site, Counter()):
            assert isinstance(page, Page)
            if page.redirect:
                found.redirects.append({"source": page.title, "target": page.redirect[0]})
            elif len(page.text) <= max_characters:
                found.pages.append({"page_id": page.page_id, "title": page.title, "is_disambiguation": False})
                for paragraph in extract(page.text, site).paragraphs:
                    links = [link._asdict() for link in paragraph.links]
                    found.blocks[0].append({"page_id": page.page_id, "text": paragraph.text, "links": links})
    return found


def write_mentions(
    folder: Path, pages: Pages, profile: str = "fixed", size: int = 1000, qids: Mapping[int, str] = MappingProxyType({})
) -> Table:
    """Write the folder; its vocabulary has at most `size` entities. `qids` are those of some pages, by their ids."""
    titles = oracle.resolve_titles(pages, "fixed")
    rows = oracle.build_vocab(pages, titles, size=size)
    vocab = EntityVocab(*(tuple(row[name] for row in rows) for name in ("title", "link_count", "page_id")))
    vocab = replace(vocab, qids=tuple(map(qids.get, vocab.page_ids)))
    table = oracle.mention_table(pages, titles, rows, profile)
    named = oracle.page_names(pages, titles, profile)
    files = write_tables(folder, "mentions", _split(table, "mention"), schemas.MENTIONS.schema)
    lookup = mentions.write_lookup(str(folder), [str(folder / each.path) for each in files], "en")
    named_files = write_tables(folder, page_names.TABLE, _split(named, "page"), schemas.PAGE_NAMES.schema)
    title_files = write_tables(folder, "titles", [list(titles.values())])
    ends = [row | {"qid": qids.get(row["page_id"])} for row in oracle.targets(pages, rows, table)]
    end_files = write_tables(folder, targets.TABLE, _split(ends, "title"), schemas.TARGETS.schema)
    paths = [[str(folder / each.path) for each in some] for some in (named_files, end_files, title_files)]
    listed = [page_names.write_pages(str(folder), paths[0], paths[2])]
    listed += targets.write_targets(str(folder), paths[1], paths[2], "en")
    facts = {
        "longest_mention": max((len(row["mention"]) for row in table), default=0),
        "dump": [DUMP],
        "language": "en",
        "entities": len(vocab),
        "entities_sha256": vocab.digest(),
    }
    written = (*files, *named_files, *end_files, *lookup, *listed)
    write_manifest(folder, "BuildMentionTable", written, facts=facts, parameters={"profile": profile})
    return Table(profile, table, named, ends, titles, vocab)


def _split(rows: list[Row], by: str) -> list[list[Row]]:
    """Two parts; what is equal in a column stays together."""
    middle = rows[len(rows) // 3][by] if rows else ""
    return [[row for row in rows if row[by] < middle], [row for row in rows if row[by] >= middle]]


def write_tables(
    folder: Path, table: str, parts: list[list[Row]], schema: pa.Schema | None = None
) -> list[storage.FileEntry]:
    """A table's files, one for each part."""
    (folder / table).mkdir(parents=True, exist_ok=True)
    paths = [f"{table}/block-{number:05d}.parquet" for number in range(len(parts))]
    for path, rows in zip(paths, parts, strict=True):
        # Row groups as those of page names.
        pq.write_table(pa.Table.from_pylist(rows, schema), folder / path, row_group_size=page_names.GROUP_ROWS)
    return [storage.describe(str(folder), path, len(rows)) for path, rows in zip(paths, parts, strict=True)]


def finished_table(folder: Path, profile: str, *parts: list[Any], language: str = "en") -> mentions.MentionTable:
    """The look-up in a folder of BuildMentionTable that has a file for each part.

    A row is a mention, an entity's id, a title, and how many links, links of the mention and occurrences there are.
    """
    files = []
    for number, rows in enumerate(parts):
        path = f"mentions/block-{number:05d}.parquet"
        with storage.parquet_rows(str(folder / path), schemas.MENTIONS.schema) as writer:
            writer.extend((*row, row[4] / row[5], row[3] / row[4]) for row in rows)
        files.append(storage.describe(str(folder), path, len(rows)))
    lookup = mentions.write_lookup(str(folder), [str(folder / entry.path) for entry in files], language)
    facts = {"longest_mention": 9, "language": language, "dump": [DUMP]}
    write_manifest(folder, "BuildMentionTable", (*files, *lookup), facts=facts, parameters={"profile": profile})
    return mentions.MentionTable(str(folder))


def small_pages(
    articles: Sequence[tuple[str, Sequence[tuple[int, int, str]]]], titles: Sequence[str] = "ABCD"
) -> Pages:
    """Articles of a text each, and a redirect "To a" to the first; links are (start, characters, target)."""
    pages = [
        {"page_id": number, "title": title, "is_disambiguation": False}
        for number, (title, _) in enumerate(zip(titles, articles, strict=False))
    ]
    paragraphs = [
        {
            "page_id": number,
            "text": text,
            "links": [
                {"start": start, "end": start + size, "target": target}
                for start, size, target in links
                if start + size <= len(text)
            ],
        }
        for number, (text, links) in enumerate(articles)
    ]
    return Pages(pages, [{"source": "To a", "target": titles[0]}], [paragraphs])


# Ann and ann link to A; "ab" links to A twice and to B once, from C to both; "ab a" is linked to nowhere in the dump.
ARTICLES = [
    ("Ann ann", [(0, 3, "To a"), (4, 3, "A")]),
    ("ab, ab a and ab; Ann", [(0, 2, "A"), (4, 4, "None"), (13, 2, "A")]),
    ("ab ab Ann. Bob Bob Bob", [(0, 2, "A"), (3, 2, "B"), (6, 3, "B"), (11, 3, "B")]),
]
