"""Measured times over message size with the line that was fitted to them, and below how far off it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from scaleproof.report.figures.inline_svg import svg
from scaleproof.report.figures.style import MUTED, PAGE, Look, styled
from scaleproof.report.numbers import exact, nbytes, significant

MICRO = 1e6


@dataclass(frozen=True, slots=True)
class FitPoint:
    """One message size: median and its interval in s, and what each model says, by the model's place in the figure."""

    nbytes: int
    measured: float
    low: float | None
    high: float | None
    models: tuple[float, ...]


@styled
def fits(label: str, points: Sequence[FitPoint], look: Look, hollow: bool) -> Markup:
    """Above: points with intervals, the first model as a solid line, a second one dashed. Below: (model - measured) /
    measured of both."""
    figure = Figure(figsize=(5.0, 4.6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2.6, 1))
    titles: dict[str, str] = {}
    above.set(xscale="log", yscale="log", ylabel="time (µs), lower is better")
    for place in range(len(points[0].models)):
        dashes = look.line if not place else (0, (4, 2))
        colour = look.colour if not place else MUTED
        x = [one.nbytes for one in points]
        above.plot(x, [one.models[place] * MICRO for one in points], ls=dashes, color=colour, lw=1.4)
        below.plot(
            x,
            [_error(one, place) for one in points],
            ls=dashes,
            color=colour,
            lw=1.4,
            marker="." if place else look.marker,
            ms=4,
        )
    for index, one in enumerate(points):
        if one.low is not None and one.high is not None:
            above.plot([one.nbytes, one.nbytes], [one.low * MICRO, one.high * MICRO], "-", color=look.colour, lw=1.5)
        (mark,) = above.plot(
            one.nbytes,
            one.measured * MICRO,
            look.marker,
            ms=5.5,
            mew=1.3,
            mec=look.colour,
            mfc=PAGE if hollow else look.colour,
        )
        mark.set_gid(f"fit{index}")
        titles[f"fit{index}"] = (
            f"{nbytes(one.nbytes)}: {significant(one.measured * MICRO)} µs measured, "
            f"{significant(one.models[0] * MICRO)} µs by the line"
        )
    below.axhline(0, color=MUTED, lw=0.8)
    below.set(xlabel="message size", ylabel="off by (%)")
    _axes(above, below, [one.nbytes for one in points])
    return svg(figure, label, titles)


def _error(point: FitPoint, place: int) -> float:
    return 100 * (point.models[place] - point.measured) / point.measured


def _axes(above: Axes, below: Axes, sizes: list[int]) -> None:
    below.xaxis.set_major_locator(FixedLocator(sizes[:: max(1, -(-len(sizes) // 6))]))
    below.xaxis.set_minor_locator(NullLocator())
    below.xaxis.set_major_formatter(FuncFormatter(lambda value, _: nbytes(value)))
    above.yaxis.set_major_locator(LogLocator(10))
    above.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    above.yaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))
    below.yaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))
