"""The stopping rule of a size with `stop`, for the supervisor: the value that decides, and the cases that are compared
with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scaleproof.launch.sequential_stopping import Sequential, ValueOf
    from scaleproof.spec.experiment import Stop
    from scaleproof.spec.suite import Suite


def sequential(suite: Suite, experiment: str, size: str, campaign: int = 0) -> Sequential | None:
    """The rule of a campaign at a size with `stop`, None without. SpecError when its metric does not exist or has no
    value for a single launch."""
    from scaleproof.launch.sequential_stopping import Sequential

    stop = suite.experiment(experiment).size(size).stop
    if stop is None:
        return None
    return Sequential(
        suite,
        experiment,
        size,
        _value_of(suite, f"experiments.{experiment}.sizes.{size}.stop", stop),
        _companions(suite, experiment, size),
        campaign,
    )


def _value_of(suite: Suite, key: str, stop: Stop) -> ValueOf:
    from scaleproof.claims.suite_metrics import suite_metrics
    from scaleproof.spec.errors import SpecError
    from scaleproof.spec.locate import shown
    from scaleproof.spec.registry import nearest

    metrics, location = suite_metrics(suite.folder), f"{shown(suite.file)}: {key}"
    if stop.metric not in metrics:
        raise SpecError(f"{location}: unknown metric {stop.metric!r}; {nearest(stop.metric, list(metrics))}")
    metric, nbytes = metrics[stop.metric], stop.nbytes
    per_launch, per_size = metric.launch, metric.size
    if per_launch is not None and nbytes is None:
        return lambda record, store: per_launch(record, store.samples(record).to_pandas())
    if per_size is not None and nbytes is not None:
        return lambda record, store: per_size(record, store.samples(record).to_pandas(), nbytes)
    if per_size is not None:
        raise SpecError(f"{location}: metric {stop.metric!r} is per message size: give 'nbytes'")
    raise SpecError(
        f"{location}: metric {stop.metric!r} "
        + ("has no message size: leave out 'nbytes'" if per_launch else "has no value for a single launch")
    )


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
