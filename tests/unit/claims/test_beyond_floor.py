"""The noise floor reaches metrics of blocks and pairs, and what lies within it is no difference."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from scaleproof.claims.beyond_floor import FloorRange, could_be, orders, sign, wins
from scaleproof.claims.estimate import answer
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.metrics import Metric
from scaleproof.claims.noise_floor import KnownFloor
from scaleproof.claims.question import Question
from tests.unit.claims.claims_samples import TRAIN, record, samples

FLOOR = 0.22


@pytest.mark.parametrize(
    ("ours", "theirs", "floor", "expected"),
    [
        (1.3, 1, FLOOR, 1),
        (1.2, 1, FLOOR, 0),
        (1, 1.2, FLOOR, 0),
        (1, 1.3, FLOOR, -1),
        (1.01, 1, None, 1),
        (1, 1, None, 0),
    ],
)
def test_a_difference_within_the_floor_has_no_sign(
    ours: float, theirs: float, floor: float | None, expected: int
) -> None:
    assert sign(ours, theirs, floor) == expected


def test_groups_of_comparisons_count_equally() -> None:
    assert wins([[1, 1, 1, 1], [0, -1]]) == FloorRange(0.5, 0.5, 0.75)


def test_only_orders_that_keep_every_difference_beyond_the_floor_are_left_open() -> None:
    assert orders([30, 11, 10], None) == [(2, 1, 0)]
    assert set(orders([30, 11, 10], FLOOR)) == {(2, 1, 0), (2, 0, 1)}
    assert len(orders([12, 11, 10], FLOOR)) == 6
    assert set(orders([13, 11.5, 10], FLOOR)) == {(2, 1, 0), (1, 2, 0), (2, 0, 1)}, "30 % are no noise, 15 % are"


@pytest.mark.parametrize(
    ("value", "how", "low", "high"),
    [
        (10, "factor", 10 / 1.05, 10.5),
        (0.1, "added", 0.05, 0.15),
        (10, "gain", 4.76, 15.5),
        (-50, "gain", -52.4, -47.5),
    ],
)
def test_noise_moves_a_value_by_the_floor_in_its_own_way(value: float, how: Any, low: float, high: float) -> None:
    assert could_be(value, 0.05, how) == pytest.approx((low, high), rel=1e-3)


def pool(*arms: str) -> Any:
    """Two launches of each arm, in two blocks."""
    launches = [
        Launch(record({**TRAIN, "arm": arm}, index), samples((0, "end", 0, 0, 1))) for index in (0, 1) for arm in arms
    ]
    return SimpleNamespace(
        launches=lambda select, evidence: [launch for launch in launches if launch.record.case.arm in select["arm"]]
    )


def test_a_metric_of_blocks_gets_the_floor_and_tells_what_it_leaves_undecided() -> None:
    seen: list[float | None] = []

    def ranked(block: Any, floor: float | None) -> FloorRange:
        seen.append(floor)
        return FloorRange(0.25, 0.05, 0.75) if block[0].record.plan_index else FloorRange(0.25, -0.15, 0.35)

    metric = Metric("ranked", "1", "higher", block=ranked, clocked=True, noise="inside")
    measurement = answer(Question(metric, {"arm": ["a", "b"]}, floor=KnownFloor(FLOOR)), pool("a", "b"), "measured")
    assert measurement is not None and seen == [FLOOR, FLOOR]
    estimate = measurement.estimate
    assert (estimate.ours, estimate.undecided, estimate.floor) == (0.25, 0.5, FLOOR)
    assert estimate.within_noise == pytest.approx((-0.15, 0.75)), "of each direction the largest of all repetitions"


def test_a_metric_of_pairs_gets_the_floor() -> None:
    seen: list[float | None] = []

    def gain(launch: Any, base: Any, floor: float | None) -> float:
        seen.append(floor)
        return 1.0

    question = Question(
        Metric("gain", "1", "higher", pair=gain), {"arm": ["a"]}, {"arm": ["b"]}, floor=KnownFloor(FLOOR)
    )
    assert answer(question, pool("a", "b"), "measured") is not None
    assert seen == [FLOOR, FLOOR]
