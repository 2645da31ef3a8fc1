"""The kinds of figure that a suite can name, and the data that each of them draws.

A file of this folder that defines `KIND` adds a kind; there is no list of them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from markupsafe import Markup
from pydantic import BaseModel

from scaleproof.claims.claims_file import Reduction
from scaleproof.claims.learning_curve import Axis
from scaleproof.core.record_schema import Evidence
from scaleproof.pipelines.schedule import Direction
from scaleproof.report import figures
from scaleproof.report.figures.style import LegendEntry, Look


@dataclass(frozen=True, slots=True)
class Launch:
    """The value of one launch, with a tooltip and a link to its page."""

    value: float
    hollow: bool
    tooltip: str
    href: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A value of ours at one x (None: the figure has no x axis) with its interval, which may be missing. `evidence`:
    None for arithmetic."""

    x: float | None
    value: float
    low: float | None
    high: float | None
    evidence: Evidence | None
    hollow: bool
    tooltip: str
    href: str
    noise_floor: float | None = None
    """By how much identical arms differ, as a share; None if it was not measured."""
    launches: tuple[Launch, ...] = ()
    reduced: tuple[Reduction, ...] = ()
    """The reduced networks behind the value; empty where they ran as published."""
    note: str = ""
    """What the tooltip says of a rate's bound; empty for what is no rate."""
    row: float | None = None
    """The value of the figure's rows; None for a kind without rows."""
    accepted: tuple[float, float] | None = None
    """What the rule of its claim accepts, where the figure draws claims over what their rows count."""


@dataclass(frozen=True, slots=True)
class PublishedPoint:
    """A value of the paper; one that is not judged (recalled or derived) is drawn hollow."""

    x: float | None
    value: float
    judged: bool
    tooltip: str
    href: str


@dataclass(frozen=True, slots=True)
class Curve:
    """One launch: its id, step numbers, training samples of all ranks, seconds since its first step began, values.
    `ends`: how it ends, in words; empty: with its last value."""

    launch: str
    steps: np.ndarray
    samples: np.ndarray
    seconds: np.ndarray
    values: np.ndarray
    hollow: bool
    ends: str = ""


@dataclass(frozen=True, slots=True)
class RecordedPass:
    """A forward or backward pass of a micro-batch, in ms since the first pass of its iteration began."""

    rank: int
    micro_batch: int
    direction: Direction
    start_ms: float
    end_ms: float


@dataclass(frozen=True, slots=True)
class Iteration:
    """The passes of all ranks in one iteration of a launch."""

    launch: str
    evidence: Evidence
    step: int
    passes: tuple[RecordedPass, ...]

    @property
    def length_ms(self) -> float:
        """From the start of the first pass to the end of the last one."""
        return max(each.end_ms for each in self.passes)


@dataclass(frozen=True, slots=True)
class Series:
    """Values with one colour and one entry in the legend. `curves` of launches and `iteration`: for kinds that draw
    these."""

    name: str
    look: Look
    marks: tuple[Mark, ...]
    published: tuple[PublishedPoint, ...] = ()
    curves: tuple[Curve, ...] = ()
    iteration: Iteration | None = None

    @property
    def has_ours(self) -> bool:
        """Whether there is anything of ours to draw."""
        return bool(self.marks or self.curves or self.iteration)


@dataclass(frozen=True, slots=True)
class Plot:
    """All data of one figure. `ideal`: a line at y = x (for "x"), or at this y. `axis`: what the x axis of curves
    counts. `log`, `log_x`: logarithmic axes. `lines`: of curves, values to compare them with, by label."""

    alt: str
    series: tuple[Series, ...]
    x_label: str
    y_label: str
    log: bool = False
    ideal: float | str | None = None
    axis: Axis = "steps"
    log_x: bool = False
    lines: tuple[tuple[str, float], ...] = ()
    of: Any = None
    """What a kind without series draws, in the kind's form of it."""

    @property
    def looks(self) -> dict[str, Look]:
        """Looks by the name of the series."""
        return {series.name: series.look for series in self.series}


@dataclass(frozen=True, slots=True)
class FigureKind:
    """A kind of figure. `x`: what its x axis counts; None: it has no x axis, but a line or row per series. `rows`: it
    has a row for each value of a field of the case. `claims`: its series are claims over what their rows count.
    `curves`: it draws how launches learned. `passes`: it draws passes of pipelines, of one launch per series. `of`: it
    has no series, but computes what it draws from this form; `table`: the columns and rows of that, `key`: its
    legend."""

    name: str
    summary: str
    x: str | None
    draw: Callable[[Plot], Markup]
    rows: bool = False
    claims: bool = False
    curves: bool = False
    passes: bool = False
    of: type[BaseModel] | None = None
    table: Callable[[Any], tuple[tuple[str, ...], list[tuple[object, ...]]]] | None = None
    key: Callable[[Any], list[LegendEntry]] | None = None


@cache
def kinds() -> dict[str, FigureKind]:
    """All kinds by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(figures.__path__))
    modules = [importlib.import_module(f"{figures.__name__}.{name}") for name in names]
    registered = [kind for module in modules if isinstance(kind := getattr(module, "KIND", None), FigureKind)]
    return {kind.name: kind for kind in registered}
