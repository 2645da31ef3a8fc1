"""Calls on a star as vectors: equal to every rank by itself in the event engine, also where connections are full."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.collective_call import Call
from scaleproof.simulate.collective_exchange import Exchange
from scaleproof.simulate.collective_schedules import pattern_of
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine_calls import run_calls
from scaleproof.simulate.link_network import Network
from scaleproof.spec.cluster import star

BETA = 1e-9


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 9),
    st.lists(st.tuples(st.sampled_from(["all_reduce", "all_gather"]), st.floats(1e3, 1e7)), min_size=1, max_size=5),
    st.sampled_from([0.0, 1e4, 4e6]),
    st.sampled_from([0.0, 3e-10, 3e-9]),
    st.integers(0, 2**32 - 1),
)
def test_ranks_that_differ_end_as_in_the_event_engine(ranks, sizes, buffer, gamma, seed):
    costs, network = MessageCosts((Segment(None, 2e-5, 0.0),), gamma), Network(star("s", ranks, 8e-6 / BETA, 0.0))
    dice = np.random.default_rng(seed)
    at = np.cumsum(dice.exponential(5e-3, (len(sizes), ranks)), axis=0)
    both = [
        [Call(pattern_of("ring", name, ranks), nbytes, ready) for (name, nbytes), ready in zip(sizes, at, strict=True)]
        for _ in range(2)
    ]
    Exchange(network, range(ranks), costs, buffer=buffer).run(both[0])
    run_calls(network, range(ranks), costs, both[1], np.zeros((1, ranks)), buffer)
    for vector, engine in zip(*both, strict=True):
        assert vector.start == pytest.approx(engine.start, rel=1e-9)
        assert vector.end == pytest.approx(engine.end, rel=1e-9)
