"""Searches with one objective: the least time of any strategy, as in OptCNN (Jia et al. 2018), and the least memory, as
in ToFu (Wang et al. 2019). Operators are eliminated one by one from tables of sums, without frontiers, so that the ends
of a frontier can be held against them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from scaleproof.frontiers.cost_graph import CostGraph, Costs


@dataclass(frozen=True, slots=True)
class Table:
    """Sums over configurations of some operators, an axis for each."""

    names: tuple[str, ...]
    values: np.ndarray

    def over(self, names: tuple[str, ...]) -> np.ndarray:
        """Its values with the axes of more operators, in their order."""
        order = sorted(range(len(self.names)), key=lambda axis: names.index(self.names[axis]))
        shape = [1] * len(names)
        for axis in order:
            shape[names.index(self.names[axis])] = self.values.shape[axis]
        found: np.ndarray = self.values.transpose(order).reshape(shape)
        return found


def fastest(graph: CostGraph) -> tuple[float, dict[str, int]]:
    """The least time of any strategy, whatever its memory, and the strategy."""
    return _least(graph, lambda costs: costs.time)


def smallest(graph: CostGraph) -> tuple[float, dict[str, int]]:
    """The same of memory."""
    return _least(graph, lambda costs: costs.memory)


def _least(graph: CostGraph, of: Callable[[Costs], np.ndarray]) -> tuple[float, dict[str, int]]:
    tables = [Table((name,), of(costs)) for name, costs in graph.operators.items()]
    tables += [Table(pair, of(costs)) for pair, costs in graph.edges.items()]
    total, best = 0.0, list[tuple[str, Table]]()
    for _ in graph.operators:
        neighbours = _neighbours(tables)
        name = min(neighbours, key=lambda each: len(neighbours[each]))
        touched = [table for table in tables if name in table.names]
        rest = tuple(sorted(neighbours[name]))
        summed = np.asarray(sum(table.over((name, *rest)) for table in touched))
        best.append((name, Table(rest, summed.argmin(axis=0))))
        left = summed.min(axis=0)
        tables = [table for table in tables if name not in table.names]
        if rest:
            tables.append(Table(rest, left))
        else:
            total += float(left)
    choices: dict[str, int] = {}
    for name, chosen in reversed(best):
        choices[name] = int(chosen.values[tuple(choices[other] for other in chosen.names)])
    return total, choices


def _neighbours(tables: list[Table]) -> dict[str, set[str]]:
    """Operators that share a table, by operator."""
    found: dict[str, set[str]] = {}
    for table in tables:
        for name in table.names:
            found.setdefault(name, set()).update(set(table.names) - {name})
    return found
