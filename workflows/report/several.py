"""Several runs side by side: their figures, what differs in their run files, and their curves in the same charts.

luke report WORKDIR              where the report of a work directory lies
luke report WORKDIR OTHER ...    a page that lays their figures side by side
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from pipeline import storage
from pipeline.look import flat
from workflows.report import training_curves
from workflows.report.charts import COMPARED, PRETRAIN, Chart, by_step, chart
from workflows.report.drawing import SHARE, Axis, Series
from workflows.report.overview import amount, headline
from workflows.report.rendering import render
from workflows.run.file import Run

PAGE, RESULTS = "index.html", "results.json"
_ENDS = ("value", "low", "high")
# The charts: which records, the name of a figure in them, its title, its axis, how its numbers are written.
_CURVES = (
    ("evaluations", "known_entity_top_1", "Known entities named right on held-out pages", SHARE, "{:.1%}"),
    ("evaluations", "masked_word_accuracy", "Masked words predicted right on held-out pages", SHARE, "{:.1%}"),
    ("log", "masked_entity_loss", "Loss of masked entities in training", ",.2~f", "{:.3f}"),
    ("log", "masked_word_loss", "Loss of masked words in training", ",.2~f", "{:.3f}"),
)


@dataclass(frozen=True)
class Reported:
    """A run that has a report: its name, the report's figures, and its values by their full names."""

    name: str
    content: Mapping[str, Any]
    speeds: Mapping[str, Any]
    settings: Mapping[str, str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `luke report`."""
    parser = argparse.ArgumentParser(prog="luke report", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "workdirs", nargs="+", metavar="WORKDIR", help="a work directory; of one alone the place of its report is told"
    )
    parser.add_argument("--output", default="comparison.html", help="the page of several (%(default)s)")
    given = parser.parse_args(arguments)
    try:
        if len(given.workdirs) == 1:
            print(storage.join(report_folder(given.workdirs[0]), PAGE))
            return 0
        page = comparison([read(workdir) for workdir in given.workdirs])
        storage.write_bytes(given.output, page.encode("utf-8", "replace"))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(given.output)
    return 0


def report_folder(workdir: str) -> str:
    """The newest finished report of a work directory. Raises: ValueError where there is none."""
    if not os.path.isdir(workdir):
        raise ValueError(f"{workdir}: no such folder; wanted a work directory")
    folder = storage.finished_folder(workdir, "Report")
    if storage.file_size(storage.join(folder, PAGE)) is None:
        raise ValueError(f"{folder}: its {PAGE} is gone; run Report again")
    return folder


def read(workdir: str) -> Reported:
    """The figures of a work directory. Raises: ValueError without a report of today's form."""
    folder = report_folder(workdir)
    content = json.loads(storage.read_bytes(storage.join(folder, RESULTS)))
    if "funnel" not in content:
        raise ValueError(f"{folder}: found a report of an older version; run Report again")
    folders = {row["stage"]: storage.join(workdir, row["folder"]) for row in content["stages"]}
    speeds = {run: training_curves.speed(folders[run]) for run in content["training"] or ()}
    name = Path(os.path.abspath(workdir)).name
    return Reported(name, content, speeds, shown_settings(Run.read(workdir)))


def comparison(runs: Sequence[Reported]) -> str:
    """The page that lays runs side by side."""
    names = labels([run.name for run in runs])
    settings = beside([run.settings for run in runs])
    return render(
        "several.html",
        [],
        names=names,
        figures=beside([dict(figures(run)) for run in runs]),
        differing={name: of for name, of in settings.items() if len({*of}) > 1 and name != "workdir"},
        charts={name: drawn for name, drawn in curves(names, runs) if drawn},
    )


def labels(names: Sequence[str]) -> list[str]:
    """The names, those that come again with a number."""
    earlier = [names[:at].count(name) for at, name in enumerate(names)]
    return [f"{name} ({count + 1})" if count else name for name, count in zip(names, earlier, strict=True)]


def beside(columns: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    """The values of all columns by their names; empty where a column lacks one."""
    names = dict.fromkeys(chain.from_iterable(columns))
    return {name: [column.get(name, "") for column in columns] for name in names}


def figures(run: Reported) -> Iterator[tuple[str, str]]:
    """The figures of a run as texts, by what they are: the overview's, the corpus, held-out pages, linking, tasks."""
    content = run.content
    for each in headline(content, run.speeds):
        value, low, high = ("" if each[name] is None else amount(each[name], each["unit"]) for name in _ENDS)
        yield each["title"], f"{value} ({low} to {high})" if low else value
    for group in content["funnel"]:
        yield from ((step["name"], f"{step['count']:,}") for step in group["steps"])
    for group, row in (content["training"] or {}).get(PRETRAIN, {}).get("held_out", {}).items():
        for measure in ("accuracy", *COMPARED):
            if measure in row:
                name = f"{group.replace('_', ' ')} right, {COMPARED.get(measure, ['model'])[0]}"
                yield name, f"{row[measure]:.1%} of {row['count']:,}"
    for scored in (content["linking"] or {}).get("sets", ()):
        for method, scores in scored["methods"].items():
            overall = scores["disambiguation"]["overall"]
            right = f"{overall['accuracy']:.1%} of {overall['mentions']:,}"
            yield f"linked right, {scored['name']}, {method}", right
    for cell in content["compared"]["experiments"]:
        for split, scores in cell["scores"].items():
            name = f"{cell['task'].replace('_', ' ')}, {cell['variant']}, seed {cell['seed']}, {split}"
            if "f1" in scores:
                yield f"{name}: F1", f"{scores['f1']:.1f}" + " (example data)" * cell["is_example"]


def curves(names: Sequence[str], runs: Sequence[Reported]) -> Iterator[tuple[str, Chart | None]]:
    """A chart for each figure of pretraining, with a line for each run that has it."""
    for records, figure, title, form, number in _CURVES:
        found = ((run.content["training"] or {}).get(PRETRAIN, {}).get(records, ()) for run in runs)
        logs = dict(zip(names, found, strict=True))
        places = {name: place for place, name in enumerate(logs)}
        series: list[Series] = [each._replace(colour=places[each.name]) for each in by_step(logs, figure)]
        if series:
            ends = [f"{each.name} {number.format(each.points[-1][1])}" for each in series]
            axis = Axis("right" if form == SHARE else "loss", form, from_zero=form == SHARE)
            yield figure, chart(f"{title}: {', '.join(ends)}", series, axis, number)


def shown_settings(run: Run) -> dict[str, str]:
    """The values of a run by their full names, as texts: of absolute paths, where things lie is nobody's business."""
    texts = (
        (name.replace(".recipe.", "."), ", ".join(map(str, value)) if isinstance(value, tuple) else str(value))
        for name, value in flat("", asdict(run))
    )
    return {name: os.path.basename(os.path.normpath(text)) if os.path.isabs(text) else text for name, text in texts}


if __name__ == "__main__":
    sys.exit(main())
