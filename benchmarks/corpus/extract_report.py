"""What follows from the measurements of `extract.py`: medians, phases, ratios, targets, checks."""

from collections.abc import Callable, Iterable, Sequence

from benchmarks.corpus.dumps import EMPTY, LARGE, SMALL, Dump
from benchmarks.harness.report import Number, divide, equal_outputs, median, target
from benchmarks.harness.workloads import Record

COPIES = (5, 20, 80)
OURS = {count: f"ExtractPages --processes {count}" for count in (1, 2)}
WIKIPEDIA2VEC = {count: f"wikipedia2vec build-dump-db --pool-size {count}" for count in (1, 2)}
MWPARSERFROMHELL, WIKIEXTRACTOR, BZ2 = "mwparserfromhell", "wikiextractor --json --links", "bz2 alone"
PHASES, ORACLE = "phases of ExtractPages", "oracle"
STEPS = ("decompression", "page reading", "wikitext", "writing")
TIMES, SPEED, TIMES_ORACLE, SCALING, WORKER_MB = 5, 4.5, 8, 1.8, 400
FLAT = 1.1  # memory at 80x over memory at 5x
# What has to be left when the start-up is taken off, as a share of the start-up: less is noise. Wall time is noisier.
LEAST_WORK = {"cpu": 0.25, "wall": 1.0}


class Results:
    """Medians over the repetitions of every program on every dump, and what is made of them."""

    def __init__(self, dumps: Iterable[Dump], records: Sequence[Record]) -> None:
        self.dumps = {dump.name: dump for dump in dumps}
        self.records = records

    def runs(self, dump: str, *programs: str) -> list[Record]:
        return [r for r in self.records if r["dump"] == dump and r["program"] in programs]

    def median(self, dump: str, program: str, value: Callable[[Record], float]) -> Number:
        """None where the program has no successful run."""
        return median(value(record) for record in self.runs(dump, program) if not record["failure"])

    def seconds(self, dump: str, program: str, kind: str = "cpu", *, net: bool = False) -> Number:
        """CPU or wall seconds; net: less the start-up, where enough is left to mean anything."""
        seconds = self.median(dump, program, lambda record: record[f"{kind}_seconds"])
        start_up = self.seconds(EMPTY, program, kind) if net else 0.0
        if seconds is None or start_up is None or seconds - start_up < LEAST_WORK[kind] * start_up:
            return None
        return seconds - start_up

    def phase(self, dump: str, program: str, *phases: str) -> Number:
        """CPU seconds of the phases in one process."""
        return self.median(
            dump, program, lambda record: sum(record["answer"]["seconds"].get(name, 0.0) for name in phases)
        )

    def speed(self, dump: str, program: str, *, net: bool = False) -> Number:
        """MB of XML a CPU second."""
        return divide(self.dumps[dump].megabytes, self.seconds(dump, program, net=net))

    def times(self, dump: str, other: str, *, net: bool, ours: str = OURS[1]) -> Number:
        """Our speed over another's."""
        return divide(self.speed(dump, ours, net=net), self.speed(dump, other, net=net))

    def times_oracle(self, dump: str) -> Number:
        return divide(self.phase(dump, ORACLE, "wikitext"), self.phase(dump, PHASES, "wikitext"))

    def scaling(self, dump: str, *, net: bool) -> Number:
        """Wall seconds of one process over those of two."""
        return divide(*(self.seconds(dump, OURS[count], "wall", net=net) for count in (1, 2)))

    def memory(self, dump: str, program: str) -> Number:
        return self.median(dump, program, lambda record: record["worker_rss_mb"])


def medians(results: Results) -> list[Record]:
    """A row for every program on every dump; what is measured inside a process has its own table."""
    rows = []
    for dump, program in dict.fromkeys((r["dump"], r["program"]) for r in results.records):
        runs = results.runs(dump, program)
        good = [record for record in runs if not record["failure"]]
        failure = "; ".join(dict.fromkeys(record["failure"] for record in runs if record["failure"]))
        if program in (PHASES, ORACLE) and not failure:
            continue
        row = {"dump": dump, "program": program, "runs": len(good)}
        row["CPU s"] = results.seconds(dump, program)
        times = [record["cpu_seconds"] for record in good]
        row["spread"] = divide(max(times) - min(times), median(times)) if len(times) > 1 else None
        row["wall s"] = results.seconds(dump, program, "wall")
        row["MB/s"] = results.speed(dump, program)
        row["MB/s less start-up"] = results.speed(dump, program, net=True) if dump != EMPTY else None
        row["worker RSS MB"] = results.memory(dump, program)
        row["all PSS MB"] = median(record["tree_pss_mb"] for record in good)
        row["others' cores"] = median(record["other_cores"] for record in good)
        rows.append({**row, "failure": failure})
    order = list(results.dumps)
    return sorted(rows, key=lambda row: order.index(row["dump"]))


