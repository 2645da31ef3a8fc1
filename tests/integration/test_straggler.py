"""A rank that is made slow is found in real launches, and the others wait for it longer than for an equal one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch  # noqa: F401  imported before the ranks are forked, as their parent does

from scaleproof.claims.stragglers import SlowestRank, find, rank_times
from scaleproof.core.record_schema import Code, Record
from scaleproof.programs import train
from scaleproof.record.write import samples_table
from tests.integration._training import case_of, launch

CASE = case_of(ranks=2, transport="shm", collective="ring", strategy="sync_overlap", steps=12, warmup=2)
SLOW_S = 0.01
"""A step of the case takes about 1 ms."""


def launched(folder: Path) -> tuple[SlowestRank | None, list[float]]:
    """The finding over 6 launches, and rank 0's imbalance in each."""
    own, waited = [], []
    for number in range(6):
        outcome = launch(folder / str(number), CASE)
        samples = samples_table(dict(enumerate(outcome.events))).to_pandas()
        times = rank_times(_record(), samples)
        assert times is not None
        own.append(times["own"].tolist())
        waited.append(float(times["imbalance"][0]))
    return find(own), waited


def _record() -> Record:
    values: dict[str, Any] = {
        "launch": "a",
        "case_id": CASE.case_id,
        "case": CASE,
        "size": "ci",
        "plan_index": 0,
        "seed": 0,
        "evidence": "measured",
        "oversubscribed": False,
        "status": "ok",
        "failure": None,
        "ranks": [],
        "checks": [],
        "warnings": [],
        "code": Code(version="0", commit=None, dirty=None, digest="d"),
        "machine": "m",
        "environment": {},
        "transport": {},
        "started_at": "2026-01-01T00:00:00Z",
        "wall_s": 1.0,
        "command": [],
    }
    return Record(**values)


def test_an_injected_slow_rank_is_named_and_the_other_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute = train._compute

    def slow(training: train.Training, step: int, batch: Any) -> float:
        if training.context.rank == 1:
            with training.context.recorder.span("forward", step):
                time.sleep(SLOW_S)
        return compute(training, step, batch)

    equal, waited_before = launched(tmp_path / "equal")
    monkeypatch.setattr(train, "_compute", slow)
    straggler, waited = launched(tmp_path / "slow")
    assert equal is not None and straggler is not None
    assert (straggler.rank, straggler.straggler) == (1, True)
    assert straggler.share > max(1.0, equal.share if equal.rank == 1 else 0)
    assert np.median(waited) > np.median(waited_before) + SLOW_S / 2
