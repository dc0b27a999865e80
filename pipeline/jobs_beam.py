"""Per-page work on Beam: a list of blocks in, committed blocks out.

`pipeline.blocks.run_blocks` starts `main` in a process of its own; nothing here outlives the process that started it.
"""

import contextlib
import functools
import gc
import json
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from pipeline import storage
from pipeline.blocks import WORKER_DIED, PageGate, error_path, page_path
from pipeline.containers import Block
from pipeline.dump import Page, Rejected, read_pages
from pipeline.entities import Aliases
from pipeline.page_tables import SCHEMAS, WRITERS
from pipeline.paragraphs import Link, Paragraph
from pipeline.sequences import Limits, build_page
from pipeline.shards import HELD_OUT, SEEN, is_held_out, sequence_schema, shard
from pipeline.storage import BlockRecord
from pipeline.titles import SiteInfo, is_disambiguation, normalize_title
from pipeline.tokens import WordTokenizer
from pipeline.wikitext import extract

_DASK_RUNNER = "apache_beam.runners.dask.dask_runner.DaskRunner"
_DASK_ADDRESSES = ("--dask_client_address=", "--dask_scheduler_file=")
_DASK_PARTITIONS = ("--dask_npartitions", "--dask_partition_size")

Work = Callable[[Block, str, PageGate], BlockRecord]
Rows = dict[str, list[tuple[Any, ...]]]


# What one block is


def page_rows(
    page: Page | Rejected, site: SiteInfo, profile: str, drops: Counter[str], *, deadly: bool = False
) -> Rows:
    """The rows that a page gives, by table ("paragraphs": one entry with all of them); a deadly page is rejected."""
    if isinstance(page, Rejected):
        return {"rejected": [(page.page_id, page.title, page.reason)]}
    title = normalize_title(page.title, site)[0]
    if deadly:
        return {"rejected": [(page.page_id, title, "worker_died")]}
    if page.redirect:
        return {"redirects": [(title, *page.redirect)]}
    try:
        extraction = extract(page.text, site, profile=profile)
    except Exception as error:  # whatever a page does to the parser, it does to itself alone
        return {"rejected": [(page.page_id, title, type(error).__name__)]}
    drops.update(extraction.drops)
    disambiguation = is_disambiguation(page.text, site)
    return {
        "pages": [(page.page_id, title, disambiguation, len(extraction.texts))],
        "paragraphs": [(page.page_id, title, extraction)],
    }


