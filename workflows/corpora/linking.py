"""LinkDocuments: documents in; pages and paragraphs with links out, as ExtractPages writes those of a dump."""

import contextlib
import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import schemas, storage
from pipeline.dump.containers import Block
from pipeline.jobs.supervisor import RunBlocks, check_pages
from pipeline.storage.failures import PageGate
from tasks.io.records import Record
from workflows.corpora.documents import find_files, plan_blocks, read_block

JOB = f"{__name__}:DocumentLinker"
TABLES = schemas.TABLES["LinkDocuments"]
Link = tuple[int, int, str]


@dataclass(frozen=True)
class Settings:
    """What decides the links of a block.

    Attributes:
        documents: their folder.
        mentions: folder of BuildMentionTable.
        model: folder of a model with its tokenizer; empty: none.
        contexts: folder of BuildContexts; empty: none.
        calibration: file of `calibrate`; empty: none. Its threshold is not taken: it is for mentions that are given.
        local: whether the model answers all mentions of a text at once.
        min_probability: of a link, as `link` takes it; those below it are left out.
        min_link_probability: of a name; those that are links less often are not found.
        ner: folder of a fine-tuned model of ner, which finds names in place of the mention table; empty: none.
        language: of the documents, by which that model finds sentences; empty: the table's.
    """

    documents: str
    mentions: str
    model: str
    contexts: str
    calibration: str
    local: bool
    min_probability: float
    min_link_probability: float
    ner: str = ""
    language: str = ""


def build(
    run: RunBlocks, folder: str, settings: Settings, *, block_bytes: int, max_rejected: float
) -> storage.Result:
    """Write the three tables, block by block.

    Args:
        run: runs the job over blocks.
        folder: the stage's.
        settings: what decides the links.
        block_bytes: bytes of documents in a block.
        max_rejected: share of documents that may be rejected.

    Raises:
        ValueError: too many documents are rejected, none is left, or two have one id; or what links them cannot be
            read, or is of something else.
    """
    paths = [storage.join(settings.documents, name) for name in find_files(settings.documents)]
    result = storage.merge_blocks(run(JOB, plan_blocks(paths, block_bytes), asdict(settings)))
    storage.log_failures(folder, result.files)
    rejected = {
        name.partition(":")[2]: count for name, count in result.drops.items() if name.startswith("rejected:")
    }
    kept = result.rows.get("pages", 0)
    try:
        check_pages(rejected, kept + sum(rejected.values()), max_rejected)
    except ValueError as error:
        raise ValueError(
            f"--documents {settings.documents}: {error}{_first_message(folder, result)}"
        ) from None
    if not kept:
        raise ValueError(f"--documents {settings.documents}: no document in it")
    _check_ids(folder, result, settings.documents)
    return result


def _first_message(folder: str, result: storage.Result) -> str:
    """What the first rejected document says of itself."""
    rows = _read(folder, result, "rejected", ["message"])
    message = next((row["message"] for row in rows if row["message"]), "")
    return f"; the first: {message}" if message else ""


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
            f"--documents {documents}: the id {title!r} is there twice; wanted one for each document"
        )


def page_number(document: str) -> int:
    """The number of a document by its id: below 0, so that it is no page of a dump's."""
    found = hashlib.blake2b(document.encode(), digest_size=8).digest()
    return -1 - (int.from_bytes(found, "big") >> 1)


class DocumentLinker:
    """The work on one block: writes the pages, paragraphs and rejected documents of it; holds the linker."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.settings = Settings(**arguments)
        self.linker = open_linker(self.settings)

    def __call__(self, block: Block, folder: str, gate: PageGate) -> storage.Result:
        drops: Counter[str] = Counter()
        failures = storage.Failures()
        links = 0
        paths = {table: f"{table}/{storage.block_name(block.number)}.parquet" for table in TABLES}
        with contextlib.ExitStack() as stack:
            writers = {
                table: stack.enter_context(
                    storage.parquet_rows(storage.join(folder, path), TABLES[table].schema)
                )
                for table, path in paths.items()
            }

            def reject(number: int, title: str, *why: str) -> None:
                drops[f"rejected:{why[0]}"] += 1
                writers["rejected"].extend([(number, title, *why)])

            for each in read_block(block, os.path.relpath(block.path, self.settings.documents)):
                if each.reason:
                    reject(0, each.id, each.reason, each.message, "")
                    continue
                number = page_number(each.id)
                if not gate.enter(number):
                    reject(number, each.id, "worker_died", "", "")
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
                    (number, each.id, place, "", text, found)
                    for place, (text, found) in enumerate(paragraphs)
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


def open_linker(settings: Settings) -> Any:
    """What links documents: names by the mention table or by a model of ner, pages by counts and, where given, a model.

    Raises:
        ValueError: the table, the contexts, the calibration or a model cannot be used.
    """
    from tasks.entities.annotator import Annotator
    from tasks.entities.candidates import CandidateFinder
    from tasks.entities.linker import Linker, open_contexts, with_certainty

    annotator = Annotator.open(
        Path(settings.mentions), min_link_probability=settings.min_link_probability, min_commonness=0.0
    )
    table = annotator.table
    linker = Linker(
        CandidateFinder(table),
        annotator,
        contexts=open_contexts(Path(settings.contexts), table) if settings.contexts else None,
        is_global=not settings.local,
        finds_all=True,
    )
    model = Path(settings.model) if settings.model else None
    calibration = Path(settings.calibration) if settings.calibration else None
    linker = with_certainty(linker, model, calibration, settings.min_probability)
    if settings.model or settings.ner:  # torch is needed, which takes seconds and memory in each worker
        linker = replace(linker, **_open_models(settings, table))
    return linker


def _open_models(settings: Settings, table: Any) -> dict[str, Any]:
    """The linker's `model` and `recognize`, where these are given, on processors."""
    import torch

    torch.set_num_threads(1)  # sums come out the same however many processes there are
    found: dict[str, Any] = {}
    if settings.model:
        from tasks.entities.disambiguation.entity_model import load_model
        from tasks.serving.predict import their_words

        words, _ = their_words(folder := Path(settings.model))
        found["model"] = load_model(folder, table, words, device="cpu")
    if settings.ner:
        from tasks.serving.recognition import open_recognizer

        found["recognize"] = open_recognizer(Path(settings.ner), settings.language, table, device="cpu")
    return found


def cut_paragraphs(text: str, links: Sequence[Link], drops: Counter[str]) -> list[tuple[str, list[Link]]]:
    """The lines of a text that are not blank, without blanks around them, each with its links.

    Args:
        text: of a document.
        links: start and end in code points of the text, and title; in their order, none over another.
        drops: links over the end of a line, which are left out, are counted here.
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
