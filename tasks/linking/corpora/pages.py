"""BuildDocuments: pages of a dump in; annotated documents out, those of pages that pretraining never sees apart.

A document has a page's paragraphs, a line each, and its links as mentions, with their titles after redirects.
"""

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline import storage
from pipeline.lookup.held_out import HELD_OUT, is_held_out, page_hash
from pipeline.lookup.targets import Targets
from tasks.linking.documents.document import Document, Mention, to_json

TRAIN = "train"
FILES = {TRAIN: "train.jsonl", HELD_OUT: "held_out.jsonl"}
NO_LINKS, OVER_LIMIT, SAME_TITLE = "pages:no_links", "pages:over_limit", "pages:same_title"
NO_TARGET = "links:no_target"
_COLUMNS = ["page_id", "title", "text", "links"]
Integers = NDArray[np.int64]
Resolve = Callable[[str], str | None]
"""A title after redirects; None for one that ends nowhere."""


class Choice(NamedTuple):
    """Which pages become documents.

    Attributes:
        held_out: the share of pages that pretraining never sees.
        train, held_out_most: how many of the others, and of these, at most.
    """

    held_out: float
    train: int
    held_out_most: int


def build(
    paragraphs: Sequence[str],
    folder: str,
    targets: Targets,
    choice: Choice,
    *,
    pages: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> storage.Result:
    """Write the two files of documents, in the order of the dump.

    Their numbers are bounded, so one process reads the files of paragraphs twice: to choose the pages, for which it
    holds 17 bytes a page, and to write them, for which it holds a page.

    Args:
        paragraphs: files of that table.
        folder: the stage's.
        targets: what titles lead to.
        choice: which pages.
        pages: how many the dump has.
        progress: is told how many pages of how many are read.
    """
    linked = np.fromiter(chain.from_iterable(map(linked_pages, paragraphs)), np.int64)
    chosen = choose(linked, choice)
    drops = Counter({NO_LINKS: pages - len(linked), OVER_LIMIT: len(linked) - sum(map(len, chosen.values()))})
    rows: Counter[str] = Counter(dict.fromkeys((*FILES, "mentions"), 0))
    part_of = {page: part for part, ids in chosen.items() for page in ids.tolist()}
    wanted, titles = pa.array(sorted(part_of), pa.int64()), set[str]()
    with contextlib.ExitStack() as stack:
        streams = {
            part: stack.enter_context(storage.atomic_output(storage.join(folder, name)))
            for part, name in FILES.items()
        }
        found = chain.from_iterable(read_pages(path, wanted) for path in paragraphs)
        for number, (page, title, some) in enumerate(found, start=1):
            document, lost = document_of(title, some, lambda name: ended(targets, name))
            drops[NO_TARGET] += lost
            if not document.mentions:
                drops[NO_LINKS] += 1
            elif title in titles:  # of a damaged dump: the ids of documents differ
                drops[SAME_TITLE] += 1
            else:
                titles.add(title)
                streams[part_of[page]].write(line_of(document, page))
                rows.update({part_of[page]: 1, "mentions": len(document.mentions)})
            progress(number, len(wanted))
    files = tuple(storage.describe(folder, name, rows[part]) for part, name in FILES.items())
    return storage.Result(files, dict(rows), dict(+drops))


def ended(targets: Targets, title: str) -> str | None:
    """Where a link to a title ends."""
    target = targets.get(title)
    return target.title if target else None


# Choosing


def linked_pages(path: str) -> Iterator[int]:
    """The ids of the pages with a link in a file of paragraphs, in their order."""
    last = None
    for batch in storage.read_batches(path, ["page_id", "links.list.element.start"]):
        has_link = pc.greater(pc.list_value_length(batch.column("links")), 0)
        for page in pc.unique(batch.column("page_id").filter(has_link)).to_pylist():
            if page != last:  # a page goes on in the next batch
                yield page
            last = page


def choose(pages: Integers, choice: Choice) -> dict[str, Integers]:
    """The pages of each part whose hashes are the smallest: a larger number adds pages, and takes none away."""
    hashes = np.fromiter(map(page_hash, pages.tolist()), np.uint64, len(pages))
    held_out = np.fromiter(
        (is_held_out(page, choice.held_out) for page in pages.tolist()), np.bool_, len(pages)
    )
    found = {}
    for part, is_in, most in ((TRAIN, ~held_out, choice.train), (HELD_OUT, held_out, choice.held_out_most)):
        order = np.argsort(hashes[is_in], kind="stable")
        found[part] = pages[is_in][order[:most]]
    return found


# Writing


def read_pages(path: str, wanted: pa.Array) -> Iterator[tuple[int, str, Iterator[dict[str, Any]]]]:
    """The wanted pages of a file of paragraphs: id, title, and the paragraphs, to be read one after another."""
    batches = storage.read_batches(path, _COLUMNS, rows=1024)
    chosen = (batch.filter(pc.is_in(batch.column("page_id"), value_set=wanted)) for batch in batches)
    rows = chain.from_iterable(batch.to_pylist() for batch in chosen)
    for (page, title), some in groupby(rows, key=itemgetter("page_id", "title")):
        yield page, title, some


def document_of(title: str, paragraphs: Iterator[dict[str, Any]], resolve: Resolve) -> tuple[Document, int]:
    """A page's document, whose id is the page's title, and how many of its links end nowhere.

    Args:
        title: of the page.
        paragraphs: `text`, and `links` of `start`, `end` and `target`.
        resolve: where links end.
    """
    texts, mentions, start, lost = list[str](), list[Mention](), 0, 0
    for each in paragraphs:
        for link in each["links"]:
            if end := resolve(link["target"]):
                mentions.append(Mention(start + link["start"], start + link["end"], end))
            else:
                lost += 1
        texts.append(each["text"])
        start += len(each["text"]) + 1
    text = "\n".join(texts)
    return Document(title, title, text, tuple(mentions), (0, len(text))), lost


def line_of(document: Document, page: int) -> bytes:
    """A line of JSON, which also has the page's id."""
    values = to_json(document)
    found = {"id": values.pop("id"), "page_id": page, **values}
    return json.dumps(found, ensure_ascii=False).encode() + b"\n"
