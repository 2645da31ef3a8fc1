"""What strategies are predicted to take beside what they took."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from scaleproof.claims.beyond_floor import FloorRange, orders
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible, reporting
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_programs import program_s
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import Record
from scaleproof.frontiers.operators import Divided, Machine, Way, divided
from scaleproof.spec.case import AnyCase, OwnCase
from scaleproof.workloads.layers import Linear
from scaleproof.workloads.networks import Network, build

MIB = 1 << 20
LATENCY_S = 1e-4
"""Of a message between two nodes, beside its bytes. Set before anything was measured."""


def _of_case(case: AnyCase) -> tuple[float, float] | None:
    """Memory in bytes and time of a step in s; None for another program."""
    if not isinstance(case, OwnCase) or "ways" not in case.options:
        return None
    of = case.options
    link = case.value("fabric.link_mbit")
    byte_s = 8 / (link * 1e6) if link else 0.0
    return strategy_cost(str(of["features"]), str(of["ways"]), int(of["batch"]), float(of["flops"]), byte_s, case.ranks)


@lru_cache(maxsize=64)
def strategy_cost(
    features: str, ways: str, batch: int, flops: float, byte_s: float, devices: int
) -> tuple[float, float]:
    """Memory in bytes and time of a step in s that `scaleproof plan` gives a strategy."""
    made = divided_layers(features, batch, flops, byte_s, devices)
    wanted = [Way(*(int(part) for part in way.split("x"))) for way in ways.split("-")]
    choices = {name: of.index(way) for (name, of), way in zip(made.ways.items(), wanted, strict=True)}
    return made.graph.cost(choices)


def divided_layers(features: str, batch: int, flops: float, byte_s: float, devices: int) -> Divided:
    """Every way to divide fully connected layers, as the suite's program has them."""
    return divided(_layers(features), batch, Machine(devices, flops, LATENCY_S, byte_s))


def _layers(features: str) -> Network:
    """Activations are part of their layers: the program computes them in place."""
    first, *others = (int(each) for each in features.split("-"))
    return build("layers", (first,), [Linear(f"fc{number}", size, True) for number, size in enumerate(others)], 1.0)


def _ratios(block: Sequence[Launch], memory: bool) -> list[tuple[float, float]]:
    """Predicted and measured, of each launch that has both."""
    found = []
    for launch in block:
        cost, case = _of_case(launch.record.case), launch.record.case
        ours = peak_mib(launch.record, launch.samples) if memory else program_s(launch.record, launch.samples)
        if cost is not None and ours is not None and isinstance(case, OwnCase):
            found.append((cost[0] / MIB if memory else cost[1] * case.iterations, ours))
    return found


def peak_mib(record: Record, samples: pd.DataFrame) -> float | None:
    """The most memory that any rank takes for the training, in MiB (suite tensoropt2022).

    peak_mib = max over ranks of (peak of resident memory - resident memory before the first step) + what the rank's
    weights, gradients and velocities take

    The kernel counts it (`VmHWM` of proc(5), counted anew from the first step).
    """
    rows = columns(record, samples)
    found = rows.value[rows.of("peak_mib")]
    return float(found.max()) if len(found) else None


def trained(record: Record, samples: pd.DataFrame) -> float | None:
    """1 where every rank could train, 0 where memory under the cap did not do (suite tensoropt2022)."""
    rows = columns(record, samples)
    found = rows.value[rows.of("trained")]
    return float(found.min()) if len(found) else None


def strategy_time_error(block: Sequence[Launch], _floor: float | None = None) -> float | None:
    """Mean error of the predicted times of strategies, in one repetition (suite tensoropt2022).

    strategy_time_error = mean over strategies of |predicted / measured - 1|

    Predicted by the model of `scaleproof plan` with the link's rate, the stated rate of computing, and 0.1 ms a
    message; measured: [program_s](program_s.md).
    """
    return _mean_error(_ratios(block, memory=False))


def strategy_memory_error(block: Sequence[Launch], _floor: float | None = None) -> float | None:
    """Mean error of the predicted memory of strategies, in one repetition (suite tensoropt2022).

    strategy_memory_error = mean over strategies of |predicted / measured - 1|

    Predicted by the model of `scaleproof plan`; measured: [peak_mib](peak_mib.md).
    """
    return _mean_error(_ratios(block, memory=True))


