"""Elastic averaging and DOWNPOUR over transports of each kind; a centre that is reached by one-sided operations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleproof.spec import registry
from tests.integration.test_replicas import STEPS, launched, predicted, values

ELASTIC: dict[str, Any] = {"name": "elastic_averaging", "tau": 2}
ONE_SIDED: dict[str, Any] = {**ELASTIC, "exchange": "one_sided"}
SYNCHRONOUS: dict[str, Any] = {**ELASTIC, "exchange": "parameters", "moves": "together"}
TRANSPORTS: list[dict[str, Any]] = [{"transport": "shm"}, {"transport": "mpi", "launcher": "mpirun"}]
DEVICES = [name for name in ("shm", "ucx") if registry.availability("transport", name).available]


@pytest.mark.parametrize("transport", TRANSPORTS, ids=lambda fields: fields["transport"])
def test_a_centre_is_reached_over_shared_memory_and_over_mpi(tmp_path: Path, transport: dict[str, Any]) -> None:
    strategies = [ELASTIC, SYNCHRONOUS, {"name": "downpour", "tau": 2}]
    for record, samples in launched(tmp_path, *strategies, ranks=3, **transport):
        assert record.status == "ok", record.failure
        tested = values(samples, "test_loss")
        assert len(tested) == 3 and tested[-1][2] < tested[0][2]


@pytest.mark.parametrize("transport", DEVICES)
def test_workers_reach_the_memory_of_the_centre_one_sided(tmp_path: Path, transport: str) -> None:
    ((record, samples),) = launched(tmp_path, {**ONE_SIDED, "dedicated_servers": 2}, ranks=4, transport=transport)
    assert record.status == "ok", record.failure
    moved = samples[samples.event.isin(["put", "get"]) & (samples["rank"] >= 2) & ~samples.warmup]
    sent = samples[(samples.event == "send") & ~samples.warmup]
    assert len(moved) and not len(sent), "no message carries a model"
    tested = values(samples, "test_loss")
    assert tested[-1][2] < tested[0][2]


def test_with_one_worker_it_does_not_matter_how_the_centre_is_reached(tmp_path: Path) -> None:
    by_message, one_sided = (predicted(tmp_path, each, ranks=2)[1] for each in (ELASTIC, ONE_SIDED))
    for event in ("loss", "test_loss"):
        assert values(by_message, event) == values(one_sided, event)


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
