"""Packed trees, all links of the devices and each tree by itself: as a picture in a file, or on a page."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, cos, pi, sin
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import BaseModel, ConfigDict, Field

from scaleproof.packed_trees.allocation_rates import Collective, packing_of
from scaleproof.packed_trees.arborescence import Edge
from scaleproof.packed_trees.link_graph import machine
from scaleproof.packed_trees.multiplicative_weights import Packing
from scaleproof.report.figures.inline_svg import svg
from scaleproof.report.figures.kinds import FigureKind, Plot
from scaleproof.report.figures.style import INK, MUTED, PAGE, light, printed, styled

DPI = 144
SIDE = 2.3
"""Inches of a panel."""
ACROSS = 4
"""Panels of a row at most."""
HUES = ("#4477aa", "#ee6677", "#228833", "#aa3377", "#ccbb44", "#66ccee")
LINE = 1.6
"""Points of a link; two links between a pair have twice as much."""
Place = tuple[float, float]


class TreesOf(BaseModel):
    """Devices of a machine, by their numbers in it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    cluster: str = Field(description="A description in clusters/ with links from node to node.")
    devices: tuple[int, ...] = Field(min_length=2, description="Devices of it.")
    collective: Collective = Field(description="What goes over the trees.")


def save(packing: Packing, title: str, paths: Sequence[Path]) -> None:
    """Write the picture to files, in the format of their suffix (png, svg or pdf)."""
    with printed():
        figure = _drawn(packing, Colours(light(INK), light(MUTED), "white"))
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, color=light(INK), fontweight="bold")
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


@styled
def trees(plot: Plot) -> Markup:
    """The trees of some devices on a page."""
    return svg(_drawn(_packing(plot.of), Colours(INK, MUTED, PAGE)), plot.alt)


def table(of: TreesOf) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """What each tree carries, and its links."""
    packing = _packing(of)
    rows: list[tuple[object, ...]] = [
        (number, weight, *packing.edges[edge])
        for number, (tree, weight) in enumerate(zip(packing.trees, packing.weights, strict=True), 1)
        for edge in sorted(tree)
    ]
    return ("tree", "carries_links", "from", "to"), rows


def _packing(of: TreesOf) -> Packing:
    return packing_of(machine(of.cluster).of(of.devices), of.collective)


class Colours(NamedTuple):
    """Of outlines, of links and the root, and of devices."""

    ink: str
    muted: str
    page: str


def _drawn(packing: Packing, colours: Colours) -> Figure:
    panels = 1 + len(packing.trees)
    across, down = min(panels, ACROSS), ceil(panels / ACROSS)
    figure = Figure(figsize=(SIDE * across, SIDE * down + 0.5), layout="constrained", dpi=DPI)
    axes = list(figure.subplots(down, across, squeeze=False).flat)
    _links(axes[0], packing, colours)
    for number, (tree, weight) in enumerate(zip(packing.trees, packing.weights, strict=True)):
        edges, hue = [packing.edges[edge] for edge in tree], HUES[number % len(HUES)]
        _tree(axes[1 + number], packing, edges, hue, colours)
        axes[1 + number].set_title(f"tree {number + 1}, carries {weight:g}", fontsize=8)
    for each in axes[panels:]:
        each.set_visible(False)
    return figure


def _places(packing: Packing) -> dict[int, Place]:
    """On a circle, the first device at the top."""
    devices = packing.graph.devices
    turns = {device: 2 * pi * number / len(devices) for number, device in enumerate(devices)}
    return {device: (sin(turn), cos(turn)) for device, turn in turns.items()}


def _links(axes: Axes, packing: Packing, colours: Colours) -> None:
    places = _places(packing)
    for pair, count in packing.graph.links.items():
        (x, y), (to_x, to_y) = (places[device] for device in pair)
        axes.plot([x, to_x], [y, to_y], color=colours.muted, linewidth=LINE * count, zorder=1)
    _devices(axes, packing, places, colours)
    axes.set_title("all links", fontsize=8)


def _tree(axes: Axes, packing: Packing, edges: Sequence[Edge], hue: str, colours: Colours) -> None:
    """Arrows lead away from the root of a broadcast; a tree of an all-reduce has no direction."""
    places = _places(packing)
    for one, other in edges:
        arrow = {
            "arrowstyle": "-" if packing.root is None else "-|>",
            "color": hue,
            "lw": LINE,
            "shrinkA": 8,
            "shrinkB": 8,
        }
        axes.annotate("", xy=places[other], xytext=places[one], arrowprops=arrow)
    _devices(axes, packing, places, colours)


def _devices(axes: Axes, packing: Packing, places: dict[int, Place], colours: Colours) -> None:
    for device, (x, y) in places.items():
        face = colours.muted if device == packing.root else colours.page
        axes.plot(x, y, "o", ms=15, mfc=face, mec=colours.ink, mew=0.8, zorder=3)
        axes.text(x, y, str(device), ha="center", va="center", fontsize=8, zorder=4)
    axes.set_xlim(-1.35, 1.35)
    axes.set_ylim(-1.35, 1.35)
    axes.set_aspect("equal")
    axes.axis("off")


KIND = FigureKind(
    "trees",
    "links of devices, and the packed spanning trees that a collective goes over",
    None,
    trees,
    of=TreesOf,
    table=table,
)
