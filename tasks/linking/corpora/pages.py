"""BuildDocuments: pages of a dump in; annotated documents of those that pretraining never sees out.

A document has a page's paragraphs, a line each, and its links as mentions, with their titles after redirects.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline import storage
from pipeline.lookup.held_out import HELD_OUT, is_held_out, page_hash
from pipeline.lookup.targets import Targets
from tasks.io.windows import Integers
from tasks.linking.documents.document import Document, Mention, to_json

FILE = "held_out.jsonl"
DOCUMENTS = 1_000
NO_LINKS, NOT_HELD_OUT = "pages:no_links", "pages:not_held_out"
OVER_LIMIT, SAME_TITLE = "pages:over_limit", "pages:same_title"
NO_TARGET = "links:no_target"
_COLUMNS = ["page_id", "title", "text", "links"]


def build(
    paragraphs: Sequence[str],
    folder: str,
    targets: Targets,
    *,
    share: float,
    pages: int,
    most: int = DOCUMENTS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> storage.Result:
    """Write the file of documents, in the order of the dump.

    Their number is bounded, so one process reads the files of paragraphs twice: to choose the pages, for which it
    holds 17 bytes a page, and to write them, for which it holds a page.
    """
    linked = np.fromiter(chain.from_iterable(map(linked_pages, paragraphs)), np.int64)
    held_out = linked[np.fromiter((is_held_out(page, share) for page in linked.tolist()), np.bool_, len(linked))]
    wanted, titles = pa.array(sorted(smallest(held_out, most).tolist()), pa.int64()), set[str]()
    drops = Counter({NO_LINKS: pages - len(linked), NOT_HELD_OUT: len(linked) - len(held_out)})
    drops[OVER_LIMIT] = len(held_out) - len(wanted)
    mentions = 0

    with storage.atomic_output(storage.join(folder, FILE)) as stream:
        found = chain.from_iterable(read_pages(path, wanted) for path in paragraphs)
        for number, (page, title, some) in enumerate(found, start=1):
            document, lost = document_of(title, some, targets)
            drops[NO_TARGET] += lost
            if not document.mentions:
                drops[NO_LINKS] += 1
            elif title in titles:  # of a damaged dump: the ids of documents differ
                drops[SAME_TITLE] += 1
            else:
                titles.add(title)
                line = {"id": document.id, "page_id": page} | to_json(document)
                stream.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
                mentions += len(document.mentions)
            progress(number, len(wanted))
    files = (storage.describe(folder, FILE, len(titles)),)
    return storage.Result(files, {HELD_OUT: len(titles), "mentions": mentions}, dict(+drops))


def linked_pages(path: str) -> Iterator[int]:
    """The ids of the pages with a link in a file of paragraphs, in their order."""
    last = None
    for batch in storage.read_batches(path, ["page_id", "links.list.element.start"]):
        has_link = pc.greater(pc.list_value_length(batch.column("links")), 0)
        for page in pc.unique(batch.column("page_id").filter(has_link)).to_pylist():
            if page != last:  # a page goes on in the next batch
                yield page
            last = page


def smallest(pages: Integers, most: int) -> Integers:
    """The pages whose hashes are the smallest: a larger number adds pages, and takes none away."""
    hashes = np.fromiter(map(page_hash, pages.tolist()), np.uint64, len(pages))
    return pages[np.argsort(hashes, kind="stable")[:most]]


def read_pages(path: str, wanted: pa.Array) -> Iterator[tuple[int, str, Iterator[dict[str, Any]]]]:
    """The wanted pages of a file of paragraphs: id, title, and the paragraphs, to be read one after another."""
    batches = storage.read_batches(path, _COLUMNS, rows=1024)
    chosen = (batch.filter(pc.is_in(batch.column("page_id"), value_set=wanted)) for batch in batches)
    rows = chain.from_iterable(batch.to_pylist() for batch in chosen)
    for (page, title), some in groupby(rows, key=itemgetter("page_id", "title")):
        yield page, title, some


def document_of(title: str, paragraphs: Iterator[dict[str, Any]], targets: Targets) -> tuple[Document, int]:
    """A page's document, whose id is the page's title, and how many of its links end nowhere."""
    texts, mentions, start, lost = list[str](), list[Mention](), 0, 0
    for each in paragraphs:
        for link in each["links"]:
            if target := targets.get(link["target"]):
                mentions.append(Mention(start + link["start"], start + link["end"], target.title))
            else:
                lost += 1
        texts.append(each["text"])
        start += len(each["text"]) + 1
    text = "\n".join(texts)
    return Document(title, title, text, tuple(mentions), (0, len(text))), lost
