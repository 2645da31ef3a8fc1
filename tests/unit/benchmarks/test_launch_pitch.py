"""The benchmark of the pitch of launches: what it counts, and that its cases are valid."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import launch_pitch
from benchmarks.launch_pitch import CASES, Launched, table
from scaleproof.spec.case import parse_case


def record(status: str = "ok") -> Any:
    return SimpleNamespace(status=status, wall_s=0.25, failure=None)


def test_every_case_is_valid() -> None:
    for case in CASES.values():
        parse_case({"suite": "t", "experiment": "t", "arm": "t", "ranks": 2, **case})


def test_the_first_launch_is_not_counted_and_a_pitch_lasts_from_end_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([10.0, 12.5, 13.0])
    monkeypatch.setattr(launch_pitch.time, "monotonic", lambda: next(moments))
    clock = launch_pitch._Clock()
    for _ in range(3):
        clock.ended(record())
    assert [launch.pitch_s for launch in clock.launches] == [2.5, 0.5]
    with pytest.raises(SystemExit):
        clock.ended(record("failed"))


def test_the_table_has_medians_by_case_and_checkout() -> None:
    launches = [Launched(pitch_s, 0.25, 0.01, 0.2) for pitch_s in (0.3, 0.9, 0.4)]
    assert table({("transfer over tcp", Path("/a/trunk")): launches}).splitlines()[-1] == (
        "| transfer over tcp | trunk | 3 | 400 ms | 250 ms | 10 ms | 200 ms |"
    )
