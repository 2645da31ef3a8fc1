"""Collective calls of the event engine: the closed forms of MPICH's comments, and the older engine where messages wait
for their receivers."""

from __future__ import annotations

import numpy as np
import pytest

from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.call_schedules import CallSchedules
from scaleproof.simulate.collective_schedules import pattern_of
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.link_network import Network
from scaleproof.spec.cluster import star
from tests.closed_form import ring_all_reduce

ALPHA, BETA, GAMMA = 2e-5, 1e-9, 3e-10
COSTS = MessageCosts((Segment(None, ALPHA, BETA),), GAMMA)
MBIT = 800.0  # 1e-8 s a byte, slower than software


def ends(algorithm: str, ready: np.ndarray, nbytes: float, buffer: float) -> np.ndarray:
    """When each rank has left the call."""
    ranks, network = len(ready), Network(star("s", len(ready), MBIT, 0.0))
    engine = Engine(network.capacities)
    schedules = CallSchedules(engine, network, list(range(ranks)), COSTS, buffer)
    begun = engine.work(ready, count=ranks)
    call = engine.call(schedules.of(pattern_of(algorithm, "all_reduce", ranks), nbytes), engine.lanes(ranks))
    engine.after(call, begun)
    engine.run()
    return engine.end[call]


@pytest.mark.parametrize("buffer", [0.0, 4e6])
@pytest.mark.parametrize("ranks", [2, 3, 8, 17])
def test_a_ring_takes_its_closed_form_whether_messages_are_buffered_or_not(ranks: int, buffer: float) -> None:
    found = ends("ring", np.zeros(ranks), 1e6, buffer)
    assert np.allclose(found, ring_all_reduce(ranks, 1e6, ALPHA, 1e-8, GAMMA), rtol=1e-6)


@pytest.mark.parametrize("algorithm", ["halving_doubling", "tree"])
def test_buffered_messages_never_make_a_call_end_before_its_last_byte_can_be_there(algorithm: str) -> None:
    found = ends(algorithm, np.zeros(8), 1e6, 4e6)
    assert found.min() > 2 * 7 / 8 * 1e6 * 1e-8
