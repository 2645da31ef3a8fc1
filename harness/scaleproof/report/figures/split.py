"""Where the time of a step goes: one stacked bar per arm."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import seaborn as sns
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from scaleproof.report.figures.inline_svg import svg
from scaleproof.report.figures.style import INK, PAGE, panel, part_colour, styled
from scaleproof.report.numbers import exact, significant

PARTS = ("input", "forward", "backward", "exposed transfer", "imbalance", "update", "other")
"""Names of claims/metrics_split.py's PARTS, in the same order."""
COLOURS = (*PARTS, "wait for peer", "wait for server", "wait at barrier", "delayed")
"""Parts of all strategies, in the order of their colours."""
HATCHES = {"exposed transfer": "///", "imbalance": "...", "wait for peer": "...", "wait for server": "..."}


@styled
def split(label: str, bars: dict[str, tuple[float, ...]], parts: Sequence[str] = PARTS) -> Markup:
    """One panel. `bars`: name of an arm to the time in ms of each of `parts`."""
    figure, axes = panel(height=0.95 + 0.36 * len(bars))
    _draw_bars(axes, bars, parts)
    titles: dict[str, str] = {}
    names = list(bars)
    for index, container in enumerate(axes.containers):
        for row, bar in enumerate(container):
            if parts[index] in HATCHES:
                bar.set_hatch(HATCHES[parts[index]])
            bar.set_gid(f"bar{row}x{index}")
            titles[f"bar{row}x{index}"] = f"{names[row]}: {parts[index]} {significant(bars[names[row]][index])} ms"
    totals = [sum(lengths) for lengths in bars.values()]
    for row, total in enumerate(totals):
        axes.annotate(
            significant(total),
            (total, row),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=INK,
        )
    axes.set_yticks(range(len(bars)), names)
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.set_xlim(0, max(totals) * 1.13)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))
    axes.grid(visible=False, axis="y")
    axes.set_ylabel("")
    axes.set_xlabel("time per step (ms), lower is better")
    return svg(figure, label, titles)


def _draw_bars(axes: Axes, bars: dict[str, tuple[float, ...]], parts: Sequence[str]) -> None:
    rows = [(name, part, length) for name, lengths in bars.items() for part, length in zip(parts, lengths, strict=True)]
    sns.histplot(
        pd.DataFrame(rows, columns=["arm", "part", "ms"]),
        y="arm",
        weights="ms",
        hue="part",
        # Seaborn stacks the last part first; with the order reversed the first part begins at 0.
        hue_order=parts[::-1],
        multiple="stack",
        shrink=0.68,
        palette={part: part_colour(COLOURS.index(part)) for part in parts},
        alpha=1,
        edgecolor=PAGE,
        linewidth=0.6,
        legend=False,
        ax=axes,
    )
