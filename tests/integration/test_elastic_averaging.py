"""Elastic averaging and DOWNPOUR over transports of each kind, with several servers, and with a centre that stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.integration.test_replicas import STEPS, launched, predicted, values

ELASTIC: dict[str, Any] = {"name": "elastic_averaging", "tau": 2}
SYNCHRONOUS: dict[str, Any] = {**ELASTIC, "exchange": "parameters", "update": "synchronous"}
TRANSPORTS: list[dict[str, Any]] = [{"transport": "shm"}, {"transport": "mpi", "launcher": "mpirun"}]


@pytest.mark.parametrize("transport", TRANSPORTS, ids=lambda fields: fields["transport"])
def test_a_centre_is_reached_over_shared_memory_and_over_mpi(tmp_path: Path, transport: dict[str, Any]) -> None:
    strategies = [ELASTIC, SYNCHRONOUS, {"name": "downpour", "tau": 2}]
    for record, samples in launched(tmp_path, *strategies, ranks=3, **transport):
        assert record.status == "ok", record.failure
        tested = values(samples, "test_loss")
        assert len(tested) == 3 and tested[-1][2] < tested[0][2]


def test_several_servers_hold_a_part_each(tmp_path: Path) -> None:
    one, two = (
        predicted(tmp_path, {**SYNCHRONOUS, "dedicated_servers": servers}, ranks=3 + servers)[1] for servers in (1, 2)
    )
    ours, theirs = (np.array([value for _, _, value in values(each, "test_loss")]) for each in (one, two))
    assert ours == pytest.approx(theirs, rel=1e-6)


def test_a_centre_that_does_not_move_learns_nothing_while_its_workers_do(tmp_path: Path) -> None:
    samples = predicted(tmp_path, {**ELASTIC, "alpha": 0.0}, ranks=3)[1]
    tested = [value for _, _, value in values(samples, "test_loss")]
    assert tested == [tested[0]] * 3
    last = [value for _, step, value in values(samples, "loss") if step >= STEPS - 1]
    assert max(last) < tested[0]


def test_a_centre_is_evaluated_as_it_was_and_not_as_it_ended(tmp_path: Path) -> None:
    samples = predicted(tmp_path, {"name": "downpour", "tau": 2}, ranks=3, evaluate_every=2)[1]
    tested = [value for _, _, value in values(samples, "test_loss")]
    assert len(set(tested)) >= 3 and tested[0] > tested[-1]
