"""Time, bandwidth or a count against message size; the axis of sizes is logarithmic, that of counts is not, since a
count may be 0."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from scaleproof.report.figures.style import PAGE, Look, panel, styled, svg
from scaleproof.report.numbers import exact, nbytes, significant


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
    label: str, series: dict[str, list[SizePoint]], looks: dict[str, Look], quantity: str, counts: bool = False
) -> Markup:
    """One panel; sizes of 0 have no place on it, and on a logarithmic axis neither have values of 0."""
    figure, axes = panel()
    titles: dict[str, str] = {}
    axes.set(xscale="log", yscale="linear" if counts else "log", xlabel="message size", ylabel=quantity)
    for place, (name, found) in enumerate(series.items()):
        look = looks[name]
        points = [
            point
            for point in sorted(found, key=lambda point: point.nbytes)
            if point.nbytes > 0 and (counts or point.median > 0)
        ]
        axes.plot(
            [point.nbytes for point in points], [point.median for point in points], ls=look.line, color=look.colour
        )
        for index, point in enumerate(points):
            if point.low is not None and point.high is not None:
                axes.plot([point.nbytes, point.nbytes], [point.low, point.high], "-", color=look.colour, lw=1.5)
            (mark,) = axes.plot(
                point.nbytes,
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
