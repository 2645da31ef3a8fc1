"""Bandwidth of one collective over sizes: the prediction as a line with its bounds, logs as marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from scaleproof.report.figures.inline_svg import svg
from scaleproof.report.figures.size_ticks import size_ticks
from scaleproof.report.figures.style import INK, PAGE, Look, panel, styled
from scaleproof.report.numbers import exact

PREDICTED, IMPORTED = Look("predicted", 0, "o", 1), Look("imported", 1, "o", 0)
DASHES = (0, (4, 2))
STAR, CIRCLE = 10.0, 5.5
MOST_TICKS = 6


@dataclass(frozen=True, slots=True)
class LoggedPoint:
    """A value of a log in GB/s, with its tooltip and link. `hollow`: shown, never judged."""

    nbytes: int
    busbw: float
    tooltip: str
    href: str = ""
    hollow: bool = False


@dataclass(frozen=True, slots=True)
class PredictedPoint:
    """A predicted value in GB/s and its bounds."""

    nbytes: int
    busbw: float
    low: float
    high: float


@styled
def logged(
    label: str, predicted: Sequence[PredictedPoint], public: Sequence[LoggedPoint], imported: Sequence[LoggedPoint]
) -> Markup:
    """One panel with logarithmic axes; points of value 0 are left out."""
    figure, axes = panel()
    axes.set(xscale="log", yscale="log", xlabel="size of the array", ylabel="bus bandwidth (GB/s), higher is better")
    sizes = [point.nbytes for point in predicted]
    if predicted:
        low, high = [point.low for point in predicted], [point.high for point in predicted]
        axes.fill_between(sizes, low, high, color=PREDICTED.colour, alpha=0.15, lw=0)
        axes.plot(sizes, [point.busbw for point in predicted], ls=DASHES, lw=1.4, color=PREDICTED.colour)
    titles: dict[str, str] = {}
    _marks(axes, public, "*", STAR, INK, "public", titles)
    _marks(axes, imported, IMPORTED.marker, CIRCLE, IMPORTED.colour, "imported", titles)
    _ticks(axes, sorted({*sizes, *(point.nbytes for point in (*public, *imported))}))
    return svg(figure, label, titles)


def _marks(
    axes: Axes, points: Sequence[LoggedPoint], marker: str, size: float, colour: str, name: str, titles: dict[str, str]
) -> None:
    for number, point in enumerate(point for point in points if point.busbw > 0):
        face = PAGE if point.hollow else colour
        (mark,) = axes.plot(point.nbytes, point.busbw, marker, ms=size, mew=1.0, mec=colour, mfc=face, zorder=4)
        mark.set_gid(f"{name}{number}")
        titles[f"{name}{number}"] = point.tooltip
        if point.href:
            mark.set_url(point.href)


def _ticks(axes: Axes, sizes: list[int]) -> None:
    size_ticks(axes, sizes, MOST_TICKS)
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(10, (1.0, 2.0, 5.0) if high < 100 * low else (1.0,)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))
