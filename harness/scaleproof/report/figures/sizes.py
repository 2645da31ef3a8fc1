"""Time, bandwidth or a count over message size. The axis of sizes is logarithmic; that of counts is linear, since a
count may be 0."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from scaleproof.report.figures.inline_svg import svg
from scaleproof.report.figures.kinds import FigureKind, Mark, Plot
from scaleproof.report.figures.style import MUTED, PAGE, Line, Look, lines, panel, styled
from scaleproof.report.numbers import exact, nbytes, significant

ASIDE = 0.22
"""Octaves between neighbouring series of a figure that is not a panel among others."""

ONE_VALUE = 1.001
"""Values that differ by less are one value to an axis."""


@dataclass(frozen=True, slots=True)
class SizePoint:
    """One series at one size: median over launches with its interval. `note`: what its tooltip says of the value."""

    nbytes: int
    median: float
    low: float | None
    high: float | None
    hollow: bool
    note: str = ""


@styled
def sizes(
    label: str,
    series: dict[str, list[SizePoint]],
    looks: dict[str, Look],
    quantity: str,
    counts: bool = False,
    ideal: float | None = None,
    size: tuple[float, float] = (5.0, 3.5),
    x_label: str = "message size",
    aside: float = 0.0,
) -> Markup:
    """One panel. Points of size 0 are left out, and on a logarithmic y axis those of value 0. `ideal`: a horizontal
    dashed line. `aside`: octaves between the marks of neighbouring series, so that intervals do not hide each other."""
    figure, axes = panel(*size)
    titles: dict[str, str] = {}
    axes.set(xscale="log", yscale="linear" if counts else "log")
    if ideal is not None:
        axes.axhline(ideal, ls="--", color=MUTED, lw=1.0)
    drawn = {name: _drawable(points, counts) for name, points in series.items()}
    shifts = {name: 2 ** (aside * (index - (len(series) - 1) / 2)) for index, name in enumerate(series)}
    medians = {
        name: Line([point.nbytes * shifts[name] for point in points], [point.median for point in points])
        for name, points in drawn.items()
    }
    lines(axes, medians, looks, 1.8)
    for index, (name, points) in enumerate(drawn.items()):
        for number, point in enumerate(points):
            _mark_point(axes, point, point.nbytes * shifts[name], looks[name], f"size{index}x{number}")
            titles[f"size{index}x{number}"] = f"{name}, {nbytes(point.nbytes)}: {significant(point.median)}{point.note}"
    axes.set(xlabel=x_label, ylabel=quantity)
    _axes(axes, sorted({point.nbytes for points in series.values() for point in points if point.nbytes > 0}), counts)
    return svg(figure, label, titles)


def _axes(axes: Axes, sizes: list[int], counts: bool) -> None:
    """Ticks at message sizes, at most six of them, and on the y axis."""
    axes.xaxis.set_major_locator(FixedLocator(sizes[:: max(1, -(-len(sizes) // 6))]))
    axes.xaxis.set_minor_locator(NullLocator())
    if len(sizes) == 1:  # Matplotlib would make the axis as wide as the point
        axes.set_xlim(sizes[0] / 2, sizes[0] * 2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: nbytes(value)))
    if counts:
        axes.set_ylim(bottom=0)
    else:
        low, high = _limits(axes)
        few = high < 10 * low  # powers of ten would label one tick or none
        axes.yaxis.set_major_locator(MaxNLocator(4) if few else LogLocator(10))
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))


def _limits(axes: Axes) -> tuple[float, float]:
    """The limits of the logarithmic y axis; around one value, where Matplotlib would make an axis of no height."""
    low, high = axes.dataLim.intervaly
    if low > 0 and high < ONE_VALUE * low:
        axes.set_ylim(low / 2, high * 2)
    low, high = axes.get_ylim()
    return low, high


def _drawable(points: list[SizePoint], counts: bool) -> list[SizePoint]:
    """The points that the axes can show, by size."""
    ordered = sorted(points, key=lambda point: point.nbytes)
    return [point for point in ordered if point.nbytes > 0 and (counts or point.median > 0)]


def _mark_point(axes: Axes, point: SizePoint, x: float, look: Look, group: str) -> None:
    if point.low is not None and point.high is not None:
        axes.plot([x, x], [point.low, point.high], "-", color=look.colour, lw=1.5)
    face = PAGE if point.hollow else look.colour
    (mark,) = axes.plot(x, point.median, look.marker, ms=5.5, mew=1.3, mec=look.colour, mfc=face)
    mark.set_gid(group)


def _plotted(plot: Plot) -> Markup:
    series = {
        series_form.name: [_point(mark) for mark in series_form.marks]
        for series_form in plot.series
        if series_form.marks
    }
    ideal = plot.ideal if isinstance(plot.ideal, float) else None
    return sizes(
        plot.alt, series, plot.looks, plot.y_label, ideal=ideal, size=(7.6, 4.2), x_label=plot.x_label, aside=ASIDE
    )


def _point(mark: Mark) -> SizePoint:
    assert mark.x is not None, "this kind has an x axis"
    return SizePoint(round(mark.x), mark.value, mark.low, mark.high, mark.hollow, mark.note)


KIND = FigureKind("sizes", "a curve per series over message sizes, both axes logarithmic", "message sizes", _plotted)
