"""A case written as Chakra traces takes as long in replay as the case itself, and every trace is read back as it was
written."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.buffered import buffered_nbytes
from scaleproof.simulate.chakra.chakra_export import trace_of
from scaleproof.simulate.chakra.chakra_files import Collective, NodeType
from scaleproof.simulate.chakra.chakra_replay import replay
from scaleproof.simulate.chakra.chakra_trace import MICRO, Node, Trace, read_trace, write_trace
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.program import algorithm_of
from scaleproof.simulate.step_engine import simulate
from scaleproof.spec.case import TrainCase
from scaleproof.spec.cluster import cluster_of
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.profile import peak_profile
from tests.short_form import case_from

CLOSE = 0.01


def case_of(
    strategy: str, collective: str, ranks: int, workload: dict[str, Any], bucket_mib: float, mbit: float, **more: Any
) -> TrainCase:
    fields = {
        "suite": "t",
        "experiment": "t",
        "arm": "t",
        "program": "train",
        "fabric": "simulated",
        "steps": 1,
        "warmup": 0,
        "ranks": ranks,
    }
    fields |= {
        "strategy": strategy,
        "minibatch": 48 * ranks,
        "strategy.bucket_mib": bucket_mib,
        "fabric.link_mbit": mbit,
        "compute.profile": "xeon_e5_2698v3_x2",
        "compute.efficiency": 0.5,
    }
    fields |= {"transport": None} if strategy == "local_only" else {"transport": "tcp", "collective": collective}
    case = case_from({**fields, **workload, **more})
    assert isinstance(case, TrainCase)
    return case


def there_and_back(case: TrainCase, costs: MessageCosts) -> tuple[float, float]:
    profile = peak_profile(network_of(case), case.minibatch // case.ranks, "xeon_e5_2698v3_x2", 0.5)
    predicted = simulate(case, profile, cluster_of(case), costs).step_s
    with tempfile.TemporaryDirectory() as folder:
        write_trace(Path(folder), case.workload, trace_of(case, profile, costs))
        return replay(
            read_trace(Path(folder)), cluster_of(case), costs, algorithm_of(case), buffered_nbytes(case)
        ).step_s, predicted


NETWORKS = st.sampled_from(
    [
        {"workload": "vgg_a", "workload.image_side": 64, "workload.width": 0.5},
        {"workload": "cd_dnn", "workload.width": 0.25},
        {"workload": "mobilenet", "workload.image_side": 64},
    ]
)
COSTS = st.builds(
    lambda alpha, beta, gamma: MessageCosts(
        (Segment(65536, alpha, beta), Segment(None, 2 * alpha, beta / 2)), gamma, 0.95
    ),
    st.floats(0, 1e-4),
    st.floats(0, 1e-9),
    st.floats(0, 1e-9),
)


@settings(deadline=None, max_examples=20)
@given(
    strategy=st.sampled_from(["sync_overlap", "sync", "local_only", "distributed_update"]),
    collective=st.sampled_from(["ring", "halving_doubling", "tree"]),
    ranks=st.integers(1, 9),
    workload=NETWORKS,
    bucket_mib=st.sampled_from([0.5, 4.0, 25.0]),
    mbit=st.sampled_from([100.0, 1000.0, 25000.0]),
    costs=COSTS,
)
def test_a_case_and_its_trace_take_equally_long(
    strategy: str, collective: str, ranks: int, workload: Any, bucket_mib: float, mbit: float, costs: MessageCosts
):
    if strategy == "distributed_update":
        collective = "ring"
    ours, predicted = there_and_back(case_of(strategy, collective, ranks, workload, bucket_mib, mbit), costs)
    assert ours == pytest.approx(predicted, rel=CLOSE)


@settings(deadline=None, max_examples=8)
@given(servers=st.integers(0, 4), ranks=st.integers(2, 5), mbit=st.sampled_from([300.0, 10000.0]), costs=COSTS)
def test_parameter_servers_too(servers: int, ranks: int, mbit: float, costs: MessageCosts):
    more = {"strategy.servers": servers} if 0 < servers <= ranks else {}
    case = case_of(
        "parameter_server",
        "ring",
        ranks,
        {"workload": "vgg_a", "workload.image_side": 64, "workload.width": 0.25},
        25.0,
        mbit,
        **more,
    )
    ours, predicted = there_and_back(case, costs)
    assert ours == pytest.approx(predicted, rel=CLOSE)


@settings(deadline=None, max_examples=8)
@given(ranks=st.sampled_from([4, 8]), groups=st.sampled_from([1, 2, 4]), costs=COSTS)
def test_hybrid_groups_too(ranks: int, groups: int, costs: MessageCosts):
    case = case_of(
        "hybrid",
        "ring",
        ranks,
        {"workload": "vgg_a", "workload.image_side": 64, "workload.width": 0.5},
        25.0,
        1000.0,
        groups=groups,
    )
    ours, predicted = there_and_back(case, costs)
    assert ours == pytest.approx(predicted, rel=CLOSE)


KINDS = st.sampled_from([NodeType.COMP, NodeType.COMM_COLL, NodeType.COMM_SEND, NodeType.COMM_RECV, NodeType.MEM_LOAD])


@st.composite
def nodes(draw: st.DrawFn) -> tuple[Node, ...]:
    ids = draw(st.lists(st.integers(0, 2**40), unique=True, max_size=12))
    made = []
    for index, id in enumerate(ids):
        kind = draw(KINDS)
        made.append(
            Node(
                id,
                draw(st.text(max_size=5)),
                kind,
                tuple(draw(st.lists(st.sampled_from(ids[:index]), unique=True))) if index else (),
                seconds=draw(st.integers(0, 10**9)) * MICRO,
                flop=draw(st.integers(0, 2**62)) if kind in (NodeType.COMP, NodeType.MEM_LOAD) else 0,
                nbytes=draw(st.integers(0, 2**62)),
                operation=draw(st.sampled_from(Collective)) if kind is NodeType.COMM_COLL else None,
                group=draw(st.sampled_from([None, "1"])) if kind is NodeType.COMM_COLL else None,
                peer=draw(st.integers(0, 2**31 - 1)) if kind in (NodeType.COMM_SEND, NodeType.COMM_RECV) else 0,
                tag=draw(st.integers(0, 2**31 - 1)) if kind in (NodeType.COMM_SEND, NodeType.COMM_RECV) else 0,
            )
        )
    return tuple(made)


@settings(deadline=None, max_examples=50)
@given(
    ranks=st.lists(nodes(), min_size=1, max_size=3),
    about=st.dictionaries(st.text(max_size=4), st.one_of(st.integers(0, 2**60), st.text(max_size=4))),
)
def test_a_written_trace_is_read_back_equal(ranks: list[tuple[Node, ...]], about: dict[str, Any]):
    trace = Trace(tuple(ranks), {"1": tuple(range(len(ranks)))}, about)
    with tempfile.TemporaryDirectory() as folder:
        write_trace(Path(folder), "x", trace)
        read_back = read_trace(Path(folder))
    assert read_back.groups == trace.groups and read_back.about == about
    for before, after in zip(trace.ranks, read_back.ranks, strict=True):
        assert [node.seconds for node in after] == pytest.approx([node.seconds for node in before], abs=2 * MICRO)
        bare = [
            Node(**{name: getattr(node, name) for name in Node.__dataclass_fields__} | {"seconds": 0.0})
            for node in (*before, *after)
        ]
        assert bare[: len(before)] == bare[len(before) :]
