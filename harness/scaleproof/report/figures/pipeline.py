"""A schedule of a pipeline as a picture in a file: workers against time, the passes of each micro-batch in a colour."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scaleproof.pipelines.schedule import Pass
from scaleproof.pipelines.timing import Timeline
from scaleproof.report.figures.style import INK, MUTED, light, printed

DPI = 144
HUES = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bb8844", "#777777")
"""Micro-batches take them in turn; eight that differ also for colour-blind readers."""
BACKWARD_ALPHA = 0.5
MOST_NUMBERS = 1200
"""Passes from which on their numbers are left out: they would not be legible."""


def save(line: Timeline, title: str, subtitle: str, paths: Sequence[Path]) -> None:
    """Write the picture to files, in the format of their suffix (png, svg or pdf)."""
    workers = len(line.spans)
    with printed():
        figure = Figure(figsize=(11.5, 1.6 + min(0.32 * workers, 8.0)), layout="constrained", dpi=DPI)
        _draw(figure.subplots(), line)
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, color=light(INK), fontweight="bold")
        figure.supxlabel(subtitle, x=0.01, ha="left", fontsize=8, color=light(MUTED))
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _draw(axes: Axes, line: Timeline) -> None:
    numbered, back = sum(map(len, line.spans)) <= MOST_NUMBERS, line.schedule.pipelines / 2
    for worker, (order, spans) in enumerate(zip(line.schedule.orders, line.spans, strict=True)):
        for each, (start, end) in zip(order, spans, strict=True):
            axes.broken_barh(
                [(start, end - start)],
                (worker - 0.42, 0.84),
                facecolor=HUES[each.units[0] // len(each.units) % len(HUES)],
                alpha=1.0 if each.direction == "forward" else BACKWARD_ALPHA,
                edgecolor="white",
                linewidth=0.6,
                hatch="///" if each.pipeline >= back >= 1 else None,
            )
            if numbered:
                axes.text((start + end) / 2, worker, label(each), ha="center", va="center", fontsize=6)
    axes.set_xlim(0, line.makespan)
    axes.set_ylim(len(line.spans) - 0.5, -0.5)
    axes.set_yticks(range(len(line.spans)) if len(line.spans) <= 32 else [])
    axes.set_xlabel("time, in forward passes of one micro-batch at one stage")
    axes.set_ylabel("worker")


def label(each: Pass) -> str:
    """The numbers of a pass: `4`, or `4,5` for two at once."""
    return ",".join(map(str, each.units))
