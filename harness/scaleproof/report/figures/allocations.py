"""What packed trees carry over edge-disjoint rings on every allocation of a machine, as arithmetic: a panel for each
collective, allocations by their number of devices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from pydantic import BaseModel, ConfigDict, Field

from scaleproof.packed_trees.allocation_rates import Collective, Gain, gains
from scaleproof.report.figures.inline_svg import svg
from scaleproof.report.figures.kinds import FigureKind, Plot
from scaleproof.report.figures.style import INK, MUTED, LegendEntry, Look, key_mark, styled
from scaleproof.report.numbers import exact, significant

WIDTH, PANEL, LABELS = 7.6, 1.9, 0.75
"""Inches: of the figure, the height of a panel, and what device numbers below the last panel take."""
WIDE = 0.1
"""Share of the allocations from which on a group has room for a word."""
TICKS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
RING, NO_RING = Look("links make a ring", 0, "o", 0), Look("no ring of links: PCI Express in its place", 1, "D", 0)
NAMES: dict[Collective, str] = {"broadcast": "broadcast", "all_reduce": "all-reduce"}


class AllocationsOf(BaseModel):
    """All kinds of allocations of a machine."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    cluster: str = Field(description="A description in clusters/ with links from node to node.")
    collectives: tuple[Collective, ...] = Field(min_length=1, description="What goes over the trees, a panel each.")
    pcie_gb_per_s: tuple[float, float] = Field(
        description="[low, high]: what a ring over PCI Express carries where links make none, GB/s."
    )


def sorted_gains(of: AllocationsOf, collective: Collective) -> list[Gain]:
    """Of all allocations, by number of devices; of equally many those with a ring first, and what gains less before
    what gains more. The order is that of the first collective: each allocation has one place in all panels."""
    first = gains(of.cluster, of.collectives[0], of.pcie_gb_per_s)
    order = sorted(first, key=lambda each: (len(each.devices), not each.has_ring, each.least, each.devices))
    found = {each.devices: each for each in gains(of.cluster, collective, of.pcie_gb_per_s)}
    return [found[each.devices] for each in order]


@styled
def allocations(plot: Plot) -> Markup:
    """All allocations of a machine on a page."""
    of: AllocationsOf = plot.of
    count, titles = len(of.collectives), dict[str, str]()
    figure = Figure(figsize=(WIDTH, PANEL * count + LABELS), layout="constrained")
    panels = list(figure.subplots(count, 1, sharex=True, squeeze=False).flat)
    for axes, collective in zip(panels, of.collectives, strict=True):
        found = sorted_gains(of, collective)
        _draw(axes, found, titles)
        axes.set_title(NAMES[collective], loc="left", fontsize=9, pad=14 if axes is panels[0] else 4)
    _groups(panels, found)
    figure.supylabel(plot.y_label, fontsize=9, color=MUTED)
    return svg(figure, plot.alt, titles)


def _draw(axes: Axes, found: Sequence[Gain], titles: dict[str, str]) -> None:
    """A dot for each allocation; where PCI Express stands in for a ring, one at each end of its rate and a line between
    them."""
    axes.axhline(1.0, color=MUTED, lw=1.0, ls="--")
    for place, gain in enumerate(found):
        look = RING if gain.has_ring else NO_RING
        ends = sorted({gain.least, gain.most})
        (line,) = axes.plot([place] * len(ends), ends, color=look.colour, marker=look.marker, ms=4.0, lw=1.4, zorder=3)
        group = f"allocation{len(titles)}"
        line.set_gid(group)
        titles[group] = _text(gain)
    axes.set_yscale("log")
    axes.margins(y=0.1)
    axes.yaxis.set_major_locator(FixedLocator(TICKS))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: exact(value)))
    axes.grid(visible=False, axis="x")


def _groups(panels: Sequence[Axes], found: Sequence[Gain]) -> None:
    """A line between allocations of different sizes, how many devices each group has, and all devices at the bottom."""
    begin = 0
    for devices, group in groupby(found, key=lambda gain: len(gain.devices)):
        end = begin + len(list(group))
        text = f"{devices} devices" if end - begin >= WIDE * len(found) else str(devices)
        panels[0].annotate(
            text,
            ((begin + end - 1) / 2, 1.0),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="bottom",
            fontsize=7,
            color=INK,
        )
        for axes in panels if begin else ():
            axes.axvline(begin - 0.5, color=MUTED, lw=0.6)
        begin = end
    labels = [" ".join(map(str, gain.devices)) for gain in found]
    panels[-1].set_xticks(range(len(found)), labels, rotation=90, fontsize=6.5)
    panels[-1].set_xlim(-0.7, len(found) - 0.3)
    panels[-1].set_xlabel("devices of the allocation", fontsize=9)


def _text(gain: Gain) -> str:
    """The tooltip of an allocation."""
    rings = f"rings {significant(gain.rings)}" if gain.has_ring else "no ring"
    ratios = dict.fromkeys(significant(value) for value in (gain.least, gain.most))
    devices = ", ".join(map(str, gain.devices))
    return f"devices {devices}: trees carry {significant(gain.trees)} links, {rings}; {' to '.join(ratios)} times"


def table(of: AllocationsOf) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """The rates of all allocations, in links, and the ratios at both ends of PCI Express."""
    rows: list[tuple[object, ...]] = [
        (collective, " ".join(map(str, gain.devices)), gain.trees, gain.rings, gain.least, gain.most)
        for collective in of.collectives
        for gain in sorted_gains(of, collective)
    ]
    return ("collective", "devices", "trees_links", "rings_links", "times_low", "times_high"), rows


def key(of: AllocationsOf) -> list[LegendEntry]:
    """The colours that are drawn."""
    drawn = {gain.has_ring for gain in sorted_gains(of, of.collectives[0])}
    low, high = map(exact, of.pcie_gb_per_s)
    without = f"{NO_RING.name}, at {low} and {high} GB/s"
    entries = [(True, RING, RING.name), (False, NO_RING, without)]
    return [LegendEntry(key_mark(look), name) for has_ring, look, name in entries if has_ring in drawn]


KIND = FigureKind(
    "allocations",
    "rate of packed trees over that of rings on every allocation of a machine, by number of devices",
    None,
    allocations,
    of=AllocationsOf,
    table=table,
    key=key,
)
