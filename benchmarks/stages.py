"""The stages from the dump to the shards, run as a user runs them, with the figures of each.

Two commands: `luigi --module workflows BuildMentionTable` makes all tables, `... BuildSequences` then the shards. A
stage's own `run.json` says how long it took, and its time of change when it ended; what the processes held and worked
in between is sampled from outside.
"""

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corpora import Dump
from measure import ROOT, Measurement, Moment, measure

Record = dict[str, Any]

FOLDERS = {
    "FetchDump": "dump",
    "ExtractPages": "pages",
    "ResolveRedirects": "titles",
    "BuildEntityVocab": "entity_vocab",
    "BuildMentionTable": "mentions",
    "BuildSequences": "sequences",
}
COMMANDS = ("BuildMentionTable", "BuildSequences")
# Rows by the manifest that counts them; a link is a row to whoever counts links.
READS: Mapping[str, Sequence[tuple[str, str]]] = {
    "ResolveRedirects": (("ExtractPages", "pages"), ("ExtractPages", "redirects")),
    "BuildEntityVocab": (("ExtractPages", "links"), ("ResolveRedirects", "titles")),
    "BuildMentionTable": (
        ("ExtractPages", "paragraphs"),
        ("ExtractPages", "links"),
        ("ResolveRedirects", "titles"),
    ),
    "BuildSequences": (("ExtractPages", "paragraphs"),),
}
WRITES = {
    "ExtractPages": ("pages", "paragraphs", "redirects", "rejected"),
    "ResolveRedirects": ("titles",),
    "BuildEntityVocab": ("entities", "aliases"),
    "BuildMentionTable": ("mentions", "page_names"),
    "BuildSequences": ("sequences", "held_out"),
}
ROLES = ("main", "jvm", "spark worker", "runner", "worker")
TIMEOUT_SECONDS = 3600
_SAMPLING_SHARE = 0.04
_PACKAGES_FOR_LUIGI = ("-m", "luigi", "--module", "workflows")


def run_stages(
    dump: Dump, workdir: Path, tokenizer: Path, *, processes: int, profile: str = "fixed"
) -> Record:
    """Run all stages in an empty work directory; the record of the run, with `failure` where it failed."""
    flags = ["--dump", str(dump.path), "--workdir", str(workdir), "--tokenizer", str(tokenizer)]
    flags += ["--preset", "base", "--processes", str(processes), "--profile", profile]
    environment = clean_environment()
    results = []
    for stage in COMMANDS:
        command = [sys.executable, *_PACKAGES_FOR_LUIGI, stage, *flags]
        results.append(measure(command, environment, timeout=TIMEOUT_SECONDS, sampling_share=_SAMPLING_SHARE))
        if results[-1].failure:
            break
    failure = "; ".join(result.failure for result in results if result.failure)
    record: Record = {
        "dump": dump.name,
        "profile": profile,
        "failure": failure,
        "wall_seconds": sum(result.wall_seconds for result in results),
        "cpu_seconds": sum(result.cpu_seconds for result in results),
        "tree_pss_mb": max(result.tree_pss_mb for result in results),
        "other_cores": max(result.other_cores for result in results),
        "rss_mb": largest_by_role(results),
    }
    return record if failure else {**record, "stages": stage_records(workdir, results)}


def clean_environment() -> dict[str, str]:
    """The caller's environment with this checkout's code in front and no other setting of Python."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return {**environment, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


def largest_by_role(results: Sequence[Measurement]) -> dict[str, float]:
    """The largest resident size that any process of a role ever had, by the kernel's high-water mark."""
    sizes: dict[str, float] = {}
    for process in (process for result in results for process in result.processes):
        sizes[process.role] = max(sizes.get(process.role, 0.0), process.rss_mb)
    return {role: sizes[role] for role in ROLES if role in sizes}


def stage_folder(workdir: Path, stage: str) -> Path:
    """The folder of the only run of a stage in a work directory."""
    found = sorted(workdir.glob(f"{FOLDERS[stage]}-*/manifest.json"))
    if len(found) != 1:
        raise ValueError(f"{workdir}: {len(found)} finished folders of {stage}; wanted one")
    return found[0].parent


def read_manifest(workdir: Path, stage: str) -> Record:
    return json.loads((stage_folder(workdir, stage) / "manifest.json").read_text(encoding="utf-8"))


def stage_records(workdir: Path, results: Sequence[Measurement]) -> dict[str, Record]:
    """The figures of each stage, in the order of the stages."""
    manifests = {stage: read_manifest(workdir, stage) for stage in FOLDERS}
    whole = sum(result.wall_seconds for result in results)
    commands = [result.moments for result in results]
    records = {}
    for stage in FOLDERS:
        folder = stage_folder(workdir, stage)
        seconds = json.loads((folder / "run.json").read_text(encoding="utf-8"))["seconds"]
        end = (folder / "run.json").stat().st_mtime
        records[stage] = {
            "seconds": seconds,
            "share": seconds / whole,
            **rows_of(stage, manifests),
            **within(commands, end - seconds, end),
            "bytes": sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
            "files": {path.name: path.stat().st_size for path in folder.iterdir() if path.is_file()},
            "manifest_sha256": hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest(),
            "rows": manifests[stage]["rows"],
            "drops": manifests[stage]["drops"],
            "facts": {
                key: value
                for key, value in manifests[stage]["facts"].items()
                if isinstance(value, int | float | dict) and key != "site"
            },
        }
    return records


def rows_of(stage: str, manifests: Mapping[str, Record]) -> Record:
    """Rows that a stage reads and writes; None where its input is no table."""
    read = [manifests[source]["rows"].get(table, 0) for source, table in READS.get(stage, ())]
    if stage == "ExtractPages":
        read = [manifests[stage]["facts"]["pages_read"]]
    written = [manifests[stage]["rows"].get(table, 0) for table in WRITES.get(stage, ())]
    return {"rows_read": sum(read) if read else None, "rows_written": sum(written) if written else None}


def within(commands: Sequence[Sequence[Moment]], begin: float, end: float) -> Record:
    """Memory and CPU seconds between two points of time; what no look fell into is None."""
    moments = [moment for command in commands for moment in command if begin <= moment.time <= end]
    roles = {role for moment in moments for role in moment.rss_mb}
    cpu = sum(cpu_at(command, end) - cpu_at(command, begin) for command in commands if command)
    return {
        "cpu_seconds": cpu if moments else None,
        "tree_pss_mb": max((moment.pss_mb for moment in moments), default=None),
        "rss_mb": {
            role: max(moment.rss_mb.get(role, 0.0) for moment in moments) for role in ROLES if role in roles
        },
    }


def cpu_at(moments: Sequence[Moment], when: float) -> float:
    """CPU seconds that a command had taken at a time, between the two looks around it in proportion."""
    before = [moment for moment in moments if moment.time <= when]
    after = [moment for moment in moments if moment.time > when]
    if not before:
        return 0.0
    if not after:
        return max(moment.cpu_seconds for moment in before)
    left, right = before[-1], after[0]
    share = (when - left.time) / (right.time - left.time)
    return left.cpu_seconds + share * max(0.0, right.cpu_seconds - left.cpu_seconds)