def _mean_error(pairs: Sequence[tuple[float, float]]) -> float | None:
    return fmean(abs(predicted / measured - 1) for predicted, measured in pairs) if pairs else None


def strategy_time_correlation(block: Sequence[Launch], floor: float | None = None) -> FloorRange | None:
    """Rank correlation of predicted with measured times of strategies, in one repetition (suite tensoropt2022). None
    below three.

    strategy_time_correlation = Spearman's rho of predicted and measured times

    It is computed for all orders of the measured times that the noise floor leaves open: the value is their mean, and
    the least and the largest say what noise could make of it. See [strategy_time_error](strategy_time_error.md).
    """
    return _correlation(_ratios(block, memory=False), floor)


def strategy_memory_correlation(block: Sequence[Launch], _floor: float | None = None) -> float | None:
    """Rank correlation of predicted with measured memory of strategies, in one repetition (suite tensoropt2022). None
    below three.

    strategy_memory_correlation = Spearman's rho of predicted and measured memory

    See [strategy_memory_error](strategy_memory_error.md).
    """
    found = _correlation(_ratios(block, memory=True), None)
    return None if found is None else found.value


def _correlation(pairs: Sequence[tuple[float, float]], floor: float | None) -> FloorRange | None:
    if len(pairs) < 3:
        return None
    predicted = np.array(orders([pair[0] for pair in pairs], None)[0], float)
    measured = np.array(orders([pair[1] for pair in pairs], floor), float)
    centred = predicted - predicted.mean()
    rhos = measured @ centred / (centred**2).sum()
    return FloorRange(float(rhos.mean()), float(rhos.min()), float(rhos.max()))


def _made_up_training(wanted: Wanted, seconds: float, mib: float) -> MadeUp:
    return events(Event("step", 0.0, seconds), Event("peak_mib", value=mib), Event("trained", value=1.0))


def _predicted(wanted: Wanted) -> tuple[float, float]:
    """MiB, and s of all steps."""
    cost = _of_case(wanted.case)
    if cost is None or not isinstance(wanted.case, OwnCase):
        raise ImpossibleValue("the case divides no layers")
    return cost[0] / MIB, cost[1] * wanted.case.iterations


def made_up_error(wanted: Wanted) -> MadeUp:
    """Launches that take less than predicted, so that the error is the value."""
    mib, seconds = _predicted(wanted)
    factor = 1 + possible(wanted.known)
    return _made_up_training(wanted, seconds / factor, mib / factor)


def made_up_correlation(wanted: Wanted) -> MadeUp:
    """Launches in the predicted order, each far from the others, or in the reverse order."""
    mib, seconds = _predicted(wanted)
    forwards = possible(wanted.known, -1, 1) > 0
    return _made_up_training(wanted, *(each**8 if forwards else each**-8 for each in (seconds, mib)))


_OF_TIME: dict[str, Any] = {"clocked": True, "noise_of": ("program_s",)}
METRICS = [
    Metric("peak_mib", "MiB", "lower", launch=peak_mib, made_up=reporting("peak_mib")),
    Metric("trained", "bool", "higher", launch=trained, made_up=reporting("trained")),
    Metric(
        "strategy_time_error",
        "fraction",
        "lower",
        block=strategy_time_error,
        noise="added",
        made_up=made_up_error,
        range=(0, math.inf),
        **_OF_TIME,
    ),
    Metric(
        "strategy_time_correlation",
        "1",
        "higher",
        block=strategy_time_correlation,
        noise="inside",
        made_up=made_up_correlation,
        range=(-1, 1),
        **_OF_TIME,
    ),
    Metric(
        "strategy_memory_error",
        "fraction",
        "lower",
        block=strategy_memory_error,
        made_up=made_up_error,
        range=(0, math.inf),
    ),
    Metric(
        "strategy_memory_correlation",
        "1",
        "higher",
        block=strategy_memory_correlation,
        made_up=made_up_correlation,
        range=(-1, 1),
    ),
]
