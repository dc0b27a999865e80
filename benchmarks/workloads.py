"""What is measured, beside other people's commands, each as a process of its own.

`python workloads.py WORKLOAD JSON` does one of `WORKLOADS` and prints what it found as a line of JSON.
"""

import bz2
import contextlib
import importlib
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
_CHUNK = 1 << 20


def extract_pages(*, dump: str, folder: str, block_bytes: int, processes: int) -> dict[str, Any]:
    """`ExtractPages` as the stage runs it."""
    from pipeline.jobs.supervisor import run_blocks
    from pipeline.dump.containers import plan_blocks

    blocks = plan_blocks([dump], block_bytes)
    run_blocks("extract_pages", blocks, folder, "benchmark", _arguments(dump), processes=processes)
    return {"blocks": len(blocks)}


def _arguments(dump: str) -> dict[str, Any]:
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
        self.stop()
        self._phases.append(name)
        try:
            yield
        finally:
            self.stop()
            self._phases.pop()

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its calls counted as the phase."""

        def call(*args: Any, **kwargs: Any) -> Any:
            with self.phase(name):
                return function(*args, **kwargs)

        return call

    def timed_iterator(
        self, name: str, function: Callable[..., Iterator[Any]]
    ) -> Callable[..., Iterator[Any]]:
        """The generator function, with the time inside the generator counted as the phase."""

        def iterate(*args: Any, **kwargs: Any) -> Iterator[Any]:
            items = self.timed(name, function(*args, **kwargs).__next__)
            while True:
                try:
                    item = items()
                except StopIteration:
                    return
                yield item

        return iterate


def phases(*, dump: str, folder: str, block_bytes: int) -> dict[str, Any]:
    """The work of `ExtractPages` on every block in this process, without Beam, with a clock at each seam."""
    from pipeline import storage
    from pipeline.dump import containers
    from pipeline.jobs import beam

    blocks = containers.plan_blocks([dump], block_bytes)
    spec = {"job": "extract_pages", "folder": folder, "key": "benchmark", "deadly": {}}
    storage.make_folder(storage.join(folder, storage.BLOCKS))
    work = beam.RunBlock({**spec, "arguments": _arguments(dump)})
    clock = PhaseClock("writing")
    read_bzip2 = clock.timed_iterator("decompression", containers.read_bzip2)
    read_pages = clock.timed_iterator("page reading", beam.read_pages)
    extract = clock.timed("wikitext", beam.extract)
    with (
        mock.patch.object(containers, "read_bzip2", read_bzip2),
        mock.patch.object(beam, "read_pages", read_pages),
        mock.patch.object(beam, "extract", extract),
    ):
        work.setup()
        for block in blocks:
            list(work.process(block))
    clock.stop()
    return {"seconds": dict(clock.seconds), "blocks": len(blocks)}


def oracle(*, dump: str) -> dict[str, Any]:
    """CPU seconds inside the tests' oracle, over the pages that `ExtractPages` extracts."""
    from pipeline.dump import containers
    from pipeline.dump import pages

    sys.path.insert(0, str(ROOT / "tests"))
    try:
        extract = importlib.import_module("oracle").extract
    except ModuleNotFoundError as error:
        if error.name != "oracle":
            raise
        raise SystemExit("absent: no tests/oracle.py") from None
    site, failed, clock = pages.read_site_info(dump), 0, PhaseClock("page reading")
    for block in containers.plan_blocks([dump], 16 << 20):
        for page in pages.read_pages(block, site, Counter()):
            if isinstance(page, pages.Page) and not page.redirect:
                try:
                    clock.timed("wikitext", extract)(page.text, site)
                except Exception:  # a page that mwparserfromhell cannot parse
                    failed += 1
    return {"seconds": dict(clock.seconds), "failed_pages": failed}


def plain_mwparserfromhell(*, dump: str) -> dict[str, Any]:
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


def decompress(*, dump: str) -> dict[str, Any]:
    """The standard library's bzip2 from the file's beginning to its end."""
    size = 0
    with bz2.open(dump) as stream:
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
    return {"xml_bytes": size}


WORKLOADS: Mapping[str, Callable[..., dict[str, Any]]] = {
    function.__name__: function
    for function in (extract_pages, phases, oracle, plain_mwparserfromhell, decompress)
}

if __name__ == "__main__":
    print(json.dumps(WORKLOADS[sys.argv[1]](**json.loads(sys.argv[2]))))
