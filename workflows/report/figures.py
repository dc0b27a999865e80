"""The report's figures, as plotly's data: plain numbers and names, drawn and coloured by the page.

A trace's `meta.colour` is a number of the page's palette, which has one for light and one for dark. Titles are escaped
here, since plotly takes some tags in texts for its own.
"""

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

POINTS = 2000  # of a line
RUNS = {"Pretrain": 0, "PretrainRoberta": 1}  # the colour of each
# What is compared in the held-out figures, with the colour and the dashes of each: lines can lie on each other.
COMPARED = {
    "top_1": ("model", 0, "solid"),
    "title_top_1": ("title", 1, "longdash"),
    "commonest_top_1": ("commonest", 2, "dash"),
    "most_frequent_top_1": ("most frequent", 3, "dot"),
}
FROM_ZERO = {"rangemode": "tozero"}  # an axis
SHARES = {"tickformat": ".0%", **FROM_ZERO}
METHODS = {"prior": 2, "local": 1, "global": 0}  # of linking: the colour of each
LARGEST = 22  # pixels of a point that stands for all mentions
Figure = dict[str, Any]


def figures(content: Mapping[str, Any], speeds: Mapping[str, Mapping[str, Any]]) -> dict[str, Figure]:
    """All figures by name; what there are no data for is left out.

    Args:
        content: the report's content.
        speeds: the throughput of each pretraining.
    """
    made: dict[str, Figure] = {}
    if corpus := content["corpus"]:
        made["rank-frequency"] = rank_frequency(corpus["entities"]["rank_frequency"])
    if training := content["training"]:
        logs, held_out = (
            {run: record[of] for run, record in training.items()} for of in ("log", "evaluations")
        )
        for what in ("word", "entity"):
            for measure in ("loss", "accuracy"):
                made[f"{what}-{measure}"] = curves(logs, f"masked_{what}_{measure}", measure)
        made["held-out-words"] = curves(held_out, "masked_word_accuracy", "accuracy", markers=True)
        for group in ("masked_entity", "known_entity"):
            made[f"held-out-{group.replace('_', '-')}"] = beside_baselines(held_out, group)
    if linking := content["linking"]:
        made["reliability"] = reliability(linking["sets"])
    steps = {run: speed["steps"] for run, speed in speeds.items()}
    made["throughput"] = curves(
        steps, "words_per_second", "words a second", axis={**FROM_ZERO, "tickformat": ",.3~s"}
    )
    made["fine-tuning"] = fine_tuning(content["cells"])
    return {name: figure for name, figure in made.items() if figure["data"]}


def rank_frequency(points: Sequence[Sequence[Any]]) -> Figure:
    """Links of each entity by its rank, both on logarithmic axes."""
    trace = {
        "type": "scatter",
        "mode": "lines+markers" if len(points) < 50 else "lines",
        "x": [rank for rank, _, _ in points],
        "y": [count for _, count, _ in points],
        "text": [html.escape(title) for _, _, title in points],
        "hovertemplate": "%{text}<br>rank %{x:,}, %{y:,} links<extra></extra>",
        "meta": {"colour": 0},
    }
    log = {"type": "log", "dtick": 1}
    return figure([trace] if points else [], "rank", "links", xaxis=log, yaxis=log)


def curves(
    logs: Mapping[str, Sequence[Mapping[str, Any]]],
    name: str,
    measure: str,
    *,
    markers: bool = False,
    axis: Mapping[str, Any] | None = None,
) -> Figure:
    """A figure of each run by step."""
    traces = [
        line([(row["step"], row.get(name)) for row in log], run, RUNS.get(run, 0), markers=markers)
        for run, log in logs.items()
    ]
    return figure(traces, "step", measure, yaxis=SHARES if measure == "accuracy" else axis)


