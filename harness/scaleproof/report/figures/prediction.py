"""A prediction as a picture in a file: throughput and efficiency over nodes with their intervals, the parts of a step,
and the resource that limits it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from scaleproof.report.figures.style import INK, MUTED, Look, light, part_colour, printed
from scaleproof.report.numbers import exact, significant

MOST_TICKS = 10
DPI = 144


class Bounded(NamedTuple):
    """A value with the ends of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class NodesPoint:
    """One number of nodes: throughput in samples/s, efficiency, share of exposed communication in a step, and the
    resource that limits the step."""

    nodes: int
    throughput: Bounded
    efficiency: Bounded
    exposed_share: float
    binds: str


@dataclass(frozen=True, slots=True)
class PredictionPicture:
    """The content of the picture. `useful`: the largest number of nodes with at least `least` efficiency, and its
    interval; 0: none. `more`: larger numbers were not predicted."""

    title: str
    subtitle: str
    points: Sequence[NodesPoint]
    least: float
    useful: Bounded
    more: bool


def save(picture: PredictionPicture, paths: Sequence[Path]) -> None:
    """Write the picture to files, in the format of their suffix (png, svg or pdf)."""
    with printed():
        figure = Figure(figsize=(11.5, 4.3), layout="constrained", dpi=DPI)
        throughput, efficiency, step = figure.subplots(1, 3)
        _throughput(throughput, picture)
        _efficiency(efficiency, picture)
        _step(step, picture)
        figure.suptitle(picture.title, x=0.01, ha="left", fontsize=12, color=light(INK), fontweight="bold")
        figure.supxlabel(picture.subtitle, x=0.01, ha="left", fontsize=8, color=light(MUTED))
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _throughput(axes: Axes, picture: PredictionPicture) -> None:
    nodes = [point.nodes for point in picture.points]
    colour = _colour()
    first = picture.points[0]
    axes.plot(
        nodes,
        [first.throughput.value * count / first.nodes for count in nodes],
        ls="--",
        color=light(MUTED),
        lw=1.1,
        label="ideal",
    )
    _band(axes, nodes, [point.throughput for point in picture.points], colour)
    axes.set_yscale("log")
    axes.set_title("Throughput (samples/s) ↑", loc="left")
    axes.legend(frameon=False, fontsize=8.5, loc="upper left")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))
    _nodes(axes, nodes)


def _efficiency(axes: Axes, picture: PredictionPicture) -> None:
    nodes = [point.nodes for point in picture.points]
    _band(axes, nodes, [point.efficiency for point in picture.points], _colour())
    axes.axhline(picture.least, color=light(MUTED), lw=1, ls=":")
    value, low, high = picture.useful
    if value:
        axes.axvspan(max(low, nodes[0]), max(high, nodes[0]), color=light(MUTED), alpha=0.12, lw=0)
        axes.axvline(value, color=light(MUTED), lw=1.2)
        is_on_right = value > (nodes[0] * nodes[-1]) ** 0.5
        axes.annotate(
            f"{value} nodes{' or more' if picture.more else ''}",
            (value, 0.03),
            (-5 if is_on_right else 5, 0),
            textcoords="offset points",
            ha="right" if is_on_right else "left",
            fontsize=9,
        )
    axes.annotate(
        f"{picture.least:.0%}",
        (nodes[-1], picture.least),
        (0, 3),
        textcoords="offset points",
        ha="right",
        fontsize=8.5,
        color=light(MUTED),
    )
    axes.set_ylim(0, 1.08)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.0%}"))
    axes.set_title("Efficiency (speed-up / nodes) ↑", loc="left")
    _nodes(axes, nodes)


def _step(axes: Axes, picture: PredictionPicture) -> None:
    indices = range(len(picture.points))
    exposed = [point.exposed_share for point in picture.points]
    axes.bar(indices, [1 - share for share in exposed], 0.72, color=light(part_colour(1)), label="computing")
    axes.bar(
        indices,
        exposed,
        0.72,
        bottom=[1 - share for share in exposed],
        color=light(part_colour(3)),
        label="exposed communication",
    )
    for index, point in zip(indices, picture.points, strict=True):
        axes.annotate(
            point.binds,
            (index, 0.03),
            rotation=90,
            ha="center",
            va="bottom",
            fontsize=8.5,
            color="#ffffff",
            fontweight="bold",
        )
    axes.set_xticks(list(indices), [str(point.nodes) for point in picture.points])
    axes.grid(visible=False, axis="x")
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.0%}"))
    axes.set_title("A step, and what binds it", loc="left")
    axes.set_xlabel("nodes")
    axes.legend(frameon=False, fontsize=8.5, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)


def _band(axes: Axes, nodes: Sequence[int], values: Sequence[Bounded], colour: str) -> None:
    axes.fill_between(
        nodes,
        [bounded.low for bounded in values],
        [bounded.high for bounded in values],
        color=colour,
        alpha=0.18,
        lw=0,
        label="interval",
    )
    axes.plot(
        nodes,
        [bounded.value for bounded in values],
        marker="o",
        mec=colour,
        color=colour,
        ms=5,
        mfc="#ffffff",
        mew=1.4,
        lw=1.6,
        label="simulated",
    )


def _nodes(axes: Axes, nodes: Sequence[int]) -> None:
    ticks = nodes[:: max(1, -(-len(nodes) // MOST_TICKS))]
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [significant(count) for count in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(visible=False, axis="x")
    axes.set_xlabel("nodes")


def _colour() -> str:
    return light(Look("", 0, "o", 0).colour)
