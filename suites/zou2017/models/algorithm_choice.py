"""The choice of a minibatch and of one convolution algorithm per layer, as an integer program."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from scaleproof.workloads.networks import Network

FLOAT = 4
"""Bytes of a float32."""
HELD = 3
"""Arrays in memory per parameter: the parameter, its gradient and its momentum."""
SHRINKS = 7
"""Number of memory bounds for the integer program, between the least that any choice needs and no bound."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An algorithm per layer, in the order of the table, and their total time and memory."""

    algorithms: tuple[str, ...]
    time_s: float
    nbytes: float


Table = Sequence[Mapping[str, tuple[float, float]]]
"""For every layer: algorithm to (s, bytes of workspace)."""


def memory_left(network: Network, points: int, memory: float) -> float:
    """Bytes for the workspaces of convolutions: `memory` without feature maps, parameters and the classifier, for a
    minibatch of `points`."""
    maps = sum(math.prod(layer.output_shape) for layer in network.layers if len(layer.output_shape) == 3) + math.prod(
        network.input_shape
    )
    outputs = sum(math.prod(layer.output_shape) for layer in network.layers if len(layer.output_shape) == 1)
    return memory - FLOAT * (points * (maps + outputs) + HELD * network.parameters)


def fastest(table: Table, bound: float) -> Choice | None:
    """The fastest choice of one algorithm per layer whose workspaces together fit into `bound` bytes, by integer
    programming; None where none does."""
    names = [(layer, name) for layer, algorithms in enumerate(table) for name in algorithms]
    times = np.array([table[layer][name][0] for layer, name in names])
    memory = np.array([table[layer][name][1] for layer, name in names])
    one_each = np.array([[float(of == layer) for of, _ in names] for layer in range(len(table))])
    limit = min(bound, float(memory.sum()))
    if limit < 0:
        return None
    scale = max(limit, 1.0)
    fits = [LinearConstraint(one_each, 1, 1), LinearConstraint(memory[np.newaxis, :] / scale, -np.inf, limit / scale)]
    answer = milp(
        times / times.max(),
        constraints=fits,
        integrality=np.ones(len(names)),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    if answer.x is None:
        return None
    return _choice(table, [name for (_, name), taken in zip(names, answer.x, strict=True) if taken > 0.5])


def by_brute_force(table: Table, bound: float) -> Choice | None:
    """The same result, by trying all choices."""
    choices = (_choice(table, names) for names in product(*table))
    return min((choice for choice in choices if choice.nbytes <= bound), key=lambda choice: choice.time_s, default=None)


def best_minibatch(tables: Mapping[int, Table], bounds: Mapping[int, float]) -> tuple[int, Choice] | None:
    """The paper's procedure: the fastest choice for every candidate minibatch, then the candidate with the most samples
    per second."""
    candidates = {
        points: choice for points, table in tables.items() if (choice := fastest(table, bounds[points])) is not None
    }
    return max(candidates.items(), key=lambda item: item[0] / item[1].time_s, default=None)


def _choice(table: Table, names: Sequence[str]) -> Choice:
    taken = [table[layer][name] for layer, name in enumerate(names)]
    return Choice(tuple(names), sum(time_s for time_s, _ in taken), sum(nbytes for _, nbytes in taken))


def least_memory(table: Table) -> float:
    """Bytes below which no choice fits."""
    return sum(min(nbytes for _, nbytes in algorithms.values()) for algorithms in table)


def bounds_of(table: Table) -> list[float]:
    """Memory bounds: none, then from the memory of the fastest choice down to the least that any choice needs."""
    free, least = fastest(table, math.inf), least_memory(table)
    most = free.nbytes if free else least
    return [math.inf, *(least + (most - least) * step / SHRINKS for step in reversed(range(SHRINKS)))]
