"""Whatever the speeds of ranks and links: all that strategies of gossip push is received before the end, and push-sum
changes neither the sum of all weights nor that of all parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.virtual_training import Passes, VirtualTraining
from scaleproof.spec.cluster import cluster_of
from scaleproof.strategies.push_sum import PushSum
from scaleproof.strategies.replica import Replica
from scaleproof.workloads.data import Batch, Data
from scaleproof.workloads.learner import Learner
from tests.short_form import train_case

COSTS = MessageCosts((Segment(None, 1e-4, 0.0),), gamma=1e-8)
ELEMENTS = 5


class Still:
    """A learner that has parameters and learns nothing."""

    share = 1.0

    def __init__(self, parameters: np.ndarray) -> None:
        self.parameters, self.gradient = parameters, np.zeros_like(parameters)

    def own(self, piece: slice) -> None: ...
    def update(self) -> None: ...
    def accuracy(self, batch: Batch, reference: Batch | None = None) -> float:
        return math.nan

    def loss(self, batch: Batch) -> float:
        return math.nan


class StillLearners:
    def __init__(self, ranks: int, seed: int) -> None:
        values = np.random.default_rng(seed).standard_normal((ranks, ELEMENTS)).astype(np.float32)
        self.total = values.sum(axis=0, dtype=np.float64)
        self.of: Sequence[Learner] = [Still(row.copy()) for row in values]
        self.data: Sequence[Data] = []

    def begin(self, rank: int, step: int) -> None: ...
    def end(self, rank: int) -> float:
        return math.nan

    def renew(self, rank: int) -> None: ...


def ran(
    strategy: dict[str, Any], ranks: int, steps: int, seed: int, link_mbit: float
) -> tuple[VirtualTraining, list[Replica], StillLearners]:
    """A run to its end."""
    case = train_case(
        strategy=strategy,
        transport="tcp",
        collective="ring",
        workload="dnn_digits",
        data="digits",
        ranks=ranks,
        minibatch=4 * ranks,
        steps=steps,
        warmup=0,
        fabric={"name": "simulated", "link_mbit": link_mbit},
    )
    speeds, learners = np.random.default_rng(seed).lognormal(0.0, 1.0, (ranks, steps)), StillLearners(ranks, seed)
    passes = Passes(1e-3, 1e-3, 1e-4, lambda rank, step: float(speeds[rank, step]))
    run = VirtualTraining(case, cluster_of(case), COSTS, passes, learners, seed)
    programs = [cast(Replica, program) for program in run.run()]
    for program in programs:
        program.end()
    return run, programs, learners


RUNS = {
    "ranks": st.integers(2, 5),
    "steps": st.integers(1, 12),
    "tau": st.integers(1, 3),
    "seed": st.integers(0, 1 << 20),
    "link_mbit": st.sampled_from([0.02, 1.0, 10_000.0]),
}


@settings(max_examples=40, deadline=None)
@given(**RUNS)
def test_push_sum_keeps_all_weight_and_the_sum_of_all_parameters(
    ranks: int, steps: int, tau: int, seed: int, link_mbit: float
) -> None:
    _, programs, learners = ran({"name": "push_sum", "tau": tau}, ranks, steps, seed, link_mbit)
    replicas = [cast(PushSum, program) for program in programs]
    assert sum(each.weight for each in replicas) == pytest.approx(ranks, rel=1e-12)
    total = sum(each.weight * each.x.astype(np.float64) for each in replicas)
    np.testing.assert_allclose(total, learners.total, rtol=1e-5, atol=1e-5)


def test_push_sum_that_never_exchanges_leaves_every_rank_by_itself() -> None:
    run, programs, learners = ran({"name": "push_sum", "tau": 6}, ranks=3, steps=5, seed=1, link_mbit=1.0)
    alone = np.random.default_rng(1).standard_normal((3, ELEMENTS)).astype(np.float32)
    assert [cast(PushSum, program).weight for program in programs] == [1.0] * 3
    for program, own in zip(programs, alone, strict=True):
        np.testing.assert_array_equal(program.x, own)
    assert not any(event.event == "call" for event in run.events) and learners.total.any()


@pytest.mark.parametrize(
    "strategy", [{"name": "gossip", "form": "push"}, {"name": "triggered_gossip", "form": "push", "theta": 0.0}]
)
@settings(max_examples=20, deadline=None)
@given(**RUNS)
def test_every_push_of_gossip_is_averaged_in(
    strategy: dict[str, Any], ranks: int, steps: int, tau: int, seed: int, link_mbit: float
) -> None:
    run, _, _ = ran({**strategy, "tau": tau}, ranks, steps, seed, link_mbit)
    pushed = sum(each.event == "call" for each in run.events)
    received = sum(each.value for each in run.events if each.event == "received")
    assert received == pushed == ranks * (steps // tau)
