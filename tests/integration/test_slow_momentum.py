"""Slow momentum: its steps as computed on paper; without the momentum it is local SGD; it is the same training in
processes and in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.integration.test_replicas import launched, predicted, values
from tests.unit.strategies.by_hand import driven, program

PLAIN = {"name": "slow_momentum", "tau": 2, "slow_momentum": 0.0}


def test_the_difference_from_the_last_average_goes_into_a_momentum() -> None:
    slow = {"name": "slow_momentum", "tau": 2, "slow_momentum": 0.5, "slow_rate": 0.8}
    made = program(slow, [1.0], learning_rate=0.5, steps=4)
    driven(made)
    moved = 1 - 0.25  # two steps of 1/2
    first = 1 - 0.8 * moved
    second = first - 0.8 * (0.5 * moved + 0.75 * first)
    assert made.x == pytest.approx(second)


def test_steps_after_the_last_average_are_local() -> None:
    made = program(PLAIN, [1.0], learning_rate=0.5, steps=3)
    driven(made)
    assert made.x == pytest.approx(0.125)


def test_without_the_momentum_it_is_local_sgd(tmp_path: Path) -> None:
    ours = predicted(tmp_path, PLAIN, ranks=4)[1]
    local = predicted(tmp_path, {"name": "local_sgd", "tau": 2}, ranks=4)[1]
    other = predicted(tmp_path, {**PLAIN, "slow_momentum": 0.5}, ranks=4)[1]
    assert losses(ours) == pytest.approx(losses(local), rel=1e-5)
    assert losses(other) != pytest.approx(losses(local), rel=1e-3)


def test_processes_and_virtual_time_give_the_same_bits(tmp_path: Path) -> None:
    strategy = {"name": "slow_momentum", "tau": 2}
    ((record, in_processes),) = launched(tmp_path, strategy, ranks=4)
    assert record.status == "ok", record.failure
    _, in_virtual_time = predicted(tmp_path, strategy, ranks=4)
    for event in ("loss", "test_loss", "test_accuracy"):
        assert values(in_processes, event) == values(in_virtual_time, event)


def losses(samples: Any) -> np.ndarray:
    return np.array([value for _, _, value in values(samples, "test_loss")])
