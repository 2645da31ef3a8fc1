"""Launches in which something stands in for a driver or a device are recorded as `emulated`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.launch.supervisor import run_plan
from scaleproof.paths import PROJECT
from scaleproof.record.store import Store
from scaleproof.spec.plan import PlannedLaunch
from tests.short_form import case_from

PROGRAMS = PROJECT / "suites" / "awan2019" / "programs"


def launched(tmp_path: Path, entry: str, options: dict[str, Any]) -> Any:
    names = {"suite": "awan2019", "experiment": entry, "arm": "a", "program": "own", "entry": entry, "ranks": 2}
    sizes = {"transport": "tcp", "collective": "ring", "sizes": [1024], "iterations": 3, "warmup": 1}
    launch = PlannedLaunch(case_from({**names, **sizes, "options": options}), 0, 1, 0, str(PROGRAMS))
    outcome = run_plan([launch], tmp_path / "results", size="smoke", deadline_s=60)
    return Store(tmp_path / "results").load(outcome.launches[0])[0]


@pytest.mark.parametrize(
    ("entry", "options"),
    [
        ("pointer_cache", {"cached": 0, "fresh": 0, "driver": "emulated", "query_us": 2}),
        ("device_reduce", {"staged": 1, "device": "emulated"}),
        ("device_reduce", {"staged": 0, "device": "emulated"}),
    ],
)
def test_a_launch_with_a_stand_in_is_recorded_as_emulated(entry: str, options: dict[str, Any], tmp_path: Path) -> None:
    record = launched(tmp_path, entry, options)
    assert (record.status, record.evidence, record.kind.compute) == ("ok", "emulated", "real")
    assert all(rank.facts[entry]["emulated"] for rank in record.ranks)


@pytest.mark.parametrize(
    ("entry", "options", "why"),
    [
        ("pointer_cache", {"cached": 0, "fresh": 0, "query_us": 2}, "needs option 'driver'"),
        ("device_reduce", {"staged": 0, "device": "host"}, "unknown value 'host'"),
    ],
)
def test_nothing_stands_in_unsaid(entry: str, options: dict[str, Any], why: str, tmp_path: Path) -> None:
    failure = launched(tmp_path, entry, options).failure
    assert failure is not None and why in failure.message
