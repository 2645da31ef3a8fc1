"""Strategies that are programs of each rank over other transports than tcp: all of them over shared memory and MPI, and
those with regions by one-sided operations where a transport has them. Verbs: test_rdma_training.py, in guests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from scaleproof.core.record_schema import Record
from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from tests.integration.test_replicas import STEPS, STRATEGIES, WARMUP, launched, values

ONE_SIDED: list[dict[str, Any]] = [
    {"name": "gossip", "reads": "one_sided"},
    {"name": "gossip", "reads": "one_sided", "averaged": "before_step", "published": "at_exchange"},
    {"name": "elastic_averaging", "exchange": "locked", "order": "after_gradient"},
]
"""Their regions lie in memory that peers reach without the owner's help, where the transport can."""
ELSEWHERE = {"cut_off", "downpour", "elastic_averaging", "pipeline"}
"""test_cut_off.py, test_elastic_averaging.py and test_pipeline_training.py have these over both."""
FORMS = {each["name"]: each for each in STRATEGIES}
EACH: list[dict[str, Any]] = [
    FORMS.get(name, {"name": name})
    for name in registry.names("strategy")
    if registry.get("strategy", name).rank_program and name not in ELSEWHERE
]
"""One form of every other strategy, of one that has none above with its default options."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("transport", ["shm", "mpi"])
def test_every_strategy_trains_over_shared_memory_and_over_mpi(tmp_path: Path, transport: str) -> None:
    able(transport)
    launcher = registry.get("transport", transport).launcher
    for record, samples in launched(tmp_path, *EACH, ranks=3, transport=transport, launcher=launcher):
        assert isinstance(record.case, TrainCase)
        assert record.status == "ok", f"{record.case.strategy}: {record.failure}"
        assert len(values(samples, "loss")) == record.case.workers * (STEPS + WARMUP), record.case.strategy
        assert trained(samples), record.case.strategy


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("transport", ["shm", "ucx", "tcp"])
def test_regions_are_reached_by_one_sided_operations_where_the_transport_has_them(
    tmp_path: Path, transport: str, ranks: int
) -> None:
    able(transport)
    for record, samples in launched(tmp_path, *ONE_SIDED, ranks=ranks, transport=transport):
        assert record.status == "ok", record.failure
        assert_one_sided(record, samples, registry.get("transport", transport).one_sided)
        assert trained(samples)


def able(transport: str) -> None:
    """Skips where a transport is absent."""
    if not (availability := registry.availability("transport", transport)).available:
        pytest.skip(f"{availability.why}: {availability.advice}")


def assert_one_sided(record: Record, samples: pd.DataFrame, has_them: bool) -> None:
    """Each rank's puts and gets at peers were the device's; gossip has none but gets."""
    assert isinstance(record.case, TrainCase)
    steps, worker = STEPS + WARMUP, record.case.ranks - 1
    expected = {"puts": 0 if record.case.strategy == "gossip" else steps, "gets": steps}
    assert len(samples[(samples.event == "get") & (samples["rank"] == worker)]) == steps
    assert record.ranks[worker].facts.get("one_sided") == (expected if has_them else None)


def trained(samples: pd.DataFrame) -> bool:
    """Whether the test loss, taken three times, has moved and is no more than that of a net that says nothing, ln 10,
    with some room: in so few steps it may rise for a strategy whose ranks meet in any order."""
    tested = [value for _, _, value in values(samples, "test_loss")]
    return len(tested) == 3 and tested[-1] != tested[0] and tested[-1] < 3.0
