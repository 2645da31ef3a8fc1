"""Loss or accuracy over steps or over time: a thin line per launch, and their median as a thick line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
import seaborn as sns
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from scaleproof.report.figures.inline_svg import svg
from scaleproof.report.figures.style import PAGE, Line, Look, lines, panel, styled
from scaleproof.report.numbers import exact, significant


@dataclass(frozen=True, slots=True)
class Curve:
    """One launch: its id, step numbers, seconds since its first step began, values."""

    launch: str
    steps: np.ndarray
    seconds: np.ndarray
    values: np.ndarray
    hollow: bool


class MedianCurve(NamedTuple):
    """Medians over launches at the steps that all of them have."""

    steps: np.ndarray
    seconds: np.ndarray
    values: np.ndarray


@styled
def curves(
    label: str, series: dict[str, list[Curve]], looks: dict[str, Look], quantity: str, over_time: bool
) -> Markup:
    """One panel; `quantity` labels the y axis."""
    figure, axes = panel()
    titles: dict[str, str] = {}
    # Seaborn draws no line for a launch without any number; such launches are left out.
    drawable = {
        name: numeric
        for name, launches in series.items()
        if (numeric := [curve for curve in launches if _has_number(curve.values)])
    }
    _thin_lines(axes, drawable, looks, "seconds" if over_time else "steps")
    thin = iter(list(axes.lines))
    for index, (name, launches) in enumerate(drawable.items()):
        for number, curve in enumerate(launches):
            next(thin).set_gid(f"curve{index}x{number}")
            titles[f"curve{index}x{number}"] = (
                f"{name}, launch {curve.launch}: ends at {significant(float(curve.values[-1]))}"
            )
    medians = {name: median_curve(launches) for name, launches in drawable.items()}
    drawn = {
        name: Line(median.seconds if over_time else median.steps, median.values)
        for name, median in medians.items()
        if _has_number(median.values)
    }
    lines(axes, drawn, looks, 2)
    for index, (name, thick) in enumerate(zip(drawn, axes.lines[len(axes.lines) - len(drawn) :], strict=True)):
        look, every = looks[name], max(len(medians[name].steps) // 6, 1)
        face = PAGE if any(curve.hollow for curve in drawable[name]) else look.colour
        thick.set(marker=look.marker, ms=5.5, mew=1.0, mec=look.colour, mfc=face)
        thick.set_markevery(slice(index * every // len(drawn), None, every))
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))
    axes.set_xlabel("time since the first step (s)" if over_time else "step")
    axes.set_ylabel(quantity)
    axes.set_xlim(left=0)
    return svg(figure, label, titles)


def _has_number(values: np.ndarray) -> bool:
    """Whether any value is a number."""
    return bool((~np.isnan(values)).any())


def _thin_lines(axes: Axes, series: Mapping[str, list[Curve]], looks: Mapping[str, Look], axis: str) -> None:
    """A line per launch, in the order of series and launches."""
    numbered = enumerate((name, curve) for name, launches in series.items() for curve in launches)
    if not series:
        return
    points = pd.concat(
        pd.DataFrame({"x": getattr(curve, axis), "y": curve.values, "series": name, "launch": number})
        for number, (name, curve) in numbered
    )
    sns.lineplot(
        points,
        x="x",
        y="y",
        hue="series",
        palette={name: look.colour for name, look in looks.items() if name in series},
        units="launch",
        estimator=None,
        lw=0.6,
        alpha=0.4,
        legend=False,
        ax=axes,
    )


def median_curve(launches: list[Curve]) -> MedianCurve:
    """The steps that all launches have, and the medians over launches of time and value at each."""
    steps = launches[0].steps
    for curve in launches[1:]:
        steps = np.intersect1d(steps, curve.steps)
    rows = [np.searchsorted(curve.steps, steps) for curve in launches]
    seconds = np.median([curve.seconds[row] for curve, row in zip(launches, rows, strict=True)], axis=0)
    values = np.median([curve.values[row] for curve, row in zip(launches, rows, strict=True)], axis=0)
    return MedianCurve(steps, seconds, values)
