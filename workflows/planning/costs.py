"""What the stages cost: what was measured on one machine, and what follows for another dump on this one.

`costs.toml` says what each stage took for so much of what it grows with, and how long that machine takes for a piece of
work that is done here, too. How much a dump has, and how long it takes to extract, is carried over from samples of it.
"""

import os
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from pipeline import storage
from pipeline.dump import pages
from pipeline.dump.containers import detect_format, packed_size
from pipeline.storage.blocks import Block
from workflows.base import machine

if TYPE_CHECKING:
    from pipeline.jobs.extract_pages import PageExtractor

_SAMPLES, _SAMPLE_BYTES = 3, 2 << 20  # places in a dump, and how much is read at each
_TIMES = 10  # that a piece of work is done


@dataclass(frozen=True)
class Cost:
    """What a stage took on the machine of `costs.toml`.

    Attributes:
        driver: what its work grows with: bytes of the `file` as bzip2 packs it, of `text` or of the tokenizer's
            `sample`, `links` or `titles`.
        start: CPU seconds for the smallest dump.
        begin: seconds for it.
        saved_start: CPU seconds of `start` that Java's settings for small dumps save.
        saved_begin: seconds of `begin` that they save.
        seconds: CPU seconds for a million of the driver.
        sampled: CPU seconds for each second that the whole dump would take, by its sample, to extract.
        alone: the share of the seconds that one process works alone.
        process: memory of its main process, in bytes, without Spark's Java.
        worker: memory of each worker.
        disk: bytes that it writes for each of the driver.
        scratch: bytes that Spark puts into its scratch folder for each of the driver.
    """

    driver: str
    start: float
    begin: float = 0.0
    saved_start: float = 0.0
    saved_begin: float = 0.0
    seconds: float = 0.0
    sampled: float = 0.0
    alone: float = 0.0
    process: float = 0.0
    worker: float = 0.0
    disk: float = 0.0
    scratch: float = 0.0


@dataclass(frozen=True)
class Sample:
    """Bytes of a dump's files (as bzip2 packs them) and of its text, its links and titles, and the CPU seconds that
    extracting it takes.
    """

    file: float
    text: float
    links: float
    titles: float
    seconds: float

    def of(self, size: float) -> "Sample":
        """As much for a dump of this size."""
        scale = size / self.file
        return Sample(size, self.text * scale, self.links * scale, self.titles * scale, self.seconds * scale)


@dataclass(frozen=True)
class Estimate:
    """What a stage is expected to take: CPU seconds, seconds, bytes of memory, on disk and of scratch."""

    cpu_seconds: float
    seconds: float
    memory: float
    disk: float
    scratch: float


def read_costs() -> tuple[float, Sample, dict[str, Cost]]:
    """What was measured: `work_seconds` of that machine, a sample of the dump, and each stage's cost."""
    values = tomllib.loads(resources.files("workflows.planning").joinpath("costs.toml").read_text("utf-8"))
    costs = {name: Cost(**cost) for name, cost in values["stages"].items()}
    return values["work_seconds"], Sample(**values["dump"]), costs


def work_seconds() -> float:
    """CPU seconds of a fixed piece of work in Python: how fast this machine is."""
    text = "".join(f'key{number} = "{number} words"\n' for number in range(2000))

    def once() -> float:
        started = time.process_time()
        for _ in range(_TIMES):
            tomllib.loads(text)
        return time.process_time() - started

    return min(once() for _ in range(3))


def take_sample(paths: Sequence[str], folder: str, profile: str) -> Sample | None:
    """Extract some blocks of the dump's files into a folder; None of a gzip file, which has no entry in the middle."""
    from pipeline.jobs.extract_pages import PageExtractor

    if any(detect_format(path) == "gz" for path in paths):
        return None
    site = pages.read_site_info(paths[0]).to_dict()
    work = PageExtractor({"site": site, "profile": profile, "allow_truncated": True})
    found: Counter[str] = Counter()
    size = seconds = 0.0
    blocks = list(_sample_blocks(paths))
    _extract(work, blocks[0], folder)  # what is loaded once counts for nothing
    packed = {path: packed_size(path) / os.path.getsize(path) for path in paths}
    for block in blocks:
        started = time.process_time()
        result = _extract(work, block, folder)
        seconds += time.process_time() - started
        texts = [
            os.path.join(folder, file.path) for file in result.files if file.path.startswith("paragraphs/")
        ]
        size += packed[block.path] * (block.end - block.start)
        titles = result.rows["pages"] + result.rows["redirects"]
        found.update(text=storage.sum_lengths(texts, "text"), links=result.rows["links"], titles=titles)
    return Sample(file=size, **found, seconds=seconds)


def _extract(work: "PageExtractor", block: Block, folder: str) -> storage.Result:
    from pipeline.storage.blocks import PageMarker

    marker = PageMarker(os.path.join(folder, f"page-{block.number}"), ())
    result = work(block, folder, marker)
    marker.close()
    return result


def _sample_blocks(paths: Sequence[str]) -> Iterator[Block]:
    """Blocks at equal distances in the files, one behind another."""
    sizes = [os.path.getsize(path) for path in paths]
    total, number = sum(sizes), 0
    for path, size, before in zip(paths, sizes, (sum(sizes[:at]) for at in range(len(sizes))), strict=True):
        for place in range(_SAMPLES):
            start = place * max(_SAMPLE_BYTES, total // _SAMPLES) - before
            if 0 <= start < size:
                yield Block(number, path, start, min(size, start + _SAMPLE_BYTES))
                number += 1


def estimate(
    cost: Cost,
    dump: Sample,
    speed: float,
    processes: int,
    *,
    characters: int,
    java: int = 0,
    is_small: bool = False,
) -> Estimate:
    """What a stage takes for a dump.

    Args:
        cost: of the stage.
        dump: what the whole dump has.
        speed: CPU seconds here for one second on the machine of the costs.
        processes: that work side by side.
        characters: of the sample that a tokenizer learns from.
        java: bytes that Spark's Java may hold.
        is_small: whether Java has its settings for small dumps.
    """
    amount = min(dump.text, characters) if cost.driver == "sample" else getattr(dump, cost.driver)
    work = speed * cost.seconds * amount / 1e6 + cost.sampled * dump.seconds
    at_once = min(processes, machine.processors())
    start, begin = cost.start - is_small * cost.saved_start, cost.begin - is_small * cost.saved_begin
    seconds = speed * begin + work * (cost.alone + (1 - cost.alone) / at_once)
    memory = cost.process + java + processes * cost.worker
    return Estimate(speed * start + work, seconds, memory, cost.disk * amount, cost.scratch * amount)
