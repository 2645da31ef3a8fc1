"""What a launch learned over steps, samples and time; divergence; two launches compared as far as both have come."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.learning_curve import diverged_at, divergence, learning_curve
from scaleproof.claims.metrics import METRICS
from scaleproof.stats.never import NEVER
from tests.unit.claims.claims_samples import GOSSIP, OF_SERVERS, TRAIN, record, samples

Rows = list[tuple[Any, ...]]


def steps(rank: int, length: float, count: int) -> Rows:
    """Steps of one rank, one after the other."""
    return [(rank, "step", number, number * length, (number + 1) * length) for number in range(count)]


def evaluations(*found: tuple[float, float, float], every: int = 2, event: str = "test_loss") -> Rows:
    """Moment in ms, samples in the model, value."""
    rows: Rows = []
    for number, (moment, count, value) in enumerate(found):
        step = (number + 1) * every - 1
        rows += [(0, event, step, moment, moment, 0, value), (0, "evaluated_samples", step, moment, moment, 0, count)]
    return rows


def launch(case: dict[str, Any], *rows: tuple[Any, ...], index: int = 0) -> Launch:
    return Launch(record(case, index), samples(*rows))


def of_rank_0(case: dict[str, Any], values: list[float]) -> pd.DataFrame:
    rows: Rows = [*steps(0, 100, len(values)), *steps(1, 100, len(values))]
    rows += [(rank, "loss", n, 0, 100 * (n + 1), 0, value) for n, value in enumerate(values) for rank in range(2)]
    return samples(*rows)


def test_ranks_in_lockstep_have_trained_whole_steps() -> None:
    curve = learning_curve(record(TRAIN), of_rank_0(TRAIN, [3.0, 2.0]), "loss")
    assert curve is not None
    assert curve.steps.tolist() == [0, 1] and curve.samples.tolist() == [8, 16]
    assert curve.seconds.tolist() == pytest.approx([0.1, 0.2]) and curve.values.tolist() == [3.0, 2.0]


def test_a_training_loss_of_ranks_at_their_own_pace_is_their_mean_at_steps_that_all_have() -> None:
    rows: Rows = [*steps(0, 100, 3), *steps(1, 200, 2)]
    rows += [(0, "loss", n, 0, 100 * (n + 1), 0, 4.0 - n) for n in range(3)]
    rows += [(1, "loss", n, 0, 200 * (n + 1), 0, 2.0 - n) for n in range(2)]
    curve = learning_curve(record(GOSSIP), samples(*rows), "loss")
    assert curve is not None
    assert curve.values.tolist() == [3.0, 2.0], "rank 1 has no third step"
    assert curve.seconds.tolist() == pytest.approx([0.2, 0.4]), "when the last of them had it"
    assert curve.samples.tolist() == [8, 16]
    assert METRICS["final_loss"].launch is not None
    assert METRICS["final_loss"].launch(record(GOSSIP), samples(*rows)) == 2.0


def test_an_evaluation_says_how_many_samples_are_in_its_model() -> None:
    rows = [*steps(0, 100, 4), *steps(1, 400, 4), *evaluations((800, 16, 2.0), (1600, 32, 1.0))]
    curve = learning_curve(record(GOSSIP), samples(*rows), "test_loss")
    assert curve is not None
    assert curve.samples.tolist() == [16, 32], "and not the 24 of all steps that had ended after 0.8 s"


def test_a_centre_has_what_all_steps_had_that_ended_before_its_evaluation() -> None:
    rows = [*steps(1, 100, 4), *steps(2, 400, 4), (0, "test_loss", 1, 850, 850, 0, 2.0)]
    curve = learning_curve(record(OF_SERVERS), samples(*rows), "test_loss")
    assert curve is not None
    assert curve.samples.tolist() == [6 * 4] and curve.seconds.tolist() == [0.85]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_is_divergence_with_its_first_step_of_any_rank(value: float) -> None:
    rows: Rows = [*steps(0, 100, 4), *steps(1, 100, 4)]
    rows += [(0, "loss", n, 0, 0, 0, value if n >= 3 else 1.0) for n in range(4)]
    rows += [(1, "loss", n, 0, 0, 0, value if n >= 2 else 1.0) for n in range(4)]
    rows += [(0, "test_accuracy", 3, 400, 400, 0, 0.0), (0, "test_loss", 3, 400, 400, 0, math.nan)]
    made, frame = record(GOSSIP), samples(*rows)
    assert diverged_at(made, frame) == 2 and divergence(made, frame) == "diverged at step 2"
    values = {name: METRICS[name].launch for name in ("diverged", "diverged_step", "test_loss", "test_accuracy")}
    found = {name: metric(made, frame) for name, metric in values.items() if metric is not None}
    assert found == {"diverged": 1.0, "diverged_step": 2.0, "test_loss": None, "test_accuracy": None}


def test_one_infinite_loss_of_a_training_that_ends_well_is_none() -> None:
    rows = [
        *steps(0, 100, 2),
        *steps(1, 100, 2),
        (0, "loss", 0, 0, 0, 0, math.inf),
        (0, "test_loss", 1, 200, 200, 0, 1.0),
    ]
    assert diverged_at(record(GOSSIP), samples(*rows)) is None
    metric = METRICS["diverged"].launch
    assert metric is not None and metric(record(GOSSIP), samples(*rows)) == 0.0


def test_replayed_compute_has_no_loss_and_does_not_diverge() -> None:
    case = {**TRAIN, "compute": "none"}
    assert diverged_at(record(case), samples((0, "loss", 0, 0, 0, 0, math.nan))) is None
    metric = METRICS["diverged"].launch
    assert metric is not None and metric(record(case), samples((0, "loss", 0, 0, 0, 0, math.nan))) is None


def pair(name: str, ours: Launch, base: Launch) -> float | None:
    metric = METRICS[name].pair
    assert metric is not None
    return metric(ours, base, None)


SLOW = launch(GOSSIP, *steps(0, 100, 4), *evaluations((400, 8, 4.0), (800, 16, 2.0)))
"""Half of the samples in a second, and a lower loss for each of them."""
FAST = launch(GOSSIP, *steps(0, 100, 4), *evaluations((200, 8, 5.0), (400, 16, 4.0), (800, 32, 1.0)), index=1)


def test_at_equal_samples_and_at_equal_time_are_two_answers() -> None:
    assert pair("loss_at_samples", SLOW, FAST) == pytest.approx(2.0 / 4.0), "both have had 16 samples"
    assert pair("loss_at_seconds", SLOW, FAST) == pytest.approx(2.0 / 1.0), "after 0.8 s"
    assert pair("loss_at_samples", FAST, SLOW) == pytest.approx(4.0 / 2.0)


def test_a_loss_between_two_evaluations_is_interpolated() -> None:
    base = launch(GOSSIP, *steps(0, 100, 4), *evaluations((100, 8, 6.0), (600, 24, 2.0)))
    assert pair("loss_at_samples", SLOW, base) == pytest.approx(2.0 / 4.0)


def test_a_launch_that_has_diverged_is_worse_than_every_number() -> None:
    lost = launch(GOSSIP, *steps(0, 100, 4), *evaluations((400, 8, 4.0), (800, 16, math.nan)))
    assert pair("loss_at_samples", lost, SLOW) == NEVER
    assert pair("loss_at_samples", SLOW, lost) == 1 / NEVER
    assert pair("loss_at_samples", lost, lost) is None
    before = launch(GOSSIP, *steps(0, 100, 4), *evaluations((400, 8, 8.0)))
    assert pair("loss_at_samples", lost, before) == pytest.approx(0.5), "it had not diverged by then"


def test_launches_that_were_never_evaluated_at_one_place_are_not_compared() -> None:
    late = launch(GOSSIP, *steps(0, 100, 4), *evaluations((3000, 64, 1.0)))
    assert pair("loss_at_samples", SLOW, late) is None
    assert pair("loss_at_seconds", SLOW, launch(GOSSIP, *steps(0, 100, 4))) is None


def test_accuracies_are_compared_by_their_difference() -> None:
    one = launch(GOSSIP, *steps(0, 100, 4), *evaluations((400, 8, 0.5), (800, 16, 0.9), event="test_accuracy"))
    other = launch(GOSSIP, *steps(0, 100, 4), *evaluations((200, 8, 0.4), (400, 16, 0.6), event="test_accuracy"))
    assert pair("accuracy_at_samples", one, other) == pytest.approx(0.3)
    assert pair("accuracy_at_seconds", one, other) == pytest.approx(-0.1)


def test_a_loss_of_a_hundred_times_guessing_is_divergence_and_a_large_one_below_is_a_number() -> None:
    """ln 10 is 2.3: a softmax of finite inputs can have any loss."""

    def last(loss: float) -> tuple[float | None, str | None]:
        rows = [*steps(0, 100, 2), *steps(1, 100, 2), (0, "test_loss", 1, 200, 200, 0, loss)]
        metric = METRICS["test_loss"].launch
        assert metric is not None
        return metric(record(GOSSIP), samples(*rows)), divergence(record(GOSSIP), samples(*rows))

    assert last(229.0) == (229.0, None)
    assert last(231.0) == (None, "diverged at step 1")
    curve = learning_curve(
        record(GOSSIP), samples(*steps(0, 100, 2), (0, "test_loss", 1, 200, 200, 0, 1e31)), "test_loss"
    )
    assert curve is not None and curve.values.tolist() == [math.inf], "so that no line leaves the figure"


def test_a_program_of_a_suite_says_by_the_step_of_an_event_what_its_curve_counts() -> None:
    own = {
        "suite": "s",
        "experiment": "e",
        "arm": "a",
        "program": "own",
        "entry": "e",
        "ranks": 1,
        "warmup": 0,
        "iterations": 1,
        "options": {},
    }
    rows: Rows = [(0, "pair_loss", 14_879, 0, 300, 0, 0.5), (0, "pair_loss", 1, 0, 100, 0, 0.6)]
    curve = learning_curve(record(own), samples(*rows), "pair_loss")
    assert curve is not None
    assert curve.steps.tolist() == [1, 14_879] and curve.values.tolist() == [0.6, 0.5]
    assert curve.seconds.tolist() == pytest.approx([0, 0.2])
    assert learning_curve(record(own), samples(*rows), "loss") is None
