"""Links are shared fairly (max-min): no flow can have more unless a flow with as little or less loses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from scaleproof.simulate.engine.engine import Engine

INF = float("inf")


def ends(
    routes: Sequence[Sequence[int]],
    capacities: Sequence[float],
    sizes: Sequence[float] | np.ndarray,
    highest: Any = INF,
) -> np.ndarray:
    """When flows end that all start at once."""
    engine = Engine(capacities)
    numbers = [engine.route(route) for route in routes]
    engine.transfer(numbers, sizes, count=len(routes), highest=highest)
    engine.run()
    return engine.end


@pytest.mark.parametrize(
    ("routes", "capacities", "caps", "rates"),
    [
        ([[0], [0]], [10], [INF, INF], [5, 5]),
        ([[0], [0]], [10], [2, INF], [2, 8]),
        ([[0, 1], [0], [1]], [10, 4], [INF] * 3, [2, 8, 2]),
        ([[0, 1], [1, 2], [0], [2]], [6, 6, 4], [INF] * 4, [3, 2, 3, 2]),
        ([[0], [1]], [3, 7], [INF, INF], [3, 7]),
    ],
)
def test_shares_by_hand(routes, capacities, caps, rates):
    """Flows with as many bytes as their shares move in a second all take a second."""
    assert ends(routes, capacities, rates, caps) == pytest.approx(1.0)


networks = st.integers(1, 4).flatmap(
    lambda links: st.tuples(
        st.lists(st.floats(1, 100), min_size=links, max_size=links),
        st.lists(st.lists(st.integers(0, links - 1), min_size=1, max_size=links, unique=True), min_size=1, max_size=6),
    )
)


def most(
    goal: np.ndarray, least: float, free: list[int], fixed: dict[int, float], used: np.ndarray, capacities: list[float]
) -> float:
    """Maximise `goal` (rates, then their common floor) while every free flow has the floor and at least `least`."""
    count = used.shape[1]
    floors = [[-1.0 if other == flow else 0.0 for other in range(count)] + [1.0] for flow in free]
    bounds = [(fixed[flow], fixed[flow]) if flow in fixed else (least, None) for flow in range(count)] + [(0, None)]
    matrix = np.vstack([np.column_stack([used, np.zeros(len(capacities))]), floors])
    return -linprog(-goal, A_ub=matrix, b_ub=[*capacities, *[0.0] * len(free)], bounds=bounds).fun


def by_linear_programs(routes: list[list[int]], capacities: list[float]) -> np.ndarray:
    """The definition as a sequence of linear programs: raise the smallest rate as far as possible, fix the flows that
    cannot have more, repeat."""
    used = np.array([[link in route for route in routes] for link in range(len(capacities))], float)
    goals, fixed = np.eye(len(routes) + 1), dict[int, float]()
    while len(fixed) < len(routes):
        free = [flow for flow in range(len(routes)) if flow not in fixed]
        floor = most(goals[-1], 0.0, free, fixed, used, capacities)
        fixed |= {
            flow: floor
            for flow in free
            if most(goals[flow], floor * (1 - 1e-9), free, fixed, used, capacities) <= floor * (1 + 1e-6)
        }
    return np.array([fixed[flow] for flow in range(len(routes))])


@settings(max_examples=40, deadline=None)
@given(networks)
def test_shares_are_those_of_the_definition(network):
    """Flows with as many bytes as their shares move in a second all take a second."""
    capacities, routes = network
    engine = Engine(capacities)
    engine.transfer(
        [engine.route(route) for route in routes], by_linear_programs(routes, capacities), count=len(routes)
    )
    engine.run()
    assert engine.end == pytest.approx(1.0, rel=1e-5)


@settings(max_examples=60, deadline=None)
@given(networks, st.data())
def test_no_byte_is_lost_and_no_link_carries_more_than_it_can(network, data):
    """Flows of any size and start: each ends no sooner than it would alone, and no link moves bytes faster than its
    rate."""
    capacities, routes = network
    sizes = np.array(data.draw(st.lists(st.floats(1, 1000), min_size=len(routes), max_size=len(routes))))
    begins = np.array(data.draw(st.lists(st.floats(0, 20), min_size=len(routes), max_size=len(routes))))
    engine = Engine(capacities)
    engine.transfer([engine.route(route) for route in routes], sizes, count=len(routes), delay=begins)
    engine.run()
    last = engine.end
    assert np.isfinite(last).all()
    for flow, route in enumerate(routes):
        assert last[flow] - begins[flow] >= sizes[flow] / min(capacities[link] for link in route) * (1 - 1e-6)
    for link, capacity in enumerate(capacities):
        through = [flow for flow, route in enumerate(routes) if link in route]
        if through:
            since, until = min(begins[flow] for flow in through), max(last[flow] for flow in through)
            assert sum(sizes[flow] for flow in through) <= capacity * (until - since) * (1 + 1e-6)


def test_a_flow_gets_what_another_leaves():
    assert ends([[0], [0]], [10.0], [10.0, 30.0]) == pytest.approx([2.0, 4.0])


def test_empty_and_uncontended_flows_end_at_once():
    engine = Engine([1.0])
    engine.transfer(
        [engine.route([0]), engine.route([]), engine.route([])], [0.0, 5.0, 5.0], count=3, highest=[INF, INF, 2.0]
    )
    engine.run()
    assert engine.end.tolist() == [0.0, 0.0, 2.5]
