"""The costs of linking: mentions a second, with and without a model.

    python -m benchmarks.tasks.linking --mentions DIR --model DIR --tokenizer DIR

`link` runs as users run it. `benchmarks.tasks.serving` measures the service.
"""

import argparse
import json
import tempfile
from pathlib import Path

from benchmarks.harness.options import DATA, Options, absolute, count
from benchmarks.harness.report import Report, divide, median, progress
from benchmarks.harness.workloads import Record, run
from tasks.linking.documents.document import Skipped, to_json
from tasks.linking.documents.reading import read_documents

WORKLOADS = "tasks.linking_workloads"
COMMAND = """The command from the opening of the table on, in one process. "largest MB" is the largest size that it
ever had, with all that it imports. Globally a window is encoded again after each answer; locally it is encoded once."""


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
    method = [*table, "--model", str(options.model), "--tokenizer", str(options.tokenizer)]
    ways = {"given": table, "found": [*table, "--find-mentions"]}
    if options.model:
        ways |= {"given, model, local": method, "given, model, global": [*method, "--global"]}
    commands = []
    for way, arguments in ways.items():
        progress(f"link, mentions {way}")
        given = {"arguments": [*arguments, str(documents)], "rounds": options.rounds}
        found = run(WORKLOADS, "link", {**given, "threads": options.threads}, threads=options.threads)
        report.note_failure(f"link, {way}", found)
        commands.append(command_row(way, found))
    report.add("The command", commands, COMMAND)


def main() -> None:
    parser = Options("tasks.linking", __doc__, "rounds", "mentions", quick="20 documents, one round")
    add = parser.add_argument
    add("--contexts", type=absolute, help="folder of BuildContexts; without one they have no say")
    add("--model", type=absolute, help="folder of pretraining; without one the rest is measured")
    add("--tokenizer", type=absolute, help="the model's tokenizer")
    gold = DATA / "entity-linking/wned-wiki.jsonl"
    add("--documents", type=absolute, default=gold, help="documents a line")
    add("--threads", type=count, default=1, help="of torch (default: %(default)s)")
    options = parser.read()
    report = Report("What linking costs", options, ("torch", "marisa-trie", "pyarrow"))
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
