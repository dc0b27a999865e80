"""The costs of linking: mentions a second with and without a model, the service's memory, and its requests a second.

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
from pathlib import Path

from benchmarks.harness.options import DATA, Options, absolute, count
from benchmarks.harness.report import Report, divide, median, progress
from benchmarks.harness.workloads import ROOT, Record, environment, kernel_size, run
from tasks.linking.documents.document import Skipped, to_json
from tasks.linking.documents.reading import read_documents

WORKLOADS = "tasks.linking_workloads"
SIZES = {"resident": "VmRSS", "of files": "RssFile", "own": "RssAnon"}
COMMAND = """The command from the opening of the table on, in one process. "largest MB" is the largest size that it
ever had, with all that it imports. Globally a window is encoded again after each answer; locally it is encoded once."""
SERVICE = """A request has the first line of a document, whose mentions the service finds. Own memory is what no file
lies behind."""


@contextlib.contextmanager
def served(arguments: Sequence[str], threads: int) -> Iterator[tuple[int, int]]:
    """Run the service until the block ends: its process and a port that was free. Raises: ValueError if it fails."""
    words = [sys.executable, "-m", "tasks.linking", "serve", "--port", "0", *arguments]
    own = environment(threads=threads)
    with subprocess.Popen(words, env=own, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        try:
            told = process.stderr.readline()
            if not (found := re.search(r"^listening at http://.*:(\d+)$", told)):
                raise ValueError(f"the service does not start: {told}{process.stderr.read()}")
            yield process.pid, int(found[1])
        finally:
            process.terminate()


def ask(port: int, texts: Sequence[str], concurrency: int) -> tuple[float, int]:
    """Return the seconds in which so many clients have asked all texts, one a request; mentions in the answers.

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


def service_row(
    model: str, method: Sequence[str], texts: Sequence[str], threads: int, clients: int, *more: str
) -> Record:
    """Return what so many clients find of a service of its own, which has had a request."""
    progress(f"the service, model: {model}, {clients} clients")
    with served([*method, *more], threads) as (process, port):
        ask(port, texts[:1], 1)
        seconds, found = ask(port, texts, clients)
        sizes = {f"{name}, MB": kernel_size(field, process) for name, field in SIZES.items()}
    row = {"model": model, "clients": clients, "batches": "no" if more else "yes", "requests": len(texts)}
    return {**row, "mentions": found, "requests/s": len(texts) / seconds, **sizes}


def command_row(way: str, found: Record) -> Record:
    """Return the median round of `link`, by CPU time; a failure has none."""
    rows = found.get("rows", [])
    seconds, mentions = median(row["cpu_seconds"] for row in rows), median(row["mentions"] for row in rows)
    row: Record = {"mentions": way, "rounds": len(rows), "linked": mentions, "CPU s": seconds}
    return row | {"mentions/s": divide(mentions, seconds), "largest MB": found.get("largest MB")}


def measure(options: argparse.Namespace, report: Report, documents: Path) -> None:
    """Measure all, and fill the report."""
    table = ["--mentions", str(options.mentions)]
    if options.contexts:
        table += ["--contexts", str(options.contexts)]
    own = {"model": str(options.model), "tokenizer": str(options.tokenizer)}
    method = [*table, "--model", own["model"], "--tokenizer", own["tokenizer"]]
    ways = {"given": table, "found": [*table, "--find-mentions"]}
    if options.model:
        ways |= {"given, model, local": [*method, "--local"], "given, model, global": method}
    commands = []
    for way, arguments in ways.items():
        progress(f"link, mentions {way}")
        given = {"arguments": [*arguments, str(documents)], "rounds": options.rounds}
        found = run(WORKLOADS, "link", {**given, "threads": options.threads}, threads=options.threads)
        report.note_failure(f"link, {way}", found)
        commands.append(command_row(way, found))
    lines = [json.loads(line)["text"].partition("\n")[0] for line in documents.open(encoding="utf-8")]
    asked = [lines[n % len(lines)] for n in range(options.requests)], options.threads
    services, size = [service_row("none", table, *asked, clients) for clients in (1, 8)], None
    if options.model:
        for clients, more in ((1, ()), (8, ()), (8, ("--tokens-per-batch", "1"))):
            services.append(service_row(options.model.name, method, *asked, clients, *more))
        found = run(WORKLOADS, "loaded", own, threads=1)
        report.note_failure("loading", found)
        size = found.get("MB")
    for row in services:
        with_model = size is not None and row["model"] != "none"
        row["besides the model, MB"] = row["resident, MB"] - size if with_model else None
    report.add("The command", commands, COMMAND)
    report.add("The service", services, SERVICE)


def main() -> None:
    quick = "20 documents, 20 requests, one round"
    parser = Options("tasks.linking", __doc__, "rounds", "mentions", quick=quick)
    add = parser.add_argument
    add("--contexts", type=absolute, help="folder of BuildContexts; without one they have no say")
    add("--model", type=absolute, help="folder of pretraining; without one the rest is measured")
    add("--tokenizer", type=absolute, help="the model's tokenizer")
    gold = DATA / "entity-linking/wned-wiki.jsonl"
    add("--documents", type=absolute, default=gold, help="documents a line")
    add("--requests", type=count, default=200, help="to each service (default: %(default)s)")
    add("--threads", type=count, default=1, help="of torch (default: %(default)s)")
    options = parser.read()
    options.requests = 20 if options.quick else options.requests
    report = Report("What linking costs", options, ("torch", "marisa-trie", "pyarrow", "fastapi", "uvicorn"))
    with tempfile.TemporaryDirectory() as folder:
        documents, left_out = Path(folder, "documents.jsonl"), Skipped()
        read = read_documents(options.documents, left_out)[: 20 if options.quick else None]
        documents.write_text("".join(json.dumps(to_json(each)) + "\n" for each in read), encoding="utf-8")
        wrong = f"{len(left_out.mentions):,} mentions with a wrong place and {left_out.documents.total():,} documents"
        report.head.append(f"{len(read):,} documents; {wrong} are left out.\n")
        measure(options, report, documents)
    report.finish()


if __name__ == "__main__":
    main()
