"""The report's charts: each a finding in words, a picture, and its numbers as a table."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from markupsafe import Markup

from workflows.report.drawing import SHARE, Axis, Series, drawn_lines

POINTS = 2000  # of a line
TABLE_ROWS = 24  # of a series in a chart's table
PRETRAIN = "Pretrain"
RUNS = {PRETRAIN: 0, "PretrainRoberta": 1}  # the colour of each
# What is compared in the held-out figures, with the colour and the dashes of each: lines can lie on each other.
COMPARED = {
    "top_1": ("model", 0, (1, 0)),
    "title_top_1": ("equal titles", 1, (8, 4)),
    "commonest_top_1": ("commonest", 2, (5, 3)),
}
LINKERS = ("local", "contexts", "prior")  # the first that a set has stands for the linker
METHODS = {"prior": 2, "contexts": 3, "local": 1, "global": 0}  # of linking: the colour of each
Line = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Chart:
    """A chart of the page: `title` is what it shows in words, `note` how to read it."""

    title: str
    svg: Markup
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def charts(content: Mapping[str, Any]) -> dict[str, Chart]:
    """All charts of the report's content by name; what there are no data for is left out."""
    made: dict[str, Chart | None] = {}
    if training := content["training"]:
        records = ("log", "evaluations")
        logs, held_out = ({run: record[of] for run, record in training.items()} for of in records)
        for what in ("word", "entity"):
            made[f"{what}-loss"] = losses(logs, what)
        made["held-out-words"] = held_out_words(held_out)
        made["held-out-known-entity"] = known_entities(held_out.get(PRETRAIN, ()))
    if linking := content["linking"]:
        for number, each in enumerate(linking["sets"]):
            made[f"reliability-{number}"] = reliability(each)
    return {name: chart for name, chart in made.items() if chart}


def losses(logs: Mapping[str, Iterable[Line]], what: str) -> Chart | None:
    """The training loss of masked words or entities by step."""
    series = list(by_step(logs, f"masked_{what}_loss"))
    if not series:
        return None
    (start, first), (end, last) = series[0].points[0], series[0].points[-1]
    things = "words" if what == "word" else "entities"
    title = f"Masked {things}: the loss goes from {first:.2f} at step {start:,} to {last:.2f} at step {end:,}"
    note = "Each point is the mean since the line of the log before."
    return chart(title, series, Axis("loss", ",.2~f"), "{:.3f}", note)


def held_out_words(runs: Mapping[str, Iterable[Line]]) -> Chart | None:
    """The share of masked words of held-out pages that are predicted right, by step."""
    series = [each._replace(has_points=True) for each in by_step(runs, "masked_word_accuracy")]
    if not series:
        return None
    title = f"{series[0].points[-1][1]:.1%} of the masked words on held-out pages are predicted right"
    return chart(title, series, Axis("right", SHARE, from_zero=True), "{:.1%}")


def known_entities(evaluations: Sequence[Line]) -> Chart | None:
    """The share of known held-out entities that the model and each baseline name right, by step."""
    names = {name: f"known_entity_{name}" for name in COMPARED}
    points = {name: known_points((row["step"], row.get(key)) for row in evaluations) for name, key in names.items()}
    series = [Series(*COMPARED[name], of, has_points=True) for name, of in points.items() if of]
    if not series:
        return None
    model, *others = ((each.points[-1][1], each.name) for each in series)
    ends = [f"{name} {share:.1%}" for share, name in (model, *sorted(others)[-1:])]
    note = "Equal titles: the page whose title is the mention. Commonest: what its text most often links to."
    axis = Axis("right", SHARE)
    return chart(f"Known entities named right: {', '.join(ends)}", series, axis, "{:.1%}", note)


def reliability(scored: Mapping[str, Any]) -> Chart | None:
    """The accuracy of linked mentions by their probability, a line for each method.

    A point's area is that of its share of the mentions. A set whose probabilities were not counted has no chart.
    """
    series, rows, errors = [], [], dict[str, float]()
    for method, scores in scored["methods"].items():
        bins = [each for each in (scores.get("calibration") or {}).get("bins", ()) if each["mentions"]]
        if bins:
            total = sum(each["mentions"] for each in bins)
            points = [(each["confidence"], each["accuracy"]) for each in bins]
            sizes = [each["mentions"] / total for each in bins]
            series.append(Series(method, METHODS.get(method, 4), (1, 0), points, sizes, has_points=True))
            shares = [(f"{sure:.1%}", f"{right:.1%}") for sure, right in points]
            rows += [(method, *of, f"{each['mentions']:,}") for of, each in zip(shares, bins, strict=True)]
            errors[method] = scores["calibration"]["expected_calibration_error"]
    if not series:
        return None
    even = Series("as often as it says", 4, (2, 3), [(0, 0), (1, 1)])
    off = [f"{name} {errors[name]:.3f}" for name in LINKERS if name in errors]
    title = f"{scored['name']}: probabilities are off by so much on average: {', '.join(off)}"
    axis = Axis("right", SHARE, ends=(0, 1))
    svg = drawn_lines([even, *series], axis._replace(title="probability"), axis)
    note = "Mentions in ten groups by the probability of their page; a larger point stands for more."
    return Chart(title, svg, ("linked by", "probability", "right", "mentions"), tuple(rows), note)


def by_step(logs: Mapping[str, Iterable[Line]], name: str) -> Iterator[Series]:
    """A figure of each run by step, where it has one."""
    for run, log in logs.items():
        if points := known_points((row["step"], row.get(name)) for row in log):
            yield Series(run, RUNS.get(run, 0), (1, 0), points)


def known_points(points: Iterable[tuple[float, float | None]]) -> list[tuple[float, float]]:
    """The points that have a value, at most so many of them."""
    return thinned([(x, y) for x, y in points if y is not None and math.isfinite(y)], POINTS)


def chart(title: str, series: Sequence[Series], y: Axis, form: str, note: str = "") -> Chart:
    """A chart of lines by step, its table with a column for each of them."""
    steps = thinned(sorted({at for each in series for at, _ in each.points}))
    values = [dict(each.points) for each in series]
    rows = [(f"{step:,}", *(form.format(of[step]) if step in of else "" for of in values)) for step in steps]
    svg = drawn_lines(series, Axis("step"), y)
    return Chart(title, svg, ("step", *(each.name for each in series)), tuple(rows), note)


def thinned(values: Sequence[T], most: int = TABLE_ROWS) -> list[T]:
    """At most so many values at equal distances, the first and the last among them."""
    if len(values) <= most:
        return list(values)
    return [values[round(place * (len(values) - 1) / (most - 1))] for place in range(most)]
