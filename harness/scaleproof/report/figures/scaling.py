"""Throughput against ranks with the ideal line; where there is only one number of ranks, the arms side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

from scaleproof.calibrate.attainable import Attained
from scaleproof.report.figures.dots import Dot, draw, median_mark
from scaleproof.report.figures.inline_svg import svg
from scaleproof.report.figures.kinds import FigureKind, Mark, Plot
from scaleproof.report.figures.style import MUTED, Line, Look, from_zero, lines, panel, styled
from scaleproof.report.numbers import exact

QUANTITY = "throughput (samples/s), higher is better"
ASIDE = 0.09
"""Octaves between the marks of neighbouring arms at the same number of ranks, which would hide each other."""


@dataclass(frozen=True, slots=True)
class Point:
    """One arm at one number of ranks: median, its interval (None below 6 launches) and every launch."""

    ranks: int
    median: float
    low: float | None
    high: float | None
    hollow: bool
    dots: list[Dot]
    attained: Attained | None = None
    """Of the median: its share of what the machine can do, or why that is not known."""


@styled
def scaling(
    label: str, series: dict[str, list[Point]], looks: dict[str, Look], ideal: float | None, quantity: str = QUANTITY
) -> Markup:
    """One panel. `ideal`: samples/s per rank of the ideal line."""
    counts = sorted({point.ranks for points in series.values() for point in points})
    if len(counts) > 1:
        return _lines(label, series, looks, ideal, counts, quantity)
    return _strip(label, series, looks, quantity)


def _lines(
    label: str,
    series: dict[str, list[Point]],
    looks: dict[str, Look],
    ideal: float | None,
    counts: list[int],
    quantity: str,
) -> Markup:
    figure, axes = panel()
    titles: dict[str, str] = {}
    axes.set_xscale("log", base=2)
    if ideal:
        axes.plot(counts, [ideal * count for count in counts], "--", color=MUTED, lw=1.2)
        # Above the middle of the line's first piece: no mark lies above the ideal.
        middle = ((counts[0] * counts[1]) ** 0.5, ideal * (counts[0] + counts[1]) / 2)
        axes.annotate("ideal", middle, (-5, 3), textcoords="offset points", color=MUTED, ha="right", fontsize=9)
    ordered = {name: sorted(points, key=lambda point: point.ranks) for name, points in series.items()}
    places = {
        name: [point.ranks * _aside(name, point.ranks, series) for point in points] for name, points in ordered.items()
    }
    medians = {name: Line(places[name], [point.median for point in points]) for name, points in ordered.items()}
    lines(axes, medians, looks, 1.4)
    for name, points in ordered.items():
        for x, point in zip(places[name], points, strict=True):
            draw(axes, [replace(dot, x=x) for dot in point.dots], looks[name], titles, 3.5)
            median_mark(axes, x, point.median, (point.low, point.high), looks[name], point.hollow)
    from_zero(axes)
    axes.set_xlim(counts[0] / 1.45, counts[-1] * 1.45)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(visible=False, axis="x")
    axes.set_xlabel("ranks (arms beside each other)")
    _values(axes, quantity, horizontal=False)
    return svg(figure, label, titles)


def _aside(name: str, ranks: int, series: dict[str, list[Point]]) -> float:
    """The factor by which an arm's x is shifted beside the others at this number of ranks. An arm with several numbers
    of ranks is not shifted, so that its line is correct."""
    arms = [other for other, points in series.items() if [point.ranks for point in points] == [ranks]]
    if name not in arms:
        return 1.0
    index, middle = arms.index(name), len(arms) // 2
    kept_free = len(arms) < sum(any(point.ranks == ranks for point in points) for points in series.values())
    offset = index - middle + (index >= middle) if kept_free else index - (len(arms) - 1) / 2
    return float(2 ** (offset * min(ASIDE, 0.8 / len(arms))))


def _strip(label: str, series: dict[str, list[Point]], looks: dict[str, Look], quantity: str) -> Markup:
    figure, axes = panel(height=0.95 + 0.42 * len(series))
    titles: dict[str, str] = {}
    for row, (name, points) in enumerate(series.items()):
        for point in points:
            draw(axes, [Dot(dot.y, row, dot.hollow, dot.tooltip, dot.href) for dot in point.dots], looks[name], titles)
            median_mark(axes, point.median, row, (point.low, point.high), looks[name], point.hollow, horizontal=True)
    axes.set_yticks(range(len(series)), list(series))
    axes.set_ylim(len(series) - 0.5, -0.5)
    from_zero(axes, horizontal=True)
    axes.grid(visible=False, axis="y")
    _values(axes, quantity, horizontal=True)
    return svg(figure, label, titles)


def _values(axes: Axes, quantity: str, horizontal: bool) -> None:
    axis = axes.xaxis if horizontal else axes.yaxis
    axis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))
    axis.set_label_text(quantity)


def _plotted(plot: Plot) -> Markup:
    points = {series.name: [_point(mark) for mark in series.marks] for series in plot.series if series.marks}
    return scaling(plot.alt, points, plot.looks, None, plot.y_label)


def _point(mark: Mark) -> Point:
    assert mark.x is not None, "this kind has an x axis"
    dots = [Dot(mark.x, launch.value, launch.hollow, launch.tooltip, launch.href) for launch in mark.launches]
    return Point(round(mark.x), mark.value, mark.low, mark.high, mark.hollow, dots)


KIND = FigureKind("scaling", "a curve per series over ranks with every launch as a dot", "ranks", _plotted)
