"""Each metric over launches makes up launches with a wanted value, which it then finds in them."""

from __future__ import annotations

import pytest

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import ImpossibleValue, MadeUp, Wanted
from scaleproof.claims.metrics import METRICS, Metric
from scaleproof.spec.case import AnyCase
from tests.short_form import case_from
from tests.unit.claims.claims_samples import PROGRAM_CASES

OF_LAUNCHES = [metric for metric in METRICS.values() if metric.model is None and metric.ratio_of is None]
NBYTES = 1 << 26


@pytest.mark.parametrize("metric", OF_LAUNCHES, ids=lambda metric: metric.name)
def test_a_metric_finds_the_value_for_which_its_launch_was_made(metric: Metric) -> None:
    least, most = metric.possible
    wanted = [value for value in (0.0, 0.25, 1.0, 3.0) if least <= value <= most]
    found = {value: found_value(metric, value) for value in (wanted if metric.unit != "bool" else [0.0, 1.0])}
    made = {value: each for value, each in found.items() if each is not None}
    assert len(made) >= 2, f"launches of too few values can be made: {found}"
    assert made == pytest.approx({value: value for value in made}, rel=1e-6, abs=1e-6)


def found_value(metric: Metric, value: float) -> float | None:
    """The metric's value in the first case of which such a launch can be made."""
    for short in PROGRAM_CASES:
        case = case_from(short)
        try:
            made = make(metric, case, value)
        except ImpossibleValue:
            continue
        launch = launch_of(case, made)
        found = None
        if metric.launch is not None:
            found = metric.launch(launch.record, launch.samples)
        elif metric.size is not None:
            found = metric.size(launch.record, launch.samples, NBYTES)
        elif metric.pair is not None:
            found = metric.pair(launch, launch_of(case, make(metric, case, None)), None)
        if found is not None:
            return found
    return None


def make(metric: Metric, case: AnyCase, value: float | None) -> MadeUp:
    assert metric.made_up is not None, f"{metric.name} has no generator of launches"
    return metric.made_up(Wanted(case, value, NBYTES))


def launch_of(case: AnyCase, made: MadeUp) -> Launch:
    return Launch(made.record(case), made.samples(case.ranks), lambda: made.parameters)
