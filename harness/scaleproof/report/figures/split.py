"""Where the time of a step goes: one stacked bar per arm."""

from __future__ import annotations

from markupsafe import Markup
from matplotlib.ticker import FuncFormatter

from scaleproof.report.figures.style import INK, PAGE, panel, part_colour, styled, svg
from scaleproof.report.numbers import exact, significant

PARTS = ("input", "forward", "backward", "exposed transfer", "imbalance", "update", "other")
"""Names of claims/metrics_split.py's PARTS, in the same order."""
HATCHES = {"exposed transfer": "///", "imbalance": "..."}


@styled
def split(label: str, bars: dict[str, tuple[float, ...]]) -> Markup:
    """One panel. `bars`: name of an arm to the time in ms of each of PARTS."""
    figure, axes = panel(height=0.95 + 0.36 * len(bars))
    titles: dict[str, str] = {}
    for place, (name, parts) in enumerate(bars.items()):
        left = 0.0
        for index, length in enumerate(parts):
            (bar,) = axes.barh(place, length, 0.68, left=left, color=part_colour(index), edgecolor=PAGE, linewidth=0.6)
            if PARTS[index] in HATCHES:
                bar.set_hatch(HATCHES[PARTS[index]])
            bar.set_gid(f"bar{place}x{index}")
            titles[f"bar{place}x{index}"] = f"{name}: {PARTS[index]} {significant(length)} ms"
            left += length
        axes.annotate(
            significant(left), (left, place), (4, 0), textcoords="offset points", va="center", fontsize=9, color=INK
        )
    axes.set_yticks(range(len(bars)), list(bars))
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.set_xlim(0, max(sum(parts) for parts in bars.values()) * 1.13)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("time per step (ms), lower is better")
    return svg(figure, label, titles)
