"""The report of `corpus.py` for reading."""

from typing import Any

from report import table

Record = dict[str, Any]

_HEAD = """MB are 10^6 bytes. Seconds of a stage are its own (`run.json`); CPU seconds, sizes and processes are sampled
from outside, so that short stages may lack them. `main` is luigi's process, `jvm` Spark, `spark worker` its Python,
`runner` and `worker` Beam's; a column holds the largest process of its kind while the stage ran, `all PSS` the largest
sum of all.
"""
_STAGES = """Two commands, each with its start-up: `luigi --module workflows BuildMentionTable` (the first five stages),
then `luigi --module workflows BuildSequences`. A row is a row of a table that is read or written; links count where
they are what is counted. Medians over the runs.
"""
_GROWTH = """Made of the real pages, 1, 2 and 4 times under new titles and ids; links and redirects point into their own
copy, so that titles, redirects, entities, names and the rows of every table grow as the dump does.
"""
_SPEED = """CPU seconds of one process, every so many-th page. LUKE's method is told anew in `luke_method.py`; the
sentences are the same, and their splitting is added to its seconds. Its tokenizer remembers every word, so it is shown
twice: with an empty memory (words still to be learnt), and on pages that it has just seen (every word in its cache).
Left out in its favour: LMDB, redirects, TFRecords.
"""
_LUKE = """LUKE's entity counting and page processing, told anew from the public code (studio-ousia/luke), over the
database that wikipedia2vec 2.0 makes of the dump. `1.x` is what the paper's time had, by its public code.
"""


def markdown(report: Record) -> str:
    """The whole report."""
    facts = report["environment"]
    state = ", with changes that are not committed" if facts["changed"] else ""
    versions = dict(facts["versions"])
    versions |= {
        told["name"]: "slow tokenizer"
        for told in report["sequences"].get("slow", ())
        if told.get("name", "").startswith("transformers")
    }
    lines = [
        f"# From the dump to the shards, {report['date']}\n",
        f"`{report['command']}`\n",
        f"Commit {facts['commit'] or 'unknown'}{state}. {report['processes']} processes.",
        "Machine: " + "; ".join(f"{key} {value}" for key, value in facts["machine"].items()) + ".",
        "Versions: " + "; ".join(f"{key} {value}" for key, value in versions.items()) + ".\n",
        _HEAD,
        "## Targets\n",
        table(report["targets"]),
        f"## Stages on {report['dumps'][0]['name']}\n",
        _STAGES,
        table(report["stages"]),
        "## Growth\n",
        _GROWTH,
        table(report["growth"]),
        "Largest size of a process of each kind over the whole run:\n",
        table(report["memory"]),
        "## Sequences: speed\n",
        _SPEED,
        table(report["sequence speed"]),
        "## Mention counting: speed\n",
        table(report["mention counting"]),
        "## The full English dump\n",
        table(report["full dump"]),
        *(f"- {line}" for line in report["arithmetic"]),
        "",
        "## LUKE's own builder\n",
        _LUKE,
    ]
    for name, found in report["luke"].items():
        lines += _luke(name, found, report["differences"].get(name, []))
    lines += ["## Runs\n", table(_runs(report)), "## Checks\n", table(report["checks"])]
    lines += ["## Dumps\n", table(report["dumps"]), *_failures(report)]
    if report["notes"]:
        lines += ["## Notes\n", *(f"- {note}" for note in report["notes"]), ""]
    return "\n".join(lines)


def _luke(name: str, found: Record, differences: list[Record]) -> list[str]:
    if found["failure"]:
        return [f"### {name}\n", f"Not measured: {found['failure']}\n"]
    return [
        f"### {name}\n",
        f"{found['pages']:,} pages and {found['redirects']:,} redirects in the database.\n",
        table(differences),
        "Entities among the most linked:\n",
        table(found["overlap"]),
        "What becomes of LUKE's links in its entity counting:\n",
        table(found["kinds"]),
        "From LUKE's links that end at pages to ours, each cause with all before it:\n",
        table(found["steps"]),
    ]


def _runs(report: Record) -> list[Record]:
    return [
        {
            "dump": run["dump"],
            "profile": run["profile"],
            "wall s": run["wall_seconds"],
            "CPU s": run["cpu_seconds"],
            "others' cores": run["other_cores"],
            "failure": run["failure"],
        }
        for run in report["runs"]
    ]


def _failures(report: Record) -> list[str]:
    parts = {"sequences": report["sequences"], "mention counting": report["mention_counting"]}
    parts |= {
        f"LUKE's method {number}": told for number, told in enumerate(report["sequences"].get("slow", ()))
    }
    failed = [f"- {name}: {part['failure']}" for name, part in parts.items() if part.get("failure")]
    return ["## Failures\n", *failed, ""] if failed else []
