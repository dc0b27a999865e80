"""BuildContexts: the heaviest words of each title, of its page and of what links to it; and its vector."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from pipeline import schemas, storage
from pipeline.jobs.spark_parts import SparkJob, keep, whole_groups
from pipeline.jobs.tables.links import follow_links
from pipeline.jobs.tables.title_vectors import PAGE_TITLES, title_vectors, titles_of_pages
from pipeline.lookup import contexts
from pipeline.lookup.contexts import Words, weights_of, words_of
from pipeline.lookup.held_out import is_held_out
from pipeline.lookup.title_vectors import write_vectors

MOST_WORDS = 50  # of a title
MOST_LINKS = 64  # to a title, of those whose paragraphs are looked at
_AT_ONCE = 4096  # paragraphs
_NUMBERS = "i"  # the words of a text, of 32 bits each
_BAG = pa.schema([("title", pa.string()), ("words", pa.binary())])

Batches = Iterator[pa.RecordBatch]


def build(job: SparkJob, *, held_out: float) -> storage.Result:
    """Write the tables `contexts` and `page_titles`, the words, the vectors, and the look-up by title.

    It reads FetchDump, ExtractPages and ResolveRedirects. Paragraphs of pages that are held out count for nothing.
    """
    titles = job.read("ResolveRedirects", "titles/")
    paths = job.paths("ExtractPages", "paragraphs/")
    counted = keep(count_words(job.session, paths, held_out))
    known = counted.where("paragraphs > 1").orderBy("word").toLocalIterator()
    files = contexts.write_words(job.folder, ((row["word"], row["paragraphs"]) for row in known))

    paragraphs = keep(number_paragraphs(job.session, paths, job.folder, held_out))
    total = paragraphs.count()
    placed = keep(resolve_places(paragraphs, titles))
    links = placed.where("not is_own")
    chosen = keep(choose_links(links))
    linked = chosen.join(paragraphs.select("page_id", "paragraph", "words"), ["page_id", "paragraph"])
    bags = paragraphs.select(*_BAG.names).unionByName(linked.select(*_BAG.names))
    table = heaviest_words(bags, job.folder, total, job.parts)
    written = job.write(table, schemas.CONTEXTS.schema, contexts.TABLE, by="title")

    files += contexts.write_contexts(job.folder, storage.merge_blocks(written).paths(job.folder))
    listed = titles_of_pages(paragraphs, links.where("not is_loop"), job.folder)
    pages = job.write(listed, schemas.PAGE_TITLES.schema, PAGE_TITLES, by="page_id", first=job.parts)
    result = storage.merge_blocks(written | pages)
    vectors = title_vectors(result.paths(job.folder, f"{PAGE_TITLES}/"), result.rows[contexts.TABLE])
    files.append(write_vectors(job.folder, vectors))
    extracted, found = job.manifest("ExtractPages").rows, links.count()
    loops = links.where("is_loop").count()
    drops = {
        "paragraphs:held_out": extracted["paragraphs"] - total,
        "links:held_out": extracted["links"] - placed.count(),
        "links:same_page": placed.where("is_own").count(),
        "links:loop": loops,
        "links:enough": found - loops - chosen.count(),
        "words:rare": counted.where("paragraphs = 1").count(),
    }
    dump = job.manifest("FetchDump").facts
    names = [part["name"] for part in dump["parts"]]
    facts = {"paragraphs": total, "dump": names, "language": dump["site"]["language"]}
    rows = {**result.rows, "words": files[0].rows or 0}
    return storage.Result((*result.files, *files), rows, +Counter(drops), facts)


def count_words(session: SparkSession, paths: Sequence[str], held_out: float) -> DataFrame:
    """Return how many paragraphs have each word: `word`, `paragraphs`."""

    def count(path: str) -> Batches:
        counts: Counter[str] = Counter()
        for batch in read_paragraphs(path, ["text"], held_out):
            for text in batch.column("text").to_pylist():
                counts.update(set(words_of(text)))
        yield pa.record_batch({"word": [*counts], "n": [*counts.values()]}, schema=counted)

    counted = pa.schema([("word", pa.string()), ("n", pa.int64())])
    found = scan(session, paths, count, "word string, n long")
    return found.groupBy("word").agg(F.sum("n").alias("paragraphs"))


def number_paragraphs(session: SparkSession, paths: Sequence[str], folder: str, held_out: float) -> DataFrame:
    """The paragraphs: `page_id`, `paragraph`, `title`, `links`, and `words`: the number of each that is known."""

    def number(path: str) -> Batches:
        words = Words(folder)
        for batch in read_paragraphs(path, ["paragraph", "title", "text", "links"], held_out):
            texts = [words_of(text) for text in batch.column("text").to_pylist()]
            every = {word: words.number(word) for word in set(chain.from_iterable(texts))}
            known = {word: row for word, row in every.items() if row is not None}
            found = (array(_NUMBERS, (known[word] for word in text if word in known)) for text in texts)
            bags = pa.array([each.tobytes() for each in found], pa.binary())
            columns = [batch.column(name) for name in ("page_id", "paragraph", "title", "links")]
            yield pa.record_batch([*columns, bags], ["page_id", "paragraph", "title", "links", "words"])

    links = "array<struct<start: int, end: int, target: string>>"
    schema = f"page_id long, paragraph int, title string, links {links}, words binary"
    return scan(session, paths, number, schema)


def scan(session: SparkSession, paths: Sequence[str], read: Callable[[str], Batches], schema: str) -> DataFrame:
    """Return what a function makes of each of the files."""

    def each(batches: Batches) -> Batches:
        for path in chain.from_iterable(batch.column("path").to_pylist() for batch in batches):
            yield from read(path)

    files = session.createDataFrame([(path,) for path in paths], "path string").repartition(len(paths))
    return files.mapInArrow(each, schema)


def read_paragraphs(path: str, columns: Sequence[str], held_out: float) -> Batches:
    """These columns and `page_id` of a file's paragraphs, without those of pages that are held out."""
    for batch in storage.read_batches(path, ["page_id", *columns], rows=_AT_ONCE):
        pages, places = np.unique(batch.column("page_id").to_numpy(), return_inverse=True)
        is_seen = np.array([not is_held_out(page, held_out) for page in pages.tolist()], np.bool_)
        yield batch.filter(pa.array(is_seen[places]))


