"""The engine against closed forms, against itself without its shortcuts, and against the invariants of every
schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.collective_call import Call
from scaleproof.simulate.collective_exchange import Exchange
from scaleproof.simulate.collective_schedules import hierarchical, pattern_of
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.engine_calls import run_calls
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.tensor_servers import Serving, Tensor
from scaleproof.spec.cluster import Cluster, Link, star
from tests.closed_form import EVERY_P, EXACT, hierarchical_all_reduce, parameter_servers

ALGORITHMS = ("ring", "halving_doubling", "tree", "recursive_doubling", "chain", "double_binary_tree")
OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")
sizes = st.floats(1, 1e9)
alphas = st.floats(0, 1e-2)
betas = st.floats(1e-12, 1e-7)
gammas = st.floats(0, 1e-8)
ranks = st.integers(2, 16)


def plain(alpha: float, gamma: float, beta: float = 0.0) -> MessageCosts:
    return MessageCosts((Segment(None, alpha, beta),), gamma)


def links(count: int, beta: float) -> Network:
    """A star on which a byte takes `beta` s."""
    return Network(star("s", count, 8e-6 / beta, 0.0))


def ended(network: Network, costs: MessageCosts, pattern, nbytes: float, ready: np.ndarray, **how) -> np.ndarray:
    call = Call(pattern, nbytes, ready)
    Exchange(network, range(pattern.ranks), costs, **how).run([call])
    return call.end


def serve(
    network: Network,
    costs: MessageCosts,
    tensors: Sequence[Tensor],
    pushed: Mapping[int, np.ndarray],
    finish: np.ndarray,
    update_s: float = 0.0,
) -> tuple[dict[int, np.ndarray], np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """When each rank has each tensor, has finished, and starts and ends its updates."""
    engine, count = Engine(network.capacities), len(finish)
    serving = Serving(engine, network, range(count), costs, tensors, update_s)
    gradients = {index: engine.work(ready, count=count) for index, ready in pushed.items()}
    served = serving.add(gradients, engine.work(0.0, count=count), engine.work(finish, count=count), np.ones(count))
    engine.run()
    updates = [(engine.end[update.start], engine.end[update.end]) for update in served.updates]
    return {index: engine.end[tasks] for index, tasks in served.received.items()}, engine.end[served.end], updates


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(EXACT)), ranks, sizes, alphas, betas, gammas)
def test_the_engine_follows_the_closed_form_where_it_is_exact(call, p, n, a, b, g):
    assume(call in EVERY_P or p & (p - 1) == 0)
    end = ended(links(p, b), plain(a, g), pattern_of(*call, p), n, np.zeros(p)).max()
    assert end == pytest.approx(EXACT[call](p, n, a, b, g), rel=1e-6)


@settings(max_examples=20, deadline=None)
@given(ranks, st.data(), sizes, alphas, betas, gammas)
def test_servers_follow_the_closed_form(p, data, n, a, b, g):
    k = data.draw(st.integers(1, p - 1))
    served, end, _ = serve(
        links(p, b),
        plain(a, g),
        [Tensor(n / k, owner) for owner in range(k)],
        {index: np.zeros(p) for index in range(k)},
        np.zeros(p),
    )
    assert end.max() == pytest.approx(parameter_servers(p, k, n, a, b, g), rel=1e-6)
    assert all(times.max() <= end.max() for times in served.values())


def test_a_server_waits_for_the_last_gradient_and_for_its_own_backward_pass():
    network, costs, ready = links(3, 1e-9), plain(0.0, 0.0), np.array([0.0, 1.0, 5.0])
    served, end, updates = serve(network, costs, [Tensor(1e6, 0)], {0: ready}, ready, 2.0)
    assert served[0] == pytest.approx([7.001, 7.003, 7.003]) and end == pytest.approx([7.003] * 3)
    assert updates[0][0][0] == pytest.approx(5.001) and updates[0][1][0] == pytest.approx(7.001)
    late, _, _ = serve(network, costs, [Tensor(1e6, 0)], {0: np.zeros(3)}, np.array([9.0, 0.0, 0.0]))
    assert late[0][0] == pytest.approx(9.0)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 5), st.integers(2, 4), sizes, alphas, betas, gammas)
def test_a_hierarchical_all_reduce_follows_the_closed_form(nodes, per_node, n, a, b, g):
    memory = b / 20
    call = Call(hierarchical("ring", nodes * per_node, per_node), n, np.zeros(nodes * per_node))
    places = [rank // per_node for rank in range(nodes * per_node)]
    Exchange(links(nodes, b), places, plain(a, g, memory)).run([call])
    assert call.end.max() == pytest.approx(
        hierarchical_all_reduce(nodes, per_node, n, (a, memory), (a, b), g), rel=1e-6
    )


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(ALGORITHMS), st.integers(2, 9), sizes, alphas, betas, gammas, st.integers(0, 2**31), st.booleans()
)
def test_the_short_cuts_equal_the_general_engine(algorithm, p, n, a, b, g, seed, together):
    ready = np.zeros(p) if together else np.random.default_rng(seed).random(p) * (a + n * b)
    pattern, network, costs = pattern_of(algorithm, "all_reduce", p), links(p, b), plain(a, g)
    general = Call(pattern, n, ready)
    run_calls(network, range(p), costs, [general], np.zeros((1, p)))
    for symmetry in (True, False):
        assert ended(network, costs, pattern, n, ready, symmetry=symmetry) == pytest.approx(general.end, rel=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(ALGORITHMS), st.integers(2, 8), sizes, alphas, betas, st.floats(1.01, 10))
def test_faster_links_never_make_it_later(algorithm, p, n, a, b, factor):
    pattern, costs = pattern_of(algorithm, "all_reduce", p), plain(a, 0.0)
    slow, fast = (ended(links(p, beta), costs, pattern, n, np.zeros(p)).max() for beta in (b, b / factor))
    assert fast <= slow * (1 + 1e-9)


@pytest.mark.parametrize("p", [2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_all_reduce_sends_the_bytes_that_it_must(algorithm, p):
    """2 (p - 1) arrays in total when all ranks take part. The extra ranks of halving and doubling send and receive
    their whole array once. By recursive doubling each of 2^k ranks sends its array k times."""
    depth = p.bit_length() - 1
    core = 1 << depth if "doubling" in algorithm else p
    exchanged = core * depth if algorithm == "recursive_doubling" else 2 * (core - 1)
    assert pattern_of(algorithm, "all_reduce", p).sent == pytest.approx(exchanged + 2 * (p - core))


@pytest.mark.parametrize(
    ("algorithm", "operation", "p"),
    [
        *(
            ("ring", operation, p)
            for operation in ("all_reduce", "reduce_scatter", "all_gather")
            for p in (2, 3, 7, 12)
        ),
        *(("hierarchical/2", "all_reduce", p) for p in (4, 6)),
        ("hierarchical/4", "all_reduce", 12),
        ("hierarchical/3", "all_reduce", 3),
    ],
)
def test_rings_by_rule_equal_the_generated_rings(algorithm, operation, p):
    from scaleproof.collectives.message_schedule import Action, messages

    count, by_round = 64 * p, dict[int, set[Any]]()
    for message in messages(algorithm, operation, p, count):
        by_round.setdefault(message.round, set()).add(
            (
                message.source,
                message.destination,
                (message.stop - message.start) / count,
                message.action is Action.REDUCE,
            )
        )
    rounds = [rule_round for rule_round, times in pattern_of(algorithm, operation, p).rounds for _ in range(times)]
    assert [
        set(zip(rule_round.source, rule_round.destination, rule_round.share, rule_round.reduces, strict=True))
        for rule_round in rounds
    ] == [by_round[number] for number in sorted(by_round)]


def test_calls_of_two_channels_share_the_links_and_end_no_later_than_one_after_the_other():
    p, pattern, network, costs = 4, pattern_of("ring", "all_reduce", 4), links(4, 1e-9), plain(1e-4, 0.0)
    beside = [Call(pattern, 1e6, np.zeros(p), channel=channel) for channel in (0, 1)]
    Exchange(network, range(p), costs, channels=2).run(beside)
    after = [Call(pattern, 1e6, np.zeros(p)) for _ in range(2)]
    Exchange(network, range(p), costs).run(after)
    alone = after[0].end.max()
    assert alone < beside[0].end.max() <= after[1].end.max()  # alphas overlap, bytes do not
    assert beside[1].end.max() >= 2 * 2 * (p - 1) / p * 1e6 * 1e-9


def test_groups_that_share_a_slow_link_between_switches_wait_for_it():
    """Two switches joined by one slow link: a ring over all ranks crosses it once per direction, so that its rate
    limits every round."""
    ends = [(f"node{n}", "left" if n < 2 else "right") for n in range(4)]
    cluster = Cluster(
        "two", 4, ("left", "right"), (*(Link(pair, 8000.0, 0.0) for pair in ends), Link(("left", "right"), 800.0, 0.0))
    )
    end = ended(Network(cluster), plain(0.0, 0.0), pattern_of("ring", "all_reduce", 4), 1e8, np.zeros(4)).max()
    assert end == pytest.approx(2 * 3 / 4 * 1e8 / 1e8)
