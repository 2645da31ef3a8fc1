"""Individual launches as dots, each with its value as a tooltip and a link to its page. Hollow dots are not measured at
full speed."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from scaleproof.report.figures.inline_svg import svg
from scaleproof.report.figures.kinds import FigureKind, Plot, Series
from scaleproof.report.figures.style import INK, MUTED, PAGE, Look, from_zero, panel, styled
from scaleproof.report.numbers import exact

ROW = 0.42
"""Inches between rows."""
STAR = 11.0
"""Points across a star, the mark of the paper's values."""


@dataclass(frozen=True, slots=True)
class Dot:
    """One launch in a panel."""

    x: float
    y: float
    hollow: bool
    tooltip: str
    href: str


def draw(axes: Axes, dots: list[Dot], look: Look, titles: dict[str, str], size: float = 4.5) -> None:
    """Draw the dots, and add their tooltips to `titles` by the id of their SVG group."""
    for dot in dots:
        face, alpha = (PAGE, 1.0) if dot.hollow else (look.colour, 0.55)
        (line,) = axes.plot(dot.x, dot.y, look.marker, ms=size, mew=1.1, mfc=face, mec=look.colour, alpha=alpha)
        line.set_clip_on(False)  # a dot at zero is whole
        group = f"dot{len(titles)}"
        line.set_gid(group)
        line.set_url(dot.href)
        titles[group] = dot.tooltip


def median_mark(
    axes: Axes,
    x: float,
    y: float,
    ends: tuple[float | None, float | None],
    look: Look,
    hollow: bool,
    horizontal: bool = False,
) -> None:
    """Draw a median with its interval, which may be missing; `horizontal`: values are on the x axis."""
    low, high = ends
    if low is not None and high is not None:
        span = ([low, high], [y, y]) if horizontal else ([x, x], [low, high])
        axes.plot(*span, "-", marker="|" if horizontal else "_", ms=9, mew=1.8, color=look.colour)
    axes.plot(x, y, look.marker, ms=7.5, mew=1.6, mfc=PAGE if hollow else look.colour, mec=look.colour, clip_on=False)


@styled
def rows(plot: Plot) -> Markup:
    """A row per series and level of evidence: every launch, the median with its interval, and the paper's value."""
    lines = [(series, level) for series in plot.series for level in _levels(series)]
    figure, axes = panel(7.6, 0.9 + ROW * len(lines))
    titles: dict[str, str] = {}
    if plot.log:
        axes.set_xscale("log")
    for row, (series, level) in enumerate(lines):
        for mark in (mark for mark in series.marks if mark.evidence == level):
            dots = [Dot(launch.value, row, launch.hollow, launch.tooltip, launch.href) for launch in mark.launches]
            draw(axes, dots, series.look, titles)
            median_mark(axes, mark.value, row, (mark.low, mark.high), series.look, mark.hollow, horizontal=True)
            _point_at(axes, mark.value, row, mark.tooltip, mark.href, titles)
        for number, point in enumerate(series.published):
            face = INK if point.judged else PAGE
            (star,) = axes.plot(point.value, row, "*", ms=STAR, mew=1.1, mec=INK, mfc=face, zorder=5)
            star.set_gid(f"paper{row}x{number}")
            star.set_url(point.href)
            titles[f"paper{row}x{number}"] = point.tooltip
    if isinstance(plot.ideal, float):
        axes.axvline(plot.ideal, color=MUTED, lw=1.0, ls="--")
    several = {series.name for series, _ in lines if len(_levels(series)) > 1}
    names = [f"{series.name}, {level}" if series.name in several else series.name for series, level in lines]
    axes.set_yticks(range(len(lines)), names)
    axes.set_ylim(len(lines) - 0.5, -0.5)
    if plot.log:
        _log_ticks(axes)
    else:
        from_zero(axes, horizontal=True)
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))
    axes.set_xlabel(plot.y_label)
    return svg(figure, plot.alt, titles)


def _log_ticks(axes: Axes) -> None:
    """Few enough that their labels do not run into each other, and more than one."""
    low, high = axes.get_xlim()
    between = LogLocator(10, (1.0, 2.0, 5.0) if high < 300 * low else (1.0,))
    axes.xaxis.set_major_locator(MaxNLocator(4) if high < 10 * low else between)
    axes.xaxis.set_minor_locator(NullLocator())


def _levels(series: Series) -> list[str | None]:
    """The levels of evidence of a series; None if only the paper has a value."""
    return list(dict.fromkeys(mark.evidence for mark in series.marks)) or [None]


def _point_at(axes: Axes, x: float, y: float, tooltip: str, href: str, titles: dict[str, str]) -> None:
    """Draw an invisible mark over a median, with a tooltip and a link."""
    (mark,) = axes.plot(x, y, "o", ms=9, mew=0, mfc=PAGE, alpha=0.01, zorder=6)
    mark.set_gid(f"mark{len(titles)}")
    mark.set_url(href)
    titles[f"mark{len(titles)}"] = tooltip


KIND = FigureKind("dots", "a row per series: launches, the median with its interval, the paper's value", None, rows)