class PageExtractor:
    """Writes the pages, paragraphs, redirects and rejected pages of one block of the dump."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.site = SiteInfo.from_dict(arguments["site"])
        self.profile: str = arguments["profile"]
        self.allow_truncated: bool = arguments["allow_truncated"]

    def __call__(self, block: Block, folder: str, gate: PageGate) -> BlockRecord:
        counts: Counter[str] = Counter()
        links = 0
        paths = {table: f"{table}/{storage.block_name(block.number)}.parquet" for table in SCHEMAS}
        with contextlib.ExitStack() as stack:
            tables = {
                table: stack.enter_context(
                    storage.parquet_rows(storage.join(folder, path), SCHEMAS[table], WRITERS[table])
                )
                for table, path in paths.items()
            }
            for page in read_pages(
                block, self.site, counts, profile=self.profile, allow_truncated=self.allow_truncated
            ):
                deadly = not gate.enter(page.page_id)
                for table, rows in page_rows(page, self.site, self.profile, counts, deadly=deadly).items():
                    tables[table].extend(rows)
                    if table == "paragraphs":
                        links += sum(len(extraction.targets) for *_, extraction in rows)
        count = {table: writer.count for table, writer in tables.items()}
        files = tuple(storage.describe(folder, path, count[table]) for table, path in paths.items())
        facts = {"pages_read": counts.pop("pages_read", 0)}
        return BlockRecord(files, {**count, "links": links}, +counts, facts)


def read_paragraphs(path: str) -> Iterator[tuple[int, list[Paragraph]]]:
    """The pages of a paragraphs file as (page id, paragraphs), one page at a time."""
    rows = storage.read_rows(path, ["page_id", "section", "text", "links"])
    for page_id, group in groupby(rows, key=lambda row: row["page_id"]):
        yield (
            page_id,
            [
                Paragraph(row["section"], row["text"], tuple(Link(**link) for link in row["links"]))
                for row in group
            ],
        )


class SequenceBuilder:
    """Builds the sequences of blocks; holds the tokenizer and the memory-mapped aliases."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.tokenizer = WordTokenizer.load(arguments["tokenizer"])
        self.aliases = Aliases(arguments["aliases"])
        self.limits = Limits(**arguments["limits"])
        self.language = arguments["language"]
        self.splitter = arguments["splitter"]
        self.profile = arguments["profile"]
        self.held_out = arguments["held_out"]
        self.schema = sequence_schema(self.tokenizer.vocab_size)

    def __call__(self, block: Block, folder: str, gate: PageGate) -> BlockRecord:
        drops: Counter[str] = Counter()
        facts: Counter[str] = Counter()
        paths = {part: f"{part}/{storage.block_name(block.number)}.arrow" for part in (SEEN, HELD_OUT)}
        with contextlib.ExitStack() as stack:
            shards = {
                part: stack.enter_context(shard(storage.join(folder, path), self.schema))
                for part, path in paths.items()
            }
            for page_id, paragraphs in read_paragraphs(block.path):
                if not gate.enter(page_id):
                    drops["pages:worker_died"] += 1
                    continue
                try:
                    sequences, page_drops, page_facts = self._build(paragraphs)
                except ValueError:  # a splitter of the user's that is wrong
                    raise
                except Exception as error:  # whatever a page does to the splitter, it does to itself alone
                    drops[f"pages:{type(error).__name__}"] += 1
                    continue
                drops.update(page_drops)
                facts.update(page_facts)
                shards[HELD_OUT if is_held_out(page_id, self.held_out) else SEEN].extend(page_id, sequences)
        counts = {part: shards[part].count for part in paths}
        files = tuple(storage.describe(folder, path, counts[part]) for part, path in paths.items())
        return BlockRecord(files, counts, drops, facts)

    def _build(self, paragraphs: Sequence[Paragraph]) -> tuple[list[Any], Counter[str], Counter[str]]:
        return build_page(
            paragraphs,
            language=self.language,
            tokenizer=self.tokenizer,
            entity_id=self.aliases.get,
            limits=self.limits,
            profile=self.profile,
            splitter=self.splitter,
        )


JOBS: Mapping[str, Callable[[Mapping[str, Any]], Work]] = {
    "extract_pages": PageExtractor,
    "build_sequences": SequenceBuilder,
}


# Running blocks on Beam

_loading = threading.Lock()


@functools.lru_cache(maxsize=1)
def _load(job: str, key: str, arguments: str) -> Work:
    """A job's work with its heavy objects (tokenizer, aliases), loaded; the process's last one is kept.

    A runner may set up anew for every block. The key says from what the work is made: a worker that outlives a
    run must not take a tokenizer for the one that lay in the same folder before.
    """
    # A page's segments are too few to be worth the threads of the tokenizer; other workers use the processors.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    work = JOBS[job](json.loads(arguments))
    # What a block makes is dropped with the block: to look for cycles in it takes a seventh of the time.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    return work


