"""Measured times over message size with the fitted line, and below them its relative error."""

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
    """One message size: median and its interval in s, and the time by each model of the figure."""

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
    for model in range(len(points[0].models)):
        _draw_model(above, below, points, model, look)
    for index, point in enumerate(points):
        _draw_point(above, point, look, hollow, f"fit{index}")
        titles[f"fit{index}"] = (
            f"{nbytes(point.nbytes)}: {significant(point.measured * MICRO)} µs measured, "
            f"{significant(point.models[0] * MICRO)} µs by the line"
        )
    below.axhline(0, color=MUTED, lw=0.8)
    below.set(xlabel="message size", ylabel="off by (%)")
    _axes(above, below, [point.nbytes for point in points])
    return svg(figure, label, titles)


def _draw_model(above: Axes, below: Axes, points: Sequence[FitPoint], model: int, look: Look) -> None:
    """Times and errors of one model, by its index."""
    dashes = (0, (4, 2)) if model else look.line
    colour = MUTED if model else look.colour
    x = [point.nbytes for point in points]
    above.plot(x, [point.models[model] * MICRO for point in points], ls=dashes, color=colour, lw=1.4)
    errors = [_error(point, model) for point in points]
    below.plot(x, errors, ls=dashes, color=colour, lw=1.4, marker="." if model else look.marker, ms=4)


def _draw_point(axes: Axes, point: FitPoint, look: Look, hollow: bool, group: str) -> None:
    x, y = point.nbytes, point.measured * MICRO
    if point.low is not None and point.high is not None:
        axes.plot([x, x], [point.low * MICRO, point.high * MICRO], "-", color=look.colour, lw=1.5)
    face = PAGE if hollow else look.colour
    (mark,) = axes.plot(x, y, look.marker, ms=5.5, mew=1.3, mec=look.colour, mfc=face)
    mark.set_gid(group)


def _error(point: FitPoint, model: int) -> float:
    return 100 * (point.models[model] - point.measured) / point.measured


def _axes(above: Axes, below: Axes, sizes: list[int]) -> None:
    below.xaxis.set_major_locator(FixedLocator(sizes[:: max(1, -(-len(sizes) // 6))]))
    below.xaxis.set_minor_locator(NullLocator())
    below.xaxis.set_major_formatter(FuncFormatter(lambda value, _: nbytes(value)))
    above.yaxis.set_major_locator(LogLocator(10))
    above.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    above.yaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))
    below.yaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))
