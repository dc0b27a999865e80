"""The drawing of charts: points and names as SVG, by Vega-Lite, in the colours of the page.

A picture needs no script, so it is there in print, in a screenshot of the whole page and without a network. Names are
data to Vega and escaped by it; a point tells its values where one points at it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import markupsafe

WIDTH, HEIGHT = 460, 165  # pixels of the plot itself; the page scales it
COLOURS = 6  # of the page's palette
MOST_TICKS, LEGEND_COLUMNS = 8, 4
# Vega wants colours that it knows, and the page has its own for light and for dark.
_INK, _QUIET, _RULE = "#b00000", "#b00001", "#b00002"
_VARIABLES = {_INK: "--ink", _QUIET: "--quiet", _RULE: "--rule"}
_VARIABLES |= {f"#a0000{number}": f"--plot-{number}" for number in range(COLOURS)}
_COLOUR = re.compile(f'"({"|".join(_VARIABLES)})"')
_MARK = re.compile(r'<(path|rect|line)([^<>]*?) aria-label="([^"]*)"([^<>]*)/>')
_ROLE = re.compile(r' (?:role|aria-roledescription|aria-label|aria-hidden)="[^"]*"')
_SVG = re.compile(r'<svg([^>]*?) width="[\d.]+" height="[\d.]+"')
_AXIS: dict[str, Any] = {"domainColor": _RULE, "gridColor": _RULE, "tickColor": _RULE, "labelColor": _QUIET}
_AXIS |= {"titleColor": _QUIET, "titleFontWeight": "normal", "titleFontSize": 12, "labelFontSize": 11}
_CONFIG = {
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {**_AXIS, "titlePadding": 8, "labelLimit": 160},
    "legend": {
        "orient": "top",
        "title": None,
        "labelColor": _INK,
        "labelFontSize": 12,
        "labelLimit": 200,
        "columnPadding": 26,
    },
}
_LINE = {"type": "line", "strokeWidth": 2, "aria": False}
_POINT = {"type": "point", "filled": True, "opacity": 1}
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
        return {"type": "quantitative", "scale": scale, "axis": axis}


def drawn_lines(series: Sequence[Series], x: Axis, y: Axis) -> "markupsafe.Markup":
    """A line through the points of each series, and their points where they are few or asked for."""
    values = [
        {"x": at, "y": value, "series": each.name, "size": size, "tip": f"{each.name}: {at:g}, {value:.4g}"}
        | {"marked": each.has_points or len(each.points) < 2}
        for each in series
        for (at, value), size in zip(each.points, each.sizes or [0.1] * len(each.points), strict=True)
    ]
    names, at = [each.name for each in series], [at for each in series for at, _ in each.points]
    legend = {"symbolType": "stroke", "symbolStrokeWidth": 2, "columns": LEGEND_COLUMNS} if len(names) > 1 else None
    named = {"field": "series", "type": "nominal", "legend": legend, "sort": names}
    dashes = {"domain": names, "range": [list(each.dash) for each in series]}
    colour = {**named, "scale": {"domain": names, "range": [_colour(each.colour) for each in series]}}
    sizes = {"type": "linear", "domain": [0, 1], "range": [12, 260]}
    size = {"field": "size", "type": "quantitative", "legend": None, "scale": sizes}
    line = {"mark": _LINE, "encoding": {"strokeDash": {**named, "scale": dashes}}}
    marked = {"transform": [{"filter": "datum.marked"}], "mark": _POINT}
    points = {**marked, "encoding": {"size": size, "description": {"field": "tip"}}}
    places = {"x": {"field": "x", **x.spec(at)}, "y": {"field": "y", **y.spec()}}
    return drawn({"data": {"values": values}, "encoding": {**places, "color": colour}, "layer": [line, points]})


def _colour(number: int) -> str:
    return f"#a0000{number % COLOURS}"


def drawn(spec: Mapping[str, Any]) -> "markupsafe.Markup":
    """A chart of Vega-Lite as an element `svg` that is as wide as its place."""
    import markupsafe
    import vl_convert

    whole = {"width": WIDTH, "height": HEIGHT, "background": None, "padding": 6, "config": _CONFIG, **spec}
    text = vl_convert.vegalite_to_svg(whole)
    text = _COLOUR.sub(lambda found: f'"var({_VARIABLES[found[1]]})"', text)
    text = _ROLE.sub("", _MARK.sub(r"<\1\2\4><title>\3</title></\1>", text))
    return markupsafe.Markup(_SVG.sub(r'<svg\1 aria-hidden="true"', text, count=1))
