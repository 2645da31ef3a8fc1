"""How arms learn, as a figure of a suite: a thin line per launch and the median of each series, over samples, steps or
time."""

from __future__ import annotations

from markupsafe import Markup

from scaleproof.report.figures.curves import curves
from scaleproof.report.figures.kinds import FigureKind, Plot


def _plotted(plot: Plot) -> Markup:
    series = {each.name: list(each.curves) for each in plot.series if each.curves}
    ideal = plot.ideal if isinstance(plot.ideal, float) else None
    size = (7.6, 4.2)
    return curves(
        plot.alt,
        series,
        plot.looks,
        plot.y_label,
        plot.axis,
        plot.x_label,
        size,
        plot.log,
        ideal,
        log_x=plot.log_x,
        compared=plot.lines,
    )


KIND = FigureKind(
    "convergence",
    "loss or accuracy of every launch, and the median of each series",
    "samples, steps or seconds",
    _plotted,
    curves=True,
)
