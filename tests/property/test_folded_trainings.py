"""Ranks of a training that do the same, of which one stands for all, take as long as each by itself."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.buffered import buffered_nbytes
from scaleproof.simulate.cost_model import HopCosts, MessageCosts
from scaleproof.simulate.training_on_engine import simulate_each_rank
from scaleproof.spec.cluster import Cluster, Link, cluster_of, node_name
from tests.unit.simulate.test_simulator import case_of, profile_of

COSTS = MessageCosts(
    (Segment(None, 2e-5, 1e-10),),
    3e-10,
    others=(("loopback", HopCosts((Segment(None, 5e-6, 3e-11),))),),
    call=4e-5,
    handover=3e-5,
)
TCP, MPI = {"transport": "tcp"}, {"transport": "mpi", "launcher": "mpirun"}
STRATEGIES = [
    {"strategy": "sync"},
    {"strategy": "sync_overlap"},
    {"strategy": "sync_overlap", "strategy.channels": 2},
    {"strategy": "sync_overlap", "strategy.bucket_order": "front_first", "strategy.forward_waits": "layer"},
    {"strategy": "distributed_update"},
    {"strategy": "hybrid", "strategy.groups": 2},
    {"strategy": "hybrid", "strategy.groups": 1},
]


def two_levels(nodes: int, mbit: float) -> Cluster:
    """Two nodes at each switch, and one above all."""
    switches = [f"leaf{number}" for number in range(-(-nodes // 2))]
    links = [Link((node_name(node), switches[node // 2]), 1000.0, 0.01) for node in range(nodes)]
    links += [Link((switch, "core"), mbit, 0.02) for switch in switches]
    return Cluster("pod", nodes, (*switches, "core"), tuple(links))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(STRATEGIES),
    st.sampled_from([TCP, MPI]),
    st.sampled_from(["ring", "halving_doubling", "recursive_doubling", "hierarchical", "tree"]),
    st.sampled_from([2, 3, 4, 6, 8]),
    st.sampled_from([1, 2]),
    st.sampled_from([1e-5, 0.1, 25.0]),
    st.sampled_from([80.0, 8000.0]),
    st.booleans(),
)
def test_any_training(strategy, transport, algorithm, nodes, per_node, bucket_mib, mbit, pod):
    assume(strategy.get("strategy.groups") != 1 or nodes * per_node <= 8)  # strips of the last layer's 10 features
    fields = {"collective": algorithm, "ranks": nodes * per_node, "nodes": nodes, "minibatch": 48, "steps": 2}
    try:
        case = case_of(
            **{**fields, "strategy.bucket_mib": bucket_mib, "fabric.link_mbit": mbit, **strategy, **transport}
        )
    except ValidationError:
        assume(False)
    profile, cluster = (
        profile_of(case, 1.1e-3, 0.7e-3, 0.9e-3, 1.3e-3),
        two_levels(nodes, mbit) if pod else cluster_of(case),
    )
    buffer = buffered_nbytes(case)
    some, every = (
        simulate_each_rank(case, profile, cluster, COSTS, buffer=buffer, fold=fold) for fold in (True, False)
    )
    assert len(some.spans) == len(every.spans)
    for one, other in zip(some.spans, every.spans, strict=True):
        assert (one.event, one.step, one.nbytes) == (other.event, other.step, other.nbytes)
        assert np.allclose(one.start, other.start, rtol=1e-9, atol=1e-12), one.event
        assert np.allclose(one.end, other.end, rtol=1e-9, atol=1e-12), one.event
