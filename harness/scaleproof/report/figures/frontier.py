"""Frontiers of memory and time, a line of steps for each number of devices: as a picture in a file, or on a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from pydantic import BaseModel, ConfigDict, Field

from scaleproof.claims.arithmetic import Workload, network_of
from scaleproof.frontiers.cost_graph import frontier_of
from scaleproof.frontiers.operators import divided
from scaleproof.frontiers.points import Frontier
from scaleproof.report.figures.inline_svg import svg
from scaleproof.report.figures.kinds import FigureKind, Plot
from scaleproof.report.figures.style import INK, MUTED, light, printed, styled
from scaleproof.simulate.nccl.gpu_machine import gpu_machine

DPI = 144
HUES = ("#4477aa", "#ee6677", "#228833", "#aa3377", "#ccbb44", "#66ccee")


class FrontiersOf(BaseModel):
    """A network on more and more devices."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    workload: Workload = Field(description="The network.")
    batch: int = Field(gt=0, description="Samples of a step, of all devices together.")
    devices: tuple[int, ...] = Field(min_length=1, description="Numbers of GPUs, a frontier each.")
    node: str = Field(description="Kind of node (clusters/gpu_nodes.yaml).")
    error: float = Field(ge=0, lt=1, description="Share of its memory by which a strategy left out may be smaller.")
    cap_gb: float | None = Field(None, description="Memory of a device, drawn as a line.")


def save(frontiers: Mapping[int, Frontier], title: str, cap_gb: float | None, paths: Sequence[Path]) -> None:
    """Write the picture to files, in the format of their suffix. `cap_gb`: memory of a device, drawn as a line."""
    with printed():
        figure = Figure(figsize=(8.0, 5.0), layout="constrained", dpi=DPI)
        _draw(figure.subplots(), frontiers, cap_gb, light(MUTED))
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, color=light(INK), fontweight="bold")
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


@styled
def frontier(plot: Plot) -> Markup:
    """The frontiers of a network on a page."""
    figure = Figure(figsize=(7.6, 3.8), layout="constrained")
    axes = figure.subplots()
    _draw(axes, _frontiers(plot.of), plot.of.cap_gb, MUTED)
    axes.set_ylabel(plot.y_label)
    return svg(figure, plot.alt)


def _draw(axes: Axes, frontiers: Mapping[int, Frontier], cap_gb: float | None, muted: str) -> None:
    edge = max(float(each.memory[-1]) for each in frontiers.values()) / 1e9 * 1.05
    for number, (devices, points) in enumerate(frontiers.items()):
        memory, hue = points.memory / 1e9, HUES[number % len(HUES)]
        ends = np.append(memory, edge), np.append(points.time, points.time[-1])
        axes.step(*ends, where="post", color=hue, linewidth=1.6)
        axes.plot(memory, points.time, "o", color=hue, markersize=2.5)
        axes.annotate(
            f"{devices} devices",
            (memory[0], points.time[0]),
            xytext=(4, 4),
            textcoords="offset points",
            color=hue,
            fontsize=9,
        )
    if cap_gb is not None:
        axes.axvline(cap_gb, color=muted, linestyle="--", linewidth=1.0)
    axes.set_yscale("log")
    _enclose(axes)
    for each in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        each(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("memory of a device (GB)")
    axes.set_ylabel("time of a step (s), lower is better")


def _enclose(axes: Axes) -> None:
    """Labels at 1, 2 and 5 below and above all times, where these are far apart: else a frontier may lie beyond
    them."""
    low, high = axes.dataLim.intervaly
    if high < 5 * low:
        return
    labels = LogLocator(10, (1.0, 2.0, 5.0))
    ticks = labels.tick_values(low, high)
    axes.set_ylim(ticks[ticks <= low].max(), ticks[ticks >= high].min())
    axes.yaxis.set_major_locator(labels)
    axes.yaxis.set_minor_locator(NullLocator())


def table(of: FrontiersOf) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """The points of all frontiers."""
    rows: list[tuple[object, ...]] = [
        (devices, memory / 1e9, seconds)
        for devices, points in _frontiers(of).items()
        for memory, seconds in zip(points.memory.tolist(), points.time.tolist(), strict=True)
    ]
    return ("devices", "memory_gb", "time_s"), rows


@lru_cache(maxsize=8)
def _frontiers(of: FrontiersOf) -> dict[int, Frontier]:
    network = network_of(of.workload)
    machines = {devices: gpu_machine(of.node, devices) for devices in of.devices}
    return {
        devices: frontier_of(divided(network, of.batch, machine, states=4).graph, error=of.error)
        for devices, machine in machines.items()
    }


KIND = FigureKind(
    "frontier",
    "time of a step over memory of a device, of the strategies of which none is better in both, by number of devices",
    None,
    frontier,
    of=FrontiersOf,
    table=table,
)
