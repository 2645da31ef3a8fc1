"""Ours over the published value of each claim, over what the rows count, in front of what the rules accept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from scaleproof.report.figures.inline_svg import svg
from scaleproof.report.figures.kinds import FigureKind, Mark, Plot
from scaleproof.report.figures.size_ticks import size_ticks
from scaleproof.report.figures.style import GRID, MUTED, PAGE, Look, panel, styled
from scaleproof.report.numbers import exact

SIZE = (7.6, 4.4)
"""Inches."""
ASIDE = 0.12
"""Octaves between neighbouring series, so that marks at one place do not hide each other."""
BESIDE = 1.7
"""By how much a band reaches beyond its outermost marks, as a factor."""
MOST_TICKS = 8


@styled
def agreement(plot: Plot) -> Markup:
    """Logarithmic axes; a mark is hollow where its claim is not judged."""
    figure, axes = panel(*SIZE)
    titles: dict[str, str] = {}
    axes.set(xscale="log", yscale="log", xlabel=plot.x_label, ylabel=plot.y_label)
    marks = [mark for series in plot.series for mark in series.marks]
    for band in _bands(marks):
        axes.fill_between(band.ends, band.low, band.high, color=GRID, lw=0)
    if isinstance(plot.ideal, float):
        axes.axhline(plot.ideal, color=MUTED, lw=1.0, ls="--")
    for index, series in enumerate(plot.series):
        shift = 2 ** (ASIDE * (index - (len(plot.series) - 1) / 2))
        for number, mark in enumerate(series.marks):
            _draw(axes, mark, _x(mark) * shift, series.look, f"row{index}x{number}", titles)
    size_ticks(axes, (_x(mark) for mark in marks), MOST_TICKS)
    axes.yaxis.set_major_locator(LogLocator(10, (1.0, 2.0, 5.0)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))
    return svg(figure, plot.alt, titles)


@dataclass(frozen=True, slots=True)
class Band:
    """What rules accept at neighbouring places: one range for all of them. `ends`: where it begins and ends on x."""

    low: float
    high: float
    ends: tuple[float, float]


def _bands(marks: Iterable[Mark]) -> Iterator[Band]:
    """Ranges equal to a thousandth are one: bounds that a suite states are rounded."""
    accepted = {_x(mark): (round(mark.accepted[0], 3), round(mark.accepted[1], 3)) for mark in marks if mark.accepted}
    for (low, high), places in groupby(sorted(accepted), key=lambda x: accepted[x]):
        first, *others = places
        yield Band(low, high, (first / BESIDE, (others or [first])[-1] * BESIDE))


def _x(mark: Mark) -> float:
    assert mark.x is not None, "this kind has an x axis"
    return mark.x


def _draw(axes: Axes, mark: Mark, x: float, look: Look, group: str, titles: dict[str, str]) -> None:
    if mark.low is not None and mark.high is not None:
        axes.plot([x, x], [mark.low, mark.high], "-", color=look.colour, lw=1.5)
    face = PAGE if mark.hollow else look.colour
    (drawn,) = axes.plot(x, mark.value, look.marker, ms=5.5, mew=1.2, mec=look.colour, mfc=face)
    drawn.set_gid(group)
    drawn.set_url(mark.href)
    titles[group] = mark.tooltip


KIND = FigureKind(
    "agreement",
    "ours over the published value of each claim (`claims`), over what their rows count, with what their rules accept",
    "message sizes",
    agreement,
    claims=True,
)
