"""One look for all figures: seaborn's theme, colours that are variables of the page so that they follow dark mode, and
markers that distinguish series without colour."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import matplotlib
import numpy as np
import seaborn as sns
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scaleproof.spec import registry
from scaleproof.spec.plugins import Kind

STYLE_SHEET = Path(__file__).parents[1] / "static" / "report.css"
PALETTE = ("blue", "orange", "green", "purple", "gold", "sky", "violet", "grey")
"""Names of the colours of series, in the order of the style sheet's variables --s0 to --s7."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "h", "<", ">")
WITHOUT_TRANSPORT = "grey", "X"
"""Colour and marker of arms without a transport."""
SERIES_COLOURS = len(PALETTE) - 1
"""How many colours there are for series with a transport."""
INK, MUTED, GRID, PAGE = "#010101", "#020202", "#030303", "#040404"
"""Placeholders that `inline_svg.svg` replaces by the page's variables."""
VARIABLES = {INK: "ink", MUTED: "muted", GRID: "grid", PAGE: "page"}
VARIABLES |= {f"#0500{index:02x}": f"s{index}" for index in range(len(PALETTE))}
VARIABLES |= {f"#0600{index:02x}": f"p{index}" for index in range(11)}
_OWN: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "scaleproof",
    "font.sans-serif": ["DejaVu Sans"],
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "axes.grid": True,
    "grid.color": GRID,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "hatch.linewidth": 0.8,
    "figure.dpi": 72,
}
_SIZES = {"lines.linewidth": 1.8, "grid.linewidth": 0.8, "axes.linewidth": 0.8, "axes.titlesize": 10}
_THEME: Any = sns.axes_style("ticks") | sns.plotting_context("paper", font_scale=1.05) | _SIZES | _OWN
Drawing = TypeVar("Drawing", bound=Callable[..., Any])


def styled(draw: Drawing) -> Drawing:
    """Decorator of every function that draws. Ticks are made late and would otherwise have the default style."""
    decorated: Drawing = matplotlib.rc_context(_THEME)(draw)
    return decorated


@cache
def _light() -> dict[str, str]:
    """The style sheet's colours of the light page."""
    return dict(re.findall(r"--(\w+): light-dark\((#[0-9a-f]{6}),", STYLE_SHEET.read_text()))


def light(placeholder: str) -> str:
    """The colour that replaces a placeholder in figures that are separate files."""
    return _light()[VARIABLES[placeholder]]


def printed() -> Any:
    """Like `styled`, for figures that are separate files: colours of the light page on white."""
    colours = {name: light(value) for name, value in _THEME.items() if isinstance(value, str) and value in VARIABLES}
    return matplotlib.rc_context(_THEME | colours | {"savefig.facecolor": "#ffffff"})


class Appearance(NamedTuple):
    """How a plugin is drawn on every page: a name of PALETTE and one of MARKERS; empty: any that is free."""

    colour: str = ""
    marker: str = ""


def appearance(kind: Kind, name: str) -> Appearance:
    """The declared appearance of a plugin; empty if it is not installed."""
    plugin = registry.plugins(kind).get(name)
    return Appearance(plugin.colour, plugin.marker) if plugin else Appearance()


@dataclass(frozen=True, slots=True)
class Look:
    """How one series is drawn. `colour_index`: in PALETTE; `variant`: number of the arm among its transport's."""

    name: str
    colour_index: int
    marker: str
    variant: int

    @property
    def colour(self) -> str:
        """The placeholder that becomes the page's variable."""
        return f"#0500{self.colour_index:02x}"

    @property
    def line(self) -> Any:
        """Solid for a transport's first arm, dashes for its others."""
        return ("-", (0, (5, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)))[self.variant % 4]


def looks(arms: Mapping[str, str | None]) -> dict[str, Look]:
    """A look per arm, by its transport: colour and marker are those that the transport declares, or free ones."""
    by_transport = _by_transport(sorted({transport for transport in arms.values() if transport}))
    used = {WITHOUT_TRANSPORT[1]} | {marker for _, marker in by_transport.values()}
    spare = iter([marker for marker in MARKERS if marker not in used] * len(arms) or list(MARKERS) * len(arms))
    looks_of_arms: dict[str, Look] = {}
    variants: dict[str | None, int] = {}
    for name in sorted(arms, key=lambda name: (name != arms[name], name)):
        transport = arms[name]
        variant = variants[transport] = variants.get(transport, -1) + 1
        colour, marker = WITHOUT_TRANSPORT if transport is None else by_transport[transport]
        looks_of_arms[name] = Look(name, PALETTE.index(colour), next(spare) if variant else marker, variant)
    return looks_of_arms


