"""The stages from the dump to the shards, run as a user runs them, with the figures of each.

A stage's own `run.json` says how long it took, and its time of change when it ended; what the processes held and
worked in between is sampled from outside.
"""

import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from benchmarks.corpus.dumps import Dump
from benchmarks.harness.measure import Moment, measure
from benchmarks.harness.workloads import Record, environment
from pipeline.storage.files import file_sha256
from pipeline.storage.parquet import read_batches


class Stage(NamedTuple):
    """A row of stages.toml."""

    folder: str
    grows_with: str
    reads: Sequence[str] = ()
    writes: Sequence[str] = ()


_TABLE = Path(__file__).with_name("stages.toml").read_text(encoding="utf-8")
STAGES = {name: Stage(**row) for name, row in tomllib.loads(_TABLE).items()}
ALL = "all"
SCRATCH = ".scratch"  # where Spark sets aside, in the work directory
COMMANDS = ("BuildMentionTable", "TrainTokenizer", "BuildSequences")
ROLES = ("main", "jvm", "spark worker", "runner", "worker")
TIMEOUT_SECONDS = 3600
_SAMPLING_SHARE = 0.04


def run_stages(dump: Dump, workdir: Path, tokenizer: Path, *of_spark: str, processes: int) -> Record:
    """Run all stages in an empty work directory: the figures of each and of all, or the failure.

    The flags `of_spark` are for the commands that run on Spark.
    """
    flags = ["--dump", str(dump.path), "--workdir", str(workdir)]
    flags += ["--preset", "base", "--processes", str(processes)]
    results, own = [], environment(threads=1)
    for stage in COMMANDS:
        more = ["--set", f"sequences.tokenizer={tokenizer}"] if stage == "BuildSequences" else []
        more += of_spark if stage != "TrainTokenizer" else ()
        command = [sys.executable, "-m", "luigi", "--module", "workflows", stage, *flags, *more]
        watched = {"sampling_share": _SAMPLING_SHARE, "scratch": workdir / SCRATCH}
        results.append(measure(command, own, timeout=TIMEOUT_SECONDS, **watched))
        if results[-1].failure:
            break
    sizes = {role: max(result.rss_mb.get(role, 0.0) for result in results) for role in ROLES}
    whole = {
        "seconds": sum(result.wall_seconds for result in results),
        "share": 1.0,
        "cpu_seconds": sum(result.cpu_seconds for result in results),
        "tree_pss_mb": max(result.tree_pss_mb for result in results),
        "rss_mb": {role: size for role, size in sizes.items() if size},
        "scratch_mb": max(moment.scratch_mb for result in results for moment in result.moments),
        "bytes": sum(path.stat().st_size for path in workdir.rglob("*") if path.is_file()),
    }
    failure = "; ".join(result.failure for result in results if result.failure)
    stages = {ALL: whole}
    if not failure:
        stages |= stage_records(workdir, [result.moments for result in results], whole["seconds"])
    others = max(result.other_cores for result in results)
    return {"dump": dump.name, "failure": failure, "other_cores": others, "stages": stages}


def stage_records(workdir: Path, commands: Sequence[Sequence[Moment]], whole: float) -> dict[str, Record]:
    """Return the figures of each stage, in the order of the stages; `whole`: the seconds of all."""
    folders = {name: next(workdir.glob(f"{stage.folder}-*/manifest.json")).parent for name, stage in STAGES.items()}
    manifests = {stage: json.loads((path / "manifest.json").read_bytes()) for stage, path in folders.items()}
    records = {}
    for stage, folder in folders.items():
        seconds = json.loads((folder / "run.json").read_bytes())["seconds"]
        end = (folder / "run.json").stat().st_mtime
        records[stage] = {
            "seconds": seconds,
            "share": seconds / whole,
            **rows_of(stage, manifests),
            **within(commands, end - seconds, end),
            "bytes": sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
            "manifest_sha256": file_sha256(str(folder / "manifest.json")),
            "rows": manifests[stage]["rows"],
        }
    paragraphs = map(str, folders["ExtractPages"].glob("paragraphs/*"))
    records["ExtractPages"]["text_bytes"] = sum(
        pc.sum(pc.binary_length(batch.column(0))).as_py() or 0
        for path in paragraphs
        for batch in read_batches(path, ["text"])
    )
    return records


def rows_of(stage: str, manifests: Mapping[str, Record]) -> Record:
    """Return the rows that a stage reads and writes; None where its input is no table."""
    read = []
    for source, name in (word.split(".") for word in STAGES[stage].reads):
        counts = manifests[source].get("facts", {}) | manifests[source]["rows"]
        read.append(counts.get(name, 0))
    written = [manifests[stage]["rows"].get(name, 0) for name in STAGES[stage].writes]
    return {"rows_read": sum(read) if read else None, "rows_written": sum(written) if written else None}


def within(commands: Sequence[Sequence[Moment]], begin: float, end: float) -> Record:
    """Return memory and CPU seconds between two points of time; what no look fell into is None."""
    moments = [moment for command in commands for moment in command if begin <= moment.time <= end]
    sizes = {role: [moment.rss_mb.get(role) or 0.0 for moment in moments] for role in ROLES}
    cpu = sum(cpu_at(command, end) - cpu_at(command, begin) for command in commands if command)
    return {
        "cpu_seconds": cpu if moments else None,
        "tree_pss_mb": max((moment.pss_mb for moment in moments), default=None),
        "rss_mb": {role: max(found) for role, found in sizes.items() if any(found)},
        "scratch_mb": max((moment.scratch_mb for moment in moments), default=None),
    }


def cpu_at(moments: Sequence[Moment], when: float) -> float:
    """Return the CPU seconds that a command had taken at a time, in proportion between the two looks around it."""
    taken = np.maximum.accumulate([moment.cpu_seconds for moment in moments])
    return float(np.interp(when, [moment.time for moment in moments], taken, left=0.0))
