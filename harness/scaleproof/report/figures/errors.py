"""Signed errors over ranks: what lies above 0 is too fast, what lies below it too slow, and a slope is a trend."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

from scaleproof.report.figures.inline_svg import svg
from scaleproof.report.figures.kinds import FigureKind, Mark, Plot, Series
from scaleproof.report.figures.style import INK, MUTED, PAGE, panel, styled
from scaleproof.report.numbers import percent

SIZE = (7.6, 4.2)
"""In inches."""
ASIDE = 0.5
"""Octaves over which the marks of all series at one number of ranks are spread, so that no interval hides another."""


@styled
def errors(plot: Plot) -> Markup:
    """`ideal`: the tolerance, drawn as a dashed line on both sides of 0."""
    figure, axes = panel(*SIZE)
    titles: dict[str, str] = {}
    drawn = [series for series in plot.series if series.marks]
    counts = sorted({round(mark.x) for series in drawn for mark in series.marks if mark.x is not None})
    axes.set_xscale("log", base=2)
    axes.axhline(0, color=INK, lw=0.9)
    for bound in (plot.ideal, -plot.ideal) if isinstance(plot.ideal, float) else ():
        axes.axhline(bound, color=MUTED, lw=1.0, ls="--")
    for index, series in enumerate(drawn):
        shift = 2.0 ** (ASIDE * ((index + 0.5) / len(drawn) - 0.5))
        _draw(axes, series, shift, f"e{index}", titles)
    _axes(axes, counts, plot)
    return svg(figure, plot.alt, titles)


def _draw(axes: Axes, series: Series, shift: float, group: str, titles: dict[str, str]) -> None:
    marks: Sequence[Mark] = sorted(series.marks, key=lambda mark: mark.x or 0)
    x, look = [(mark.x or 0) * shift for mark in marks], series.look
    axes.plot(x, [mark.value for mark in marks], color=look.colour, lw=1.3, ls=look.line)
    for index, (place, mark) in enumerate(zip(x, marks, strict=True)):
        if mark.low is not None and mark.high is not None:
            axes.plot([place, place], [mark.low, mark.high], "-", marker="_", ms=6, mew=1.2, lw=1.1, color=look.colour)
        face = PAGE if mark.hollow else look.colour
        (shown,) = axes.plot(place, mark.value, look.marker, ms=6, mew=1.4, mec=look.colour, mfc=face)
        shown.set_gid(f"{group}x{index}")
        shown.set_url(mark.href)
        titles[f"{group}x{index}"] = mark.tooltip


def _axes(axes: Axes, counts: Sequence[int], plot: Plot) -> None:
    axes.set_xlim(counts[0] / 1.35, counts[-1] * 1.35)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(visible=False, axis="x")
    axes.set_xlabel(plot.x_label)
    axes.set_ylabel(plot.y_label)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: percent(share)))


KIND = FigureKind("errors", "a signed error per series over ranks, around 0, with its tolerance", "ranks", errors)
