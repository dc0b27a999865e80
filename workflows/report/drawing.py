"""The drawing of charts: points and names as SVG, by Vega-Lite, in the colours of the page.

A picture needs no script, so it is there in print, in a screenshot of the whole page and without a network. Names are
data to Vega and escaped by it; a point tells its values where one points at it.
"""

import copy
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

CHART: dict[str, Any] = json.loads((Path(__file__).parent / "templates" / "chart.json").read_text(encoding="utf-8"))
COLOURS = 6  # of the page's palette
MOST_TICKS = 8
# Vega wants colours that it knows, and the page has its own for light and for dark.
_VARIABLES = {"#b00000": "--ink", "#b00001": "--quiet", "#b00002": "--rule"}
_VARIABLES |= {f"#a0000{number}": f"--plot-{number}" for number in range(COLOURS)}
_COLOUR = re.compile(f'"({"|".join(_VARIABLES)})"')
_MARK = re.compile(r'<(path|rect|line)([^<>]*?) aria-label="([^"]*)"([^<>]*)/>')
_ROLE = re.compile(r' (?:role|aria-roledescription|aria-label|aria-hidden)="[^"]*"')
_SVG = re.compile(r'<svg([^>]*?) width="[\d.]+" height="[\d.]+"')
SHARE = ".0%"  # a format


class Series(NamedTuple):
    """Points of one name, (x, y), with the number of a colour and the lengths of dashes."""

    name: str
    colour: int
    dash: Sequence[int]
    points: Sequence[tuple[float, float]]
    sizes: Sequence[float] = ()  # shares of the largest point
    has_points: bool = False


class Axis(NamedTuple):
    """An axis: its title, how its numbers are written (d3-format), and where it runs."""

    title: str
    format: str = ",d"
    from_zero: bool = False
    ends: tuple[float, float] | None = None

    def spec(self, points: Iterable[float] = ()) -> dict[str, Any]:
        """The channel of Vega-Lite; where points are few, its ticks are at them."""
        scale: dict[str, Any] = {"type": "linear", "zero": self.from_zero, "nice": self.ends is None}
        if self.ends:
            scale["domain"] = list(self.ends)
        axis: dict[str, Any] = {"format": self.format, "tickCount": 5, "title": self.title}
        if 0 < len(places := sorted({*points})) <= MOST_TICKS:
            axis["values"] = places
        return {"scale": scale, "axis": axis}


def drawn_lines(series: Sequence[Series], x: Axis, y: Axis) -> Markup:
    """A line through the points of each series, and their points where they are few or asked for.

    It is an element `svg` that is as wide as its place.
    """
    import vl_convert

    values = [
        {"x": at, "y": value, "series": each.name, "size": size, "tip": f"{each.name}: {at:g}, {value:.4g}"}
        | {"marked": each.has_points or len(each.points) < 2}
        for each in series
        for (at, value), size in zip(each.points, each.sizes or [0.1] * len(each.points), strict=True)
    ]
    names, at = [each.name for each in series], [at for each in series for at, _ in each.points]
    colours = [f"#a0000{each.colour % COLOURS}" for each in series]
    named = {"sort": names} if len(names) > 1 else {"sort": names, "legend": None}
    chart = copy.deepcopy(CHART) | {"data": {"values": values}}
    chart["encoding"]["x"] |= x.spec(at)
    chart["encoding"]["y"] |= y.spec()
    chart["encoding"]["color"] |= named | {"scale": {"domain": names, "range": colours}}
    dashes = {"domain": names, "range": [list(each.dash) for each in series]}
    chart["layer"][0]["encoding"]["strokeDash"] |= named | {"scale": dashes}
    text = vl_convert.vegalite_to_svg(chart)
    text = _COLOUR.sub(lambda found: f'"var({_VARIABLES[found[1]]})"', text)
    text = _ROLE.sub("", _MARK.sub(r"<\1\2\4><title>\3</title></\1>", text))
    return Markup(_SVG.sub(r'<svg\1 aria-hidden="true"', text, count=1))
