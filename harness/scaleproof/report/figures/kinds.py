"""The kinds of figure that a suite can ask for by name, and the data that each of them draws.

A file of this folder that defines `KIND` is a kind; nothing lists them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from markupsafe import Markup

from scaleproof.core.record_schema import Evidence
from scaleproof.report import figures
from scaleproof.report.figures.style import Look


@dataclass(frozen=True, slots=True)
class Launch:
    """The value of one launch, the words shown when pointing at it, and the page that it leads to."""

    value: float
    hollow: bool
    words: str
    href: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A value of ours at one x (None: the figure has no x axis) with its interval, which may be missing."""

    x: float | None
    value: float
    low: float | None
    high: float | None
    evidence: Evidence
    hollow: bool
    words: str
    href: str
    noise_floor: float | None = None
    """By how much identical arms differ, as a share; None where it was not measured."""
    launches: tuple[Launch, ...] = ()


@dataclass(frozen=True, slots=True)
class PublishedPoint:
    """A value of the paper; one that is not judged (recalled or derived) is drawn hollow."""

    x: float | None
    value: float
    judged: bool
    words: str
    href: str


@dataclass(frozen=True, slots=True)
class Series:
    """What has one colour and one entry of the legend."""

    name: str
    look: Look
    marks: tuple[Mark, ...]
    published: tuple[PublishedPoint, ...] = ()


@dataclass(frozen=True, slots=True)
class Plot:
    """All that a kind needs to draw. `ideal`: a line where y equals x ("x"), or at this y."""

    alt: str
    series: tuple[Series, ...]
    x_label: str
    y_label: str
    log: bool = False
    ideal: float | str | None = None

    @property
    def looks(self) -> dict[str, Look]:
        """By the name of the series."""
        return {series.name: series.look for series in self.series}


@dataclass(frozen=True, slots=True)
class FigureKind:
    """A kind of figure by its name. `x`: what its x axis counts; None: it has one line or row per series instead."""

    name: str
    summary: str
    x: str | None
    draw: Callable[[Plot], Markup]


@cache
def kinds() -> dict[str, FigureKind]:
    """All kinds by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(figures.__path__))
    modules = [importlib.import_module(f"{figures.__name__}.{name}") for name in names]
    registered = [kind for module in modules if isinstance(kind := getattr(module, "KIND", None), FigureKind)]
    return {kind.name: kind for kind in registered}
