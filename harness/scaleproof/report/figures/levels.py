"""Scaling at several levels of evidence on the same axes, with what the paper published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from scaleproof.core.record_schema import Evidence
from scaleproof.report.figures.inline_svg import svg
from scaleproof.report.figures.kinds import FigureKind, Mark, Plot
from scaleproof.report.figures.style import INK, MUTED, PAGE, Look, from_zero, panel, styled
from scaleproof.report.numbers import exact

SIZES: dict[Evidence, float] = {"simulated": 4.5, "emulated": 9.0, "measured": 6.0}
"""Sizes of marks, in the order of drawing: where levels agree, the measured mark is inside the emulated one, and the
simulated one is the smallest."""
LINES: dict[Evidence, float] = {"measured": 1.8, "emulated": 1.4, "simulated": 1.0}
STAR = 11.0
ASIDE = 0.25
"""Octaves between neighbouring curves with one point, which would hide each other and the paper's points."""
APART, REACH = 9.0, 150.0
"""Least distance in pixels between the names of curves, vertically and horizontally."""
CLOSE = 40.0
"""Curves whose ends are at most so many pixels apart horizontally have their names in one column."""
NAMES = 0.45
"""Length of the axis behind its last mark, where the names are, as a share of the length before it."""
MOST_TICKS = 9
HEADLINE = (7.6, 4.4)
"""Size in inches of a figure that is not a panel among others."""


@dataclass(frozen=True, slots=True)
class LevelPoint:
    """One series at one number of ranks: value, interval (may be missing), tooltip, and link."""

    ranks: int
    value: float
    low: float | None
    high: float | None
    tooltip: str
    href: str


@dataclass(frozen=True, slots=True)
class LevelCurve:
    """One arm at one level of evidence; `hollow`: no measurement at full speed."""

    name: str
    level: Evidence
    hollow: bool
    points: list[LevelPoint]


@dataclass(frozen=True, slots=True)
class Published:
    """A point of the paper; recalled ones are drawn hollow."""

    ranks: int
    value: float
    recalled: bool
    tooltip: str
    href: str
    colour: str = INK


@styled
def levels(
    label: str,
    curves: Sequence[LevelCurve],
    looks: dict[str, Look],
    published: Sequence[Published],
    quantity: str,
    ideal: float | str | None,
    x_label: str = "ranks",
    size: tuple[float, float] = (5.6, 3.8),
    named: bool = True,
    log: bool = False,
) -> Markup:
    """One panel over ranks (powers of 2). `ideal`: "x" for the diagonal, with both axes logarithmic; a value for a
    horizontal line; None for no line. `size`: inches. `named`: write the name of each curve at its end. `log`: the y
    axis is logarithmic without a diagonal too."""
    figure, axes = panel(*size)
    titles: dict[str, str] = {}
    counts = sorted(
        {1} | {point.ranks for curve in curves for point in curve.points} | {point.ranks for point in published}
    )
    axes.set_xscale("log", base=2)
    if ideal == "x":
        axes.set_yscale("log", base=2)
    elif log:
        axes.set_yscale("log")
    if ideal is not None:
        axes.plot(counts, counts if ideal == "x" else [float(ideal)] * len(counts), "--", color=MUTED, lw=1.0)
    shifts = _shifts(curves)
    for index, curve in sorted(enumerate(curves), key=lambda numbered: list(SIZES).index(numbered[1].level)):
        _draw(axes, curve, shifts[index], looks[curve.name], f"l{index}", titles)
    for index, point in enumerate(published):
        _draw_star(axes, point, f"paper{index}")
        titles[f"paper{index}"] = point.tooltip
    _axes(axes, counts, quantity, NAMES if named else 0.0)
    axes.set_xlabel(x_label)
    if named:
        _named(figure, axes, curves, shifts, looks)
    return svg(figure, label, titles)


def _draw_star(axes: Axes, point: Published, group: str) -> None:
    face = PAGE if point.recalled else point.colour
    (mark,) = axes.plot(point.ranks, point.value, "*", ms=STAR, mew=1.1, mec=point.colour, mfc=face, zorder=5)
    mark.set_gid(group)
    mark.set_url(point.href)


def _shifts(curves: Sequence[LevelCurve]) -> list[float]:
    """For each curve the factor by which its x is shifted. Arms with a single point are moved apart where they have the
    same number of ranks; arms with more points are not shifted. The levels of an arm have the same shift."""
    several = {curve.name for curve in curves if len(curve.points) > 1}
    alone: dict[int, list[str]] = {}
    for curve in curves:
        arms = alone.setdefault(curve.points[0].ranks, [])
        if curve.name not in several and curve.name not in arms:
            arms.append(curve.name)
    groups = [(curve.name, alone[curve.points[0].ranks]) for curve in curves]
    return [2.0 ** (ASIDE * (arms.index(name) - (len(arms) - 1) / 2)) if name in arms else 1.0 for name, arms in groups]


