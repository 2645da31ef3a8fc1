"""Times of iterations with their all-reduces: what follows by hand, and that groups which are alike may be folded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scaleproof.pipelines.schedule import Schedule
from scaleproof.pipelines.schemes import schedule_of
from scaleproof.pipelines.throughput import Line, Setting, calibrated_beta, ends_of_sums, iteration_s
from scaleproof.pipelines.timing import GradientSync, PassTimes, timeline

FREE = Line(0.0, 0.0)
SYNCS: tuple[GradientSync, ...] = ("eager", "eager_opt", "late")
SETTING = Setting("dapple", 4, 8, 2, 1.0, 2.0, 1000.0, (4000.0, 3000.0, 3000.0, 5000.0), FREE)


def unfolded(schedule: Schedule, groups: int) -> Schedule:
    """All groups, each with micro-batches, pipelines and workers of its own."""
    orders = [
        tuple(
            each._replace(
                pipeline=each.pipeline + group * schedule.pipelines,
                units=tuple(unit + group * schedule.micro_batches for unit in each.units),
            )
            for each in order
        )
        for group in range(groups)
        for order in schedule.orders
    ]
    return replace(schedule, micro_batches=groups * schedule.micro_batches, orders=tuple(orders))


def test_an_all_reduce_takes_what_rabenseifner_says() -> None:
    assert Line(1.0, 0.0).all_reduce(100.0, 8) == 2 * 3
    assert Line(0.0, 1.0).all_reduce(100.0, 4) == 150.0
    assert Line(1.0, 1.0).all_reduce(100.0, 1) == 0.0


@pytest.mark.parametrize(("scheme", "expected"), [("dapple", (8 + 3) * 3.0), ("gpipe", (8 + 3) * 3.0)])
def test_without_messages_an_iteration_is_its_schedule(scheme: str, expected: float) -> None:
    assert iteration_s(replace(SETTING, scheme=scheme)) == expected


def test_recomputing_repeats_forward_passes() -> None:
    assert iteration_s(replace(SETTING, recompute=True)) == (8 + 3) * 4.0


def test_the_last_stage_to_end_decides_what_adding_up_takes() -> None:
    slow = replace(SETTING, line=Line(0.0, 1e-3), activations=0.0)
    first_stage_ends = (8 + 3) * 3.0
    assert iteration_s(slow) == pytest.approx(first_stage_ends + 4000 * 1e-3)


def test_adding_up_early_is_never_later() -> None:
    for scheme in ("dapple", "chimera", "gpipe"):
        setting = replace(SETTING, scheme=scheme, micro_batches=4, line=Line(0.0, 5e-4), activations=0.0)
        eager, opt, late = (iteration_s(replace(setting, gradient_sync=when)) for when in SYNCS)
        assert eager <= opt <= late


def test_gradients_are_added_up_early_only_where_the_worker_has_a_gap_after_them() -> None:
    """Chimera with 4 stages and micro-batches: the last backward pass of stage 3 ends at 9, of 2 at 12, of 1 at 14 and
    of 0 at 16. Workers 0 and 3, which hold stages 0 and 3, have a gap before 16, workers 1 and 2 none before 14. An
    all-reduce takes 6."""
    setting = replace(SETTING, scheme="chimera", groups=1, gradients=(6.0,) * 4, line=Line(0.0, 1.0))
    schedule = schedule_of("chimera", 4, 4)
    line = timeline(schedule, PassTimes(1.0, 2.0))
    eager, opt, late = (sorted(ends_of_sums(replace(setting, gradient_sync=when), schedule, line)) for when in SYNCS)
    assert eager == [9 + 6, 12 + 6, 16 + 6, 18 + 6]
    assert opt == [9 + 6, 14 + 6, 16 + 6, 20 + 6], "stages 1 and 2 wait for all passes"
    assert late == [14 + 6, 16 + 6, 20 + 6, 22 + 6]


def test_with_messages_that_take_no_time_adding_up_early_gains_nothing() -> None:
    setting = replace(SETTING, scheme="chimera")
    assert len({iteration_s(replace(setting, gradient_sync=when)) for when in SYNCS}) == 1


def test_without_a_flush_nothing_hides_the_sums() -> None:
    setting = replace(SETTING, scheme="pipedream_2bw", line=Line(0.0, 1e-3), activations=0.0)
    assert iteration_s(setting) == pytest.approx(8 * 3.0 + 5.0)
    assert iteration_s(replace(setting, scheme="pipedream")) == pytest.approx(8 * (3.0 + 5.0))


@pytest.mark.parametrize("sync", SYNCS)
@pytest.mark.parametrize("scheme", ["gpipe", "dapple", "chimera", "gems"])
def test_groups_that_are_alike_are_folded(scheme: str, sync: GradientSync) -> None:
    """64 workers: 8 groups of 8."""
    schedule, groups, gradients = schedule_of(scheme, 8, 8), 8, tuple(100.0 + each for each in range(8))
    setting = Setting(scheme, 8, 8, groups, 1.0, 2.0, 10.0, gradients, Line(0.1, 0.01), gradient_sync=sync)
    times = PassTimes(1.0, 2.0, setting.line.message(10.0))
    whole = unfolded(schedule, groups)
    line = timeline(whole, times)
    assert line.makespan == timeline(schedule, times).makespan
    ends = ends_of_sums(replace(setting, groups=1), whole, line)
    assert iteration_s(setting) == pytest.approx(max([line.makespan, *ends]))


def test_more_bytes_a_second_are_found_again() -> None:
    setting = replace(SETTING, line=Line(0.0, 3e-4))
    assert calibrated_beta(replace(setting, line=FREE), iteration_s(setting)) == pytest.approx(3e-4)
    with pytest.raises(ValueError, match="the passes alone take"):
        calibrated_beta(setting, 1.0)


def test_the_paths_of_as_many_micro_batches_as_stages_are_the_critical_ones() -> None:
    """Own estimate beside the paper: T = D F + (2 D - 2) B."""
    for stages in (4, 8, 16, 32):
        assert iteration_s(Setting("chimera", stages, stages, 1, 1.0, 2.0, 0.0, (0.0,) * stages, FREE)) == (
            stages + (2 * stages - 2) * 2
        )
