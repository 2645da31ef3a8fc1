"""The stopping rule of a size with `stop`, for the supervisor: the value that decides, and the cases that are compared
with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scaleproof.claims.metrics import Metric
    from scaleproof.launch.claim_stopping import ClaimNumber
    from scaleproof.launch.sequential_stopping import Sequential, ValueOf
    from scaleproof.spec.experiment import Stop
    from scaleproof.spec.suite import Suite


def sequential(suite: Suite, experiment: str, size: str, campaign: int = 0) -> Sequential | None:
    """The rule of a campaign at a size with `stop`, None without. SpecError when its metric does not exist or has no
    value for a single launch."""
    from scaleproof.launch.claim_stopping import SequentialClaims
    from scaleproof.launch.sequential_stopping import Sequential

    stop = suite.experiment(experiment).size(size).stop
    if stop is None:
        return None
    if stop.metric is None:
        return SequentialClaims(suite, experiment, size, _numbers(suite, experiment, size), campaign)
    return Sequential(
        suite,
        experiment,
        size,
        _value_of(suite, stop),
        _companions(suite, experiment, size),
        campaign,
    )


def _value_of(suite: Suite, stop: Stop) -> ValueOf:
    from scaleproof.claims.suite_metrics import suite_metrics
    from scaleproof.spec.errors import SpecError
    from scaleproof.spec.registry import nearest

    metrics = suite_metrics(suite.folder)
    assert stop.metric is not None
    if stop.metric not in metrics:
        raise SpecError(f"{stop.place}: unknown metric {stop.metric!r}; {nearest(stop.metric, list(metrics))}")
    metric = metrics[stop.metric]
    per_launch, per_size = metric.launch, metric.size
    if value_of := _of_launch(metric, stop.nbytes):
        return value_of
    if per_size is not None:
        raise SpecError(f"{stop.place}: metric {stop.metric!r} is per message size: give 'nbytes'")
    raise SpecError(
        f"{stop.place}: metric {stop.metric!r} "
        + ("has no message size: leave out 'nbytes'" if per_launch else "has no value for a single launch")
    )


def _of_launch(metric: Metric, nbytes: int | None) -> ValueOf | None:
    """The metric of one launch; None if it has none, or only with or without a message size."""
    per_launch, per_size = metric.launch, metric.size
    if per_launch is not None and nbytes is None:
        return lambda record, store: per_launch(record, store.samples(record).to_pandas())
    if per_size is not None and nbytes is not None:
        return lambda record, store: per_size(record, store.samples(record).to_pandas(), nbytes)
    return None


def _numbers(suite: Suite, experiment: str, size: str) -> list[ClaimNumber]:
    """The numbers of the claims that launches of this size serve."""
    from scaleproof.claims.claims_yaml import load_claims
    from scaleproof.claims.launch_pool import matches
    from scaleproof.launch.claim_stopping import ClaimNumber

    cases, numbers = suite.experiment(experiment).size(size).cases, []
    for claim in load_claims(suite):
        form = claim.form
        if form.experiment != experiment or claim.metric is None or form.arms or form.rule is None:
            continue
        sides = [
            tuple(case.case_id for case in cases if select is not None and matches(case, select))
            for select in (form.select, form.against)
        ]
        value_of = _of_launch(claim.metric, form.nbytes)
        served = sides[0] and (form.against is None or len(sides[0]) == len(sides[1]))
        if value_of is not None and served:
            numbers.append(ClaimNumber(form.id, sides[0], sides[1], value_of))
    return numbers


def _companions(suite: Suite, experiment: str, size: str) -> dict[str, set[str]]:
    """For each case, the cases to which claims compare it. They are launched as often as it is, in the same blocks."""
    from scaleproof.claims.claims_yaml import load_claims
    from scaleproof.claims.launch_pool import matches

    cases, companions = suite.experiment(experiment).size(size).cases, dict[str, set[str]]()
    for claim in load_claims(suite):
        form = claim.form
        if form.experiment != experiment:
            continue
        compared = {case.case_id for case in cases if matches(case, form.select)}
        bases = {case.case_id for case in cases if form.against is not None and matches(case, form.against)}
        if form.arms:  # compared with each other
            compared = bases = {
                case.case_id for case in cases if any(matches(case, {**form.select, **arm}) for arm in form.arms)
            }
        elif form.rule is not None and form.rule.name == "monotone":
            bases = compared
        for case_id in compared:
            companions.setdefault(case_id, set()).update(bases - {case_id})
    return companions
