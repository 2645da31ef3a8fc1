"""Frontiers of memory and time are those of listing every strategy, whatever order they are found in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaleproof.frontiers.cost_graph import (
    CostGraph,
    Costs,
    Method,
    frontier_of,
    listed,
    within,
)
from scaleproof.frontiers.one_objective import fastest, smallest
from scaleproof.frontiers.points import Frontier, reduced
from scaleproof.spec.errors import SpecError


def random_graph(seed: int, nodes: int, configurations: int, edges: float, levels: int = 6) -> CostGraph:
    """Few levels of cost, so that there are ties."""
    random = np.random.default_rng(seed)

    def costs(*shape: int) -> Costs:
        return Costs(random.integers(0, levels, shape).astype(float), random.integers(0, levels, shape).astype(float))

    names = [f"op{number}" for number in range(nodes)]
    count = {name: int(random.integers(1, configurations + 1)) for name in names}
    pairs = [
        (one, other)
        for place, one in enumerate(names)
        for other in names[place + 1 :]
        if random.random() < edges or names.index(other) == place + 1
    ]
    return CostGraph(
        {name: costs(count[name]) for name in names}, {(a, b): costs(count[a], count[b]) for a, b in pairs}
    )


def chain(seed: int, nodes: int, configurations: int, levels: int = 100) -> CostGraph:
    return random_graph(seed, nodes, configurations, 0.0, levels)


def points(frontier: Frontier) -> list[tuple[float, float]]:
    return list(zip(frontier.memory.tolist(), frontier.time.tolist(), strict=True))


def best(costs: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Those that no other is as good as, found one by one."""
    return sorted(
        {
            each
            for each in costs
            if not any(other != each and other[0] <= each[0] and other[1] <= each[1] for other in costs)
        }
    )


@given(st.integers(0, 10_000), st.integers(1, 7), st.integers(1, 3), st.sampled_from([0.0, 0.2, 0.5, 0.9]))
@settings(max_examples=60, deadline=None)
def test_the_frontier_is_that_of_all_strategies(seed: int, nodes: int, configurations: int, edges: float) -> None:
    graph = random_graph(seed, nodes, configurations, edges)
    wanted = best(list(listed(graph)))
    methods: tuple[Method, ...] = ("dynamic", "elimination")
    for method in methods:
        found = frontier_of(graph, method=method)
        assert points(found) == wanted
        for number, point in enumerate(points(found)):
            assert graph.cost(found.choices(number)) == point, "the choices behind a point cost what it says"


@given(st.integers(0, 10_000), st.sampled_from([0.01, 0.1, 0.5]))
@settings(max_examples=30, deadline=None)
def test_a_grid_loses_no_more_memory_than_it_states(seed: int, error: float) -> None:
    graph = chain(seed, 6, 4)
    exact, coarse = points(frontier_of(graph)), points(frontier_of(graph, error=error))
    assert len(coarse) <= len(exact)
    assert_within(coarse, exact, error)


@given(
    st.integers(0, 10_000),
    st.integers(2, 7),
    st.sampled_from([0.2, 0.5, 0.9]),
    st.sampled_from([0.02, 0.1, 0.5]),
    st.sampled_from(["dynamic", "elimination"]),
)
@settings(max_examples=40, deadline=None)
def test_a_grid_keeps_to_its_bound_on_any_graph(
    seed: int, nodes: int, edges: float, error: float, method: Method
) -> None:
    """Beside all strategies, one by one: graphs with branches go through every kind of elimination."""
    graph = random_graph(seed, nodes, 3, edges, levels=1000)
    costs = list(listed(graph))
    found = frontier_of(graph, method=method, error=error)
    assert_within(points(found), best(costs), error)
    for number, point in enumerate(points(found)):
        assert point in costs and graph.cost(found.choices(number)) == point, "a strategy that there is"


def test_a_grid_drops_points_of_graphs_with_branches() -> None:
    """Otherwise its bound would hold because all are kept."""
    graphs = [random_graph(seed, 7, 3, 0.3, levels=1000) for seed in range(20)]
    exact, coarse = (sum(len(frontier_of(graph, error=error)) for graph in graphs) for error in (0.0, 0.5))
    assert coarse < 0.95 * exact


def assert_within(coarse: list[tuple[float, float]], exact: list[tuple[float, float]], error: float) -> None:
    """Each point has one that is no slower and takes at most 1 + error times its memory."""
    for memory, time in exact:
        assert any(m <= memory * (1 + error) + 1e-9 and t <= time for m, t in coarse)


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_the_ends_are_those_of_searches_with_one_objective(seed: int) -> None:
    graph = random_graph(seed, 6, 3, 0.4)
    found = points(frontier_of(graph))
    assert fastest(graph)[0] == found[-1][1]
    assert smallest(graph)[0] == found[0][0]
    assert graph.cost(fastest(graph)[1])[1] == found[-1][1]


def test_one_configuration_gives_one_point() -> None:
    assert len(frontier_of(random_graph(1, 6, 1, 0.4))) == 1


def test_of_equal_points_the_first_is_kept() -> None:
    memory, time = np.array([2.0, 1.0, 2.0, 1.0]), np.array([3.0, 5.0, 3.0, 5.0])
    assert reduced(memory, time).tolist() == [1, 0]


def test_a_cap_takes_the_fastest_that_fits() -> None:
    found = frontier_of(chain(4, 8, 4))
    assert len(found) > 2
    assert within(found, float(found.memory[1])) == 1
    assert within(found, float("inf")) == len(found) - 1
    with pytest.raises(SpecError, match=r"no strategy fits .* GB a device; .* would do"):
        within(found, float(found.memory[0]) - 1)


def test_operators_without_edges_are_added() -> None:
    one = CostGraph({"a": Costs(np.array([1.0, 2.0]), np.array([2.0, 1.0])), "b": Costs(np.ones(1), np.ones(1))}, {})
    assert points(frontier_of(one)) == [(2.0, 3.0), (3.0, 2.0)]
