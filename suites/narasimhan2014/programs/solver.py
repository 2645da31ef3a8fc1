"""Sequential minimal optimisation of a support vector machine with adaptive shrinking, on the rows of one rank of
several (Narasimhan et al. 2014; Platt 1998; Keerthi et al. 2001).

min 0.5 a'Qa - 1'a, 0 <= a <= C, y'a = 0; gamma_i = sum_j a_j y_j K(j, i) - y_i. The pair with the smallest gamma that
may rise and the largest that may fall is moved, until beta_up + 2 eps >= beta_low.

All that is decided is decided from numbers that every rank has: results are the same on any number of ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from suite_programs import kernels
from suite_programs.blocks import Rows
from suite_programs.heuristics import Heuristic
from suite_programs.messages import Extreme, Messages, Sample, Sources

from scaleproof.spec.errors import SpecError

LOOSE = 20.0
"""Dropped samples come back at beta_up + 20 eps >= beta_low, the solution is found at 2 eps."""
TIGHT = 2.0
LEAST_CURVATURE = 1e-12
"""Of two samples at the same place."""
Timed = Callable[[str, int], Any]
"""A context for what a part of the solution takes, by name and by how many kernel elements."""


@dataclass(slots=True)
class Curve:
    """What a solution took. `active`: iteration and active samples of all ranks, where that number changes;
    `reconstructions`: samples that came back, and samples with alpha > 0, of each; `elements`: values of the kernel
    that this rank computed (without the one of each pair, which all ranks compute)."""

    iterations: int = 0
    elements: int = 0
    active: list[tuple[int, int]] = field(default_factory=list)
    reconstructions: list[tuple[int, int]] = field(default_factory=list)
    reconstructed: int = 0
    converged: bool = False


class Machine:
    """A rank's rows and their state: `alpha` and `gamma`, float64 (rows), and the rows that are active."""

    def __init__(self, rows: Rows, labels: np.ndarray, width: float, limit: float, messages: Messages) -> None:
        self.rows, self.labels, self.width, self.limit, self.messages = rows, labels, width, limit, messages
        self.alpha, self.gamma = np.zeros(len(rows)), -labels
        self.active = np.arange(len(rows))
        self.count = len(rows)
        self.curve = Curve(active=[(0, messages.count)])
        self._zeros = np.zeros(rows.features)

    def solve(self, heuristic: Heuristic, eps: float, most: float, parts: int, timed: Timed) -> Curve:
        """Until the tolerance or `most` iterations are reached. After a look at all samples the next one is after as
        many iterations as samples are active, over `parts`. The paper takes the smallest number of a rank; this one is
        that of so many ranks with equal shares, whatever the number of ranks that run. SpecError where a step is no
        finite number."""
        curve, shrinking, loose = self.curve, heuristic.way != "none", heuristic.way in ("single", "multi")
        check, parts = heuristic.first, heuristic.parts or parts
        up, low = self.messages.extremes(self.extremes())
        while curve.iterations < most:
            gap = low.value - up.value
            dropped = self._all_active() < self.messages.count
            if gap <= (LOOSE if loose and dropped else TIGHT) * eps:
                if not dropped or heuristic.way == "never":
                    curve.converged = True
                    break
                loose, shrinking = False, heuristic.way == "multi"
                with timed("reconstruct", len(curve.reconstructions)):
                    self._reconstruct()
                check = curve.iterations + heuristic.first
                up, low = self.messages.extremes(self.extremes())
                continue
            if shrinking and curve.iterations >= check:
                check = curve.iterations + max(1, self._shrink(up.value, low.value) // parts)
            up, low = self.messages.extremes(self._move(up, low))
            curve.iterations += 1
        return curve

    def _all_active(self) -> int:
        return self.curve.active[-1][1]

    def extremes(self) -> tuple[float, int, float, int]:
        """beta_up and beta_low of this rank's active rows, each with its row."""
        return kernels.extremes(self.gamma, self.labels, self.alpha, self.limit, self.active, self.count)

    def _shrink(self, up: float, low: float) -> int:
        """How many samples of all ranks are left."""
        self.count = kernels.shrink(self.gamma, self.labels, self.alpha, self.limit, up, low, self.active, self.count)
        left = int(self.messages.total(self.count))
        if left != self._all_active():
            self.curve.active.append((self.curve.iterations, left))
        return left

    def _move(self, up: Extreme, low: Extreme) -> tuple[float, int, float, int]:
        """Moves the pair as far as the box lets it; the extremes afterwards."""
        state = self.labels, self.alpha, self.gamma
        first = self.messages.sample(up.place, 0, self.rows, state)
        second = self.messages.sample(low.place, 1, self.rows, state)
        step = self._step(first, second)
        if not math.isfinite(step):
            pair = f"samples {up.place} and {low.place}"
            raise SpecError(f"iteration {self.curve.iterations}: the step of {pair} is {step}, no finite number")
        self._set_alpha(up.place, first.alpha + first.label * step)
        self._set_alpha(low.place, second.alpha - second.label * step)
        self.curve.elements += 2 * self.count
        return kernels.advance(
            self.rows.starts, self.rows.columns, self.rows.values, self.rows.squares,
            first.spread, second.spread, first.square, second.square, self.width, step,
            self.gamma, self.labels, self.alpha, self.limit, self.active, self.count,
        )  # fmt: skip

    def _step(self, up: Sample, low: Sample) -> float:
        far = max(up.square + low.square - 2 * float(up.spread @ low.spread), 0.0)
        curvature = max(2 - 2 * np.exp(-self.width * far), LEAST_CURVATURE)
        step = (low.gamma - up.gamma) / curvature
        step = min(step, self.limit - up.alpha if up.label > 0 else up.alpha)
        return float(min(step, low.alpha if low.label > 0 else self.limit - low.alpha))

    def _set_alpha(self, place: int, alpha: float) -> None:
        row = place - self.messages.first
        if 0 <= row < len(self.alpha):
            near = 1e-12 * self.limit  # so that what a step takes to a bound is at it
            alpha = 0.0 if alpha < near else alpha
            self.alpha[row] = self.limit if alpha > self.limit - near else alpha

    def _sources(self) -> Sources:
        used = np.flatnonzero(self.alpha > 0)
        return Sources(self.rows.chosen(used), self.alpha[used] * self.labels[used])

    def _reconstruct(self) -> None:
        """gamma of dropped samples anew, from all with alpha > 0; then all are active."""
        dropped = np.setdiff1d(np.arange(len(self.rows)), self.active[: self.count])
        values, elements = self.decision(self.rows, dropped)
        self.gamma[dropped] = values - self.labels[dropped]
        used = self.messages.total(float(np.count_nonzero(self.alpha > 0)))
        self.curve.reconstructions.append((int(self.messages.total(len(dropped))), int(used)))
        self.curve.elements += elements
        self.curve.reconstructed += elements
        self.active, self.count = np.arange(len(self.rows)), len(self.rows)
        self.curve.active.append((self.curve.iterations, self.messages.count))

    def decision(self, rows: Rows, chosen: np.ndarray) -> tuple[np.ndarray, int]:
        """sum_j a_j y_j K(j, i) over samples of all ranks, for chosen rows; and kernel elements of this rank."""
        total, rest, elements = np.zeros(len(chosen)), np.zeros(len(chosen)), 0
        chosen = chosen.astype(np.int64)
        for sources in self.messages.around(self._sources()):
            kernels.accumulate(
                rows.starts, rows.columns, rows.values, rows.squares,
                sources.rows.starts, sources.rows.columns, sources.rows.values, sources.rows.squares,
                sources.weights, chosen, self.width, self._zeros, total, rest,
            )  # fmt: skip
            elements += len(chosen) * len(sources.weights)
        return total + rest, elements
