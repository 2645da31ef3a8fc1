"""Frontiers of memory and time as a picture in a file: a line of steps for each number of devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from scaleproof.frontiers.points import Frontier
from scaleproof.report.figures.style import INK, MUTED, light, printed

DPI = 144
HUES = ("#4477aa", "#ee6677", "#228833", "#aa3377", "#ccbb44", "#66ccee")


def save(frontiers: Mapping[int, Frontier], title: str, cap_gb: float | None, paths: Sequence[Path]) -> None:
    """Write the picture to files, in the format of their suffix. `cap_gb`: memory of a device, drawn as a line."""
    with printed():
        figure = Figure(figsize=(8.0, 5.0), layout="constrained", dpi=DPI)
        axes = figure.subplots()
        for number, (devices, frontier) in enumerate(frontiers.items()):
            memory, hue = frontier.memory / 1e9, HUES[number % len(HUES)]
            edge = max(float(each.memory[-1]) for each in frontiers.values()) / 1e9 * 1.05
            axes.step(
                np.append(memory, edge),
                np.append(frontier.time, frontier.time[-1]),
                where="post",
                color=hue,
                linewidth=1.6,
            )
            axes.plot(memory, frontier.time, "o", color=hue, markersize=2.5)
            axes.annotate(
                f"{devices} devices",
                (memory[0], frontier.time[0]),
                xytext=(4, 4),
                textcoords="offset points",
                color=hue,
                fontsize=9,
            )
        if cap_gb is not None:
            axes.axvline(cap_gb, color=light(MUTED), linestyle="--", linewidth=1.0)
        axes.set_yscale("log")
        for each in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            each(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_xlabel("memory of a device (GB)")
        axes.set_ylabel("time of a step (s), lower is better")
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, color=light(INK), fontweight="bold")
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