class RunBlock(beam.DoFn):
    """Does a job's work on each block and commits it."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.job, self.folder, self.key = spec["job"], spec["folder"], spec["key"]
        self.arguments, self.deadly = storage.canonical_json(spec["arguments"]), spec["deadly"]

    def setup(self) -> None:
        with _loading:  # a worker may have many threads
            self.work = _load(self.job, self.key, self.arguments)

    def process(self, block: Block) -> Iterator[int]:
        gate = PageGate(page_path(self.folder, block.number), self.deadly.get(str(block.number), ()))
        try:
            record = self.work(block, self.folder, gate)
        except (ValueError, OSError) as error:
            # Beam wraps what a worker raises in tracebacks; the message for the user travels beside them.
            storage.write_bytes(error_path(self.folder, block.number), str(error).encode("utf-8", "replace"))
            gate.close()
            raise
        gate.close()
        with contextlib.suppress(FileNotFoundError):  # of an attempt before, where a runner tries again
            storage.remove(error_path(self.folder, block.number))
        storage.commit_block(self.folder, self.key, block.number, record)
        yield block.number


def local_options(processes: int) -> list[str]:
    """Options of Beam's local runner for this many processes; one runs in memory."""
    mode = "in_memory" if processes == 1 else "multi_processing"
    return ["--runner=FnApiRunner", f"--direct_num_workers={processes}", f"--direct_running_mode={mode}"]


def user_options(options: Sequence[str]) -> list[str]:
    """Options for a runner of the user's choice, checked before anything is started.

    Beam knows its DaskRunner by its full name alone, and gives up to 128 blocks to one Dask worker: here the short
    name will do, and a block is a partition where the options say nothing else.

    Raises:
        ValueError: they are no options, or name no runner that Beam has.
    """
    wrong = [option for option in options if not option.startswith("--")]
    names = [option.partition("=")[2] for option in options if option.startswith("--runner=")]
    if wrong or len(names) != 1:
        raise ValueError(f"--beam-options={' '.join(options)}: wanted '--runner=NAME --option=value ...'")
    name, rest = names[0], [option for option in options if not option.startswith("--runner=")]
    if name.lower() in ("dask", "daskrunner"):
        name = _DASK_RUNNER
    if name == _DASK_RUNNER:
        # Without an address Beam would start a cluster on this machine, in silence.
        if not any(option.startswith(_DASK_ADDRESSES) for option in rest):
            raise ValueError(
                f"--beam-options={' '.join(options)}: wanted --dask_client_address=tcp://HOST:PORT"
            )
        if not any(option.startswith(_DASK_PARTITIONS) for option in rest):
            rest.append("--dask_partition_size=1")
    try:
        beam.runners.create_runner(name)
    except (ValueError, ImportError, AttributeError) as error:
        reason = str(error).splitlines()[0]
        remedy = "; pip install 'luke-from-wikipedia[dask]'" if name == _DASK_RUNNER else ""
        raise ValueError(f"--beam-options: no runner {names[0]} ({reason}){remedy}") from None
    return [f"--runner={name}", *rest]


def run_pipeline(blocks: Sequence[Block], work: RunBlock, options: Sequence[str]) -> None:
    with beam.Pipeline(options=PipelineOptions(list(options))) as pipeline:
        _ = pipeline | beam.Create(list(blocks)) | beam.Reshuffle() | beam.ParDo(work)


def _follow_parent() -> None:
    """End at once when the process that started this one is gone."""
    while sys.stdin.readline():
        pass
    if os.getpgrp() == os.getpid():  # its workers are of its group
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _end_with_worker(failure: threading.ExceptHookArgs) -> None:
    """End this process when one of its Beam workers is gone: Beam itself would wait for it for ever.

    Each worker has a thread here that raises when it ends otherwise than well.
    """
    threading.__excepthook__(failure)
    if failure.thread and failure.thread.name == "run_worker":
        os._exit(WORKER_DIED)  # the parent ends the other workers


def main() -> None:
    """Run the job that stands on the first line of standard input as JSON."""
    spec = json.loads(sys.stdin.readline())
    threading.Thread(target=_follow_parent, daemon=True).start()
    threading.excepthook = _end_with_worker
    options = spec["beam_options"]
    options = user_options(options) if options else local_options(spec["processes"])
    run_pipeline([Block(**block) for block in spec["blocks"]], RunBlock(spec), options)
