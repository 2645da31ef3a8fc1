"""Metrics of faults on hand-made samples: how long training takes to recover, and what it loses."""

from __future__ import annotations

from typing import Any

import pytest

from scaleproof.claims.metrics_faults import not_recovered, samples_lost, time_to_recover, time_to_replace
from scaleproof.core.record_schema import Clock
from tests.unit.claims.claims_samples import MS, record, samples

NAN = float("nan")
CASE: dict[str, Any] = {
    "program": "train",
    "suite": "s",
    "experiment": "e",
    "arm": "a",
    "ranks": 3,
    "transport": "tcp",
    "strategy": "gossip",
    "workload": "dnn_digits",
    "data": "digits",
    "minibatch": 6,
    "steps": 10,
    "faults": "kill:2@2",
}


def steps(rank: int, count: int, first: int = 0, start: float = 0.0) -> list[tuple[Any, ...]]:
    """Steps of 100 ms, one after the other."""
    return [(rank, "step", first + n, start + 100 * n, start + 100 * (n + 1)) for n in range(count)]


def losses(*values: float) -> list[tuple[Any, ...]]:
    """Evaluations every 200 ms."""
    return [(0, "test_loss", n, 200 * (n + 1), 200 * (n + 1), 0, value) for n, value in enumerate(values)]


KILLED = (2, "killed", 2, 250, 250, 0, NAN)
OTHERS = [*steps(0, 10), *steps(1, 8), (0, "end", 9, 1000, 1000), (1, "end", 7, 800, 800)]


def test_a_rank_that_is_killed_costs_the_steps_that_the_others_finish_after_it() -> None:
    rows = samples(*OTHERS, *steps(2, 2), KILLED)
    assert samples_lost(record(CASE), rows) == pytest.approx(2 * (8 + 6) / 2), "from 250 ms on, 2 samples each"
    assert time_to_replace(record(CASE), rows) is None


def test_ranks_that_are_away_too_do_not_count_as_those_that_go_on() -> None:
    case = {**CASE, "ranks": 4, "minibatch": 8}
    dead = [(rank, "killed", 2, 250, 250, 0, NAN) for rank in (1, 2, 3)]
    before = [row for rank in (1, 2, 3) for row in steps(rank, 2)]
    rows = samples(*steps(0, 10), (0, "end", 9, 1000, 1000), *before, *dead)
    assert samples_lost(record(case), rows) == 3 * 8 * 2, "8 steps of rank 0 from 250 ms on, 2 samples each"
    everybody = samples(*steps(0, 2), (0, "end", 1, 300, 300), *before, *dead, (0, "pause", 1, 240, 290))
    assert samples_lost(record(case), everybody) is None, "nobody went on"


def test_a_successor_ends_what_is_lost() -> None:
    rows = samples(*OTHERS, *steps(2, 2), KILLED, (2, "joined", -1, 400, 400), *steps(2, 3, first=2, start=450))
    assert samples_lost(record(CASE), rows) == 2 * 3, "those that ended from 250 to 550 ms"
    assert time_to_replace(record(CASE), rows) == pytest.approx(0.3)


def test_a_pause_costs_what_the_others_do_meanwhile() -> None:
    rows = samples(*OTHERS, *steps(2, 7), (2, "pause", 2, 220, 450))
    assert samples_lost(record(CASE), rows) == 2 * 2


def test_training_has_recovered_when_the_loss_is_as_low_as_before() -> None:
    rows = samples(*OTHERS, *steps(2, 2), KILLED, *losses(0.9, 1.4, 0.95, 0.9, 0.5))
    assert time_to_recover(record(CASE), rows) == pytest.approx(0.8 - 0.25)


@pytest.mark.parametrize(
    ("values", "words"),
    [((), None), ((0.9, 1.4, 0.95, 1.0), "not recovered, lowest loss 0.95 after 0.9"), ((0.9, 1.4, 0.9), None)],
    ids=["nothing evaluated", "never again", "recovered"],
)
def test_training_that_does_not_recover_says_so(values: tuple[float, ...], words: str | None) -> None:
    rows = samples(*OTHERS, *steps(2, 2), KILLED, *losses(*values))
    assert (time_to_recover(record(CASE), rows) is None) == (values != (0.9, 1.4, 0.9))
    assert not_recovered(record(CASE), rows) == words


def test_without_a_fault_there_is_nothing_to_count() -> None:
    rows = samples(*OTHERS, *steps(2, 10), *losses(0.9, 0.8))
    for metric in (samples_lost, time_to_recover, time_to_replace):
        assert metric(record(CASE), rows) is None


def test_ranks_are_on_one_clock() -> None:
    rows = samples(*OTHERS, *steps(2, 2), KILLED, *losses(0.9, 0.8))
    later = record(CASE, clocks=[Clock(rank=2, offset_ns=100 * MS, uncertainty_ns=1)])
    assert time_to_recover(later, rows) == pytest.approx(0.4 - 0.35)