def resolve_places(paragraphs: DataFrame, titles: DataFrame) -> DataFrame:
    """Return the places of links, with titles after redirects: `page_id`, `paragraph`, `start`, `title`.

    `is_loop` says whether these end nowhere, `is_own` whether they end at the page on which the link stands.
    """
    links = follow_links(paragraphs, titles, F.col("paragraph"), F.col("link.start").alias("start"))
    is_loop = F.coalesce(F.col("status") == "loop", F.lit(False)).alias("is_loop")
    return links.select("page_id", "paragraph", "start", "title", is_loop, F.col("leads_back").alias("is_own"))


def choose_links(links: DataFrame) -> DataFrame:
    """The links to each title whose paragraphs are taken, by a hash of their places."""
    place = ("page_id", "paragraph", "start")
    by_hash = Window.partitionBy("title").orderBy(F.xxhash64(*place), *place)
    ranked = links.where("not is_loop").withColumn("rank", F.row_number().over(by_hash))
    return ranked.where(F.col("rank") <= MOST_LINKS).select("page_id", "paragraph", "title")


def heaviest_words(bags: DataFrame, folder: str, total: int, parts: int) -> DataFrame:
    """The table `contexts`. `folder` has the words; `total` is the number of paragraphs."""

    def by_title(batches: Batches) -> Batches:
        words = Words(folder)
        for whole in whole_groups(batches, _BAG, "title"):
            yield weigh(whole, words, total)

    ordered = bags.repartition(parts, "title").sortWithinPartitions("title")
    return ordered.mapInArrow(by_title, "title string, words array<string>, weights array<float>")


def weigh(bags: pa.Table, words: Words, total: int) -> pa.RecordBatch:
    """The row of each title, of all of its bags, one after another; a title without known words has none in its row."""
    titles = pc.run_end_encode(bags.column("title").combine_chunks())
    sizes = np.diff(titles.run_ends.to_numpy(), prepend=0)
    numbers = np.frombuffer(b"".join(bags.column("words").to_pylist()), np.dtype(_NUMBERS))
    lengths = pc.binary_length(bags.column("words")).to_numpy() // numbers.itemsize
    owners = np.repeat(np.repeat(np.arange(len(sizes)), sizes), lengths)
    pairs, counts = np.unique(owners << 32 | numbers, return_counts=True)
    owners, numbers = pairs >> 32, pairs & 0xFFFFFFFF

    known, places = np.unique(numbers, return_inverse=True)
    weights = weights_of(counts, words.paragraphs(known)[places], total)
    order = np.lexsort((numbers, -weights, owners))  # numbers are in the order of words
    ranks = np.arange(len(order)) - np.searchsorted(owners, owners)
    order = order[ranks < MOST_WORDS]
    owners, numbers, weights = owners[order], numbers[order], weights[order]
    norms = np.sqrt(np.bincount(owners, weights**2, len(sizes)))

    offsets = pa.array(np.searchsorted(owners, np.arange(len(sizes) + 1)), pa.int32())
    known, places = np.unique(numbers, return_inverse=True)
    named = pa.array(words.words(known), pa.string()).take(pa.array(places))
    shares = pa.array((weights / norms[owners]).astype(np.float32))
    lists = [pa.ListArray.from_arrays(offsets, each) for each in (named, shares)]
    return pa.record_batch([titles.values, *lists], schema=schemas.CONTEXTS.schema)
