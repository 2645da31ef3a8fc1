"""Passes of a pipeline as launches recorded them: a panel per series, ranks against time, on one axis of time."""

from __future__ import annotations

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scaleproof.report.figures.inline_svg import svg
from scaleproof.report.figures.kinds import FigureKind, Iteration, Plot, RecordedPass
from scaleproof.report.figures.pipeline import Bar, colour, draw_bars
from scaleproof.report.figures.style import PAGE, LegendEntry, styled
from scaleproof.report.numbers import significant

WIDTH, ROW, BETWEEN, BELOW = 7.6, 0.24, 0.36, 0.45
"""Inches: of the figure, of a rank, of the title above a panel, of the axis below the last one."""
NARROWEST = 0.016
"""Shortest bar with a number, as a share of the axis: a narrower one has no room for two digits."""


@styled
def passes(plot: Plot) -> Markup:
    """A panel per series that has an iteration."""
    drawn = [(each.name, each.iteration) for each in plot.series if each.iteration]
    ranks = [1 + max(each.rank for each in iteration.passes) for _, iteration in drawn]
    figure = Figure(figsize=(WIDTH, BELOW + sum(ROW * count + BETWEEN for count in ranks)), layout="constrained")
    panels = figure.subplots(len(drawn), sharex=True, squeeze=False, height_ratios=ranks)[:, 0]
    longest = max(iteration.length_ms for _, iteration in drawn)
    titles: dict[str, str] = {}
    for number, (axes, (name, iteration), rows) in enumerate(zip(panels, drawn, ranks, strict=True)):
        axes.set_xlim(0, longest)
        draw_bars(axes, _bars(number, iteration, longest * NARROWEST), rows, PAGE, 7.5)
        _label(axes, name, iteration, plot.y_label)
        titles |= {_gid(number, place): _tooltip(name, each) for place, each in enumerate(iteration.passes)}
    panels[-1].set_xlabel("time since the first pass of the iteration began (ms)")
    return svg(figure, plot.alt, titles)


def _bars(panel: int, iteration: Iteration, narrowest: float) -> list[Bar]:
    return [
        Bar(
            each.rank,
            each.start_ms,
            each.end_ms,
            each.micro_batch,
            each.direction == "forward",
            str(each.micro_batch) if each.end_ms - each.start_ms >= narrowest else "",
            gid=_gid(panel, place),
        )
        for place, each in enumerate(iteration.passes)
    ]


def _label(axes: Axes, name: str, iteration: Iteration, y_label: str) -> None:
    """The title says what was run and leads to the launch's page."""
    text = f"{name}: {significant(iteration.length_ms)} ms (launch {iteration.launch}, {iteration.evidence})"
    axes.set_title(text, loc="left", fontsize=9, url=f"runs/{iteration.launch}.html")
    axes.set_ylabel(y_label)
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.set_axisbelow(True)


def _gid(panel: int, place: int) -> str:
    return f"pass{panel}x{place}"


def _tooltip(name: str, each: RecordedPass) -> str:
    length = significant(each.end_ms - each.start_ms)
    begin = significant(each.start_ms)
    return f"{name}, rank {each.rank}: {each.direction} of micro-batch {each.micro_batch}, {length} ms from {begin} ms"


def key() -> list[LegendEntry]:
    """What full and light colours mean, with those of the first two micro-batches."""
    return [LegendEntry(_swatches(True), "forward pass"), LegendEntry(_swatches(False), "backward pass")]


def _swatches(is_forward: bool) -> Markup:
    swatch = Markup('<span class="swatch" style="background:{}"></span>')
    return Markup("").join(swatch.format(colour(hue, is_forward)) for hue in (0, 1))


KIND = FigureKind(
    "passes",
    "forward and backward passes of a pipeline in one launch per series, ranks against time",
    None,
    passes,
    passes=True,
)
