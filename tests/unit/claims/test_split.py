"""Imbalance between ranks, on hand-made steps whose answers are known."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from scaleproof.claims.metrics_split import step_split
from scaleproof.core.record_schema import Clock
from tests.unit.claims.claims_samples import MS, TRAIN, record, samples, step, step_parts


def exchange(rank: int, ready: float, start: float, end: float) -> list[tuple[Any, ...]]:
    """One bucket: gradients complete, all-reduce."""
    return [(rank, "queue", 0, ready, start), (rank, "communication", 0, start, end)]


def parts(*rows: tuple[Any, ...], clocks: tuple[Clock, ...] = ()) -> pd.DataFrame:
    return step_parts(record(TRAIN, clocks=list(clocks)), samples(*rows)).set_index("rank") / MS


def test_waiting_for_a_rank_whose_gradients_are_late_is_imbalance() -> None:
    """Backward passes end at 70; rank 1's gradients are complete at 82, and the exchange ends at 90."""
    split = parts(*step(0, 0, 0), *step(1, 0, 0), *exchange(0, 70, 70, 90), *exchange(1, 82, 82, 90))
    assert split.loc[0, ["imbalance", "exposed_transfer", "other"]].tolist() == [12, 8, 0]
    assert split.loc[1, ["imbalance", "exposed_transfer", "other"]].tolist() == [0, 8, 12]


def test_only_what_is_exposed_can_be_imbalance() -> None:
    split = parts(*step(0, 0, 0), *step(1, 0, 0), *exchange(0, 50, 50, 90), *exchange(1, 75, 75, 90))
    assert split.loc[0, ["imbalance", "exposed_transfer"]].tolist() == [5, 15], (
        "until 70 the wait hides behind the backward pass"
    )


def test_a_bucket_that_waits_for_its_turn_is_no_imbalance() -> None:
    """Rank 1's thread is busy with the first bucket while the gradients of the second one are complete."""
    rows = [*exchange(0, 70, 70, 75), *exchange(0, 70, 75, 90), *exchange(1, 70, 70, 82), *exchange(1, 70, 82, 90)]
    split = parts(*step(0, 0, 0), *step(1, 0, 0), *rows)
    assert split["imbalance"].tolist() == [0, 0]
    assert split["exposed_transfer"].tolist() == [20, 20]


def test_a_bucket_that_overtakes_another_on_a_second_channel_is_compared_with_itself() -> None:
    """The fourth bucket goes while the third one waits for the first: on rank 0 it waits for rank 1's gradients from 72
    to 76."""
    rows = [
        row
        for rank, late in ((0, 72), (1, 76))
        for row in (
            *exchange(rank, 60, 60, 80),
            *exchange(rank, 60, 60, 65),
            *exchange(rank, 70, 80, 90),
            *exchange(rank, late, late, 78),
        )
    ]
    split = parts(*step(0, 0, 0), *step(1, 0, 0), *rows)
    assert split["imbalance"].tolist() == [4, 0]


def test_ranks_are_compared_on_one_clock() -> None:
    """Rank 1's clock is 1000 ms behind; without its offset rank 0 would seem to be late by a second."""
    rows = [*step(0, 0, 1000), *step(1, 0, 0), *exchange(0, 1070, 1070, 1090), *exchange(1, 78, 78, 90)]
    split = parts(
        *rows,
        clocks=(Clock(rank=0, offset_ns=0, uncertainty_ns=0), Clock(rank=1, offset_ns=1000 * MS, uncertainty_ns=10)),
    )
    assert split["imbalance"].tolist() == [8, 0]


def test_time_between_threads_is_exposed_too() -> None:
    """The main thread still waits between the end of the last all-reduce and its own next event."""
    split = parts(*step(0, 0, 0, (70, 80)), (0, "wait", 0, 70, 86), *step(1, 0, 0, (70, 80)))
    assert split["exposed_transfer"].tolist() == [16, 10]
    assert split["other"].tolist() == [4, 10]


def test_a_pass_that_waits_for_activations_does_not_compute() -> None:
    without_wait = parts(*step(0, 0, 0, (70, 80)), *step(1, 0, 0))
    split = parts(*step(0, 0, 0, (70, 80)), (0, "activations", 0, 20, 26), *step(1, 0, 0))
    moved = (split - without_wait).loc[0]
    assert moved["exposed_transfer"] == 6 and moved["forward"] + moved["backward"] == -6 and moved["step"] == 0


def test_a_call_that_not_all_ranks_recorded_is_not_compared() -> None:
    """One of three ranks recorded no call: which rank waited for which is unknown."""
    case = record({**TRAIN, "ranks": 3, "minibatch": 9})
    rows = [*step(0, 0, 0), *step(1, 0, 0), *step(2, 0, 0), *exchange(0, 70, 70, 90), *exchange(1, 82, 82, 90)]
    assert step_parts(case, samples(*rows))["imbalance"].tolist() == [0, 0, 0]
    split = step_parts(case, samples(*rows, *exchange(2, 70, 70, 90))).set_index("rank") / MS
    assert split["imbalance"].tolist() == [12, 0, 12]


def test_nothing_was_trained() -> None:
    assert step_split(record(TRAIN), samples((0, "start", 0, 1, 1))) is None


@pytest.mark.parametrize(("update", "share"), [(10, 0.05), (15, 0.0)])
def test_the_unexplained_share_is_other_over_the_step(update: float, share: float) -> None:
    from scaleproof.claims.metrics import PER_LAUNCH

    rows = [row for rank in range(2) for row in (*step(rank, 0, 0, (70, 85)), (rank, "update", 0, 100 - update, 100))]
    assert PER_LAUNCH["unexplained_share"](record(TRAIN), samples(*rows)) == pytest.approx(share)
