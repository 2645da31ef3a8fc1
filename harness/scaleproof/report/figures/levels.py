"""Scaling at several levels of evidence on the same axes, with what the paper published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from scaleproof.core.record_schema import Evidence
from scaleproof.report.figures.inline_svg import svg
from scaleproof.report.figures.kinds import FigureKind, Mark, Plot
from scaleproof.report.figures.style import INK, MUTED, PAGE, Look, panel, styled
from scaleproof.report.numbers import exact

SIZES: dict[Evidence, float] = {"simulated": 4.5, "emulated": 9.0, "measured": 6.0}
"""Of marks, in the order of drawing: where levels agree, the measured mark stands inside the emulated one, and what was
only predicted is small."""
LINES: dict[Evidence, float] = {"measured": 1.8, "emulated": 1.4, "simulated": 1.0}
STAR = 11.0
ASIDE = 0.25
"""Octaves between neighbouring curves of one point: they would hide each other and the paper's."""
APART, REACH = 9.0, 150.0
"""Pixels between the names of curves, above each other and along."""
CLOSE = 40.0
"""Ends of curves that are no further apart along the axis have their names in one column."""
NAMES = 0.45
"""Length of the axis behind its last mark, where the names stand, over that of the axis before it."""
MOST_TICKS = 9
HEADLINE = (7.6, 4.4)
"""Inches of a figure that stands alone."""


@dataclass(frozen=True, slots=True)
class LevelPoint:
    """One series at one number of ranks: value, interval (may be missing), words shown when pointing at it, and where
    it leads."""

    ranks: int
    value: float
    low: float | None
    high: float | None
    words: str
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
    words: str
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
) -> Markup:
    """One panel over ranks (powers of 2). `ideal`: "x" for the diagonal, with both axes logarithmic; a value for a
    level line; None for no line. `size`: inches. `named`: the name of each curve stands at its end."""
    figure, axes = panel(*size)
    titles: dict[str, str] = {}
    counts = sorted(
        {1} | {point.ranks for curve in curves for point in curve.points} | {point.ranks for point in published}
    )
    axes.set_xscale("log", base=2)
    if ideal == "x":
        axes.set_yscale("log", base=2)
    if ideal is not None:
        axes.plot(counts, counts if ideal == "x" else [float(ideal)] * len(counts), "--", color=MUTED, lw=1.0)
    shifts = _asides(curves)
    for place, curve in sorted(enumerate(curves), key=lambda numbered: list(SIZES).index(numbered[1].level)):
        _draw(axes, curve, shifts[place], looks[curve.name], f"l{place}", titles)
    for place, point in enumerate(published):
        (mark,) = axes.plot(
            point.ranks,
            point.value,
            "*",
            ms=STAR,
            mew=1.1,
            mec=point.colour,
            mfc=PAGE if point.recalled else point.colour,
            zorder=5,
        )
        mark.set_gid(f"paper{place}")
        mark.set_url(point.href)
        titles[f"paper{place}"] = point.words
    _axes(axes, counts, quantity, ideal == "x", NAMES if named else 0.0)
    axes.set_xlabel(x_label)
    if named:
        _named(figure, axes, curves, shifts, looks)
    return svg(figure, label, titles)


def _asides(curves: Sequence[LevelCurve]) -> list[float]:
    """For each curve the factor that puts it beside other arms with one point at the same number of ranks; arms with
    more stay where they are, and levels of one arm on each other."""
    several = {curve.name for curve in curves if len(curve.points) > 1}
    alone: dict[int, list[str]] = {}
    for curve in curves:
        here = alone.setdefault(curve.points[0].ranks, [])
        if curve.name not in several and curve.name not in here:
            here.append(curve.name)
    places = [(curve.name, alone[curve.points[0].ranks]) for curve in curves]
    return [2.0 ** (ASIDE * (here.index(name) - (len(here) - 1) / 2)) if name in here else 1.0 for name, here in places]


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
    for place, point in enumerate(points):
        if point.low is not None and point.high is not None and not (predicted and len(bounds) > 1):
            axes.plot(
                [x[place], x[place]], [point.low, point.high], "-", marker="_", ms=8, mew=1.5, lw=1.4, color=look.colour
            )
        face = PAGE if curve.hollow else look.colour
        (mark,) = axes.plot(
            x[place], point.value, look.marker, ms=SIZES[curve.level], mew=1.4, mec=look.colour, mfc=face
        )
        mark.set_gid(f"{group}x{place}")
        mark.set_url(point.href)
        titles[f"{group}x{place}"] = point.words


def _named(
    figure: Figure, axes: Axes, curves: Sequence[LevelCurve], shifts: Sequence[float], looks: dict[str, Look]
) -> None:
    """Arm and level of evidence behind the end of each curve, moved apart where they would lie on each other."""
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
        at = y
        while any(abs(at - other) < APART and abs(x - place) < REACH for place, other in placed):
            at -= 1
        placed.append((x, at))
        beside = max(place for place, *_ in drawn_ends if abs(place - x) < CLOSE)
        words = f"{curve.name}, {curve.level}"
        behind = {"facecolor": PAGE, "alpha": 0.7, "linewidth": 0, "pad": 0.5}
        axes.annotate(
            words,
            (beside + 8, at - 3),
            xycoords="figure pixels",
            fontsize=7.5,
            color=looks[curve.name].colour,
            bbox=behind,
        )


def _axes(axes: Axes, counts: list[int], quantity: str, logarithmic: bool, behind: float) -> None:
    shown = counts[:: max(1, -(-len(counts) // MOST_TICKS))]
    axes.set_xlim(counts[0] / 1.3, counts[-1] * 1.3 * (counts[-1] / counts[0]) ** behind)
    axes.set_xticks(shown, [str(count) for count in shown])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(visible=False, axis="x")
    axes.set_ylabel(quantity)
    if logarithmic:
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0, max(axes.get_ylim()[1], 1.05))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))


def _plotted(plot: Plot) -> Markup:
    curves = [
        LevelCurve(series.name, level, any(mark.hollow for mark in marks), [_point(mark) for mark in marks])
        for series in plot.series
        for level in SIZES
        if (marks := [mark for mark in series.marks if mark.evidence == level])
    ]
    published = [
        Published(round(point.x), point.value, not point.judged, point.words, point.href, series.look.colour)
        for series in plot.series
        for point in series.published
        if point.x is not None
    ]
    return levels(
        plot.alt, curves, plot.looks, published, plot.y_label, plot.ideal, plot.x_label, HEADLINE, named=False
    )


def _point(mark: Mark) -> LevelPoint:
    assert mark.x is not None, "this kind has an x axis"
    return LevelPoint(round(mark.x), mark.value, mark.low, mark.high, mark.words, mark.href)


KIND = FigureKind(
    "levels", "a curve per series and level of evidence over ranks or nodes, with the paper's points", "ranks", _plotted
)
