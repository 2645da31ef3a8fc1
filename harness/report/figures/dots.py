"""Individual launches as dots that say their value and lead to their page; hollow ones are no measurement at full speed."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes

from harness.report.figures.style import PAGE, Look


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
        (line,) = axes.plot(
            dot.x, dot.y, look.marker, ms=size, mew=1.1, mfc=PAGE if dot.hollow else look.colour, mec=look.colour, alpha=1 if dot.hollow else 0.55
        )
        group = f"dot{len(titles)}"
        line.set_gid(group)
        line.set_url(dot.href)
        titles[group] = dot.words


def interval(axes: Axes, x: float, y: float, low: float, high: float, look: Look, hollow: bool, horizontal: bool = False) -> None:
    """The median with its interval."""
    ends = [[y - low], [high - y]] if not horizontal else [[x - low], [high - x]]
    bars = {"xerr": ends} if horizontal else {"yerr": ends}
    axes.errorbar(
        [x], [y], fmt=look.marker, ms=7, mfc=PAGE if hollow else look.colour, mec=look.colour, mew=1.5, ecolor=look.colour, elinewidth=1.8, capsize=4, **bars
    )
