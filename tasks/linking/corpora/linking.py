"""LinkDocuments: documents in; pages and paragraphs with links out, as ExtractPages writes those of a dump."""

import contextlib
import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np

from pipeline import schemas, storage
from pipeline.storage.blocks import Block, BlockJob, PageMarker, RunBlocks
from pipeline.storage.failures import check_pages, reasons_of
from tasks.io.records import Record
from tasks.linking.corpora.documents import check_beginnings, find_files, plan_blocks, read_block
from tasks.linking.open import LinkerSettings, open_linker

TABLES = schemas.TABLES["LinkDocuments"]
Link = tuple[int, int, str]


def build(
    run: RunBlocks, folder: str, documents: str, settings: LinkerSettings, *, block_bytes: int, max_rejected: float
) -> storage.Result:
    """Write the three tables, block by block.

    Raises: ValueError: too many documents are rejected, none is left, or two have one id; or what links them cannot
    be read, or is of something else.
    """
    arguments = {"documents": documents, "settings": asdict(settings)}
    blocks = plan_blocks([storage.join(documents, name) for name in find_files(documents)], block_bytes)
    if max_rejected < 1:
        check_beginnings(blocks, documents)
    result = storage.merge_blocks(run(DocumentLinker, blocks, arguments))
    storage.log_failures(folder, result.files)
    rejected = reasons_of(result.drops)
    kept = result.rows.get("pages", 0)
    try:
        check_pages(rejected, kept + sum(rejected.values()), max_rejected)
    except ValueError as error:
        rows = _read(folder, result, "rejected", ["message"])
        first = next((f"; the first: {row['message']}" for row in rows if row["message"]), "")
        raise ValueError(f"linking.documents {documents}: {error}{first}") from None
    if not kept:
        raise ValueError(f"linking.documents {documents}: no document in it")
    _check_ids(folder, result, documents)
    return result


def _read(folder: str, result: storage.Result, table: str, columns: list[str]) -> Iterator[dict[str, Any]]:
    for entry in result.files:
        if entry.path.startswith(f"{table}/"):
            yield from storage.read_rows(storage.join(folder, entry.path), columns)


def _check_ids(folder: str, result: storage.Result, documents: str) -> None:
    """Pages are told apart by what their ids give. Raises: ValueError naming an id that is there twice."""
    rows = _read(folder, result, "pages", ["page_id"])
    numbers = np.fromiter((row["page_id"] for row in rows), np.int64)
    numbers.sort()
    twice = numbers[1:][numbers[1:] == numbers[:-1]]
    if len(twice):
        rows = _read(folder, result, "pages", ["page_id", "title"])
        title = next(row["title"] for row in rows if row["page_id"] == twice[0])
        raise ValueError(
            f"linking.documents {documents}: the id {title!r} is there twice; wanted one for each document"
        )


def page_number(document: str) -> int:
    """The number of a document by its id: below 0, so that it is no page of a dump's."""
    found = hashlib.blake2b(document.encode(), digest_size=8).digest()
    return -1 - (int.from_bytes(found, "big") >> 1)


class DocumentLinker(BlockJob):
    """The work on one block: writes the pages, paragraphs and rejected documents of it; holds the linker."""

    page_seconds = 6 * 3600.0  # a model finds the names of a long document on processors

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.documents, settings = arguments["documents"], LinkerSettings(**arguments["settings"])
        if settings.model or settings.ner:
            import torch

            torch.set_num_threads(1)  # sums come out the same however many processes there are
        self.linker = open_linker(settings)

    def __call__(self, block: Block, folder: str, marker: PageMarker) -> storage.Result:
        drops: Counter[str] = Counter()
        failures = storage.Failures()
        links = 0
        paths = {table: f"{table}/{storage.block_name(block.number)}.parquet" for table in TABLES}
        with contextlib.ExitStack() as stack:
            writers = {
                table: stack.enter_context(storage.parquet_rows(storage.join(folder, path), TABLES[table].schema))
                for table, path in paths.items()
            }

            def reject(number: int, title: str, *why: str) -> None:
                drops[f"rejected:{why[0]}"] += 1
                writers["rejected"].extend([(number, title, *why)])

            for each in read_block(block, os.path.relpath(block.path, self.documents)):
                if each.reason:
                    reject(0, each.id, each.reason, each.message, "")
                    continue
                number = page_number(each.id)
                if fatal := marker.begin(number):
                    reject(number, each.id, fatal, "", "")
                    continue
                try:
                    paragraphs, left_out = self._paragraphs(each.id, each.text)
                except Exception as error:  # whatever a document does to the linker, it does to itself alone
                    reject(number, each.id, *failures.describe(error))
                    continue
                drops.update(left_out)
                links += sum(len(found) for _, found in paragraphs)
                writers["pages"].extend([(number, each.id, False, len(paragraphs))])
                writers["paragraphs"].extend(
                    (number, each.id, place, "", text, found) for place, (text, found) in enumerate(paragraphs)
                )
        count = {table: writer.count for table, writer in writers.items()}
        files = tuple(storage.describe(folder, path, count[table]) for table, path in paths.items())
        return storage.Result(files, {**count, "links": links}, +drops)

    def _paragraphs(self, name: str, text: str) -> tuple[list[tuple[str, list[Link]]], Counter[str]]:
        """A document's paragraphs with their links; and what is left out, by reason."""
        drops: Counter[str] = Counter()
        [answer] = self.linker.answer([Record(name, {"id": name, "text": text})])
        links = []
        for each in answer["mentions"]:
            if each["title"] is not None:
                links.append((each["start"], each["end"], each["title"]))
            elif each["probability"] is None:
                drops["links:no_page"] += 1
            else:
                drops["links:below_min_probability"] += 1
        return cut_paragraphs(text, links, drops), drops


def cut_paragraphs(text: str, links: Sequence[Link], drops: Counter[str]) -> list[tuple[str, list[Link]]]:
    """The lines of a text that are not blank, without blanks around them, each with its links.

    The links have their places in the text, in order, none over another. Those over the end of a line are left out,
    and counted in `drops`.
    """
    ends = [-1, *(place for place, sign in enumerate(text) if sign == "\n"), len(text)]
    paragraphs, waiting = [], list(reversed(links))
    for before, end in pairwise(ends):
        line = text[before + 1 : end]
        start = before + 1 + len(line) - len(line.lstrip())
        inside: list[Link] = []
        while waiting and waiting[-1][0] < end:
            link = waiting.pop()
            if link[1] <= end:
                inside.append((link[0] - start, link[1] - start, link[2]))
            else:
                drops["links:crosses_paragraph"] += 1
        if line := line.strip():
            paragraphs.append((line, inside))
    return paragraphs
