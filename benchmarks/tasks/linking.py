"""What linking costs: mentions a second with and without a model, the memory of the service, and its requests a second.

    python -m benchmarks.tasks.linking --mentions DIR --model DIR --tokenizer DIR

`link` and `serve` run as users run them. Memory besides the model is the service's resident size less that of a process
that has loaded the model and its tokenizer.
"""

import argparse
import contextlib
import http.client
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from benchmarks.harness.options import DATA, Options, absolute, count
from benchmarks.harness.report import Report, divide, median, progress, target
from benchmarks.harness.workloads import ROOT, Record, environment, kernel_size, run
from pipeline.lookup.contexts import CONTEXTS, TITLE_NUMBERS, WORD_NUMBERS, WORDS
from pipeline.lookup.mentions import CANDIDATES, LOOKUP
from pipeline.lookup.targets import NUMBERS, ROWS
from pipeline.lookup.title_vectors import VECTORS
from tasks.entities.documents.document import LeftOut, to_json
from tasks.entities.documents.reading import read_documents

MENTIONS, LOST, MEMORY = 2000, 10.0, 600.0  # a second, per cent, MB
LOOK_UPS = (LOOKUP, CANDIDATES, NUMBERS, ROWS)
CONTEXT_LOOK_UPS = (CONTEXTS, TITLE_NUMBERS, WORD_NUMBERS, WORDS, VECTORS)
WORKLOADS = "tasks.linking_workloads"
SIZES = {"resident": "VmRSS", "of files": "RssFile", "own": "RssAnon"}
COMMAND = """The command from the opening of the table on, in one process. "largest MB" is the largest size that it
ever had, with all that it imports."""
ENCODER = """`link` on documents, and the encoder alone on the same batches, which are ready. Table and model are open
in both. Globally, which is the default, a window is encoded again after each answer; locally it is encoded once."""
WAYS = {"local": ["--local"], "global": []}
SERVICE = """A request has the first line of a document, whose mentions the service finds. Own memory is what no file
lies behind."""
MAPPED = "Files that the service has mapped, in MB: their size, what of it is resident, and what is a copy of its own."


@dataclass(frozen=True)
class Service:
    """A running `serve`."""

    pid: int
    port: int


