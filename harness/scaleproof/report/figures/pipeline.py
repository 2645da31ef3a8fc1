"""Passes of a pipeline as bars: workers against time, each micro-batch in a colour; and a schedule as a picture in a
file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
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
DARK, BRIGHT = "#111111", "#ffffff"
"""Colours of numbers, on bright and on dark bars."""
DARK_BELOW = 0.19
"""Relative luminance of a bar below which bright numbers have the higher contrast."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A pass of one worker. `hue`: in HUES, which are taken in turn; `text`: its number, or nothing; `gid`: id of its
    group in an SVG."""

    worker: int
    start: float
    end: float
    hue: int
    is_forward: bool
    text: str
    is_hatched: bool = False
    gid: str | None = None


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
    draw_bars(axes, _bars(line), len(line.spans), "white")
    axes.set_xlim(0, line.makespan)
    axes.set_xlabel("time, in forward passes of one micro-batch at one stage")
    axes.set_ylabel("worker")


def _bars(line: Timeline) -> list[Bar]:
    numbered, back = sum(map(len, line.spans)) <= MOST_NUMBERS, line.schedule.pipelines / 2
    return [
        Bar(
            worker,
            start,
            end,
            each.units[0] // len(each.units),
            each.direction == "forward",
            label(each) if numbered else "",
            is_hatched=each.pipeline >= back >= 1,
        )
        for worker, (order, spans) in enumerate(zip(line.schedule.orders, line.spans, strict=True))
        for each, (start, end) in zip(order, spans, strict=True)
    ]


def draw_bars(axes: Axes, bars: Sequence[Bar], workers: int, edge: str, size: float = 6) -> None:
    """A row per worker, the first one at the top. `edge`: colour around bars; `size`: of numbers, in points."""
    for bar in bars:
        fill = colour(bar.hue, bar.is_forward)
        (drawn,) = axes.barh(
            bar.worker,
            bar.end - bar.start,
            0.84,
            bar.start,
            facecolor=fill,
            edgecolor=edge,
            linewidth=0.6,
            hatch="///" if bar.is_hatched else None,
        )
        if bar.gid:
            drawn.set_gid(bar.gid)
        if bar.text:
            is_dark = _luminance(fill) < DARK_BELOW and not bar.is_hatched  # hatches are bright
            ink = BRIGHT if is_dark else DARK
            middle = (bar.start + bar.end) / 2
            axes.text(middle, bar.worker, bar.text, ha="center", va="center_baseline", fontsize=size, color=ink)
    axes.set_ylim(workers - 0.5, -0.5)
    axes.set_yticks(range(workers) if workers <= 32 else [])


@cache
def colour(hue: int, is_forward: bool) -> str:
    """Of a bar: backward passes are lighter, on a bright and on a dark page."""
    share = 1.0 if is_forward else BACKWARD_ALPHA
    red, green, blue = (share * part + 1 - share for part in to_rgb(HUES[hue % len(HUES)]))
    return to_hex((red, green, blue))


def _luminance(fill: str) -> float:
    """Relative luminance as WCAG defines it, from 0 to 1."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(fill)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def label(each: Pass) -> str:
    """The numbers of a pass: `4`, or `4,5` for two at once."""
    return ",".join(map(str, each.units))
