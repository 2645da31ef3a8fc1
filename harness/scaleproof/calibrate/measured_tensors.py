"""Fits what strategy parameter_server takes of a rank's main thread for each tensor, to trainings that compute nothing:
two ranks, of which the first is the only server. Runs no launches."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import Launch, timed
from scaleproof.claims.launch_pool import Pool
from scaleproof.record.store import Store
from scaleproof.simulate.cost_file import Parameter
from scaleproof.simulate.tensor_file import SERVERS, TensorCost, TensorTimes
from scaleproof.spec.case import AnyCase, TrainCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.suite import Suite
from scaleproof.stats.intervals import median_interval

WORKER = 1


def only_serves(case: AnyCase) -> bool:
    """Whether the times of tensors can be taken from it: two ranks that compute nothing, and one server."""
    return (
        isinstance(case, TrainCase)
        and (case.strategy, case.compute, case.ranks, case.value("strategy.servers")) == (SERVERS, "none", 2, 1)
        and not case.plugin("fabric").predicted
    )


def fit_tensors(suite: Suite, experiment: str, size: str, store: Store) -> TensorTimes:
    """Of every transport of an experiment with such trainings. Raises SpecError without launches."""
    pool = Pool(store, suite, experiment, size)
    records = [record for record in pool.records if record.status == "ok" and only_serves(record.case)]
    if not records:
        raise SpecError(
            f"no finished training of servers that computes nothing of {suite.name} {experiment} at size {size} in "
            f"{store.results}; `scaleproof run` makes them"
        )
    fitted = []
    for arm in dict.fromkeys(record.case.arm for record in records):
        launches = [each for evidence in pool.evidences({"arm": arm}) for each in pool.launches({"arm": arm}, evidence)]
        fitted.append(tensor_cost(arm, launches))
    return TensorTimes(
        machine=records[0].machine,
        code=records[0].code.digest,
        fitted_at=datetime.now(UTC).isoformat(timespec="seconds"),
        suite=suite.name,
        experiment=experiment,
        size=size,
        transports=tuple(fitted),
    )


def tensor_cost(arm: str, launches: Sequence[Launch]) -> TensorCost:
    """The medians over launches of each one's medians over steps."""
    of_launches = [tuple(map(np.median, _times(launch.samples))) for launch in launches]
    push, begin, serve = (_parameter([float(each) for each in values]) for values in zip(*of_launches, strict=True))
    case = launches[0].record.case
    return TensorCost(
        arm=arm,
        transport=str(case.transport),
        fabric=case.fabric,
        launches=len(launches),
        push_s=push,
        begin_s=begin,
        serve_s=serve,
        runs=tuple(launch.record.launch for launch in launches),
    )


def _times(samples: pd.DataFrame) -> tuple[list[float], list[float], list[float]]:
    """Of each step, s a tensor: between gradients that the worker hands over, of the server before its first gradient,
    and between tensors that it has served."""
    exchanged, steps = timed(samples, "communication"), timed(samples, "step")
    began = steps.set_index(["rank", "step"])["start_ns"]
    push, begin, serve = list[float](), list[float](), list[float]()
    for key, tensors in exchanged.groupby(["rank", "step"]):
        handed_over, served, count = tensors["start_ns"], tensors["end_ns"], len(tensors)
        if key[0] == WORKER:
            push.append(float(handed_over.max() - handed_over.min()) / (count - 1) / 1e9)
        else:
            begin.append(float(handed_over.min() - began.loc[key]) / count / 1e9)
            serve.append(float(served.max() - served.min()) / (count - 1) / 1e9)
    return push, begin, serve


def _parameter(values: Sequence[float]) -> Parameter:
    interval = median_interval(values)
    low, high = (interval.low, interval.high) if interval else (None, None)
    return Parameter(value=float(np.median(values)), low=low, high=high)