def _draw(axes: Axes, curve: LevelCurve, shift: float, look: Look, group: str, titles: dict[str, str]) -> None:
    points = sorted(curve.points, key=lambda point: point.ranks)
    x, predicted = [point.ranks * shift for point in points], curve.level == "simulated"
    dashes = (0, (4, 2)) if predicted else "-"
    axes.plot(x, [point.value for point in points], ls=dashes, color=look.colour, lw=LINES[curve.level])
    bounds = [
        (point.ranks * shift, point.low, point.high)
        for point in points
        if point.low is not None and point.high is not None
    ]
    if predicted and len(bounds) > 1:
        axes.fill_between(
            [ranks for ranks, _, _ in bounds],
            [low for _, low, _ in bounds],
            [high for *_, high in bounds],
            color=look.colour,
            alpha=0.15,
            lw=0,
        )
    for index, point in enumerate(points):
        if point.low is not None and point.high is not None and not (predicted and len(bounds) > 1):
            axes.plot(
                [x[index], x[index]], [point.low, point.high], "-", marker="_", ms=8, mew=1.5, lw=1.4, color=look.colour
            )
        face = PAGE if curve.hollow else look.colour
        (mark,) = axes.plot(
            x[index], point.value, look.marker, ms=SIZES[curve.level], mew=1.4, mec=look.colour, mfc=face
        )
        mark.set_gid(f"{group}x{index}")
        mark.set_url(point.href)
        titles[f"{group}x{index}"] = point.tooltip


def _named(
    figure: Figure, axes: Axes, curves: Sequence[LevelCurve], shifts: Sequence[float], looks: dict[str, Look]
) -> None:
    """Write arm and level of evidence behind the end of each curve, moved apart where names would overlap."""
    figure.draw_without_rendering()
    ends = [
        (max(curve.points, key=lambda point: point.ranks), shift, curve)
        for curve, shift in zip(curves, shifts, strict=True)
    ]
    drawn_ends = [
        (*axes.transData.transform((point.ranks * shift, point.value)), curve) for point, shift, curve in ends
    ]
    placed: list[tuple[float, float]] = []
    for x, y, curve in sorted(drawn_ends, key=lambda end: (-end[1], end[0])):
        text_y = y
        while any(abs(text_y - other_y) < APART and abs(x - other_x) < REACH for other_x, other_y in placed):
            text_y -= 1
        placed.append((x, text_y))
        column = max(other_x for other_x, *_ in drawn_ends if abs(other_x - x) < CLOSE)
        name = f"{curve.name}, {curve.level}"
        background = {"facecolor": PAGE, "alpha": 0.7, "linewidth": 0, "pad": 0.5}
        axes.annotate(
            name,
            (column + 8, text_y - 3),
            xycoords="figure pixels",
            fontsize=7.5,
            color=looks[curve.name].colour,
            bbox=background,
        )


def _axes(axes: Axes, counts: list[int], quantity: str, behind: float) -> None:
    ticks = counts[:: max(1, -(-len(counts) // MOST_TICKS))]
    axes.set_xlim(counts[0] / 1.3, counts[-1] * 1.3 * (counts[-1] / counts[0]) ** behind)
    axes.set_xticks(ticks, [str(count) for count in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(visible=False, axis="x")
    axes.set_ylabel(quantity)
    if axes.get_yscale() == "log":
        base = axes.yaxis.get_transform().base  # type: ignore[attr-defined]
        axes.yaxis.set_major_locator(LogLocator(base, (1.0,) if base == 2 else (1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        from_zero(axes)
        axes.set_ylim(top=max(axes.get_ylim()[1], 1.05))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))


def _plotted(plot: Plot) -> Markup:
    curves = [
        LevelCurve(series.name, level, any(mark.hollow for mark in marks), [_point(mark) for mark in marks])
        for series in plot.series
        for level in SIZES
        if (marks := [mark for mark in series.marks if mark.evidence == level])
    ]
    published = [
        Published(round(point.x), point.value, not point.judged, point.tooltip, point.href, series.look.colour)
        for series in plot.series
        for point in series.published
        if point.x is not None
    ]
    return levels(
        plot.alt,
        curves,
        plot.looks,
        published,
        plot.y_label,
        plot.ideal,
        plot.x_label,
        HEADLINE,
        named=False,
        log=plot.log,
    )


def _point(mark: Mark) -> LevelPoint:
    assert mark.x is not None, "this kind has an x axis"
    return LevelPoint(round(mark.x), mark.value, mark.low, mark.high, mark.tooltip, mark.href)


KIND = FigureKind(
    "levels", "a curve per series and level of evidence over ranks or nodes, with the paper's points", "ranks", _plotted
)
