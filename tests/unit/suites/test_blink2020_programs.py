"""The program of blink2020 in virtual time: every element is what it should be, and chunks are adapted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.simulate.predict import Predictor
from scaleproof.spec.plan import PlannedLaunch
from tests.short_form import case_from

PROGRAMS = Path(__file__).resolve().parents[3] / "suites" / "blink2020" / "programs"


def sent(operation: str, over: str, chunk_kib: int, warmup: int = 0) -> Any:
    """The prediction of two iterations with 256 KiB on three devices."""
    case = case_from(
        {
            "program": "own",
            "entry": "link_collectives",
            "suite": "blink2020",
            "experiment": "e",
            "arm": "a",
            "transport": "tcp",
            "ranks": 3,
            "iterations": 2,
            "warmup": warmup,
            "sizes": [256 << 10],
            "fabric": {"name": "simulated", "cluster": "dgx1v_slow[0,1,2]", "costs": "stated"},
            "options": {"operation": operation, "over": over, "chunk_kib": chunk_kib},
        }
    )
    return Predictor(Path("nowhere")).predict(PlannedLaunch(case, 0, 1, 0, programs=str(PROGRAMS)))


@pytest.mark.parametrize("operation", ["broadcast", "all_reduce"])
@pytest.mark.parametrize("over", ["trees", "rings"])
def test_every_element_is_what_it_should_be(operation: str, over: str) -> None:
    checks = sent(operation, over, 16).checks
    assert checks and all(check["passed"] for check in checks), checks


def test_chunks_are_doubled_while_that_is_faster_and_end_at_the_fastest() -> None:
    found = sent("all_reduce", "trees", 0, warmup=8)
    rows = found.samples.to_pandas()
    chunks = rows[(rows.event == "chunk") & (rows["rank"] == 0)].value.tolist()
    assert len(chunks) == 8 and chunks[0] == 32 << 10, "the second is twice the first"
    assert all((rows[(rows.event == "chunk") & (rows["rank"] == rank)].value == chunks).all() for rank in (1, 2))
    assert chunks[-1] <= max(chunks)
    assert all(check["passed"] for check in found.checks)
