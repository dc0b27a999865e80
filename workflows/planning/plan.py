"""Plan: what the stages up to the sequences and the mention table will take, told before they run."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from pipeline.dump.containers import packed_size
from pipeline.dump.download import is_remote, remote_sources
from workflows.base import machine
from workflows.base.stage import Stage, Step
from workflows.engines.disk import check_room, own_scratch, scratch_folder
from workflows.engines.spark import heap_bytes, is_small, scratch_root
from workflows.planning.costs import Estimate, Sample, estimate, read_costs, take_sample, work_seconds
from workflows.settings.sequences import SequenceSettings
from workflows.stages.pages import FetchDump
from workflows.stages.sequences import BuildSequences
from workflows.stages.tables import BuildMentionTable, SparkStage

logger = logging.getLogger("workflows")

_HEADINGS = ("stage", "state", "core-minutes", "minutes", "memory GB", "disk GB", "scratch GB")


class Plan(SequenceSettings, Step):
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

    def paths(self) -> list[str]:
        """The dump's files that lie here; none before a download."""
        fetched = self.clone(FetchDump)
        if is_remote(self.dump) and not fetched.complete():
            return []
        return fetched.paths()

    def dump_bytes(self) -> float:
        """How large the dump is, as bzip2 packs it. Raises: ValueError where that is not known yet."""
        if paths := self.paths():
            return sum(map(packed_size, paths))
        sizes = [source.size for source in remote_sources(self.dump)]
        if None in sizes:
            raise ValueError(
                f"--dump {self.dump}: its size is not known before it is downloaded; run FetchDump first"
            )
        return sum(size or 0 for size in sizes)

    def run(self) -> None:
        """Print the plan. Raises: ValueError for what does not fit."""
        estimates = self.estimates()
        print(self.table(estimates))
        self._is_told = True
        if self.beam_options or not (self.spark_master or "local").startswith("local"):
            logger.info("the plan is for this machine alone, and not for a cluster")
        elif problems := self.what_does_not_fit(estimates.values()):
            raise ValueError("; ".join(problems))

    def estimates(self) -> dict[str, Estimate]:
        """What each stage that is still to be made will take, by its title."""
        seconds, measured, costs = read_costs()
        speed, size = work_seconds() / seconds, self.dump_bytes()
        sample = self.sample()
        if sample is None:
            logger.info("no sample could be taken: how much the dump has is taken from costs.toml")
            sample = replace(measured, seconds=speed * measured.seconds)
        java = heap_bytes(int(size))
        found = {
            stage.title: estimate(
                costs[stage.title],
                sample.of(size),
                speed,
                self.processes,
                characters=self.tokenizer_characters,
                java=java if isinstance(stage, SparkStage) else 0,
                is_small=is_small(int(size)),
            )
            for stage in self.stages
            if stage.title in costs and not stage.complete()
        }
        if is_remote(self.dump) and "FetchDump" in found:
            found["FetchDump"] = replace(found["FetchDump"], disk=size)
        return found

    def sample(self) -> Sample | None:
        """A sample of a dump that lies here."""
        paths = self.paths()
        if not paths:
            return None
        with scratch_folder(own_scratch(self.workdir), "--workdir") as folder:
            return take_sample(paths, folder, self.profile)

    def what_does_not_fit(self, estimates: Iterable[Estimate]) -> list[str]:
        """A line for memory and for disk, where the machine has less than is needed."""
        needed, has = _together(estimates), machine.memory_bytes()
        problems = []
        if needed.memory > has:
            problems.append(
                f"memory: {needed.memory / 1e9:,.1f} GB are wanted, {has / 1e9:,.1f} GB are there; lower --processes"
            )
        folders = {self.workdir: ("--workdir", needed.disk)}
        if scratch := scratch_root(self):
            folders[scratch] = ("--scratch", needed.scratch)
        try:
            check_room("the plan", folders)
        except ValueError as error:
            problems.append(str(error))
        return problems

    def table(self, estimates: Mapping[str, Estimate]) -> str:
        """A line for each stage, and one for all."""
        rows: list[Sequence[str]] = [_HEADINGS]
        for stage in self.stages:
            if stage.complete():
                rows.append((stage.title, "made", *("",) * 5))
            elif found := estimates.get(stage.title):
                rows.append((stage.title, "to make", *_cells(found)))
            else:
                rows.append((stage.title, "to make", "not estimated", *("",) * 4))
        unknown = [row[0] for row in rows if "not estimated" in row]
        state = f"without {', '.join(unknown)}" if unknown else ""
        rows.append(("all", state, *_cells(_together(estimates.values()))))
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
