"""Schedules of pipelines: what holds for all of them, and published orders, gaps and stashes (Li and Hoefler 2021)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaleproof.pipelines.schedule import Schedule, check
from scaleproof.pipelines.schemes import schedule_of, schemes
from scaleproof.pipelines.schemes.chimera import backward_halving, chimera, forward_doubling
from scaleproof.pipelines.schemes.dapple import dapple
from scaleproof.pipelines.schemes.gems import gems
from scaleproof.pipelines.schemes.gpipe import gpipe
from scaleproof.pipelines.timing import Deadlock, PassTimes, stashed, timeline
from scaleproof.spec.errors import SpecError

EQUAL, TWICE = PassTimes(1, 1), PassTimes(1, 2)


@given(
    scheme=st.sampled_from(sorted(schemes())),
    half=st.integers(1, 6),
    units=st.integers(1, 3),
    backward=st.sampled_from([1.0, 1.7, 2.0, 3.0]),
    message=st.sampled_from([0.0, 0.3]),
)
def test_every_micro_batch_passes_every_stage_once_each_way_and_no_two_passes_share_a_slot(
    scheme: str, half: int, units: int, backward: float, message: float
) -> None:
    stages = 2 * half
    micro_batches = stages * units * (2 if scheme == "chimera_doubling" else 1)
    schedule = schedule_of(scheme, stages, micro_batches)
    check(schedule)
    line = timeline(schedule, PassTimes(1, backward, message))
    busy = micro_batches * (1 + backward)
    assert line.makespan >= busy - 1e-9 and -1e-9 <= line.idle_share < 1
    assert max(stashed(schedule)) <= schemes()[scheme].most_stashed(stages, micro_batches)


def by_hand(*slots: tuple[int, ...]) -> Schedule:
    """1F1B with two stages and two micro-batches, in these slots of the two workers."""
    return replace(dapple(2, 2), slots=slots)


@pytest.mark.parametrize(
    ("slots", "message"),
    [
        (((0, 2, 3, 5), (1, 1, 2, 4)), "worker 1 has two passes in slot 1"),
        (((0, 3, 3, 5), (1, 2, 4, 5)), "worker 0 has two passes in slot 3"),
        (((2, 0, 3, 5), (3, 4, 5, 6)), "worker 0: the pass in slot 0 is behind that in slot 2"),
        (((0, 2, 3, 5), (0, 1, 3, 4)), "stage 1: the forward pass of unit 0 is not after the one that it needs"),
        (((0, 1, 2, 5), (1, 2, 3, 4)), "stage 0: the backward pass of unit 0 is not after the one that it needs"),
    ],
)
def test_a_table_of_slots_by_hand_with_a_conflict_is_refused(slots: tuple[tuple[int, ...], ...], message: str) -> None:
    check(by_hand((0, 2, 3, 5), (1, 2, 3, 4)))
    with pytest.raises(ValueError, match=message):
        check(by_hand(*slots))


@pytest.mark.parametrize("scheme", sorted(schemes()))
def test_no_pass_begins_later_than_in_its_slot_where_all_passes_take_one(scheme: str) -> None:
    schedule = schedule_of(scheme, 4, 8)
    handled = {each.direction: len(each.units) * float(schedule.unit) for order in schedule.orders for each in order}
    line = timeline(schedule, PassTimes(1 / handled["forward"], 1 / handled["backward"]))
    for slots, spans in zip(schedule.slots, line.spans, strict=True):
        assert all(start <= slot for slot, (start, _) in zip(slots, spans, strict=True))


@pytest.mark.parametrize(
    ("stages", "pairs", "order"),
    [(4, 1, "0 1 2 2 3 3 0 1"), (8, 2, "0 1 6 2 7 3 4 4 5 5 2 6 3 7 0 1")],
)
def test_chimera_has_the_published_order_on_the_first_worker(stages: int, pairs: int, order: str) -> None:
    assert " ".join(str(each.units[0]) for each in chimera(stages, stages, pairs).orders[0]) == order


@pytest.mark.parametrize(("stages", "chimera_f", "one_f"), [(4, 16, 21), (8, 36, 45), (16, 76, 93), (32, 156, 189)])
def test_makespans_where_a_backward_pass_takes_twice_as_long(stages: int, chimera_f: float, one_f: float) -> None:
    assert timeline(chimera(stages, stages), TWICE).makespan == chimera_f == stages + 2 * (2 * stages - 2)
    assert timeline(dapple(stages, stages), TWICE).makespan == timeline(gpipe(stages, stages), TWICE).makespan == one_f


@pytest.mark.parametrize("stages", [4, 8, 16])
@pytest.mark.parametrize("units", [1, 2, 4])
def test_gaps_follow_the_published_formulas_where_both_passes_take_equally_long(stages: int, units: int) -> None:
    count = units * stages
    found = {name: timeline(make(stages, count), EQUAL).idle_share for name, make in _MAKERS.items()}
    assert found["chimera"] == pytest.approx((stages - 2) / (2 * count + stages - 2))
    assert found["dapple"] == found["gpipe"] == pytest.approx((stages - 1) / (count + stages - 1))


@pytest.mark.parametrize(
    ("stages", "pairs", "gaps"), [(8, 2, 1 / 9), (16, 2, 3 / 19), (16, 4, 1 / 17), (32, 4, 3 / 35)]
)
def test_more_pairs_of_pipelines_leave_smaller_gaps(stages: int, pairs: int, gaps: float) -> None:
    schedule = chimera(stages, stages, pairs)
    check(schedule)
    by_formula = (stages - 2 * pairs) / (2 * pairs * stages + stages - 2 * pairs)
    assert timeline(schedule, EQUAL).idle_share == pytest.approx(gaps) == pytest.approx(by_formula)
    assert all(len(schedule.held(worker)) == 2 * pairs for worker in range(stages)), "2f copies of a stage's weights"


def test_gems_leaves_nearly_all_workers_idle() -> None:
    assert timeline(gems(8, 400), TWICE).idle_share == pytest.approx(7 / 8.5, abs=1e-3)


@pytest.mark.parametrize(
    ("schedule", "stashes"),
    [
        (gpipe(4, 8), [8, 8, 8, 8]),
        (dapple(4, 8), [4, 3, 2, 1]),
        (gems(4, 8), [1, 1, 1, 1]),
        (chimera(4, 4), [3, 4, 4, 3]),
        (chimera(8, 32), [5, 6, 7, 8, 8, 7, 6, 5]),
        (forward_doubling(4, 8), [6, 8, 8, 6]),
        (backward_halving(4, 8), [3, 4, 4, 3]),
    ],
    ids=lambda value: value.scheme if isinstance(value, Schedule) else None,
)
def test_workers_hold_as_many_activations_as_published(schedule: Schedule, stashes: list[float]) -> None:
    assert stashed(schedule) == stashes


def test_doubling_and_halving_close_the_gaps_between_basic_units() -> None:
    gaps: dict[str, list[float]] = {"direct": [], "doubling": [], "halving": []}
    for units in (2, 4):
        count = 8 * units
        for name, make in (("direct", chimera), ("doubling", forward_doubling), ("halving", backward_halving)):
            gaps[name].append(timeline(make(8, count), TWICE).makespan - 3 * count)
    assert gaps["direct"][1] > gaps["direct"][0], "each further unit leaves a gap"
    assert gaps["doubling"] == [12, 12] and gaps["halving"][0] == gaps["halving"][1]


def test_two_stages_and_two_micro_batches_leave_no_gap() -> None:
    for backward in (1.0, 1.7, 3.0):
        assert timeline(chimera(2, 2), PassTimes(1, backward)).idle_share == pytest.approx(0)


def test_recomputing_repeats_the_forward_pass_before_each_backward_pass() -> None:
    assert timeline(dapple(4, 4), PassTimes(1, 2, recompute=True)).makespan == (4 + 3) * (1 + 3)


def test_a_wrong_schedule_is_named() -> None:
    good = dapple(2, 2)
    swapped = replace(good, orders=(good.orders[0][::-1], good.orders[1]))
    with pytest.raises(ValueError, match="backward pass of unit 1 before its forward pass"):
        check(swapped)
    with pytest.raises(Deadlock, match="wait for each other"):
        timeline(swapped, EQUAL)
    with pytest.raises(ValueError, match="stage 0 has 0 backward passes of unit 1"):
        check(replace(good, orders=(tuple(each for each in good.orders[0] if each.units != (1,)), good.orders[1])))


@pytest.mark.parametrize(
    ("scheme", "stages", "micro_batches", "pairs", "message"),
    [
        ("chimera", 5, 4, 1, "an odd number of stages 5 does not fit; 4 or 6 would do"),
        ("chimera", 8, 12, 1, "micro-batches 12 does not fit; 8 or 16 would do"),
        ("chimera", 8, 3, 1, "micro-batches 3 does not fit; 2 or 4 would do"),
        ("chimera", 8, 8, 3, "pairs of pipelines, 3 does not fit; 1 or 2 or 4 would do"),
        ("chimera", 1, 4, 1, "an odd number of stages 1 does not fit; 2 would do"),
        ("chimera_doubling", 4, 7, 1, "chimera_doubling: micro-batches 7 does not fit; 4 or 8 would do"),
        ("chimera_doubling", 4, 12, 1, "chimera_doubling: micro-batches 12 does not fit; 8 or 16 would do"),
        ("chimera_doubling", 2, 1, 1, "micro-batches 1 does not fit; 4 would do"),
        ("chimera_halving", 4, 3, 1, "chimera_halving: micro-batches 3 does not fit; 2 or 4 would do"),
        ("dapple", 4, 0, 1, "at least one micro-batch"),
        ("gpipe", 0, 4, 1, "at least one stage"),
        ("gpipe", 4, 4, 2, "no 2 pairs"),
        ("chimaera", 4, 4, 1, "did you mean 'chimera'"),
    ],
)
def test_sizes_that_do_not_fit_are_one_line_with_sizes_that_do(
    scheme: str, stages: int, micro_batches: int, pairs: int, message: str
) -> None:
    with pytest.raises(SpecError, match=message) as refused:
        schedule_of(scheme, stages, micro_batches, pairs)
    assert "\n" not in str(refused.value)


_MAKERS: dict[str, Callable[[int, int], Schedule]] = {"chimera": chimera, "dapple": dapple, "gpipe": gpipe}
