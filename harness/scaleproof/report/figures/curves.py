"""Loss or accuracy over steps or over time: a thin line per launch, the median thick."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from matplotlib.ticker import FuncFormatter, MaxNLocator

from scaleproof.report.figures.style import PAGE, Look, panel, styled, svg
from scaleproof.report.numbers import exact, significant


@dataclass(frozen=True, slots=True)
class Curve:
    """One launch: its id, step numbers, seconds since its first step began, values."""

    launch: str
    steps: np.ndarray
    seconds: np.ndarray
    values: np.ndarray
    hollow: bool


@styled
def curves(
    label: str, series: dict[str, list[Curve]], looks: dict[str, Look], quantity: str, over_time: bool
) -> Markup:
    """One panel; `quantity` is the words of the y axis."""
    figure, axes = panel()
    titles: dict[str, str] = {}
    for place, (name, found) in enumerate(series.items()):
        look = looks[name]
        for index, curve in enumerate(found):
            (line,) = axes.plot(
                curve.seconds if over_time else curve.steps, curve.values, "-", lw=0.6, alpha=0.4, color=look.colour
            )
            line.set_gid(f"curve{place}x{index}")
            titles[f"curve{place}x{index}"] = (
                f"{name}, launch {curve.launch}: ends at {significant(float(curve.values[-1]))}"
            )
        steps, seconds, values = median_curve(found)
        every = max(len(steps) // 6, 1)
        face = PAGE if any(curve.hollow for curve in found) else look.colour
        marks = slice(place * every // max(len(series), 1), None, every)
        axes.plot(
            seconds if over_time else steps,
            values,
            ls=look.line,
            lw=2,
            color=look.colour,
            marker=look.marker,
            ms=5.5,
            mfc=face,
            markevery=marks,
        )
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))
    axes.set_xlabel("time since the first step (s)" if over_time else "step")
    axes.set_ylabel(quantity)
    axes.set_xlim(left=0)
    return svg(figure, label, titles)


def median_curve(found: list[Curve]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps that all launches have, and the medians over launches of time and value at each."""
    steps = found[0].steps
    for curve in found[1:]:
        steps = np.intersect1d(steps, curve.steps)
    rows = [np.searchsorted(curve.steps, steps) for curve in found]
    seconds = np.median([curve.seconds[row] for curve, row in zip(found, rows, strict=True)], axis=0)
    values = np.median([curve.values[row] for curve, row in zip(found, rows, strict=True)], axis=0)
    return steps, seconds, values
