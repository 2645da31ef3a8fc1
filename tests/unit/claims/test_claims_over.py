"""Claims whose conditions are known as a range: the verdict must hold at every point of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.claim_form import ClaimForm
from scaleproof.spec.plan import PlannedLaunch
from tests.unit.claims.test_judge import SPEEDUP, judged

SWEPT = "sweep: {workload.width: [0.25, 0.5, 1], minibatch: [16]}"
RANGE = f"{{arms: [gloo, alone], {SWEPT}}}, {{arms: [alone], set: {{ranks: 1}}, {SWEPT}}}, "
CLAIM: dict[str, Any] = {
    **SPEEDUP,
    "select": {"transport": "gloo", "minibatch": 16},
    "against": {"ranks": 1, "minibatch": 16},
    "over": ["workload.width"],
}


def lengths(*of_two_ranks: float) -> Callable[[PlannedLaunch], float]:
    """Step of two ranks at width 0.25, 0.5 and 1, in ms, where one rank takes 100."""
    by_width = dict(zip((0.25, 0.5, 1), of_two_ranks, strict=True))

    def length(launch: PlannedLaunch) -> float:
        return 100 if launch.case.transport is None else by_width.get(launch.case.value("workload.width"), 100)

    return length


def test_a_verdict_that_is_the_same_at_every_point_holds_for_the_range(tmp_path: Path) -> None:
    result = judged(tmp_path, CLAIM, lengths(50, 55, 60), matrix=RANGE)
    assert result.verdict == "reproduced"
    assert result.rule.startswith("the same at all 3 points of the range; workload.width 0.25: 2 in [2, 2]")
    assert result.ours == pytest.approx(100 / 55) and result.interval is not None
    assert (result.interval.low, result.interval.high) == (pytest.approx(100 / 60), pytest.approx(2))
    assert "around 3 points of a range" in result.interval.method
    assert len(result.runs) == 36 and result.n == 6 and result.base is not None


def test_one_point_that_disagrees_leaves_it_open(tmp_path: Path) -> None:
    result = judged(tmp_path, CLAIM, lengths(50, 55, 80), matrix=RANGE)
    assert result.verdict == "inconclusive"
    assert "does not hold over the whole range of 3 points" in result.rule and "workload.width 1: 1.25" in result.rule


def test_a_point_without_launches_leaves_it_open(tmp_path: Path) -> None:
    def without_one(launch: PlannedLaunch) -> dict[str, Any] | None:
        return None if launch.case.transport == "gloo" and launch.case.value("workload.width") == 0.5 else {}

    result = judged(tmp_path, CLAIM, lengths(50, 55, 60), without_one, RANGE)
    assert result.verdict == "inconclusive" and result.rule.startswith(
        "1 of 3 points of the range have no value (workload.width 0.5)"
    )


def test_without_a_range_the_same_launches_are_taken_together(tmp_path: Path) -> None:
    result = judged(tmp_path, {**CLAIM, "over": []}, lengths(50, 55, 60), matrix=RANGE)
    assert "point" not in result.rule


def test_a_range_of_an_ordering_is_refused() -> None:
    with pytest.raises(ValueError, match="leave 'arms' and 'along' out"):
        ClaimForm(
            **{
                **SPEEDUP,
                "against": None,
                "arms": ({"ranks": 1}, {"ranks": 2}),
                "rule": {"name": "ordering"},
                "over": ("workload.width",),
            }
        )
