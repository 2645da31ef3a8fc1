"""Ticks of a logarithmic axis of sizes, far enough apart for their labels."""

from __future__ import annotations

from collections.abc import Iterable
from math import log

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from scaleproof.report.numbers import nbytes


def size_ticks(axes: Axes, sizes: Iterable[float], most: int) -> None:
    """Label sizes of the x axis: the first, and each that is a `most`-th of the axis or more behind the last label."""
    ordered = sorted(set(sizes))
    shown = ordered[:1]
    for size in ordered:
        if log(size / shown[-1]) >= log(ordered[-1] / ordered[0]) / most > 0:
            shown.append(size)
    axes.xaxis.set_major_locator(FixedLocator(shown))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: nbytes(value)))
