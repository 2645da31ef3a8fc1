"""Launches of made-up speed for tests of comparisons: two ranks all-reduce 1 KiB, or train to a loss; nothing was
measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scaleproof.compare.comparison import Question, build
from scaleproof.compare.comparison_schema import Comparison
from scaleproof.compare.side_selection import select
from scaleproof.core.record_schema import Code, RankStatus, Record
from scaleproof.core.recorder import EVENT_DTYPE
from scaleproof.record.machine import write_profile
from scaleproof.record.store import Store
from scaleproof.record.write import samples_table
from tests.noise_floors import COLLECTIVE, floor, profile_of
from tests.unit.records import case, failure, record

FAST = (1.00, 1.01, 0.99, 1.02, 1.00, 1.01, 0.98, 1.00)
"""Microseconds of a call, one per launch, with the noise of a quiet machine."""
OLD, NEW = "@commit:0ld", "@commit:new"
SLOW = tuple(1.5 * value for value in FAST)
HERE: dict[str, Any] = {
    "governor": "performance",
    "transparent_huge_pages": "never",
    "load": {"before": {"load_1min": 0.1}},
    "variables": {"OMP_NUM_THREADS": "1"},
    "cpu_flags": " ".join([f"flag{number}" for number in range(30)] + ["avx2"]),
}
THERE = {
    **HERE,
    "governor": "powersave",
    "load": {"before": {"load_1min": 2.5}},
    "variables": {"OMP_NUM_THREADS": "2", "SCALEPROOF_LAUNCH": "x"},
    "cpu_flags": HERE["cpu_flags"] + " avx512f",
}
RANK = {
    "libraries": {"libnccl.so.2.18.1": "2.18.1, build 1", "libz.so.1.2.13": "1.2.13, build 9"},
    "thread_pools": {"openblas (libopen-12345678.so)": 1},
}
OTHER_RANK = {
    "libraries": {"libnccl.so.2.19.3": "2.19.3, build 2", "libz.so.1.2.13": "1.2.13, build 9"},
    "thread_pools": {"openblas (libopen-87654321.so)": 2},
}


def launches(results: Path, micros: Sequence[float], prefix: str, at: int = 0, **fields: Any) -> None:
    """A launch per time, `at` hours after the first; ids begin with `prefix`. Fields of the record; `facts` of its
    ranks; `first` repetition."""
    first = fields.pop("first", 0)
    facts, chosen = fields.pop("facts", {}), fields.pop("case", case(sizes=[1024], iterations=4, warmup=0))
    for index, time in enumerate(micros, first):
        ranks = [
            RankStatus(rank=rank, pid=1, exit_code=0, signal=None, status="ok", step=0, operation="", facts=facts)
            for rank in range(2)
        ]
        started = f"2026-01-01T{at:02}:{index:02}:{len(prefix):02}.000+00:00"
        record_fields = {
            "case": chosen,
            "case_id": chosen.case_id,
            "plan_index": index,
            "seed": 100 + index,
            "started_at": started,
            "ranks": ranks,
            **fields,
        }
        if fields.get("status") == "failed":
            record_fields["failure"] = failure()
        _commit(results, record(f"{prefix}{index:02}", **record_fields), time)


def code(commit: str = "c0ffee", dirty: bool = False, digest: str = "d") -> Code:
    """The code that ran."""
    return Code(version="0", commit=commit, dirty=dirty, digest=digest)


def calibrate(results: Path, machine: str = "m", share: float = 0.05) -> None:
    """A noise floor for every metric of a collective."""
    names = ("collective_latency", "algbw", "busbw")
    kinds = (COLLECTIVE, COLLECTIVE.model_copy(update={"way": "memory", "transport": "shm"}))
    floors = [floor(name, kind, 1024, share, 0.02) for name in names for kind in kinds]
    write_profile(results, profile_of(*floors, machine=machine))


def two_commits(folder: Path, second: tuple[float, ...], **fields: Any) -> Path:
    """FAST launches of one commit and others of the next, on a calibrated machine."""
    launches(folder, FAST, "a", code=code("0ld"))
    launches(folder, second, "b", at=1, **{"code": code("new", digest="e"), **fields})
    calibrate(folder)
    return folder


def compared(results: Path, a: str = OLD, b: str = NEW, **settings: Any) -> Comparison:
    """Compare two sides of a results folder; `settings`: fields of the Question."""
    return build(select(a, results), select(b, results), Question(**settings))


def warning_messages(comparison: Comparison) -> dict[str, str]:
    """Warnings by code."""
    return {warning.code: warning.message for warning in comparison.warnings}


def _commit(results: Path, launch: Record, micros: float) -> None:
    rows = np.zeros(4, EVENT_DTYPE)
    rows["event"], rows["step"], rows["nbytes"], rows["end_ns"] = (
        str(getattr(launch.case, "operation", "loss")).encode(),
        range(4),
        1024,
        round(micros * 1000),
    )
    rows["value"] = micros
    store = Store(results)
    staging = store.staging / launch.launch
    staging.mkdir(parents=True)
    store.commit(staging, launch, samples_table(dict.fromkeys(range(2), rows if launch.status == "ok" else rows[:0])))
