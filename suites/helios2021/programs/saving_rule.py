"""CES: when nodes are switched off and on, from what was used and what is predicted (the artifact's rule)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleproof.spec.program_options import choice

FIRST_STEPS = 6
"""The first hour, in which the buffer alone decides."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Steps of history and of the future, nodes of each threshold and of the buffer, and for how many steps nothing is
    switched off after a wake-up."""

    history: int
    future: int
    fell: float
    will_fall: float
    least: float
    buffer: int
    keep: int


OF_CLUSTER = {
    "venus": Thresholds(3, 18, 0.5, 1, 2, 5, 12),
    "earth": Thresholds(6, 18, 1, 1, 5, 5, 12),
    "saturn": Thresholds(6, 18, 1, 1, 1, 5, 12),
    "uranus": Thresholds(3, 18, 1, 1, 1, 7, 12),
    "philly": Thresholds(2, 30, 0.1, 0, 1, 20, 10),
}
"""CES_Helios.py and CES_Philly.py of the artifact."""


def thresholds_of(cluster: str) -> Thresholds:
    """Of a cluster; SpecError where the artifact has none."""
    return OF_CLUSTER[choice({"cluster": cluster}, "cluster", OF_CLUSTER)]


@dataclass(frozen=True, slots=True)
class Course:
    """Nodes that are on (steps,); how often some were switched on, how many at once in the mean; and steps at which
    fewer are on than are used, after the repair."""

    active: np.ndarray
    wakes: int
    nodes_of_wake: float
    short: int


def switched(used: np.ndarray, predicted: np.ndarray, total: int, of: Thresholds) -> Course:
    """The nodes that are on at each step. `predicted` (steps, 2 * future): at each step, what is predicted of it and of
    those after it. A step at which more is used than is on wakes nodes up at once (the repair)."""
    active = np.empty(len(used), np.int64)
    woken: list[int] = []
    on, frozen_until = min(total, int(used[0]) + of.buffer), 0
    for step, now in enumerate(used):
        if step < FIRST_STEPS:
            on = min(total, int(now) + of.buffer)
        elif on < now:
            grown = min(total, int(now) + of.buffer)
            woken.append(grown - on)
            on, frozen_until = grown, step + of.keep
        elif step >= frozen_until and _falls(used, predicted[step], step, on, of):
            on = min(total, int(now) + of.buffer)
        active[step] = on
    return Course(active, len(woken), float(np.mean(woken)) if woken else 0.0, int((active < used).sum()))


def _falls(used: np.ndarray, predicted: np.ndarray, step: int, on: int, of: Thresholds) -> bool:
    """Whether use has fallen, will fall and go on falling, and enough nodes are spare."""
    near, far = float(predicted[: of.future].mean()), float(predicted.mean())
    fell = float(used[step - of.history : step].mean()) - used[step]
    spare = on - (used[step] + of.buffer)
    return bool(fell >= of.fell and used[step] - near >= of.will_fall and near >= far and spare >= of.least)
