"""Plan: how long the stages up to the sequences and the mention table take, and how much disk, told before they run.

What a stage takes grows with the dump as bzip2 packs it. `costs.toml` says how much it took on one machine, and how
long that machine took for a piece of work that is done here, too.
"""

import logging
import time
import timeit
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import NamedTuple

from pipeline.dump.containers import packed_size
from pipeline.dump.download import is_remote, remote_sources
from pipeline.look import aligned
from workflows.base import machine
from workflows.base.stage import Stage, Step
from workflows.engines.disk import check_room
from workflows.engines.spark import scratch_root
from workflows.stages.pages import FetchDump
from workflows.stages.sequences import BuildSequences
from workflows.stages.tables import BuildMentionTable

logger = logging.getLogger("workflows")

_HEADINGS = ("stage", "state", "core-minutes", "minutes", "disk GB", "scratch GB")


class Estimate(NamedTuple):
    """The expected costs of a stage: CPU seconds, seconds, and bytes on disk and of scratch."""

    cpu_seconds: float
    seconds: float
    disk: float
    scratch: float


@dataclass(frozen=True)
class Cost:
    """The costs of a stage on the machine of `costs.toml`."""

    start: float  # CPU seconds for the smallest dump
    begin: float = 0.0  # seconds for it
    seconds: float = 0.0  # CPU seconds for each MB of a dump
    alone: float = 0.0  # the share of these in which one process works alone
    disk: float = 0.0  # bytes that it writes for each byte of a dump
    scratch: float = 0.0  # bytes that Spark sets aside meanwhile

    def estimate(self, size: float, processes: int, speed: float) -> Estimate:
        """Return the costs for a dump of this size, where work takes `speed` times as long as on that machine."""
        work, at_once = self.seconds * size / 1e6, min(processes, machine.processors())
        seconds = self.begin + work * (self.alone + (1 - self.alone) / at_once)
        return Estimate(speed * (self.start + work), speed * seconds, self.disk * size, self.scratch * size)


def read_costs() -> tuple[float, dict[str, Cost]]:
    """The measurements: `work_seconds` of that machine, and each stage's cost."""
    values = tomllib.loads(resources.files("workflows.planning").joinpath("costs.toml").read_text("utf-8"))
    return values.pop("work_seconds"), {name: Cost(**cost) for name, cost in values.items()}


def work_seconds() -> float:
    """CPU seconds of a fixed piece of work in Python: how fast this machine is."""
    text = "".join(f'key{number} = "{number} words"\n' for number in range(2000))
    return min(timeit.repeat(lambda: tomllib.loads(text), "gc.enable()", time.process_time, repeat=3, number=10))


class Plan(Step):
    """Return the expected costs of each stage up to the sequences and the mention table; nothing is run."""

    TABLES = ("corpus", "sequences", "pretraining", "machine")

    _is_printed = False

    @property
    def where(self) -> str:
        return self.workdir

    def complete(self) -> bool:
        return self._is_printed

    @cached_property
    def stages(self) -> list[Stage]:
        """The stages, each after those that it requires."""
        found: dict[str, Stage] = {}
        for last in (self.clone(BuildSequences), self.clone(BuildMentionTable)):
            found.update({each.task_id: each for each in (*last.upstream(), last)})
        return list(found.values())

    def dump_bytes(self) -> float:
        """Return the size of the dump as bzip2 packs it. Raises: ValueError where that is not known yet."""
        fetched = self.clone(FetchDump)
        if not is_remote(self.settings.corpus.dump) or fetched.complete():
            return sum(map(packed_size, fetched.paths()))
        sizes = [source.size for source in remote_sources(self.settings.corpus.dump)]
        if None in sizes:
            raise ValueError(
                f"corpus.dump {self.settings.corpus.dump}: its size is not known before it is downloaded; "
                "run FetchDump first"
            )
        return sum(size or 0 for size in sizes)

    def run(self) -> None:
        """Print the plan. Raises: ValueError: there is too little room on disk."""
        if len(self.settings.corpus.wikis) > 1:
            raise ValueError("corpus.dump: Plan estimates one dump; give it each of them alone")
        size, (measured, costs) = self.dump_bytes(), read_costs()
        speed = work_seconds() / measured
        to_make = [stage.title for stage in self.stages if not stage.complete() and stage.title in costs]
        found = {name: costs[name].estimate(size, self.processes, speed) for name in to_make}
        if is_remote(self.settings.corpus.dump) and "FetchDump" in found:
            found["FetchDump"] = found["FetchDump"]._replace(disk=size)
        cpu_seconds, seconds, disk, scratch = zip((0.0, 0.0, 0.0, 0.0), *found.values(), strict=True)
        # Scratch is free again behind each stage.
        total = Estimate(sum(cpu_seconds), sum(seconds), sum(disk), max(scratch))
        print(self.table(found, total))
        self._is_printed = True
        where = self.settings.machine
        if where.beam_options or not (where.spark_master or "local").startswith("local"):
            logger.info("the plan is for this machine alone, and not for a cluster")
            return
        folders = {self.workdir: ("--workdir", total.disk)}
        if root := scratch_root(self):
            folders[root] = ("machine.scratch", total.scratch)
        check_room("the plan", folders)

    def table(self, found: Mapping[str, Estimate], total: Estimate) -> str:
        """A line for each stage, and one for all."""
        rows: list[Sequence[str]] = [_HEADINGS]
        for stage in self.stages:
            cells = _cells(found[stage.title]) if stage.title in found else ("",) * 4
            state = "made" if stage.complete() else "to make" if stage.title in found else "not estimated"
            rows.append((stage.title, state, *cells))
        rows.append(("all", "", *_cells(total)))
        return "\n".join(aligned(rows, "<<>>>>"))


def _cells(found: Estimate) -> list[str]:
    minutes = [f"{seconds / 60:,.1f}" for seconds in found[:2]]
    return minutes + [f"{size / 1e9:,.1f}" for size in found[2:]]
