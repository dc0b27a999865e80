"""The results of `benchmarks/tasks.py` for reading."""

from typing import Any

Record = dict[str, Any]


def row(record: Record) -> Record:
    """A cell for reading; scores in per cent."""
    cell, metrics = record["cell"], record.get("metrics", {})
    hyper = record.get("hyperparameters", {}) | cell["changes"]
    starts = {"entities_at_random": ", entities at random", "entities_from_titles": ", entities from titles"}
    table = {
        "data": cell["data"],
        "variant": cell["variant"] + "".join(text for name, text in starts.items() if cell.get(name)),
        "seed": cell["seed"],
        "train used": cell["shares"][0],
        "rates": f"{hyper.get('learning_rate', 0):g}, {hyper.get('head_learning_rate', 0):g}",
        "batch": hyper.get("batch_size", "-"),
        "epochs": f"{record.get('kept_epoch', '-')} of {hyper.get('epochs', '-')}",
        "dev F1": percent(metrics.get("dev", {}).get("f1")),
    }
    if not cell["is_search"]:
        test = metrics.get("test", {})
        names = {
            "P": "precision",
            "R": "recall",
            "EM": "exact_match",
            "F1": "f1",
            "macro-F1": "semeval_macro_f1",
        }
        table |= {f"test {short}": percent(test.get(name)) for short, name in names.items()}
    return table | {
        "CPU minutes": round(record.get("cpu_seconds", 0) / 60, 1),
        "failure": record.get("failure", ""),
    }


def percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f}"


def markdown(report: Record) -> str:
    """The report for reading."""
    from report import table

    facts, records = report["environment"], report["cells"]
    minutes = sum(record.get("cpu_seconds", 0) for record in records) / 60
    lines = [
        f"# Fine-tuning with real weights, {report['date']}\n",
        f"`{report['command']}`\n",
        "Machine: " + "; ".join(f"{key} {value}" for key, value in facts["machine"].items()) + ".",
        "Versions: " + "; ".join(f"{key} {value}" for key, value in facts["versions"].items()) + ".",
        f"Commits: {', '.join(sorted({record['commit'] for record in records}))}.",
        f"{len(records)} cells, {minutes:.0f} CPU minutes in all; a cell has one thread.\n",
    ]
    for title, is_search in (("Cells", False), ("Search, by dev alone", True)):
        chosen = [row(record) for record in records if record["cell"]["is_search"] == is_search]
        lines += [f"## {title}\n", table(chosen)]
    lines += ["## Targets\n", table(report["targets"])]
    if report["notes"]:
        lines += ["## Notes\n", *(f"- {note}" for note in report["notes"]), ""]
    return "\n".join(lines)
