"""Plan: what the stages up to the sequences and the mention table will take, told before they run.

The size of a dump is known. How much text, how many links and titles it has is carried over from samples of it, which
the code of ExtractPages reads here, so that the speed of the machine is measured as well. `costs.toml` says what each
stage takes for so much of them.
"""

import logging
import os
import shutil
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import TYPE_CHECKING

from pipeline import storage
from pipeline.dump import fetch, pages
from pipeline.dump.containers import Block, detect_format
from pipeline.dump.download import is_remote, remote_sources
from workflows.base import machine
from workflows.base.settings import MentionSettings, SequenceSettings
from workflows.base.stage import Result, Stage, Step
from workflows.stages.sequences import BuildSequences
from workflows.stages.tables import BuildMentionTable

if TYPE_CHECKING:
    from pipeline.jobs.extract_pages import PageExtractor

logger = logging.getLogger("workflows")

_SAMPLES, _SAMPLE_BYTES = 3, 2 << 20  # places in a dump, and how much is read at each
_HEADINGS = ("stage", "state", "core min", "min", "memory GB", "disk GB", "scratch GB")


@dataclass(frozen=True)
class Cost:
    """What a stage took on the machine of `costs.toml`.

    Attributes:
        driver: what its work grows with: bytes of the `file` or of `text`, `links` or `titles`.
        start: CPU seconds for the smallest dump.
        seconds: CPU seconds for a million of the driver; 0 where the sample tells.
        alone: the share of the seconds that one process works alone.
        process: memory of its largest process, in bytes.
        worker: memory of each worker.
        disk: bytes that it writes for each of the driver.
        scratch: bytes that it sets aside for each of the driver.
    """

    driver: str
    start: float
    seconds: float = 0.0
    alone: float = 0.0
    process: float = 0.0
    worker: float = 0.0
    disk: float = 0.0
    scratch: float = 0.0


@dataclass(frozen=True)
class Sample:
    """What a dump has in its files, and how many CPU seconds it takes here to extract it: `costs.toml` or measured."""

    file: float
    text: float
    links: float
    titles: float
    seconds: float

    def of(self, size: int) -> "Sample":
        """As much for a dump of this size."""
        scale = size / self.file
        return Sample(size, self.text * scale, self.links * scale, self.titles * scale, self.seconds * scale)


@dataclass(frozen=True)
class Estimate:
    """What a stage is expected to take: CPU seconds, seconds, bytes of memory, on disk and set aside."""

    cpu_seconds: float
    seconds: float
    memory: float
    disk: float
    scratch: float


def read_costs() -> tuple[Sample, dict[str, Cost]]:
    """What was measured: the dump, and each stage's cost."""
    values = tomllib.loads(resources.files("workflows").joinpath("costs.toml").read_text("utf-8"))
    return Sample(**values["dump"]), {name: Cost(**cost) for name, cost in values["stages"].items()}


def take_sample(paths: Sequence[str], folder: str, profile: str) -> Sample | None:
    """Extract some blocks of the dump's files into a folder; None of a gzip file, which has no entry in the middle."""
    from pipeline.jobs.extract_pages import PageExtractor

    if any(detect_format(path) == "gz" for path in paths):
        return None
    site = pages.read_site_info(paths[0]).to_dict()
    work = PageExtractor({"site": site, "profile": profile, "allow_truncated": True})
    found: Counter[str] = Counter()
    seconds = 0.0
    blocks = list(_sample_blocks(paths))
    _extract(work, blocks[0], folder)  # what is loaded once counts for nothing
    for block in blocks:
        started = time.process_time()
        result = _extract(work, block, folder)
        seconds += time.process_time() - started
        texts = [
            os.path.join(folder, file.path) for file in result.files if file.path.startswith("paragraphs/")
        ]
        found.update(
            file=block.end - block.start, text=storage.sum_lengths(texts, "text"), links=result.rows["links"]
        )
        found["titles"] += result.rows["pages"] + result.rows["redirects"]
    return Sample(**found, seconds=seconds)


def _extract(work: "PageExtractor", block: Block, folder: str) -> Result:
    from pipeline.storage.blocks import PageGate

    gate = PageGate(os.path.join(folder, f"page-{block.number}"), ())
    result = work(block, folder, gate)
    gate.close()
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


