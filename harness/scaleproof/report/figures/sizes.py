"""Time, bandwidth or a count against message size; the axis of sizes is logarithmic, that of counts is not, since a
count may be 0."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from scaleproof.report.figures.kinds import FigureKind, Mark, Plot
from scaleproof.report.figures.style import MUTED, PAGE, Look, panel, styled, svg
from scaleproof.report.numbers import exact, nbytes, significant

ASIDE = 0.22
"""Octaves between neighbouring series of a figure that stands alone."""


@dataclass(frozen=True, slots=True)
class SizePoint:
    """One series at one size: median over launches with its interval."""

    nbytes: int
    median: float
    low: float | None
    high: float | None
    hollow: bool


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
    """One panel; sizes of 0 have no place on it, and on a logarithmic axis neither have values of 0. `ideal`: a level
    dashed line. `aside`: octaves between the marks of neighbouring series, so that intervals do not hide each other."""
    figure, axes = panel(*size)
    titles: dict[str, str] = {}
    axes.set(xscale="log", yscale="linear" if counts else "log", xlabel=x_label, ylabel=quantity)
    if ideal is not None:
        axes.axhline(ideal, ls="--", color=MUTED, lw=1.0)
    for place, (name, found) in enumerate(series.items()):
        look = looks[name]
        points = [
            point
            for point in sorted(found, key=lambda point: point.nbytes)
            if point.nbytes > 0 and (counts or point.median > 0)
        ]
        shift = 2 ** (aside * (place - (len(series) - 1) / 2))
        x = [point.nbytes * shift for point in points]
        axes.plot(x, [point.median for point in points], ls=look.line, color=look.colour)
        for index, point in enumerate(points):
            if point.low is not None and point.high is not None:
                axes.plot([x[index], x[index]], [point.low, point.high], "-", color=look.colour, lw=1.5)
            (mark,) = axes.plot(
                x[index],
                point.median,
                look.marker,
                ms=5.5,
                mew=1.3,
                mec=look.colour,
                mfc=PAGE if point.hollow else look.colour,
            )
            mark.set_gid(f"size{place}x{index}")
            titles[f"size{place}x{index}"] = f"{name}, {nbytes(point.nbytes)}: {significant(point.median)}"
    ticks = sorted({point.nbytes for found in series.values() for point in found if point.nbytes > 0})
    ticks = ticks[:: max(1, -(-len(ticks) // 6))]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: nbytes(value)))
    if counts:
        axes.set_ylim(bottom=0)
    else:
        axes.yaxis.set_major_locator(LogLocator(10))
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))
    return svg(figure, label, titles)


def _plotted(plot: Plot) -> Markup:
    series = {one.name: [_point(mark) for mark in one.marks] for one in plot.series if one.marks}
    ideal = plot.ideal if isinstance(plot.ideal, float) else None
    return sizes(
        plot.alt, series, plot.looks, plot.y_label, ideal=ideal, size=(7.6, 4.2), x_label=plot.x_label, aside=ASIDE
    )


def _point(mark: Mark) -> SizePoint:
    assert mark.x is not None, "this kind has an x axis"
    return SizePoint(round(mark.x), mark.value, mark.low, mark.high, mark.hollow)


KIND = FigureKind("sizes", "a curve per series over message sizes, both axes logarithmic", "message sizes", _plotted)