def phases(results: Results) -> list[Record]:
    """A row for every phase in the process that does them all, and for the oracle's extraction."""
    rows = []
    for name, dump in results.dumps.items():
        whole = results.phase(name, PHASES, *STEPS)
        if whole is None:
            continue
        found = [(PHASES, step, results.phase(name, PHASES, step)) for step in STEPS]
        found.append((PHASES, "all four", whole))
        found.append((ORACLE, "wikitext", results.phase(name, ORACLE, "wikitext")))
        found.append((BZ2, "decompression from end to end", results.seconds(name, BZ2, net=True)))
        for program, phase, seconds in found:
            row = {"dump": name, "program": program, "phase": phase, "CPU s": seconds}
            row["MB/s"] = divide(dump.megabytes, seconds)
            rows.append({**row, "share": divide(seconds, whole) if program == PHASES else None})
    return rows


def ratios(results: Results) -> list[Record]:
    """Ours against the others, with and without each one's start-up, and two processes against one."""
    rows: list[Record] = []
    pairs = [(OURS[count], WIKIPEDIA2VEC[count]) for count in (1, 2)]
    pairs += [(OURS[1], other) for other in (MWPARSERFROMHELL, WIKIEXTRACTOR, BZ2)]
    for dump in results.dumps:
        found: list[tuple[str, Number, Number]] = []
        for ours, other in pairs if dump != EMPTY else ():
            gross, net = (results.times(dump, other, net=net, ours=ours) for net in (False, True))
            found.append((f"MB/s: {ours} / {other}", gross, net))
        found.append(("wikitext to paragraphs: ours / oracle", None, results.times_oracle(dump)))
        net = results.scaling(dump, net=True) if dump != EMPTY else None
        found.append(("wall seconds: 1 process / 2 processes", results.scaling(dump, net=False), net))
        for what, gross, net in found:
            if gross is not None or net is not None:
                rows.append({"ratio": what, "dump": dump, "with start-up": gross, "less start-up": net})
    return rows


def targets(results: Results) -> list[Record]:
    """Each target with what was found; `met` is None where it was not measured."""
    rows = []
    for dump in [name for name in (SMALL, LARGE) if name in results.dumps]:
        for kind, net in (("less start-up", True), ("with start-up", False)):
            times = results.times(dump, WIKIPEDIA2VEC[1], net=net)
            speed = results.speed(dump, OURS[1], net=net)
            rows.append(target(f"times wikipedia2vec's MB/s, {kind}", times, least=TIMES, dump=dump))
            rows.append(target(f"MB/s, {kind}", speed, least=SPEED, dump=dump))
        bare = divide(results.dumps[dump].megabytes, results.phase(dump, PHASES, *STEPS))
        times = divide(bare, results.speed(dump, WIKIPEDIA2VEC[1], net=True))
        what = "times wikipedia2vec's MB/s less start-up, phases without Beam"
        rows.append(target(what, times, least=TIMES, dump=dump))
        rows.append(target("MB/s, phases without Beam", bare, least=SPEED, dump=dump))
        what = "times the oracle's wikitext to paragraphs"
        rows.append(target(what, results.times_oracle(dump), least=TIMES_ORACLE, dump=dump))
    for layout in ("", "-multistream"):
        names = [f"{SMALL}-{copies}x{layout}" for copies in COPIES]
        for kind, net in (("less start-up", True), ("with start-up", False)):
            found = results.scaling(names[-1], net=net)
            rows.append(target(f"2 processes over 1, wall, {kind}", found, least=SCALING, dump=names[-1]))
        for program in OURS.values():
            sizes = [results.memory(name, program) for name in names]
            most = max((size for size in sizes if size is not None), default=None)
            grown, where = divide(sizes[-1], sizes[0]), f"{SMALL}-*x{layout}"
            rows.append(target(f"MB a worker, {program}", most, most=WORKER_MB, dump=where))
            rows.append(target(f"the same, {COPIES[-1]}x over {COPIES[0]}x", grown, most=FLAT, dump=where))
    return rows


def checks(results: Results) -> list[Record]:
    """Whether equal input gave equal bytes, with 1 and 2 processes, and repeated pages as many times the rows."""
    outputs = {name: [run["output"] for run in results.runs(name, *OURS.values())] for name in results.dumps}
    dumps = [{"name": dump.name, "copies": dump.copies} for dump in results.dumps.values()]
    return equal_outputs(dumps, outputs, SMALL)
