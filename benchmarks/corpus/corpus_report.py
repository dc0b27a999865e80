"""What follows from the measurements of `corpus.py`: medians, growth, speeds, targets, checks."""

from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.corpus.stages import ALL, ROLES, STAGES
from benchmarks.harness.report import Number, divide, median, target
from benchmarks.harness.workloads import Record

MINUTES, MENTION_SPEED, TIMES_LUKE, SEQUENCE_SPEED = 4, 0.8, 2.5, 200_000
FLAT = 1.1  # memory of a process at 4x over 1x
KINDS = {"first": "words still to be learnt", "again": "every word in its memory"}
OUTSIDE = "start-up and between stages"
SPLITTING = "sentence splitting alone"


class Runs:
    """The successful runs of the stages, by dump."""

    def __init__(self, runs: Iterable[Record]) -> None:
        self.runs = list(runs)

    def of(self, dump: str) -> list[Record]:
        return [run for run in self.runs if (run["dump"], run["failure"]) == (dump, "")]

    def median(self, dump: str, stage: str, figure: str) -> Number:
        return median(run["stages"][stage][figure] for run in self.of(dump))

    def rss(self, dump: str, stage: str, role: str) -> Number:
        return median(run["stages"][stage]["rss_mb"].get(role) for run in self.of(dump))


def whole(value: Number) -> int | None:
    return None if value is None else round(value)


def stage_rows(runs: Runs, dump: str) -> list[Record]:
    """A row for each stage, for what is outside of them and for all: medians over the runs of a dump."""
    if not runs.of(dump):
        return []
    rows = []
    for stage in (*STAGES, ALL):
        first, seconds = runs.of(dump)[0]["stages"][stage], runs.median(dump, stage, "seconds")
        read, written = first.get("rows_read"), first.get("rows_written")
        row: Record = {"stage": stage, "s": seconds, "share": runs.median(dump, stage, "share")}
        row |= {"CPU s": runs.median(dump, stage, "cpu_seconds"), "rows read": read, "rows written": written}
        row["rows/s"] = whole(divide(read + (written or 0), seconds)) if read else None
        row["all PSS MB"] = runs.median(dump, stage, "tree_pss_mb")
        row |= {f"{role} MB": runs.rss(dump, stage, role) if stage != ALL else None for role in ROLES}
        rows.append({**row, "disk MB": divide(runs.median(dump, stage, "bytes"), 1e6)})
    left = rows[-1]["s"] - sum(row["s"] for row in rows[:-1])
    outside = {**dict.fromkeys(rows[0]), "stage": OUTSIDE, "s": left, "share": left / rows[-1]["s"]}
    return [*rows[:-1], outside, rows[-1]]


def growth_rows(runs: Runs, made: Sequence[Record]) -> list[Record]:
    """Seconds of each stage on the made dumps, and the last over the first in proportion to the XML."""
    rows = []
    first, last = made[0]["xml_bytes"], made[-1]["xml_bytes"]
    for stage in (*STAGES, ALL):
        seconds = [runs.median(dump["name"], stage, "seconds") for dump in made]
        begin, end = seconds[0], seconds[-1]
        row: Record = {"stage": stage}
        row |= {f"{dump['copies']}x, s": value for dump, value in zip(made, seconds, strict=True)}
        row[f"{made[-1]['copies']}x over 1x"] = divide(end, begin)
        row["over the dump's growth"] = divide(divide(end, begin), last / first)
        more = None if begin is None or end is None else (end - begin) / (last - first) * 1e8
        rows.append({**row, "s more a 100 MB of XML": more})
    return rows


def memory_rows(runs: Runs, made: Sequence[Record]) -> list[Record]:
    """The largest process of each role on the made dumps, by the kernel's high-water mark, in MB."""
    found = {role: [runs.rss(dump["name"], ALL, role) for dump in made] for role in ROLES}
    found["all PSS"] = [runs.median(dump["name"], ALL, "tree_pss_mb") for dump in made]
    return [
        {"process": role}
        | {f"{dump['copies']}x, MB": size for dump, size in zip(made, sizes, strict=True)}
        | {"last over first": divide(sizes[-1], sizes[0])}
        for role, sizes in found.items()
        if any(sizes)
    ]


