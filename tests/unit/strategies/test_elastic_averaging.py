"""Elastic averaging, step by step as computed on paper: the orders of its operations, a centre that moves for one or
for all workers, and the learning rate that decays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scaleproof.strategies.centre import ENDED, EXCHANGE, FROM_CENTRE, GET, MOVE, TO_CENTRE
from scaleproof.transports.mailbox import Message
from tests.unit.strategies.by_hand import driven, program

ELASTIC: dict[str, Any] = {"name": "elastic_averaging", "alpha": 0.5, "tau": 2}


def from_centre(value: float) -> Message:
    return Message(0, FROM_CENTRE, np.array([value], np.float32))


def to_centre(source: int, kind: int, *value: float) -> Message:
    return Message(source, TO_CENTRE, np.array([kind, *value], np.float32))


@pytest.mark.parametrize(("order", "expected"), [("code", 0.4), ("textbook", 0.4), ("moved_first", 0.45)])
def test_the_gradient_is_taken_before_the_worker_moves_unless_it_moves_first(order: str, expected: float) -> None:
    worker = program({**ELASTIC, "order": order}, [1.0], rank=1, ranks=2, learning_rate=0.1, steps=1)
    sent = driven(worker, [from_centre(0.0)])
    assert worker.x == pytest.approx(expected)
    assert [(int(each.value[0]), each.control, each.value[1:].tolist()) for each in sent] == [
        (GET, True, []),
        (MOVE, False, [0.5]),
        (ENDED, True, []),
    ]


def test_a_worker_and_the_centre_exchange_every_tau_steps() -> None:
    worker = program(ELASTIC, [1.0], rank=1, ranks=2, learning_rate=0.1, steps=4)
    sent = driven(worker, [from_centre(0.0), from_centre(0.0)])
    assert [int(each.value[0]) for each in sent] == [GET, MOVE, GET, MOVE, ENDED]
    once = (1 - 0.1 - 0.5) * 0.9
    assert worker.x == pytest.approx(once * (1 - 0.1 - 0.5) * 0.9)


def test_with_nesterov_the_rate_decays_by_its_power_and_the_gradient_is_taken_ahead() -> None:
    strategy = {**ELASTIC, "momentum": "nesterov", "lrd": 1.0, "lrp": 2.0}
    worker = program(strategy, [1.0], rank=1, ranks=2, learning_rate=0.1, momentum=0.5, steps=2)
    driven(worker, [from_centre(0.0)])
    ahead = 1 - 0.1 - 0.5 + 0.5 * -0.1  # the first step, then half of it ahead of the second
    assert worker.x == pytest.approx(ahead - 0.1 / 2**2 * ahead)


@pytest.mark.parametrize(
    ("update", "answers", "centre"),
    [("synchronous", [0.0, 0.0], 0.25 * (1 + 3)), ("asynchronous", [0.0, 0.25], 0.25 + 0.25 * (3 - 0.25))],
)
def test_a_synchronous_centre_moves_by_the_sum_of_all_differences(
    update: str, answers: list[float], centre: float
) -> None:
    strategy = {**ELASTIC, "alpha": 0.25, "exchange": "parameters", "update": update}
    made = program(strategy, [0.0], ranks=3)
    arriving = [to_centre(2, EXCHANGE, 3.0), to_centre(1, EXCHANGE, 1.0)]
    if update == "asynchronous":
        arriving.reverse()
    sent = driven(made, [*arriving, to_centre(1, ENDED), to_centre(2, ENDED)])
    assert [(each.peer, each.value.tolist()) for each in sent] == [(1, [answers[0]]), (2, [answers[1]])]
    assert made.x == pytest.approx(centre)


def test_synchronous_with_beta_1_the_centre_is_the_average_of_its_workers() -> None:
    made = program({**ELASTIC, "alpha": 0.5, "exchange": "parameters", "update": "synchronous"}, [-7.0], ranks=3)
    driven(made, [to_centre(1, EXCHANGE, 1.0), to_centre(2, EXCHANGE, 3.0)])
    assert made.x == pytest.approx(2.0)


def test_who_has_ended_is_not_waited_for() -> None:
    made = program({**ELASTIC, "exchange": "parameters", "update": "synchronous"}, [0.0], ranks=3)
    sent = driven(made, [to_centre(2, EXCHANGE, 3.0), to_centre(1, ENDED), to_centre(2, ENDED)])
    assert [each.peer for each in sent] == [2]
    assert made.x == pytest.approx(1.5)


def test_the_centre_is_as_far_as_its_workers() -> None:
    made = program({**ELASTIC, "exchange": "parameters"}, [0.0], ranks=3, steps=6, evaluate_every=2)
    driven(made, [to_centre(worker, EXCHANGE, 1.0) for _ in range(3) for worker in (1, 2)])
    assert [each.step for each in made.snapshots] == [1, 3, 5]
    assert made.snapshots[0].values == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("strategy", "wrong"),
    [
        ({"update": "synchronous"}, "set `exchange: parameters`"),
        ({"lrd": 0.1}, "set `momentum: nesterov`"),
        ({"lrd": -1}, "it must be at least 0"),
        ({"order": "cod"}, "code"),
    ],
)
def test_options_that_do_not_go_together_are_one_line(strategy: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        program({**ELASTIC, **strategy}, [0.0], ranks=3)