def beside_baselines(runs: Mapping[str, Sequence[Mapping[str, Any]]], group: str) -> Figure:
    """The share of held-out entities that LUKE and each baseline get right at the first place, by step."""
    lines = runs.get("Pretrain", [])
    traces = []
    for name, (title, colour, dash) in COMPARED.items():
        trace = line(
            [(row["step"], row.get(f"{group}_{name}")) for row in lines], title, colour, markers=True
        )
        traces.append({**trace, "line": {"dash": dash}})
    return figure(traces, "step", "right at the first place", yaxis=SHARES)


def fine_tuning(cells: Iterable[Mapping[str, Any]]) -> Figure:
    """F1 on dev by epoch, a line for each finished cell; the page shows the lines of one task at a time."""
    variants: dict[str, int] = {}
    traces = []
    for cell in cells:
        if epochs := cell["metrics"].get("epochs"):
            colour = variants.setdefault(cell["variant"], len(variants))
            points = [(row["epoch"], row["dev_f1"]) for row in epochs]
            trace = line(points, f"{cell['variant']}, seed {cell['seed']}", colour, markers=True)
            trace["meta"] |= {"choice": cell["task"].replace("_", " ")}
            traces.append(trace)
    layout = {"meta": {"choice": "Task"}}
    return figure(traces, "epoch", "F1 on dev", yaxis=SHARES, xaxis={"tickformat": "d"}, layout=layout)


def reliability(sets: Iterable[Mapping[str, Any]]) -> Figure:
    """Accuracy of linked mentions by their probability, a line for each method; the page shows one set at a time.

    A point's area is that of its share of the mentions. Sets whose probabilities were not counted are left out.
    """
    traces: list[Figure] = []
    for each in sets:
        counted = {
            method: [each for each in figures["calibration"]["bins"] if each["mentions"]]
            for method, figures in each["methods"].items()
            if figures.get("calibration")
        }
        if not any(counted.values()):
            continue
        meta = {"choice": each["name"]}
        even = line([(0, 0), (1, 1)], "as often as it says", 4)
        traces.append({**even, "line": {"dash": "dot"}, "hoverinfo": "skip", "meta": even["meta"] | meta})
        for method, bins in counted.items():
            trace = line(
                [(each["confidence"], each["accuracy"]) for each in bins], method, METHODS.get(method, 3)
            )
            counts = [each["mentions"] for each in bins]
            sizes = [max(3.0, LARGEST * math.sqrt(count / sum(counts))) for count in counts]
            trace |= {"mode": "lines+markers", "marker": {"size": sizes}, "customdata": counts}
            trace["hovertemplate"] = "%{customdata:,} mentions, sure %{x:.1%}, right %{y:.1%}<extra></extra>"
            trace["meta"] |= meta
            traces.append(trace)
    axis: Figure = {**SHARES, "range": [0, 1.02]}
    layout = {"meta": {"choice": "Documents"}}
    return figure(traces, "mean probability", "right", xaxis=axis, yaxis=axis, layout=layout)


def line(
    points: Iterable[tuple[float, float | None]], name: str, colour: int, *, markers: bool = False
) -> Figure:
    """A line through the points that have a value, at most so many of them."""
    known = [(x, y) for x, y in points if y is not None and math.isfinite(y)]
    known = known[:: math.ceil(len(known) / POINTS) or 1]
    mode = "lines+markers" if markers or len(known) < 2 else "lines"
    data = {"x": [x for x, _ in known], "y": [y for _, y in known]}
    return {"type": "scatter", "mode": mode, "name": html.escape(name), **data, "meta": {"colour": colour}}


def figure(
    traces: Sequence[Figure],
    x: str,
    y: str,
    *,
    xaxis: Mapping[str, Any] | None = None,
    yaxis: Mapping[str, Any] | None = None,
    layout: Mapping[str, Any] | None = None,
) -> Figure:
    """Traces that have points, with their axes."""
    shown = [trace for trace in traces if len(trace["x"])]
    axes = {
        "xaxis": {"title": {"text": x}, **(xaxis or {})},
        "yaxis": {"title": {"text": y}, **(yaxis or {})},
    }
    return {"data": shown, "layout": {**axes, "showlegend": len(shown) > 1, **(layout or {})}}