def _by_transport(transports: Sequence[str]) -> dict[str, Appearance]:
    """Colour and marker by transport: the declared ones unless an earlier transport has one of them, else free ones."""
    declared: dict[str, Appearance] = {}
    for name in transports:
        colour, marker = appearance("transport", name)
        is_free = all(colour != other.colour and marker != other.marker for other in declared.values())
        if colour in PALETTE and marker in MARKERS and is_free:
            declared[name] = Appearance(colour, marker)
    used_colours = {look.colour for look in declared.values()}
    used_markers = {look.marker for look in declared.values()} | {WITHOUT_TRANSPORT[1]}
    colours = [colour for colour in PALETTE[:-1] if colour not in used_colours] or list(PALETTE[:-1])
    markers = [marker for marker in MARKERS if marker not in used_markers] or list(MARKERS)
    others = [name for name in transports if name not in declared]
    return declared | {
        name: Appearance(colours[index % len(colours)], markers[index % len(markers)])
        for index, name in enumerate(others)
    }


def series_looks(transports: Mapping[str, str | None]) -> dict[str, Look]:
    """A look per series of a figure that a suite declares: that of its transport if all transports differ, else colours
    and markers in the order of the series."""
    names = [name for name in transports.values() if name]
    if names and len(names) == len(set(names)):
        return looks(transports)
    return {
        name: Look(name, index % SERIES_COLOURS, MARKERS[index % len(MARKERS)], 0)
        for index, name in enumerate(transports)
    }


def part_colour(index: int) -> str:
    """The placeholder of --p0 to --p10, the parts of a step."""
    return f"#0600{index:02x}"


@dataclass(frozen=True, slots=True)
class Line:
    """The points of one series: one value per x."""

    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray


def from_zero(axes: Axes, *, horizontal: bool = False) -> None:
    """The axis of values, x where it is horizontal, begins at 0; where values are negative, with the least of them and
    a line at 0."""
    low = axes.dataLim.x0 if horizontal else axes.dataLim.y0
    if low < 0:
        (axes.axvline if horizontal else axes.axhline)(0, color=MUTED, lw=0.8)
    elif horizontal:
        axes.set_xlim(left=0)
    else:
        axes.set_ylim(bottom=0)


def lines(axes: Axes, series: Mapping[str, Line], looks: Mapping[str, Look], width: float) -> None:
    """A line per series, in its colour and dashes; without marks."""
    for name, line in series.items():
        if len(line.x):
            axes.plot(line.x, line.y, color=looks[name].colour, ls=looks[name].line, lw=width)


def panel(width: float = 5.0, height: float = 3.5) -> tuple[Figure, Axes]:
    """An empty panel in inches at 72 dpi, in the pages' style."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes: Axes = figure.add_subplot()
    return figure, axes


_SHAPES = {
    "o": '<circle cx="14" cy="7" r="4"/>',
    "s": '<path d="M10 3h8v8h-8z"/>',
    "^": '<path d="M14 2l5 9h-10z"/>',
    "D": '<path d="M14 1.5l5.5 5.5-5.5 5.5-5.5-5.5z"/>',
    "v": '<path d="M14 12l5-9h-10z"/>',
    "P": '<path d="M12.300 2h3.400v3.300h3.300v3.400h-3.300v3.300h-3.400v-3.300h-3.300v-3.400h3.300z"/>',
    "X": '<path d="M10 5l2-2 2 2 2-2 2 2-2 2 2 2-2 2-2-2-2 2-2-2 2-2z"/>',
    "p": '<path d="M14 2l5 3.700-1.900 5.800h-6.200l-1.900-5.800z"/>',
    "h": '<path d="M14 2l4.300 2.500v5l-4.300 2.500-4.300-2.500v-5z"/>',
    "<": '<path d="M9 7l9-5v10z"/>',
    ">": '<path d="M19 7l-9-5v10z"/>',
}
_DASHES = ("none", "5 2", "2 1.5", "6 2 1.5 2")


class LegendEntry(NamedTuple):
    """An entry of the legend beside the panels."""

    mark: Markup
    name: str


def key_mark(look: Look) -> Markup:
    """The line and marker of a series for the legend beside the panels."""
    colour, dashes = f"var(--s{look.colour_index})", _DASHES[look.variant % 4]
    line = f'<path d="M1 7h26" stroke-width="1.8" stroke-dasharray="{dashes}"/>'
    return Markup(
        f'<svg viewBox="0 0 28 14" aria-hidden="true" fill="{colour}" stroke="{colour}">'
        f"{line}{_SHAPES[look.marker]}</svg>"
    )
