"""Individual launches as dots that say their value and lead to their page; hollow ones are no measurement at full
speed."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes

from scaleproof.report.figures.style import PAGE, Look


@dataclass(frozen=True, slots=True)
class Dot:
    """One launch in a panel."""

    x: float
    y: float
    hollow: bool
    words: str
    href: str


def draw(axes: Axes, dots: list[Dot], look: Look, titles: dict[str, str], size: float = 4.5) -> None:
    """Draw them; `titles` gets the words of each by the id of its group."""
    for dot in dots:
        face, alpha = (PAGE, 1.0) if dot.hollow else (look.colour, 0.55)
        (line,) = axes.plot(dot.x, dot.y, look.marker, ms=size, mew=1.1, mfc=face, mec=look.colour, alpha=alpha)
        group = f"dot{len(titles)}"
        line.set_gid(group)
        line.set_url(dot.href)
        titles[group] = dot.words


def median_mark(
    axes: Axes,
    x: float,
    y: float,
    ends: tuple[float | None, float | None],
    look: Look,
    hollow: bool,
    horizontal: bool = False,
) -> None:
    """The median with its interval, which may be missing; `horizontal`: values lie along x."""
    low, high = ends
    if low is not None and high is not None:
        span = ([low, high], [y, y]) if horizontal else ([x, x], [low, high])
        axes.plot(*span, "-", marker="|" if horizontal else "_", ms=9, mew=1.8, color=look.colour)
    axes.plot(x, y, look.marker, ms=7.5, mew=1.6, mfc=PAGE if hollow else look.colour, mec=look.colour)
