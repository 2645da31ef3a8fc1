"""Loss or accuracy over samples, over steps or over time: a thin line per launch, and their median as a thick line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from scaleproof.claims.learning_curve import Axis
from scaleproof.report.figures.inline_svg import svg
from scaleproof.report.figures.kinds import Curve
from scaleproof.report.figures.style import MUTED, PAGE, Line, Look, lines, panel, styled
from scaleproof.report.numbers import exact, significant

__all__ = ["Curve", "MedianCurve", "curves", "median_curve"]

X_LABELS: dict[Axis, str] = {
    "samples": "training samples of all ranks",
    "steps": "step",
    "seconds": "time since the first step (s)",
}
COLUMNS = 400
"""Of a picture, in pixels: a panel is narrower."""
VIRTUAL_SECONDS = "virtual time since the first step (s)"


class MedianCurve(NamedTuple):
    """Medians over launches: at the steps that all of them have, or of values that were taken at set times by their
    number."""

    steps: np.ndarray
    samples: np.ndarray
    seconds: np.ndarray
    values: np.ndarray


@styled
def curves(
    label: str,
    series: dict[str, list[Curve]],
    looks: dict[str, Look],
    quantity: str,
    axis: Axis,
    x_label: str = "",
    size: tuple[float, float] = (5.0, 3.5),
    log: bool = False,
    ideal: float | None = None,
    log_x: bool = False,
    compared: Sequence[tuple[str, float]] = (),
) -> Markup:
    """One panel; `quantity` labels the y axis, which `log` makes logarithmic, `x_label` the x axis where X_LABELS does
    not say enough; `log_x` makes it logarithmic. `ideal`: a dashed line at the value that all would reach; `compared`:
    further ones with their labels."""
    figure, axes = panel(*size)
    _dashed(axes, ideal, compared)
    titles: dict[str, str] = {}
    drawable = {
        name: numeric
        for name, launches in series.items()
        if (numeric := [curve for curve in launches if _has_number(curve.values)])
    }
    for index, (name, launches) in enumerate(drawable.items()):
        for number, curve in enumerate(launches):
            (thin,) = axes.plot(
                *outline(getattr(curve, axis), _numbers(curve.values)), color=looks[name].colour, lw=0.6, alpha=0.4
            )
            thin.set_gid(f"curve{index}x{number}")
            ends = curve.ends or f"ends at {significant(float(curve.values[-1]))}"
            titles[f"curve{index}x{number}"] = f"{name}, launch {curve.launch}: {ends}"
    medians = {name: median_curve(launches) for name, launches in drawable.items()}
    drawn = {
        name: Line(*outline(getattr(median, axis), median.values))
        for name, median in medians.items()
        if _has_number(median.values)
    }
    lines(axes, drawn, looks, 2)
    for index, (name, thick) in enumerate(zip(drawn, axes.lines[len(axes.lines) - len(drawn) :], strict=True)):
        look, every = looks[name], max(len(drawn[name].x) // 6, 1)
        face = PAGE if any(curve.hollow for curve in drawable[name]) else look.colour
        thick.set(marker=look.marker, ms=5.5, mew=1.0, mec=look.colour, mfc=face)
        thick.set_markevery(slice(index * every // len(drawn), None, every))
    _scale(axes, log, log_x)
    axes.set_xlabel(x_label or X_LABELS[axis])
    axes.set_ylabel(quantity)
    return svg(figure, label, titles)


def _dashed(axes: Axes, ideal: float | None, compared: Sequence[tuple[str, float]]) -> None:
    """Lines across the panel, their labels at its right edge."""
    for value in [*([] if ideal is None else [ideal]), *(value for _, value in compared)]:
        axes.axhline(value, ls="--", color=MUTED, lw=1.0)
    for label, value in compared:
        place: Any = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points", "ha": "right"}
        axes.annotate(label, (1, value), (0, 3), color=MUTED, fontsize=9, **place)


def _scale(axes: Axes, log: bool, log_x: bool) -> None:
    """Both axes with plain numbers."""
    if log_x:
        axes.set_xscale("log")  # what lies at 0 is left out
    else:
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: exact(value)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))


def _has_number(values: np.ndarray) -> bool:
    """Whether any value is a number."""
    return bool(np.isfinite(values).any())


def outline(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of a line with more points than the picture has columns: the first, the last, the lowest and the highest point of
    each column, and where its numbers end, so that the picture is the same. `x` rises."""
    if len(x) <= 4 * COLUMNS or not x[0] < x[-1]:
        return x, y
    column = np.minimum((x - x[0]) * (COLUMNS / (x[-1] - x[0])), COLUMNS - 1).astype(int)
    begins, none = np.flatnonzero(np.diff(column, prepend=-1)), np.isnan(y)
    ends = np.append(begins[1:], len(x)) - 1
    by_height = np.lexsort((y, column))  # in a column what is no number comes last
    highest = np.maximum(ends - np.add.reduceat(none, begins, dtype=int), begins)
    gaps = np.flatnonzero(none & ~np.append(False, none[:-1]))
    kept = np.unique(np.concatenate((begins, ends, by_height[begins], by_height[highest], gaps)))
    return x[kept], y[kept]


def _numbers(values: np.ndarray) -> np.ndarray:
    """NaN in place of infinite values, so that a line ends where a training diverges."""
    return np.where(np.isfinite(values), values, np.nan)


def median_curve(launches: list[Curve]) -> MedianCurve:
    """The medians over launches of position and value. A launch that has diverged is worse than the others."""
    rows = _paired(launches)

    def middle(column: Callable[[Curve], np.ndarray]) -> np.ndarray:
        found: np.ndarray = np.median([column(curve)[row] for curve, row in zip(launches, rows, strict=True)], axis=0)
        return found

    return MedianCurve(
        middle(lambda curve: curve.steps),
        middle(lambda curve: curve.samples),
        middle(lambda curve: curve.seconds),
        _numbers(middle(lambda curve: np.where(np.isfinite(curve.values), curve.values, np.inf))),
    )


def _paired(launches: list[Curve]) -> list[np.ndarray]:
    """Of each launch the rows that belong together: at steps that all have. Evaluations at set times have other steps
    in each launch, and belong together by their number."""
    steps, shortest = launches[0].steps, min(len(curve.steps) for curve in launches)
    for curve in launches[1:]:
        steps = np.intersect1d(steps, curve.steps)
    if 2 * len(steps) < shortest:
        return [np.arange(shortest)] * len(launches)
    return [np.searchsorted(curve.steps, steps) for curve in launches]
