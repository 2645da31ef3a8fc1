"""Distributions of counts: for each series the share of values that are at most so large."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from markupsafe import Markup
from matplotlib.ticker import FuncFormatter, MaxNLocator

from scaleproof.report.figures.inline_svg import svg
from scaleproof.report.figures.style import Look, panel, styled
from scaleproof.report.numbers import exact, significant

MARKS = 6
"""About so many on a line."""


def shares(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values in ascending order, and the share of `values` that are at most as large as each."""
    found, counts = np.unique(values, return_counts=True)
    return found, np.cumsum(counts) / len(values)


@styled
def staleness(label: str, series: Mapping[str, np.ndarray], looks: Mapping[str, Look]) -> Markup:
    """One panel: a step line per series. `series`: the staleness of all gradients, in updates."""
    figure, axes = panel()
    titles: dict[str, str] = {}
    furthest = max(float(values.max()) for values in series.values())
    for index, (name, values) in enumerate(series.items()):
        found, below = shares(values)
        x, y = np.concatenate([[0.0], found, [furthest]]), np.concatenate([[0.0], below, [1.0]])
        (line,) = axes.step(x, y, where="post", color=looks[name].colour, ls=looks[name].line, lw=1.6)
        every = max(len(x) // MARKS, 1)
        line.set(marker=looks[name].marker, ms=4.5, markevery=slice(index * every // len(series), None, every))
        line.set_gid(f"staleness{index}")
        middle, tail = (significant(float(np.quantile(values, share, method="inverted_cdf"))) for share in (0.5, 0.95))
        titles[f"staleness{index}"] = f"{name}: half of the gradients at most {middle} updates, 95 % at most {tail}"
    axes.set(xlabel="staleness (updates)", ylabel="share of gradients at most so stale")
    axes.set_xlim(left=0)
    axes.set_ylim(0, 1.02)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))
    return svg(figure, label, titles)