def estimate(cost: Cost, dump: Sample, speed: float, processes: int) -> Estimate:
    """What a stage takes for a dump.

    Args:
        cost: of the stage.
        dump: what the whole dump has.
        speed: CPU seconds here for one second there.
        processes: that work side by side.
    """
    amount = getattr(dump, cost.driver)
    work = speed * cost.seconds * amount / 1e6 if cost.seconds else dump.seconds
    start = speed * cost.start
    seconds = start + work * (cost.alone + (1 - cost.alone) / processes)
    memory = cost.process + processes * cost.worker
    return Estimate(start + work, seconds, memory, cost.disk * amount, cost.scratch * amount)


class Plan(MentionSettings, SequenceSettings, Step):
    """What each stage up to the sequences and the mention table will take; nothing is run."""

    _is_told = False

    @property
    def where(self) -> str:
        return self.workdir

    def complete(self) -> bool:
        return self._is_told

    @cached_property
    def stages(self) -> list[Stage]:
        """The stages, each after those that it requires."""
        found: dict[str, Stage] = {}
        for last in (self.clone(BuildSequences), self.clone(BuildMentionTable)):
            found.update({each.task_id: each for each in (*last.upstream(), last)})
        return list(found.values())

    def dump_size(self) -> int:
        """Raises: ValueError where there is no such dump, or a server does not tell its size."""
        sources = remote_sources(self.dump) if is_remote(self.dump) else fetch.find_parts(self.dump)
        if any(source.size is None for source in sources):
            raise ValueError(
                f"--dump {self.dump}: its server does not tell its size; pass a file or a wiki's name"
            )
        return sum(source.size or 0 for source in sources)

    def run(self) -> None:
        """Print the plan. Raises: ValueError for what does not fit."""
        measured, costs = read_costs()
        sample = None
        if not is_remote(self.dump):
            paths = [source.location for source in fetch.find_parts(self.dump)]
            with tempfile.TemporaryDirectory(dir=self.workdir) as folder:
                sample = take_sample(paths, folder, self.profile)
        if sample is None:
            logger.info("no sample could be taken: text, links and speed are those of costs.toml")
            sample = measured
        speed = (sample.seconds / sample.text) / (measured.seconds / measured.text)
        dump = sample.of(self.dump_size())
        estimates = {
            stage.title: estimate(costs[stage.title], dump, speed, self.processes)
            for stage in self.stages
            if stage.title in costs and not stage.complete()
        }
        print(self.table(estimates))
        self._is_told = True
        if problems := what_does_not_fit(estimates.values(), self.workdir):
            raise ValueError("; ".join(problems))

    def table(self, estimates: Mapping[str, Estimate]) -> str:
        """A line for each stage, and one for all."""
        rows: list[Sequence[str]] = [_HEADINGS]
        for stage in self.stages:
            if stage.complete():
                rows.append((stage.title, "made", *("",) * 5))
            elif found := estimates.get(stage.title):
                rows.append((stage.title, "to make", *_cells(found)))
            else:
                rows.append((stage.title, "to make", "not known", *("",) * 4))
        rows.append(("all", "", *_cells(_together(estimates.values()))))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if at < 2 else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        )


def _together(estimates: Iterable[Estimate]) -> Estimate:
    """All stages, one after another: memory and scratch are free again behind each."""
    found = list(estimates)
    sums = [sum(getattr(each, name) for each in found) for name in ("cpu_seconds", "seconds", "disk")]
    largest = [max((getattr(each, name) for each in found), default=0.0) for name in ("memory", "scratch")]
    return Estimate(sums[0], sums[1], largest[0], sums[2], largest[1])


def _cells(found: Estimate) -> list[str]:
    minutes = [f"{seconds / 60:,.1f}" for seconds in (found.cpu_seconds, found.seconds)]
    return minutes + [f"{size / 1e9:,.1f}" for size in (found.memory, found.disk, found.scratch)]


def what_does_not_fit(estimates: Iterable[Estimate], workdir: str) -> list[str]:
    """A line for memory and for disk, where the machine has less than is needed."""
    needed = _together(estimates)
    has = {
        "memory": (needed.memory, machine.memory_bytes(), "lower --processes"),
        "disk": (needed.disk + needed.scratch, shutil.disk_usage(workdir).free, "pass another --workdir"),
    }
    return [
        f"{name}: {wanted / 1e9:,.1f} GB are needed, {there / 1e9:,.1f} GB are there; {remedy}"
        for name, (wanted, there, remedy) in has.items()
        if wanted > there
    ]
