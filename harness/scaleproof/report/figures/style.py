"""One look for all figures: colours that are variables of the page (so that they follow dark mode), markers that tell
series apart without colour."""

from __future__ import annotations

import hashlib
import io
import re
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

STYLE_SHEET = Path(__file__).parents[1] / "static" / "report.css"
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "h", "<", ">")
COLOURS = 8
"""Variables --s0 to --s7 of the style sheet."""
TRANSPORTS = ("shm", "tcp", "grpc", "gloo", "mpi", "horovod")
"""Colour and marker by place, the same on every page; further transports take the colours that these leave free on a
page, in the order of their names."""
NONE = COLOURS - 1
"""Colour of arms without a transport."""
INK, MUTED, GRID, PAGE = "#010101", "#020202", "#030303", "#040404"
"""Stand-ins that `svg` replaces by the page's variables."""
_VARIABLES = {INK: "ink", MUTED: "muted", GRID: "grid", PAGE: "page"}
_VARIABLES |= {f"#0500{index:02x}": f"s{index}" for index in range(COLOURS)} | {
    f"#0600{index:02x}": f"p{index}" for index in range(7)
}
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "scaleproof",
    "font.size": 10,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "lines.linewidth": 1.8,
    "hatch.linewidth": 0.8,
    "axes.titlesize": 10,
    "figure.dpi": 72,
}


styled = matplotlib.rc_context(_STYLE)
"""Decorator of every function that draws: ticks are made late and would else take the defaults."""


@cache
def _light() -> dict[str, str]:
    """The style sheet's colours of the light page."""
    return dict(re.findall(r"--(\w+): light-dark\((#[0-9a-f]{6}),", STYLE_SHEET.read_text()))


def light(stand_in: str) -> str:
    """The colour of a figure that is a file of its own, for a stand-in."""
    return _light()[_VARIABLES[stand_in]]


def printed() -> Any:
    """As `styled`, for figures that are files of their own: colours of the light page on white."""
    return matplotlib.rc_context(
        {name: light(value) if value in _VARIABLES else value for name, value in _STYLE.items()}
        | {"savefig.facecolor": "#ffffff"}
    )


@dataclass(frozen=True, slots=True)
class Look:
    """How one series is drawn: colour by transport, marker and dashes by which of its arms it is."""

    name: str
    place: int
    marker: str
    variant: int

    @property
    def colour(self) -> str:
        """The stand-in that becomes the page's variable."""
        return f"#0500{self.place:02x}"

    @property
    def line(self) -> Any:
        """Solid for a transport's first arm, dashes for its others."""
        return ("-", (0, (5, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)))[self.variant % 4]


def looks(arms: dict[str, str | None]) -> dict[str, Look]:
    """A look per arm, given its transport."""
    others = sorted({transport for transport in arms.values() if transport and transport not in TRANSPORTS})
    known = [*TRANSPORTS, *others]
    free = [
        place for place in range(NONE) if place >= len(TRANSPORTS) or TRANSPORTS[place] not in arms.values()
    ] or list(range(NONE))
    colours = dict(zip(TRANSPORTS, range(NONE), strict=False)) | {
        name: free[number % len(free)] for number, name in enumerate(others)
    }
    found: dict[str, Look] = {}
    seen: dict[str | None, int] = {}
    spare = iter(MARKERS[len(TRANSPORTS) + 1 :] * len(arms))
    for name in sorted(arms, key=lambda name: (name != arms[name], name)):
        transport = arms[name]
        variant = seen[transport] = seen.get(transport, -1) + 1
        place = NONE if transport is None else colours[transport]
        marker = (
            next(spare)
            if variant
            else MARKERS[len(TRANSPORTS)]
            if transport is None
            else MARKERS[known.index(transport) % len(MARKERS)]
        )
        found[name] = Look(name, place, marker, variant)
    return found


def series_looks(transports: dict[str, str | None]) -> dict[str, Look]:
    """A look per series of a figure that a suite declares: that of its transport where every series has another one,
    else colours and markers in the order of the series."""
    names = [name for name in transports.values() if name]
    if len(names) == len(set(names)) == len(transports):
        return looks(transports)
    return {name: Look(name, place % NONE, MARKERS[place % len(MARKERS)], 0) for place, name in enumerate(transports)}


def part_colour(index: int) -> str:
    """The stand-in of --p0 to --p6, the parts of a step."""
    return f"#0600{index:02x}"


def panel(width: float = 5.0, height: float = 3.5) -> tuple[Figure, Axes]:
    """An empty panel in inches at 72 dpi, in the pages' style."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes: Axes = figure.add_subplot()
    return figure, axes


def svg(figure: Figure, label: str, titles: dict[str, str] | None = None) -> Markup:
    """Inline SVG without ids of its own but those it refers to. `titles`: group id of an artist to the words shown when
    pointing at it."""
    target = io.StringIO()
    FigureCanvasSVG(figure).print_svg(target, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = target.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    for group, words in (titles or {}).items():
        text = text.replace(f'<g id="{group}">', f"<g><title>{escape(words)}</title>")
    text = _own_ids(text, hashlib.sha256(text.encode()).hexdigest()[:8])
    for stand_in, variable in _VARIABLES.items():
        text = text.replace(stand_in, f"var(--{variable})")
    head = re.sub(r'\s(width|height)="[^"]*"', "", text[: text.index(">") + 1])
    head = head.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)
    text = head + text[text.index(">") + 1 :]
    # Links on dots are a shortcut for the pointer; the table of launches has them for the keyboard.
    return Markup(text.replace("<a xlink:href=", '<a tabindex="-1" xlink:href='))


def _own_ids(text: str, prefix: str) -> str:
    """Several figures share a page: keep only ids that something refers to, made unique."""
    used = set(re.findall(r"url\(#([^)]+)\)", text)) | set(re.findall(r'href="#([^"]+)"', text))

    def rename(found: re.Match[str]) -> str:
        return f' id="{prefix}{found[1]}"' if found[1] in used else ""

    text = re.sub(r'\sid="([^"]+)"', rename, text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}\1)", text)
    return re.sub(r'href="#([^"]+)"', rf'href="#{prefix}\1"', text)


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


def key_mark(look: Look) -> Markup:
    """The line and marker of a series for the legend beside the panels."""
    colour, dashes = f"var(--s{look.place})", _DASHES[look.variant % 4]
    line = f'<path d="M1 7h26" stroke-width="1.8" stroke-dasharray="{dashes}"/>'
    return Markup(
        f'<svg viewBox="0 0 28 14" aria-hidden="true" fill="{colour}" stroke="{colour}">{line}{_SHAPES[look.marker]}</svg>'
    )
