"""Metrics of pipelines on launches made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from scaleproof.claims.learning_curve import learning_curve
from scaleproof.claims.made_up import Event, MadeUp
from scaleproof.claims.metrics import METRICS
from scaleproof.spec.case import TrainCase
from tests.short_form import train_case


def case_of(**fields: Any) -> TrainCase:
    strategy = {"name": "pipeline", "stages": 2, "micro_batches": 2}
    return train_case(strategy=strategy, transport="tcp", workload="small_gpt", ranks=2, minibatch=4, **fields)


def value(name: str, *events: Event) -> float | None:
    metric = METRICS[name].launch
    assert metric is not None
    made, case = MadeUp(events), case_of()
    return metric(made.record(case), made.samples(case.ranks))


def test_idle_time_is_what_is_left_of_steps() -> None:
    passes = (Event("step", 0.0, 1.0), Event("forward", 0.0, 0.25), Event("backward", 0.5, 0.75))
    assert value("pipeline_idle", *passes) == pytest.approx(0.5)


def test_activations_are_those_of_the_ranks_that_hold_the_most_and_the_fewest() -> None:
    held = [Event("activations", ranks=(rank,), value=float(most)) for rank, most in ((0, 2), (0, 1), (1, 1))]
    assert value("most_activations", *held) == 2
    assert value("fewest_activations", *held) == 1


def test_the_difference_is_the_one_that_was_recorded() -> None:
    assert value("parameter_difference", Event("difference", ranks=(0,), value=3e-7)) == 3e-7
    assert value("parameter_difference", Event("step", 0.0, 1.0)) is None


def test_the_resident_peak_is_that_of_the_rank_that_takes_most() -> None:
    metric, case = METRICS["resident_peak"].launch, case_of()
    assert metric is not None
    record = MadeUp(facts={"peak_memory_mib": 300.0}).record(case)
    more = record.ranks[1].model_copy(update={"facts": {"peak_memory_mib": 420.0}})
    assert metric(record.model_copy(update={"ranks": [record.ranks[0], more]}), MadeUp().samples(2)) == 420.0
    assert metric(MadeUp().record(case), MadeUp().samples(2)) is None


def test_losses_are_those_of_the_ranks_with_the_last_stage() -> None:
    last = [Event("loss", ranks=(1,), step=step, value=3.0 - step) for step in range(2)]
    steps = [Event("step", step, step + 1.0, step=step) for step in range(2)]
    case = case_of()
    made = MadeUp((*steps, *last))
    curve = learning_curve(made.record(case), made.samples(2), "loss")
    assert curve is not None and curve.values.tolist() == [3.0, 2.0] and curve.samples.tolist() == [4, 8]
    assert value("final_loss", *steps, *last) == 2.0


@pytest.mark.parametrize(("scheme", "ranks", "having"), [("dapple", 8, 2), ("chimera", 8, 4), ("gems", 4, 2)])
def test_each_pipeline_of_each_group_has_a_rank_with_losses(scheme: str, ranks: int, having: int) -> None:
    strategy = {"name": "pipeline", "scheme": scheme, "stages": 4, "micro_batches": 4, "cut": "blocks"}
    case = train_case(strategy=strategy, transport="tcp", workload="small_gpt", ranks=ranks, minibatch=16)
    assert case.loss_ranks == having
