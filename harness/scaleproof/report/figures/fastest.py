"""The series with the smallest value at each x and row, and by how much the next one is larger."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from scaleproof.report.figures.inline_svg import svg
from scaleproof.report.figures.kinds import FigureKind, Mark, Plot, Series
from scaleproof.report.figures.style import INK, PAGE, panel, styled
from scaleproof.report.numbers import exact, nbytes, significant

ROW = 0.42
"""Inches of a row."""
SHADE = 0.35
"""Opacity of a cell, so that its text can be read on every colour."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of one series in a cell."""

    series: Series
    mark: Mark


@styled
def fastest(plot: Plot) -> Markup:
    """A cell per x and row: colour and marker of the smallest value, and the factor to the next one; all values in the
    tooltip."""
    cells = _cells(plot)
    columns, rows = sorted({x for x, _ in cells}), sorted({row for _, row in cells})
    figure, axes = panel(7.6, 1.1 + ROW * len(rows))
    titles: dict[str, str] = {}
    for (x, row), entries in cells.items():
        group = f"cell{len(titles)}"
        _draw(axes, columns.index(x), rows.index(row), sorted(entries, key=_value), group)
        titles[group] = _tooltip(x, row, sorted(entries, key=_value))
    axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(-0.5, len(rows) - 0.5), xlabel=plot.x_label, ylabel=plot.y_label)
    axes.set_xticks(range(len(columns)), [nbytes(round(x)) for x in columns])
    axes.set_yticks(range(len(rows)), [exact(row) for row in rows])
    axes.grid(visible=False)
    return svg(figure, plot.alt, titles)


def _cells(plot: Plot) -> dict[tuple[float, float], list[Entry]]:
    """The values at each x and row."""
    cells = defaultdict[tuple[float, float], list[Entry]](list)
    for series in plot.series:
        for mark in series.marks:
            if mark.x is not None and mark.row is not None:
                cells[mark.x, mark.row].append(Entry(series, mark))
    return dict(cells)


def _draw(axes: Axes, column: int, row: int, entries: list[Entry], group: str) -> None:
    """`entries`: the smallest first."""
    first = entries[0]
    look = first.series.look
    box = Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=look.colour, edgecolor=PAGE, alpha=SHADE, lw=1.5)
    box.set_gid(group)
    box.set_url(first.mark.href)
    axes.add_patch(box)
    axes.plot(column - 0.28, row, look.marker, ms=5.5, mew=1.2, mfc=look.colour, mec=look.colour)
    if len(entries) > 1 and first.mark.value > 0:
        axes.text(column + 0.1, row, f"{_factor(entries)}x", color=INK, fontsize=7.5, ha="center", va="center")


def _value(entry: Entry) -> float:
    return entry.mark.value


def _factor(entries: list[Entry]) -> str:
    return f"{entries[1].mark.value / entries[0].mark.value:.2g}"


def _tooltip(x: float, row: float, entries: list[Entry]) -> str:
    values = [f"{entry.series.name} {significant(entry.mark.value)}" for entry in entries]
    return f"{nbytes(round(x))}, {exact(row)}: {', '.join(values)}"


KIND = FigureKind(
    "fastest",
    "a cell per message size and value of a field (`rows`): the series with the smallest value there",
    "message sizes",
    fastest,
    rows=True,
)
