"""How far apart the cores of a machine are: measured once for real, else by made-up round trips."""

from __future__ import annotations

import os
import time

import psutil
import pytest

from scaleproof.core.record_schema import Record
from scaleproof.record import core_distance
from scaleproof.record.core_distance import CoreDistance, distance_difference, wait_for_near_cores
from scaleproof.record.placement import placement_differences
from tests.unit.records import case, record

NEAR, FAR = 130.0, 600.0


class Cores:
    """Cores that are far for a while, and a clock that only sleeping moves."""

    def __init__(self, *round_trips: float | None) -> None:
        self.now, self.round_trips = 100.0, list(round_trips)

    def measure(self) -> CoreDistance | None:
        time_ns = self.round_trips.pop(0) if len(self.round_trips) > 1 else self.round_trips[0]
        return None if time_ns is None else CoreDistance(time_ns, (0, 1))

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def wait(self, limit_s: float) -> CoreDistance | None:
        return wait_for_near_cores(self.measure, limit_s, lambda: self.now, self.sleep)


def test_a_launch_waits_until_its_cores_are_near_and_keeps_how_long() -> None:
    distance = Cores(FAR, None, FAR, NEAR).wait(60)
    assert distance is not None and distance.near
    assert distance.facts() == {"round_trip_ns": 130, "cores": [0, 1], "waited_s": 3 * core_distance.PAUSE_S}


def test_after_the_limit_it_runs_on_far_cores() -> None:
    distance = Cores(FAR).wait(2)
    assert distance is not None and not distance.near
    assert distance.waited_s == 2
    assert Cores(None).wait(2) is None


def test_near_cores_need_no_wait() -> None:
    distance = Cores(NEAR).wait(60)
    assert distance is not None and distance.waited_s == 0


def test_the_distance_is_that_of_the_cores_furthest_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {5, 3, 4, 9})
    times = {(3, 4): NEAR, (4, 5): FAR, (5, 9): NEAR}
    measured = core_distance.core_distance(4, lambda one, other: times[one, other])
    assert measured == CoreDistance(FAR, (3, 4, 5, 9))
    assert core_distance.core_distance(2, lambda one, other: times[one, other]) == CoreDistance(NEAR, (3, 4))
    assert core_distance.core_distance(2, lambda one, other: None) is None


def test_one_rank_and_one_core_have_no_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    assert core_distance.before_launch(1, None) is None
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3})
    assert core_distance.before_launch(2, 60.0) is None


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_two_cores_of_this_machine_answer_within_microseconds_and_nothing_is_left() -> None:
    allowed, children = os.sched_getaffinity(0), psutil.Process().children()
    until, measured = time.monotonic() + 30, None
    while measured is None and time.monotonic() < until:  # other tests may need the cores
        measured = core_distance.core_distance(2)
    assert measured is not None and 20 < measured.round_trip_ns < 100_000
    assert os.sched_getaffinity(0) == allowed
    assert psutil.Process().children() == children


def test_arms_of_which_one_had_near_cores_differ() -> None:
    found = distance_difference([("tcp", [NEAR, NEAR, FAR]), ("mpi", [FAR, FAR, NEAR]), ("alone", [])])
    assert found is not None and "tcp 130 ns, mpi 600 ns" in found
    assert distance_difference([("tcp", [NEAR, FAR, FAR]), ("mpi", [FAR, NEAR, FAR])]) is None
    assert distance_difference([("alone", [])]) is None


def launched(arm: str, round_trip_ns: float | None) -> Record:
    facts = None if round_trip_ns is None else {"round_trip_ns": round_trip_ns, "cores": [0, 1]}
    return record(case=case(arm=arm), environment={"load": {"before": {"core_distance": facts}}})


def test_sides_and_arms_with_other_distances_are_reported() -> None:
    near, far, unknown = launched("a", NEAR), launched("b", FAR), launched("b", None)
    for sides in ([("A", [near]), ("B", [far, unknown])], [("", [near, far])]):
        [(code, message)] = placement_differences(sides)
        assert code == "different_cores" and "130 ns" in message and "600 ns" in message
    assert placement_differences([("A", [near]), ("B", [near, unknown])]) == []
