"""The simulation of a case: buckets, dependencies, jitter, emulated time, and stated limits."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from scaleproof.fabric.netns import netns_node
from scaleproof.fabric.topology import emulated_network
from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.program import exchange_plan, step_program
from scaleproof.simulate.simulated_spans import ALL_EVENTS_OF, Prediction
from scaleproof.simulate.step_engine import simulate
from scaleproof.spec.case import TrainCase
from scaleproof.spec.cluster import Cluster, Link, cluster_of, load_cluster, star
from scaleproof.spec.errors import SpecError
from scaleproof.strategies import buckets
from scaleproof.strategies.base import MIB
from scaleproof.strategies.buckets import Parameter
from scaleproof.strategies.parameter_server_step import SOCKET
from scaleproof.strategies.step_program import collectives, listed
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.jitter_model import Jitter
from scaleproof.workloads.profile import LayerTimes, Profile, Spread, peak_profile
from scaleproof.workloads.volumes import volume
from tests.closed_form import hierarchical_all_reduce
from tests.short_form import case_from

FREE = MessageCosts((Segment(None, 0.0, 0.0),), 0.0)


def case_of(**fields: Any) -> TrainCase:
    common: dict[str, Any] = {
        "program": "train",
        "suite": "x",
        "experiment": "e",
        "arm": "a",
        "fabric": "simulated",
        "fabric.link_mbit": 8000.0,
        "transport": "tcp",
        "collective": "ring",
        "strategy": "sync_overlap",
        "workload": "dnn_digits",
        "minibatch": 64,
        "ranks": 4,
        "steps": 2,
        "warmup": 1,
        "strategy.bucket_mib": 1e-5,
    }
    case = case_from({**common, **fields})
    assert isinstance(case, TrainCase)
    return case


def profile_of(
    case: TrainCase, forward: float = 1e-3, weight: float = 1e-3, rest: float = 1e-3, update: float = 0.0
) -> Profile:
    """A profile in which every layer takes equally long."""
    layers = tuple(
        LayerTimes(
            name=layer.name,
            mac=layer.mac,
            forward_s=Spread(median=forward),
            backward_s=Spread(median=weight + rest),
            weight_s=Spread(median=weight),
        )
        for layer in network_of(case).layers
    )
    return Profile(
        workload=case.workload,
        batch=case.minibatch // case.ranks,
        framework="torch",
        threads=1,
        node="here",
        taken="made up",
        layers=layers,
        update_s=Spread(median=update),
    )


def simulated(case: TrainCase, costs: MessageCosts = FREE, **how: Any) -> Prediction:
    return simulate(case, how.pop("profile", profile_of(case)), cluster_of(case), costs, **how)


def spans(prediction: Prediction, event: str, step: int = 1) -> list[tuple[float, float]]:
    return [
        (float(span.start[0]), float(span.end[0]))
        for span in prediction.spans
        if span.event == event and span.step == step
    ]


def compute_s(case: TrainCase) -> float:
    return profile_of(case).step_s


def test_buckets_are_those_of_the_strategies():
    case = case_of(workload="vgg_a", bucket_mib=25.0)
    parameters = [Parameter(name, math.prod(shape)) for name, shape in network_of(case).parameter_shapes]
    real, _ = buckets.allocate(parameters, 25 * MIB, lambda nbytes: np.empty(nbytes, np.uint8))
    plan = exchange_plan(case, network_of(case))
    assert plan.nbytes == tuple(bucket.nbytes for bucket in real)
    assert plan.members == tuple(bucket.members for bucket in real)


def test_a_free_network_leaves_the_compute_alone():
    case = case_of()
    assert simulated(case, MessageCosts((Segment(None, 0, 0),), 0)).step_s == pytest.approx(compute_s(case), rel=0.02)


def test_sync_adds_up_and_overlap_hides_all_but_the_last():
    """Calls of 0.1 ms each behind layers of 2 ms: all but the last fit into the backward pass."""
    slow = MessageCosts((Segment(None, 1e-4 / 6, 0.0),), 0.0)
    layers = len(network_of(case_of()).layers)
    exposed = {
        name: simulated(case_of(strategy=name, link_mbit=None), slow).step_s - compute_s(case_of())
        for name in ("sync", "sync_overlap", "local_only")
        if name != "local_only"
    }
    calls = len(exchange_plan(case_of(), network_of(case_of())).nbytes)
    assert calls == 2 * layers
    assert exposed["sync"] == pytest.approx(calls * 1e-4)
    # The first layer's gradients are final 1 ms before the pass ends, and its input's gradient hides them.
    assert exposed["sync_overlap"] == pytest.approx(0.0, abs=1e-9)
    ends = simulated(case_of(link_mbit=None), slow, profile=profile_of(case_of(), rest=0.0))
    assert ends.step_s - profile_of(case_of(), rest=0.0).step_s == pytest.approx(2e-4)


@pytest.mark.parametrize("strategy", ["sync_overlap", "distributed_update"])
def test_a_main_thread_that_communicates_hides_nothing(strategy: str):
    """The step is the sum of all compute and all exchanges, also with a strategy that could hide some."""
    slow = MessageCosts((Segment(None, 1e-4 / 6, 0.0),), 0.0)
    case = case_of(strategy=strategy, link_mbit=None, communication="main")
    calls = len(exchange_plan(case, network_of(case)).nbytes)
    assert simulated(case, slow).step_s - compute_s(case) == pytest.approx(calls * 1e-4)
    assert simulated(case_of(strategy=strategy, link_mbit=None), slow).step_s < simulated(case, slow).step_s
    prediction = simulated(case, slow)
    made, ended = zip(*spans(prediction, "communication"), strict=True)
    assert min(made) < spans(prediction, "update")[0][0] and min(ended) > spans(prediction, "backward")[-1][1], (
        "calls are made beside the pass and move after it"
    )


def test_a_librarys_own_calls_move_beside_a_main_thread_that_made_them():
    slow = MessageCosts((Segment(None, 1e-4 / 6, 0.0),), 0.0)
    fields = {"transport": "gloo", "collective": "native", "fabric.link_mbit": None}
    assert simulated(case_of(**fields, communication="main"), slow).step_s == simulated(case_of(**fields), slow).step_s


def test_several_channels_move_calls_side_by_side():
    """Messages cost their alpha only, so that two channels halve what n equal calls take."""
    slow = MessageCosts((Segment(None, 1e-4 / 6, 0.0),), 0.0)
    exposed = {
        count: simulated(case_of(strategy="sync", link_mbit=None, channels=count), slow).step_s - compute_s(case_of())
        for count in (1, 2)
    }
    assert exposed[2] == pytest.approx(exposed[1] / 2)
    free = simulated(case_of(strategy="sync", link_mbit=80.0, channels=2)).step_s
    assert free == pytest.approx(simulated(case_of(strategy="sync", link_mbit=80.0)).step_s, rel=0.02), (
        "bytes share the links"
    )


def test_a_hierarchical_case_takes_the_time_of_its_closed_form():
    case = case_of(strategy="sync", collective="hierarchical", ranks=8, nodes=4, link_mbit=80.0, bucket_mib=25.0)
    costs = MessageCosts((Segment(None, 1e-4, 1e-8),), 0.0)
    (nbytes,) = exchange_plan(case, network_of(case)).nbytes
    expected = hierarchical_all_reduce(4, 2, nbytes, (1e-4, 1e-8), (1e-4, 1e-7), 0.0)
    assert simulated(case, costs).step_s - compute_s(case) == pytest.approx(expected, rel=1e-6)


def test_a_single_rank_does_not_communicate():
    prediction = simulated(case_of(strategy="local_only", transport=None, collective="native", ranks=1), FREE)
    assert {span.event for span in prediction.spans} == {"forward", "backward", "update", "step"}


def test_waiting_per_layer_gains_most_when_gradients_of_front_layers_come_first():
    """Calls of a step may reach into the next forward pass, which helps when the calls of front layers come first."""
    case = case_of(steps=6, link_mbit=None)
    slow = MessageCosts((Segment(None, 3e-4, 0.0),), 0.0)
    waits_for_all = simulated(case, slow).throughput
    across = {
        order: simulated(case_of(steps=6, link_mbit=None, forward_waits="layer", bucket_order=order), slow).throughput
        for order in ("ready", "front_first")
    }
    assert waits_for_all <= across["ready"] * (1 + 1e-9) and across["ready"] < across["front_first"]


def test_fusion_joins_what_is_ready_together():
    case = case_of(transport="horovod", collective="native", strategy="sync", link_mbit=None)
    slow = MessageCosts((Segment(None, 1e-4 / 6, 0.0),), 0.0)
    tensors = len(network_of(case).parameter_shapes)
    alone, joined = (simulated(case.changed({"transport.fusion_mib": mib}), slow) for mib in (0.0, 64.0))
    assert alone.step_s - compute_s(case) == pytest.approx(tensors * 1e-4)
    assert joined.step_s - compute_s(case) == pytest.approx(1e-4)


@pytest.mark.parametrize("groups", [1, 2, 4, 8])
def test_hybrid_sends_the_bytes_of_its_formula(groups):
    case = case_of(strategy="hybrid", workload="vgg_a", ranks=8, minibatch=64, groups=groups, bucket_mib=25.0)
    plan, sent = exchange_plan(case, network_of(case)), {"inside": 0.0, "between": 0.0, "all": 0.0}
    for call in collectives(listed(step_program(case, plan, profile_of(case)))[0]):
        members = {"inside": 8 // groups, "between": groups, "all": 8}[call.group]
        sent[call.group] += call.nbytes * (members - 1) / members
    volumes = volume(network_of(case), 8, 64, groups)
    lone = groups == 8
    assert sent["inside"] == pytest.approx(volumes.activations + volumes.logits, rel=1e-6)
    assert sent["between"] == pytest.approx(0.0 if lone else volumes.strips, rel=1e-3, abs=1.0)
    assert sent["all"] == pytest.approx(volumes.replicated + (volumes.strips if lone else 0.0), rel=1e-3)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_divided_network_is_updated_once_by_all_ranks_together(groups):
    case = case_of(
        strategy="hybrid", workload="vgg_a", ranks=4, minibatch=64, groups=groups, bucket_mib=25.0, link_mbit=None
    )
    update_s = simulated(case, profile=profile_of(case, update=4e-3)).step_s - simulated(case).step_s
    assert update_s == pytest.approx(1e-3, rel=0.02), "the widest strips are a little more than a part of a layer"


def test_the_distributed_update_divides_the_step_and_moves_as_much_as_an_all_reduce():
    predictions = {}
    for strategy in ("sync_overlap", "distributed_update"):
        case = case_of(strategy=strategy, link_mbit=None)
        predictions[strategy] = simulated(case, profile=profile_of(case, update=4e-3)).step_s - compute_s(case)
    assert predictions == {"sync_overlap": pytest.approx(4e-3), "distributed_update": pytest.approx(1e-3)}
    slow = [simulated(case_of(strategy=strategy, link_mbit=80.0)).step_s for strategy in ("sync", "distributed_update")]
    assert slow[1] <= slow[0]


def test_one_server_is_a_bottleneck_that_several_servers_relieve():
    one_server, four_servers = (
        simulated(case_of(strategy="parameter_server", servers=count, link_mbit=80.0)).step_s for count in (1, 4)
    )
    assert one_server > 1.3 * four_servers  # the large tensors are on two of the four


def test_large_gradients_wait_for_the_thread_that_moves_them():
    """tcp moves what its caller looks at, and the caller computes; gRPC has threads of its own. A tensor that a socket
    takes whole goes at once."""
    fields: dict[str, Any] = {
        "strategy": "parameter_server",
        "strategy.servers": 1,
        "ranks": 2,
        "workload": "vgg_a",
        "workload.image_side": 64,
        "fabric.link_mbit": 20000.0,
    }
    case = case_of(**fields)
    caller, thread = (exchange_plan(case.changed({"transport": name}), network_of(case)) for name in ("tcp", "grpc"))
    assert thread.late == frozenset()
    large = [index for index, nbytes in enumerate(caller.parameters) if nbytes > SOCKET]
    assert caller.late == frozenset(range(max(large) + 1)), (
        "all that one server gets after the first large one is behind it"
    )
    assert netns_node.SEND_BUFFER[1] == SOCKET
    assert simulated(case).step_s > 1.05 * simulated(case_of(**fields, transport="grpc")).step_s


def test_unequal_ranks_wait_for_the_slowest_and_only_the_same_seed_repeats_it():
    case = case_of(steps=8)
    rates = [
        simulated(case, jitter=jitter, seed=seed).throughput
        for jitter, seed in ((None, 1), (Jitter(0.1), 1), (Jitter(0.1), 1), (Jitter(0.1), 2))
    ]
    assert rates[1] < rates[0] and rates[1] == rates[2] != rates[3]
    held_up = simulated(case, jitter=Jitter(straggler_share=1.0, straggler_factor=2.0)).step_s
    assert held_up == pytest.approx(2 * simulated(case).step_s, rel=0.05)


def test_jitter_is_spread_around_the_usual():
    factors = np.concatenate([Jitter(step_sigma=0.1).factors(64, 7, step) for step in range(64)])
    assert np.median(factors) == pytest.approx(1.0, abs=0.01)
    assert np.log(factors).std() == pytest.approx(0.1, rel=0.05)


def test_emulated_time_is_taken_back_where_messages_cost_nothing():
    """Dilation slows compute and links alike, shrink tensors and links: without software costs neither changes the
    prediction."""
    case = case_of(workload="vgg_a", bucket_mib=25.0, link_mbit=1000.0)
    plain = simulated(case).step_s
    for fields in ({"dilation": 8.0}, {"shrink": 16.0}, {"dilation": 4.0, "shrink": 64.0}):
        prediction = simulated(case.changed({**fields, "strategy.bucket_mib": 25.0 / fields.get("shrink", 1.0)}))
        assert prediction.step_s == pytest.approx(plain, rel=1e-3)
        table = prediction.samples().to_pandas()
        steps = table[table["event"] == "step"]
        assert (steps["end_ns"] - steps["start_ns"]).max() / 1e9 == pytest.approx(prediction.step_s, rel=1e-6)
        sizes = table.loc[
            (table["event"] == "communication") & (table["rank"] == 0) & (table["step"] == 1), "nbytes"
        ].sum()
        assert sizes == pytest.approx(sum(exchange_plan(case, network_of(case)).nbytes), rel=1e-3)


def test_samples_have_every_rank_in_the_timed_region_and_the_parts_of_the_first_ones():
    ranks = ALL_EVENTS_OF + 3
    table = simulated(case_of(ranks=ranks, minibatch=ranks)).samples().to_pandas()
    assert (
        set(table["rank"][table["event"] == "step"]) == set(range(ranks)) == set(table["rank"][table["event"] == "end"])
    )
    assert set(table["rank"][table["event"] == "backward"]) == set(range(ALL_EVENTS_OF))
    assert (table["end_ns"] >= table["start_ns"]).all() and table["warmup"].sum() == (table["step"] == 0).sum()


def test_cases_that_are_not_simulated_are_refused_with_the_reason():
    case = case_of(strategy="tensorflow_parameter_server", transport="tensorflow-grpc", collective="native")
    with pytest.raises(SpecError, match="'tensorflow_parameter_server' is not simulated; "):
        simulated(case)


def test_routes_are_shortest_and_a_message_takes_one_of_parallel_links():
    ends = [("node0", "node1"), ("node1", "node2"), ("node2", "node3"), ("node3", "node0"), ("node0", "node2")]
    network = Network(Cluster("graph", 4, (), tuple(Link(pair, 80.0, 1.0) for pair in [*ends, ends[0]])))
    assert [len(network.route(0, node)) for node in range(4)] == [0, 1, 1, 1]
    assert len(network.route(1, 3)) == 2 and network.delay_s(network.route(1, 3)) == pytest.approx(2e-3)
    assert network.capacities[network.route(0, 1)[0]] == pytest.approx(2e7)
    assert (network.most(network.route(0, 1), 0.0), network.most((), 0.0), network.most((), 1e-9)) == (
        pytest.approx(1e7),
        math.inf,
        pytest.approx(1e9),
    )
    assert network.star is None
    doubled = Network(
        Cluster("tree", 2, ("left",), tuple(Link((node, "left"), 80.0, 0.0) for node in ("node0", "node0", "node1")))
    )
    assert doubled.capacities[doubled.route(0, 1)[0]] == pytest.approx(1e7), (
        "netns takes the first of parallel links to a switch"
    )
    assert Network(star("s", 3, 80.0, 0.0)).star is not None


def test_routes_equal_those_of_the_emulated_cluster():
    for nodes in (4, 8):
        cluster = load_cluster("dgx1v_like", nodes)
        emulated, network = emulated_network(cluster), Network(cluster)
        for source, destination in itertools.permutations(range(nodes), 2):
            assert len(network.route(source, destination)) == len(emulated.route_links(source, destination))
    line = Cluster("line", 2, (), (Link(("node0", "node2"), 80.0, 0.0), Link(("node2", "node1"), 80.0, 0.0)))
    with pytest.raises(SpecError, match="'line': node0 has no way to node1 over the 2 nodes in use"):
        Network(line).route(0, 1)


def test_a_reckoned_profile_gives_the_step_of_a_rank_alone():
    case = case_of(
        workload="vgg_a",
        ranks=1,
        strategy="local_only",
        transport=None,
        collective="native",
        profile="xeon_e5_2698v3_x2",
        efficiency=0.5,
    )
    profile = peak_profile(network_of(case), 64, "xeon_e5_2698v3_x2", 0.5)
    assert simulated(case, profile=profile).step_s == pytest.approx(profile.step_s)
