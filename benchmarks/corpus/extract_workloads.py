"""What `extract.py` measures inside of a process of its own.

Imports stand in the functions, so that each workload costs what it does and nothing else.
"""

import bz2
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock
from xml.etree import ElementTree

from benchmarks.harness.workloads import Record, serve

_CHUNK = 1 << 20


def extract_pages(*, dump: str, folder: str, block_bytes: int, processes: int) -> Record:
    """`ExtractPages` as the stage runs it."""
    from pipeline.dump.containers import plan_blocks
    from pipeline.jobs.extract_pages import PageExtractor
    from pipeline.jobs.supervisor import run_blocks

    blocks = plan_blocks([dump], block_bytes)
    run_blocks(PageExtractor, blocks, folder, "benchmark", _arguments(dump), processes=processes)
    return {"blocks": len(blocks)}


def _arguments(dump: str) -> Record:
    from pipeline.dump.pages import read_site_info

    return {"site": read_site_info(dump).to_dict(), "profile": "fixed", "allow_truncated": False}


class PhaseClock:
    """CPU seconds by phase; a phase inside another one is taken off the outer."""

    def __init__(self, outermost: str) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._phases = [outermost]
        self._since = time.process_time()

    def stop(self) -> None:
        now = time.process_time()
        self.seconds[self._phases[-1]] += now - self._since
        self._since = now

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count what is inside as the phase; around a function, as a decorator is, each of its calls."""
        self.stop()
        self._phases.append(name)
        try:
            yield
        finally:
            self.stop()
            self._phases.pop()

    def timed_iterator(
        self, name: str, function: Callable[..., Iterator[Any]]
    ) -> Callable[..., Iterator[Any]]:
        """The generator function, with the time inside the generator counted as the phase."""
        following, done = self.phase(name)(next), object()

        def iterate(*args: Any, **kwargs: Any) -> Iterator[Any]:
            items = function(*args, **kwargs)
            while (item := following(items, done)) is not done:
                yield item

        return iterate


def phases(*, dump: str, folder: str, block_bytes: int) -> Record:
    """The work of `ExtractPages` on every block in this process, without Beam, with a clock at each seam."""
    from pipeline import storage
    from pipeline.dump import containers
    from pipeline.jobs import beam, extract_pages

    blocks = containers.plan_blocks([dump], block_bytes)
    spec = {
        "job": ["pipeline.jobs.extract_pages", "PageExtractor"],
        "folder": folder,
        "key": "benchmark",
        "fatal_pages": {},
        "patience": 0,
    }
    storage.clear_if_changed(folder, "benchmark")
    storage.make_folder(storage.join(folder, storage.BLOCKS))
    work = beam.RunBlock({**spec, "arguments": _arguments(dump)})
    clock = PhaseClock("writing")
    read_bzip2 = clock.timed_iterator("decompression", containers.read_bzip2)
    read_pages = clock.timed_iterator("page reading", extract_pages.read_pages)
    extract = clock.phase("wikitext")(extract_pages.extract)
    with (
        mock.patch.object(containers, "read_bzip2", read_bzip2),
        mock.patch.object(extract_pages, "read_pages", read_pages),
        mock.patch.object(extract_pages, "extract", extract),
    ):
        work.setup()
        for block in blocks:
            list(work.process(block))
    clock.stop()
    return {"seconds": dict(clock.seconds), "blocks": len(blocks)}


def oracle(*, dump: str) -> Record:
    """CPU seconds inside the tests' oracle, over the pages that `ExtractPages` extracts."""
    from benchmarks.corpus.dumps import articles
    from pipeline.dump.pages import read_site_info
    from tests.support.oracle import extract

    site, failed, clock = read_site_info(dump), 0, PhaseClock("page reading")
    for page in articles(dump, site):
        try:
            with clock.phase("wikitext"):
                extract(page.text, site)
        except Exception:  # a page that mwparserfromhell cannot parse
            failed += 1
    return {"seconds": dict(clock.seconds), "failed_pages": failed}


def plain_mwparserfromhell(*, dump: str) -> Record:
    """Parse each article whole and walk its links and its text."""
    import mwparserfromhell

    counts: Counter[str] = Counter(pages=0, links=0, characters=0, failed_pages=0)
    with bz2.open(dump) as stream:
        for _, element in ElementTree.iterparse(stream):  # noqa: S314 - a dump that others parse, too
            if element.tag.rpartition("}")[2] != "page":
                continue
            if element.findtext("{*}ns") == "0" and element.find("{*}redirect") is None:
                counts["pages"] += 1
                try:
                    code = mwparserfromhell.parse(element.findtext("{*}revision/{*}text") or "")
                    counts["links"] += len(code.filter_wikilinks())
                    counts["characters"] += len(code.strip_code())
                except mwparserfromhell.parser.ParserError:
                    counts["failed_pages"] += 1
            element.clear()
    return dict(counts)


def decompress(*, dump: str) -> Record:
    """The standard library's bzip2 from the file's beginning to its end."""
    with bz2.open(dump) as stream:
        return {"xml_bytes": sum(map(len, iter(lambda: stream.read(_CHUNK), b"")))}


if __name__ == "__main__":
    serve(extract_pages, phases, oracle, plain_mwparserfromhell, decompress)
