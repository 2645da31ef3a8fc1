"""Frontier tracking: the frontier of a graph of operators by eliminating its nodes (tensoropt2022, section 3; the same
reductions as in MindSpore's auto_parallel). All eliminations are exact; a grid bounds the size of frontiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from scaleproof.frontiers.points import Frontier, best_products, single, union
from scaleproof.spec.errors import SpecError

Method = Literal["dynamic", "elimination"]
"""How chains are taken apart: from their ends, for each pair of configurations once (FT-LDP), or from within, for each
three configurations (FT-Elimination)."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Memory in bytes and time in s of each configuration of an operator, (K,), or of each pair of configurations of
    two operators, (K, K)."""

    memory: np.ndarray
    time: np.ndarray


@dataclass(frozen=True)
class CostGraph:
    """Operators by name, and what it takes to bring the output of one to another, by their names."""

    operators: Mapping[str, Costs]
    edges: Mapping[tuple[str, str], Costs]

    def cost(self, choices: Mapping[str, int]) -> tuple[float, float]:
        """Memory and time of a strategy."""
        memory = sum(float(costs.memory[choices[name]]) for name, costs in self.operators.items())
        time = sum(float(costs.time[choices[name]]) for name, costs in self.operators.items())
        for (one, other), costs in self.edges.items():
            memory += float(costs.memory[choices[one], choices[other]])
            time += float(costs.time[choices[one], choices[other]])
        return memory, time


@dataclass
class _State:
    """What is left: a frontier for each configuration of a node, and for each pair of an edge (a < b by position)."""

    nodes: dict[str, list[Frontier]]
    edges: dict[tuple[str, str], list[list[Frontier]]]
    position: dict[str, int]
    grid: float
    pool: Executor
    neighbours: dict[str, set[str]] = field(default_factory=dict)

    def between(self, one: str, other: str) -> list[list[Frontier]]:
        """Of an edge, by configurations of `one`, then of `other`."""
        if (one, other) in self.edges:
            return self.edges[one, other]
        return [list(column) for column in zip(*self.edges[other, one], strict=True)]

    def drop(self, name: str) -> None:
        """A node and its edges."""
        del self.nodes[name]
        for other in self.neighbours.pop(name):
            self.neighbours[other].discard(name)
            self.edges.pop((name, other), None)
            self.edges.pop((other, name), None)

    def copy(self) -> _State:
        """Which may be changed apart."""
        neighbours = {name: set(others) for name, others in self.neighbours.items()}
        return _State(dict(self.nodes), dict(self.edges), self.position, self.grid, self.pool, neighbours)


def frontier_of(
    graph: CostGraph, *, method: Method = "dynamic", error: float = 0.0, threads: int = 2, most_branches: int = 4096
) -> Frontier:
    """The frontier over all strategies. `error`: every strategy that is left out has one on the frontier that is no
    slower and has at most 1 + error times its memory; 0: exact. SpecError where branches would be more than
    `most_branches`."""
    with ThreadPoolExecutor(threads) as pool:
        state = _state_of(graph, error, pool)
        return _solved(state, method, most_branches)


def _state_of(graph: CostGraph, error: float, pool: Executor) -> _State:
    grid = (1 + error) ** (1 / max(1, 3 * len(graph.operators) + len(graph.edges))) - 1 if error else 0.0
    nodes = {
        name: [single(*cost, (name, number)) for number, cost in enumerate(zip(costs.memory, costs.time, strict=True))]
        for name, costs in graph.operators.items()
    }
    edges: dict[tuple[str, str], list[list[Frontier]]] = {}
    position = {name: number for number, name in enumerate(graph.operators)}
    neighbours: dict[str, set[str]] = {name: set() for name in nodes}
    for (one, other), costs in graph.edges.items():
        cells = [
            [single(*cell) for cell in zip(*row, strict=True)] for row in zip(costs.memory, costs.time, strict=True)
        ]
        edges[one, other] = cells
        neighbours[one].add(other)
        neighbours[other].add(one)
    return _State(nodes, edges, position, grid, pool, neighbours)


def _solved(state: _State, method: Method, branches: int) -> Frontier:
    while len(state.nodes) > 1:
        by_degree = sorted(state.nodes, key=lambda name: (len(state.neighbours[name]), state.position[name]))
        name = by_degree[0]
        if method == "elimination" and (inner := [each for each in by_degree if len(state.neighbours[each]) == 2]):
            name = inner[0]
        degree = len(state.neighbours[name])
        if degree == 0:
            _join(state, name, by_degree[1])
        elif degree == 1:
            _fold(state, name)
        elif degree == 2:
            _eliminate(state, name)
        else:
            return _branched(state, by_degree[-1], method, branches)
    (last,) = state.nodes.values()
    return union(last, state.grid)


def _join(state: _State, name: str, other: str) -> None:
    """A node without edges goes into another one."""
    alone = union(state.nodes[name], state.grid)
    state.nodes[other] = [best_products([(each, alone)], state.grid) for each in state.nodes[other]]
    state.drop(name)


def _fold(state: _State, name: str) -> None:
    """A node with one edge goes into its neighbour: K^2 products."""
    (other,) = state.neighbours[name]
    cells, own, grid = state.between(other, name), state.nodes[name], state.grid

    def folded(number: int) -> Frontier:
        reached = best_products(zip(cells[number], own, strict=True), grid)
        return best_products([(state.nodes[other][number], reached)], grid)

    state.nodes[other] = list(state.pool.map(folded, range(len(cells))))
    state.drop(name)


def _eliminate(state: _State, name: str) -> None:
    """A node with two edges becomes one edge: K^3 products. An edge that is there already is added."""
    one, other = sorted(state.neighbours[name], key=lambda each: state.position[each])
    first, second, own, grid = state.between(one, name), state.between(name, other), state.nodes[name], state.grid
    there = state.between(one, other) if other in state.neighbours[one] else None

    def row(number: int) -> list[Frontier]:
        halves = [best_products([(edge, node)], grid) for edge, node in zip(first[number], own, strict=True)]
        cells = []
        for column in range(len(second[0])):
            cell = best_products(((half, second[at][column]) for at, half in enumerate(halves)), grid)
            cells.append(cell if there is None else best_products([(cell, there[number][column])], grid))
        return cells

    rows = list(state.pool.map(row, range(len(first))))
    state.drop(name)
    state.edges.pop((other, one), None)
    state.edges[one, other] = rows
    state.neighbours[one].add(other)
    state.neighbours[other].add(one)


def _branched(state: _State, name: str, method: Method, branches: int) -> Frontier:
    """Each configuration of a node with many edges by itself; its neighbours take over what its edges cost."""
    count = len(state.nodes[name])
    if count > branches:
        raise SpecError(f"operator {name!r} has {len(state.neighbours[name])} neighbours: too many branches to search")
    found = []
    for number in range(count):
        fixed = state.copy()
        for other in state.neighbours[name]:
            row = state.between(name, other)[number]
            fixed.nodes[other] = [
                best_products([(node, edge)], state.grid) for node, edge in zip(state.nodes[other], row, strict=True)
            ]
        own = state.nodes[name][number]
        fixed.drop(name)
        rest = _solved(fixed, method, branches // count)
        found.append(best_products([(rest, own)], state.grid))
    return union(found, state.grid)


def within(frontier: Frontier, memory: float) -> int:
    """The fastest point with at most so much memory. SpecError, with what would do, where none has."""
    fitting = int(np.searchsorted(frontier.memory, memory, side="right"))
    if not fitting:
        least = float(frontier.memory[0])
        raise SpecError(f"no strategy fits {memory / 1e9:.3g} GB a device; {least / 1e9:.3g} GB would do")
    return fitting - 1


def listed(graph: CostGraph) -> Sequence[tuple[float, float]]:
    """Memory and time of every strategy, one by one: for small graphs, to compare with."""
    from itertools import product

    names = list(graph.operators)
    ways = product(*(range(len(graph.operators[name].memory)) for name in names))
    return [graph.cost(dict(zip(names, way, strict=True))) for way in ways]
