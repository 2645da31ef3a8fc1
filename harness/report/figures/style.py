"""One look for all figures: colours that are variables of the page (so that they follow dark mode), markers that tell series apart without colour."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "h", "<", ">")
COLOURS = 8
"""Variables --s0 to --s7 of the style sheet."""
FIXED = ("tcp", "shm", "grpc", "gloo", "mpi", "horovod")
"""Series that look the same on every page."""
INK, MUTED, GRID, PAGE = "#010101", "#020202", "#030303", "#040404"
"""Stand-ins that `svg` replaces by the page's variables."""
_VARIABLES = {INK: "ink", MUTED: "muted", GRID: "grid", PAGE: "page"}
_VARIABLES |= {f"#0500{index:02x}": f"s{index}" for index in range(COLOURS)} | {f"#0600{index:02x}": f"p{index}" for index in range(6)}
_STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "scaleproof", "font.size": 10, "axes.edgecolor": MUTED, "axes.labelcolor": MUTED, "text.color": INK,
    "xtick.color": MUTED, "ytick.color": MUTED, "axes.grid": True, "grid.color": GRID, "grid.linewidth": 0.8, "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False, "axes.facecolor": "none", "figure.facecolor": "none", "savefig.facecolor": "none",
    "lines.linewidth": 1.8, "hatch.linewidth": 0.8, "axes.titlesize": 10, "figure.dpi": 72,
}  # fmt: skip


styled = matplotlib.rc_context(_STYLE)
"""Decorator of every function that draws: ticks are made late and would else take the defaults."""


@dataclass(frozen=True, slots=True)
class Look:
    """How one series is drawn."""

    name: str
    place: int

    @property
    def colour(self) -> str:
        """The stand-in that becomes the page's variable."""
        return f"#0500{self.place % COLOURS:02x}"

    @property
    def marker(self) -> str:
        """Matplotlib's letter."""
        return MARKERS[self.place % len(MARKERS)]


def looks(names: Iterable[str]) -> dict[str, Look]:
    """A look per series: fixed ones for the transports, further places for the rest in the order given."""
    wanted = list(dict.fromkeys(names))
    places = {name: FIXED.index(name) for name in wanted if name in FIXED}
    free = [place for place in range(len(FIXED) + len(wanted) + COLOURS) if place not in places.values()]
    for name in wanted:
        if name not in places:
            places[name] = free.pop(0)
    return {name: Look(name, places[name]) for name in wanted}


def part_colour(index: int) -> str:
    """The stand-in of --p0 to --p5, the parts of a step."""
    return f"#0600{index:02x}"


def panel(width: float = 5.0, height: float = 3.5) -> tuple[Figure, Axes]:
    """An empty panel in inches at 72 dpi, in the pages' style."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes: Axes = figure.add_subplot()
    return figure, axes


def svg(figure: Figure, label: str, titles: dict[str, str] | None = None) -> Markup:
    """Inline SVG without ids of its own but those it refers to. `titles`: group id of an artist to the words shown when pointing at it."""
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
    return Markup(text.replace("<a xlink:href=", '<a tabindex="-1" xlink:href='))  # noqa: S704


def _own_ids(text: str, prefix: str) -> str:
    """Several figures share a page: keep only ids that something refers to, made unique."""
    used = set(re.findall(r"url\(#([^)]+)\)", text)) | set(re.findall(r'href="#([^"]+)"', text))

    def rename(found: re.Match[str]) -> str:
        return f' id="{prefix}{found[1]}"' if found[1] in used else ""

    text = re.sub(r'\sid="([^"]+)"', rename, text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}\1)", text)
    return re.sub(r'href="#([^"]+)"', rf'href="#{prefix}\1"', text)


def key_mark(look: Look) -> Markup:
    """The line and marker of a series for the legend beside the panels."""
    shapes = {
        "o": '<circle cx="13" cy="7" r="4"/>', "s": '<rect x="9.5" y="3.5" width="7" height="7"/>', "^": '<path d="M13 2.5l4.5 8h-9z"/>',
        "D": '<path d="M13 2l5 5-5 5-5-5z"/>', "v": '<path d="M13 11.5l4.5-8h-9z"/>',
        "P": '<path d="M11.3 2.5h3.4v2.8h2.8v3.4h-2.8v2.8h-3.4V8.700H8.5V5.300h2.800z"/>',
        "X": '<path d="M9 5l2-2 2 2 2-2 2 2-2 2 2 2-2 2-2-2-2 2-2-2 2-2z"/>',
    }  # fmt: skip
    colour = f"var(--s{look.place % COLOURS})"
    body = shapes.get(look.marker, '<circle cx="13" cy="7" r="3"/>')
    return Markup(f'<svg viewBox="0 0 26 14" aria-hidden="true" fill="{colour}" stroke="{colour}"><path d="M1 7h24" stroke-width="1.8"/>{body}</svg>')  # noqa: S704
