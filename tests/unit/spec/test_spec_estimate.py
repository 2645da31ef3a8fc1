"""Estimates: earlier launches before formulas, and more work costs more."""

from __future__ import annotations

from typing import Any

import pytest

from scaleproof.spec import virtual_gradients
from scaleproof.spec.case import AnyCase, TrainCase, parse_case
from scaleproof.spec.estimate import Earlier, estimate
from scaleproof.workloads.case_network import network_of

TRAIN: dict[str, Any] = {
    "suite": "x",
    "experiment": "e",
    "arm": "a",
    "program": "train",
    "ranks": 2,
    "transport": "gloo",
    "strategy": "sync",
    "workload": "cd_dnn",
    "minibatch": 64,
    "steps": 10,
}
COLLECTIVE: dict[str, Any] = {
    "suite": "x",
    "experiment": "e",
    "arm": "a",
    "program": "collective",
    "ranks": 2,
    "transport": "tcp",
    "collective": "ring",
    "sizes": [2**26],
}


def case(base: dict[str, Any], **changed: Any) -> AnyCase:
    return parse_case({**base, **changed})


def test_earlier_launches_go_before_the_formula() -> None:
    measured_case = case(TRAIN)
    estimated = estimate(measured_case, Earlier({measured_case.case_id: [3.0, 90.0, 4.0]}))
    assert (estimated.seconds, estimated.launches) == (4.0, 3)
    assert estimate(measured_case, Earlier({"another": [3.0]})).launches == 0


VIRTUAL: dict[str, Any] = {
    **TRAIN,
    "transport": "tcp",
    "strategy": "gossip",
    "fabric": "simulated",
    "workload": "dnn_digits",
    "ranks": 4,
}


def test_gradients_in_virtual_time_take_what_those_of_the_same_network_took() -> None:
    one, longer, other = case(VIRTUAL), case(VIRTUAL, steps=108), case(VIRTUAL, minibatch=128)
    assert isinstance(one, TrainCase)
    earlier = Earlier(gradients={virtual_gradients.kind(one): [0.004, 0.005, 0.1]})
    estimated = estimate(longer, earlier)
    assert (estimated.seconds, estimated.launches) == (pytest.approx(0.005 * 4 * 110), 3)
    assert estimated.of_network and not estimated.at_least
    assert estimate(other, earlier).at_least, "another batch"
    assert not estimate(case(VIRTUAL, compute="replay"), earlier).at_least, "computes none"
    assert estimate(one, Earlier({one.case_id: [2.0]}, earlier.gradients)).seconds == 2.0


def test_without_earlier_launches_gradients_in_virtual_time_take_at_least_their_arithmetic() -> None:
    few, many = (estimate(case(VIRTUAL, steps=steps), cores=1) for steps in (10, 10_000))
    assert few.at_least and many.at_least
    assert many.seconds > 50 * few.seconds


@pytest.mark.parametrize(
    ("base", "changed"),
    [
        (TRAIN, {"steps": 1000}),
        (TRAIN, {"minibatch": 6400}),
        (TRAIN, {"workload": "vgg_a"}),
        (TRAIN, {"framework": "tensorflow"}),
        (COLLECTIVE, {"iterations": 1000}),
        (COLLECTIVE, {"sizes": [2**26, 2**27]}),
        (COLLECTIVE, {"ranks": 4}),
        (COLLECTIVE, {"transport": "gloo", "collective": "native"}),
        (COLLECTIVE, {"transport": "mpi", "launcher": "mpirun", "collective": "native", "ranks": 8}),
    ],
)
def test_more_work_takes_longer(base: dict[str, Any], changed: dict[str, Any]) -> None:
    assert estimate(case(base, **changed), cores=2).seconds > estimate(case(base), cores=2).seconds


def test_slowed_links_take_the_time_that_they_need() -> None:
    """7.6 MB there and back over 1 Mbit/s that 8 times dilated carry an eighth."""
    links = case(
        TRAIN,
        transport="tcp",
        collective="ring",
        fabric="netns",
        compute="replay",
        **{"fabric.link_mbit": 1.0},
        dilation=8.0,
    )
    assert isinstance(links, TrainCase)
    nbytes = 4 * network_of(links).parameters
    assert estimate(links).seconds > 10 * 8 * nbytes * 8 / 1e6


def test_more_cores_help_as_far_as_there_are_ranks() -> None:
    seconds = [estimate(case(TRAIN, ranks=4), cores=cores).seconds for cores in (1, 2, 4, 8)]
    assert seconds[0] > seconds[1] > seconds[2] == seconds[3]


def test_memory_holds_parameters_gradients_momentum_and_buffers_of_every_rank() -> None:
    exact = case(TRAIN)
    assert isinstance(exact, TrainCase)
    parameters = 4 * network_of(exact).parameters
    more = estimate(case(TRAIN, ranks=4)).nbytes - estimate(exact).nbytes
    assert 2 * 5 * parameters < more < 2 * 5 * parameters + 2**28
    assert (
        estimate(case(COLLECTIVE, sizes=[2**28])).nbytes > estimate(case(COLLECTIVE)).nbytes + 6 * (2**28 - 2**26) - 1
    )