def speed_rows(sequences: Record) -> list[Record]:
    """Tokens a CPU second of each method, and bytes of text; new tokenizers are set against new ones."""
    if sequences["failure"]:
        return []
    taken: dict[str, list[float]] = {}
    for row in sequences["rows"]:
        taken.setdefault(row["variant"], []).append(row["cpu_seconds"])
    rows, speeds, splitting = [], {}, median(taken[SPLITTING]) or 0.0

    def add(method: str, tokens: int, seconds: Number, against: str = "", same: Any = None) -> Number:
        speed = divide(tokens, seconds) if tokens else None
        row = {"method": method, "tokens": tokens or None, "CPU s": seconds, "tokens/s": whole(speed)}
        row["MB of text/s"] = divide(sequences["text_bytes"] / 1e6, seconds)
        row["build_page over it"] = divide(speeds.get(against), speed)
        rows.append({**row, "pages with equal sequences": same})
        return speed

    for name, seconds in taken.items():
        method = f"build_page, {KINDS[name]}" if name in KINDS else name
        speeds[name] = add(method, sequences["tokens"].get(name, 0), median(seconds))
    for told in (told for told in sequences["slow"] if "seconds" in told):
        same = f"{told['equal_pages']} of {sequences['pages']}"
        for kind, words in KINDS.items():
            seconds = (median(told["seconds"][kind]) or 0.0) + splitting
            add(f"LUKE's method, {told['name']}, {words}", told["tokens"], seconds, kind, same)
    return rows


def mention_rows(found: Record) -> list[Record]:
    if found["failure"]:
        return []
    seconds, megabytes = median(row["cpu_seconds"] for row in found["rows"]), found["text_bytes"] / 1e6
    row: Record = {"pages": found["pages"], "MB of text": megabytes, "CPU s": seconds}
    row |= {"MB/s": divide(megabytes, seconds), "occurrences": found["occurrences"], "names": found["names"]}
    each = divide(found["names_bytes"], found["names"])
    return [{**row, "names.tries, bytes": found["names_bytes"], "bytes a name": each}]


def targets(seconds: Number, dump: str, growth: Any, memory: Any, speeds: Any, mentions: Any) -> list[Record]:
    """Each target with what was found; `met` is None where it was not measured. `seconds`: of the real dump."""
    rows = [
        target(f"{dump}, dump to shards, minutes", divide(seconds, 60), most=MINUTES),
        target("time at 4x over 1x, over the dump's growth", growth[-1]["over the dump's growth"], most=1),
    ]
    for row in memory:
        if row["process"] != "all PSS":
            what = f"memory of a process, {row['process']}, 4x over 1x"
            rows.append(target(what, row["last over first"], most=FLAT))
    counted = next((row["MB/s"] for row in mentions), None)
    rows.append(target("mention counting, MB of text a second and core", counted, least=MENTION_SPEED))
    ours = {row["method"]: row["tokens/s"] for row in speeds}.get(f"build_page, {KINDS['first']}")
    rows.append(target("sequences, tokens a second and core", ours, least=SEQUENCE_SPEED))
    told = [row for row in speeds if row["method"].startswith("LUKE's method")]
    # The plain tokenizer is faster than any that LUKE's authors had: it stands for them only where they are absent.
    for row in [row for row in told if "transformers" in row["method"]] or told:
        rows.append(target(f"sequences over {row['method']}", row["build_page over it"], least=TIMES_LUKE))
    return rows


def checks(runs: Runs, dumps: Sequence[Record]) -> list[Record]:
    """Whether equal input gave equal bytes, and repeated pages as many times the rows.

    Links with a prefix lead to the same title in all copies, which the vocabulary and the mention table see.
    """
    rows: list[Record] = []
    for name in dict.fromkeys(run["dump"] for run in runs.runs):
        tried = [run for run in runs.runs if run["dump"] == name]
        done = runs.of(name)
        manifests = {tuple(run["stages"][stage]["manifest_sha256"] for stage in STAGES) for run in done}
        passed = len(done) == len(tried) and len(manifests) <= 1
        rows.append({"check": f"{len(tried)} runs: the same manifests", "dump": name, "passed": passed})
    once = runs.of(next(dump["name"] for dump in dumps if "linked-1x" in dump["name"]))
    for dump in (dump for dump in dumps if dump["copies"] > 1):
        name, copies = dump["name"], dump["copies"]
        passed = bool(runs.of(name) and once) and all(
            run["stages"][stage]["rows_written"] == copies * once[0]["stages"][stage]["rows_written"]
            for run in runs.of(name)
            for stage in ("ExtractPages", "ResolveRedirects", "BuildSequences")
        )
        rows.append({"check": f"{copies} times the rows of 1x", "dump": name, "passed": passed})
    return rows


def run_row(run: Record) -> Record:
    """A run of the stages in a line."""
    whole_run = run["stages"][ALL]
    row = {"dump": run["dump"], "wall s": whole_run["seconds"]}
    row |= {"CPU s": whole_run["cpu_seconds"], "others' cores": run["other_cores"]}
    return {**row, "failure": run["failure"]}
