"""Flows of the event engine: rates are those of a plain implementation of max-min fairness, whatever comes and goes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scaleproof.simulate.engine.engine import Engine

Flow = tuple[tuple[int, ...], tuple[float, ...], float, float, float]
"""Links, weights, bytes, highest rate and start."""
Case = tuple[list[float], list[Flow]]


@st.composite
def flows(draw: st.DrawFn) -> Case:
    """Capacities of links, and flows over them."""
    links = draw(st.integers(1, 6))
    capacities = draw(st.lists(st.sampled_from([1.0, 2.0, 5.0, 7.5]), min_size=links, max_size=links))
    made = []
    for _ in range(draw(st.integers(1, 12))):
        route = tuple(draw(st.permutations(range(links)))[: draw(st.integers(1, min(links, 3)))])
        weights = tuple(draw(st.sampled_from([1.0, 0.5, 3.0])) for _ in route)
        nbytes = draw(st.sampled_from([0.5, 1.0, 3.0, 10.0]))
        highest = draw(st.sampled_from([np.inf, 0.7, 2.0]))
        made.append((route, weights, nbytes, highest, draw(st.sampled_from([0.0, 0.0, 1.0, 1.5]))))
    return capacities, made


@settings(max_examples=300, deadline=None)
@given(flows())
def test_flows_end_when_a_plain_simulation_says(case: Case) -> None:
    capacities, made = case
    engine = Engine(capacities)
    for route, weights, nbytes, highest, start in made:
        engine.transfer(engine.route(route, weights), nbytes, highest=highest, delay=start)
    engine.run()
    assert np.allclose(engine.end, plain(capacities, made), rtol=1e-9)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_many_flows_over_two_levels_of_links_end_when_a_plain_simulation_says(seed: int) -> None:
    """So many that a change at one end of the network moves rates at the other, up and down."""
    dice = np.random.default_rng(seed)
    nodes, leaves = 12, 3
    capacities = [*dice.uniform(5.0, 10.0, 2 * nodes), *dice.uniform(3.0, 20.0, 2 * leaves)]
    made: list[Flow] = []
    for start in np.cumsum(dice.exponential(0.05, 60)).tolist():
        one, other = (int(node) for node in dice.choice(nodes, 2, replace=False))
        up, down = 2 * nodes + one % leaves, 2 * nodes + leaves + other % leaves
        links = (one, up, down, nodes + other) if one % leaves != other % leaves else (one, nodes + other)
        highest = float(dice.choice([np.inf, 1.0]))
        made.append((links, (1.0,) * len(links), float(dice.uniform(0.1, 4.0)), highest, start))
    engine = Engine(capacities)
    for route, weights, nbytes, highest, start in made:
        engine.transfer(engine.route(route, weights), nbytes, highest=highest, delay=start)
    engine.run()
    assert np.allclose(engine.end, plain(capacities, made), rtol=1e-9)


def plain(capacities: list[float], made: list[Flow]) -> np.ndarray:
    """All rates anew at every event."""
    left = np.array([nbytes for _, _, nbytes, _, _ in made])
    starts, ends, now = np.array([flow[4] for flow in made]), np.full(len(made), np.nan), 0.0
    while np.isnan(ends).any():
        live = [k for k in range(len(made)) if np.isnan(ends[k]) and starts[k] <= now]
        rates = fair(capacities, {k: made[k] for k in live})
        later = starts[starts > now]
        step = min([left[k] / rates[k] for k in live] + ([later.min() - now] if len(later) else []))
        for k in live:
            left[k] -= rates[k] * step
            if left[k] <= 1e-12 * made[k][2]:
                ends[k] = now + step
        now += step
        now = min([s for s in starts if abs(s - now) < 1e-12], default=now)
    return ends


def fair(capacities: list[float], live: dict[int, Flow]) -> dict[int, float]:
    """Progressive filling in small words: raise all rates together until something is full."""
    rates, unused, open_ = dict.fromkeys(live, 0.0), list(capacities), set(live)
    while open_:
        used = [0.0] * len(unused)
        for k in open_:
            for crossed, weight in zip(live[k][0], live[k][1], strict=True):
                used[crossed] += weight
        steps = [unused[link] / used[link] for link in range(len(unused)) if used[link] > 0]
        step = min(steps + [live[k][3] - rates[k] for k in open_])
        for k in open_:
            rates[k] += step
            for link, weight in zip(live[k][0], live[k][1], strict=True):
                unused[link] -= step * weight
        full = {link for link in range(len(unused)) if used[link] > 0 and unused[link] <= 1e-12 * capacities[link]}
        open_ = {k for k in open_ if not full & set(live[k][0]) and rates[k] < live[k][3] * (1 - 1e-12)}
    return rates
