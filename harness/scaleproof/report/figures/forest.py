"""Ratios of B to A with their intervals, one line each, in front of the band of the machine's own noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from markupsafe import Markup
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from scaleproof.report.figures.inline_svg import svg
from scaleproof.report.figures.kinds import FigureKind, Plot
from scaleproof.report.figures.style import GRID, MUTED, PAGE, panel, styled

_ROW = 0.27
_MARGIN = 0.75
"""Heights in inches: of a line, and of everything around the lines."""
_TICKS = (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0)
"""Ticks above 1; below 1 are their inverses."""
_APART = 0.3
"""Least distance of two ticks, as a share of half the axis."""
_COLOURS = {"worse": "#050001", "better": "#050002", "changed": "#050004", "different machines": "#050004"}
_PLAIN = "#050007"
_MARKS = {"worse": "v", "better": "^", "changed": "D", "different machines": "D"}


@dataclass(frozen=True, slots=True)
class Line:
    """One comparison: ratio, interval and floor (a share) may be missing; `change` decides colour and mark."""

    name: str
    ratio: float | None
    low: float | None
    high: float | None
    floor: float | None
    change: str
    tooltip: str


@styled
def forest(
    label: str,
    lines: Sequence[Line],
    quantity: str = "B / A; the band is the machine's own noise",
    ideal: float | None = None,
) -> Markup:
    """Ratios on a logarithmic axis; the first line is at the top. `ideal`: a dashed line beside the one at 1."""
    figure, axes = panel(7.2, _MARGIN + _ROW * len(lines))
    titles: dict[str, str] = {}
    low, high = _limits(lines, ideal)
    for row, line in enumerate(reversed(lines)):
        colour, mark = _COLOURS.get(line.change, _PLAIN), _MARKS.get(line.change, "o")
        if line.floor:
            start = max(1 / (1 + line.floor), low)
            axes.add_patch(
                Rectangle((start, row - 0.4), min(1 + line.floor, high) - start, 0.8, facecolor=GRID, edgecolor="none")
            )
        if line.ratio is None:
            axes.text(1, row, "no ratio", color=MUTED, fontsize=8, ha="center", va="center")
            continue
        if line.low is not None and line.high is not None:
            axes.plot([line.low, line.high], [row, row], "-", marker="|", ms=8, mew=1.6, color=colour)
        (dot,) = axes.plot(
            line.ratio, row, mark, ms=7, mew=1.5, mec=colour, mfc=PAGE if line.change == "inconclusive" else colour
        )
        dot.set_gid(f"line{row}")
        titles[f"line{row}"] = line.tooltip
    axes.axvline(1, color=MUTED, lw=1)
    if ideal is not None and ideal > 0:  # a logarithmic axis has no place for others
        axes.axvline(ideal, color=MUTED, lw=1, ls="--").set_gid("ideal")
        titles["ideal"] = f"{ideal:.3g}"
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(-0.6, len(lines) - 0.4)
    axes.xaxis.set_major_locator(FixedLocator(_ticks(high)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    axes.set_yticks(range(len(lines)), [line.name for line in reversed(lines)])
    axes.grid(False, axis="y")
    axes.set_xlabel(quantity)
    return svg(figure, label, titles)


def _limits(lines: Sequence[Line], ideal: float | None) -> tuple[float, float]:
    """Ends of the axis: at least 2 % to each side, at most a factor of 110."""
    values = [value for line in lines for value in (line.ratio, line.low, line.high, ideal) if value]
    floors = [line.floor for line in lines if line.floor]
    far = max([1.02, *values, *(1 / value for value in values), *(1 + floor for floor in floors)]) ** 1.08
    return 1 / min(far, 110.0), min(far, 110.0)


def _ticks(high: float) -> list[float]:
    """Round ratios on one side of 1, their inverses on the other, far enough apart for their labels."""
    ticks: list[float] = []
    for tick in (tick for tick in _TICKS if tick <= high):
        if log(tick) - (log(ticks[-1]) if ticks else 0) >= _APART * log(high):
            ticks.append(tick)
    return [*(1 / tick for tick in reversed(ticks)), 1.0, *ticks]


def _plotted(plot: Plot) -> Markup:
    """A line per value, relative to 1. The paper's values are in the tooltips."""
    lines = [
        Line(
            series.name if len(series.marks) == 1 else f"{series.name}, {mark.evidence}",
            mark.value,
            mark.low,
            mark.high,
            mark.noise_floor,
            "inconclusive" if mark.hollow else "",
            "; ".join([mark.tooltip, *(point.tooltip for point in series.published)]),
        )
        for series in plot.series
        for mark in series.marks
    ]
    return forest(plot.alt, lines, plot.y_label, plot.ideal if isinstance(plot.ideal, float) else None)


KIND = FigureKind("forest", "ratios around 1, one line each, in front of the machine's noise floor", None, _plotted)