@contextlib.contextmanager
def served(arguments: Sequence[str], threads: int) -> Iterator[Service]:
    """The service, on a port that is free, until the block ends. Raises: ValueError where it does not start."""
    words = [sys.executable, "-m", "tasks.entities", "serve", "--port", "0", *arguments]
    with subprocess.Popen(
        words, env=environment(threads=threads), cwd=ROOT, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr
        try:
            told = process.stderr.readline()
            if not (found := re.search(r"^listening at http://.*:(\d+)$", told)):
                raise ValueError(f"the service does not start: {told}{process.stderr.read()}")
            yield Service(process.pid, int(found[1]))
        finally:
            process.terminate()


def ask(port: int, texts: Sequence[str], concurrency: int) -> tuple[float, int]:
    """The seconds in which so many clients at once have asked all texts, one a request; mentions in the answers.

    Raises: ValueError for an answer that is an error.
    """

    def client(number: int) -> int:
        connection, found = http.client.HTTPConnection("127.0.0.1", port, timeout=600), 0
        for text in texts[number::concurrency]:
            body = json.dumps({"documents": [{"text": text}]})
            connection.request("POST", "/link", body, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            answer = json.loads(reply.read())
            if reply.status != 200:
                raise ValueError(f"the service answers {reply.status}: {answer['error']}")
            found += sum(len(each["mentions"]) for each in answer["documents"])
        connection.close()
        return found

    with ThreadPoolExecutor(concurrency) as clients:
        begin = time.perf_counter()
        found = sum(clients.map(client, range(concurrency)))
        return time.perf_counter() - begin, found


def mapped(pid: int, folders: Sequence[Path]) -> list[Record]:
    """The files of folders that a process has mapped: their size, what of it is resident, and what is no file's."""
    return [
        {"file": Path(each.path).name, "MB": Path(each.path).stat().st_size / 1e6, "resident": each.rss / 1e6,
         "own": each.anonymous / 1e6}
        for each in psutil.Process(pid).memory_maps()
        if any(Path(each.path).is_relative_to(folder.resolve()) for folder in folders)
    ]  # fmt: skip


# What is measured


@dataclass(frozen=True)
class Asked:
    """What the services are asked by, and of what."""

    folders: Sequence[Path]  # of the look-ups
    method: Sequence[str]  # the arguments that name these and the model
    texts: Sequence[str]
    threads: int


def service_rows(asked: Asked, model: str, ways: Sequence[tuple[int, Sequence[str]]]) -> Iterator[Record]:
    """A row for each number of clients and further arguments; each is a service of its own, which has had a request."""
    for concurrency, more in ways:
        with served([*asked.method, *more], asked.threads) as service:
            ask(service.port, asked.texts[:1], 1)
            seconds, found = ask(service.port, asked.texts, concurrency)
            sizes = {f"{name}, MB": kernel_size(field, service.pid) for name, field in SIZES.items()}
            row = {"model": model, "clients": concurrency, "batches": "no" if more else "yes"}
            row |= {"requests": len(asked.texts), "mentions": found, "requests/s": len(asked.texts) / seconds}
            yield {**row, **sizes, "mapped": mapped(service.pid, asked.folders)}


def command_row(way: str, found: Record) -> Record:
    """The median round of `link`, by CPU time; a failure has none."""
    rows = found.get("rows", [])
    seconds, mentions = median(row["cpu_seconds"] for row in rows), median(row["mentions"] for row in rows)
    row: Record = {"mentions": way, "rounds": len(rows), "linked": mentions, "CPU s": seconds}
    return row | {"mentions/s": divide(mentions, seconds), "largest MB": found.get("largest MB")}


def encoder_rows(way: str, found: Record) -> list[Record]:
    """The median round of `link` in a way and of the encoder alone, and what the first loses, in per cent."""
    medians = {
        clock: {
            name: median(row[clock] for row in found.get("rows", []) if row["variant"] == name)
            for name in ("link", "encoder")
        }
        for clock in ("seconds", "cpu_seconds")
    }
    shares = {clock: divide(each["encoder"], each["link"]) for clock, each in medians.items()}
    return [
        {
            "way": way,
            "clock": clock,
            **each,
            "mentions/s": divide(found.get("mentions"), each["link"]),
            "lost, %": None if share is None else 100 * (1 - share),
        }
        for (clock, each), share in zip(medians.items(), shares.values(), strict=True)
    ]


def targets(
    commands: Sequence[Record], encoder: Sequence[Record], services: Sequence[Record]
) -> Iterator[Record]:
    """Mentions a second without a model, what is lost beside the encoder, and memory besides the model."""
    for row in commands:
        what = f"mentions a second without a model, mentions {row['mentions']}"
        yield target(what, row["mentions/s"], least=MENTIONS)
    for row in encoder:
        what = f"per cent lost to the encoder alone, {row['way']}, {row['clock']}"
        yield target(what, row["lost, %"], most=LOST)
    for row in services:
        if row["besides the model, MB"] is not None:
            what = f"MB of the service besides the model, {row['clients']} clients, batches: {row['batches']}"
            yield target(what, row["besides the model, MB"], most=MEMORY)


def checks(services: Sequence[Record], look_ups: Sequence[str]) -> Iterator[Record]:
    """Each service has mapped all look-ups, and holds no copy of what it has mapped."""
    for row in services:
        files = {each["file"]: each["own"] for each in row["mapped"]}
        passed = files.keys() >= set(look_ups) and not any(files.values())
        yield {
            "check": f"look-ups are mapped, model: {row['model']}, {row['clients']} clients",
            "passed": passed,
        }


def measure(options: argparse.Namespace, report: Report, documents: Path) -> None:
    """Measure all, and fill the report."""
    table, rounds = ["--mentions", str(options.mentions)], {"rounds": options.rounds}
    folders, look_ups = [options.mentions], [*LOOK_UPS]
    if options.contexts:
        table += ["--contexts", str(options.contexts)]
        folders, look_ups = [*folders, options.contexts], [*look_ups, *CONTEXT_LOOK_UPS]
    commands = []
    for way, more in (("given", []), ("found", ["--find-mentions"])):
        progress(f"link without a model, mentions {way}")
        found = run(WORKLOADS, "link", {"arguments": [*table, *more, str(documents)], **rounds}, threads=1)
        report.note_failure("link", found)
        commands.append(command_row(way, found))
    texts = [json.loads(line)["text"].partition("\n")[0] for line in documents.open(encoding="utf-8")]
    asked = Asked(folders, table, [texts[n % len(texts)] for n in range(options.requests)], options.threads)
    progress("services")
    services, encoder = list(service_rows(asked, "none", [(1, ()), (8, ())])), list[Record]()
    size: float | None = None
    if options.model:
        method = [*table, "--model", str(options.model), "--tokenizer", str(options.tokenizer)]
        ways: list[tuple[int, Sequence[str]]] = [(1, ()), (8, ()), (8, ("--tokens-per-batch", "1"))]
        services += service_rows(replace(asked, method=method), options.model.name, ways)
        for way, more in WAYS.items():
            progress(f"the encoder, {way}")
            arguments = {"arguments": [*method, *more, str(documents)], "threads": options.threads, **rounds}
            found = run(WORKLOADS, "encoder", arguments, threads=options.threads)
            report.note_failure(f"link, {way}", found)
            encoder += encoder_rows(way, found)
            report.measured[f"encoder, {way}"] = found
        found = run(
            WORKLOADS, "loaded", {"model": str(options.model), "tokenizer": str(options.tokenizer)}, threads=1
        )
        report.note_failure("loading", found)
        size, report.measured["loaded"] = found.get("MB"), found
    for row in services:
        with_model = size is not None and row["model"] != "none"
        row["besides the model, MB"] = row["resident, MB"] - size if with_model else None
    report.add("Targets", targets(commands, encoder, services))
    report.add("Without a model", commands, COMMAND)
    report.add("Beside the encoder", encoder, ENCODER)
    report.add("The service", [{k: v for k, v in row.items() if k != "mapped"} for row in services], SERVICE)
    report.add("Mapped", services[-1]["mapped"], MAPPED)
    report.add("Checks", checks(services, look_ups))


def main() -> None:
    parser = Options("tasks.linking", __doc__, quick="20 documents, 20 requests, one round")
    parser.take("rounds")
    add = parser.add_argument
    add("--mentions", type=absolute, required=True, help="folder of BuildMentionTable")
    add("--contexts", type=absolute, help="folder of BuildContexts; without one they have no say")
    add("--model", type=absolute, help="folder of pretraining; without one the rest is measured")
    add("--tokenizer", type=absolute, help="the model's tokenizer")
    add(
        "--documents", type=absolute, default=DATA / "entity-linking/wned-wiki.jsonl", help="documents a line"
    )
    add("--requests", type=count, default=200, help="to each service (default: %(default)s)")
    add("--threads", type=count, default=1, help="of torch (default: %(default)s)")
    options = parser.read()
    options.requests = 20 if options.quick else options.requests
    report = Report("What linking costs", options, ("torch", "marisa-trie", "pyarrow", "fastapi", "uvicorn"))
    with tempfile.TemporaryDirectory() as folder:
        documents = Path(folder, "documents.jsonl")
        left_out = LeftOut()
        read = read_documents(options.documents, left_out)[: 20 if options.quick else None]
        documents.write_text("".join(json.dumps(to_json(each)) + "\n" for each in read), encoding="utf-8")
        report.head.append(
            f"{len(read):,} documents; {len(left_out.mentions):,} mentions with a wrong place are left out, and "
            f"{left_out.documents.total():,} documents.\n"
        )
        measure(options, report, documents)
    report.finish()


if __name__ == "__main__":
    main()
