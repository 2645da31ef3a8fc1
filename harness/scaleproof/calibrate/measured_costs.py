"""Fits alpha, beta, gamma and the time of a call of every transport to a suite's ping-pongs and all-reduces; runs no
launches."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from scaleproof.calibrate.measured_handover import fit_handover
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.launch_pool import Pool
from scaleproof.claims.metrics_sizes import by_size
from scaleproof.core.record_schema import Evidence
from scaleproof.record.store import Store
from scaleproof.simulate.alpha_beta_fit import Goodness, seconds
from scaleproof.simulate.cost_file import (
    AllReduceCost,
    Costs,
    Fit,
    GammaCost,
    LineCost,
    Parameter,
    Point,
    RoundsCost,
    SegmentCost,
    TransportCost,
)
from scaleproof.simulate.cost_fit import Line, Value, fit_transfer
from scaleproof.simulate.reduction_fit import fit_reduction
from scaleproof.spec.common_case import NATIVE
from scaleproof.spec.errors import SpecError
from scaleproof.spec.suite import Suite
from scaleproof.stats.intervals import median_interval

ASSUMED = "ring"
"""The algorithm assumed for a library's own all-reduce. With 2 ranks recursive halving and doubling has the same rounds
as the ring."""
Table = tuple[np.ndarray, np.ndarray]
"""Message sizes in bytes, and times in s: a row per launch, a column per size."""


def fit_costs(suite: Suite, experiment: str, size: str, store: Store) -> list[Costs]:
    """The costs of every transport of an experiment with ping-pongs (program transfer) and all-reduces (program
    collective), from launches of one version of the code, by machine. An allocation, and a node of it that also makes
    emulated networks, are two machines.

    SpecError when there is no such launch, or when a transport cannot be fitted."""
    pool = Pool(store, suite, experiment, size)
    by_machine = [
        costs for machine in pool.machines if (costs := _of_machine(pool, machine, suite, experiment, size)) is not None
    ]
    if not by_machine:
        raise SpecError(
            f"no finished ping-pong or all-reduce of {suite.name} {experiment} at size {size} in {store.results}; "
            "`scaleproof run` makes them"
        )
    return by_machine


def _of_machine(pool: Pool, machine: str, suite: Suite, experiment: str, size: str) -> Costs | None:
    records = [record for record in pool.records if record.machine == machine and record.status == "ok"]
    arms = dict.fromkeys(
        record.case.arm
        for record in records
        if record.case.program == "transfer" or getattr(record.case, "operation", "") == "all_reduce"
    )
    transports = [_transport(pool, arm, evidence) for arm in arms for evidence in pool.evidences({"arm": arm})]
    if not transports:
        return None
    return Costs(
        machine=machine,
        code=records[0].code.digest,
        fitted_at=datetime.now(UTC).isoformat(timespec="seconds"),
        suite=suite.name,
        experiment=experiment,
        size=size,
        transports=tuple(transports),
        handover_s=fit_handover(pool, machine),
    )


def _transport(pool: Pool, arm: str, evidence: Evidence) -> TransportCost:
    transfers = pool.launches({"arm": arm, "program": "transfer"}, evidence)
    reduces = pool.launches({"arm": arm, "program": "collective", "operation": "all_reduce"}, evidence)
    record = [*transfers, *reduces][0].record
    sent = table(transfers) if transfers else None
    line = fit_transfer(f"transfer over {arm}", *sent) if sent else None
    library = str(((record.transport.get("ranks") or [None])[0] or {}).get("library", ""))
    case = record.case
    return TransportCost(
        arm=arm,
        transport=str(case.transport),
        buffers=case.buffers,
        library=library,
        fabric=case.fabric,
        nodes=case.nodes,
        link_mbit=case.value("fabric.link_mbit"),
        link_delay_ms=case.value("fabric.link_delay_ms", 0.0),
        interface=case.interface,
        evidence=evidence,
        transfer=None if line is None or sent is None else _line(line, sent),
        all_reduces=tuple(_all_reduce(arm, line, sent, group) for group in _by_ranks(reduces)),
        runs=tuple(launch.record.launch for launch in [*transfers, *reduces]),
    )


def _all_reduce(arm: str, line: Line | None, sent: Table | None, launches: Sequence[Launch]) -> AllReduceCost:
    case: Any = launches[0].record.case
    # An array with fewer elements than ranks has empty parts, whose messages are not sent.
    title, measured_table = f"all_reduce over {arm}", table(launches, case.ranks * np.dtype(case.dtype).itemsize)
    call, rounds = fit_transfer(title, *measured_table), None
    if line is not None and sent is not None:
        algorithm = ASSUMED if case.collective == NATIVE else case.collective
        fitted = fit_reduction(title, line, algorithm, case.ranks, *measured_table, sent)
        rounds = RoundsCost(
            algorithm=algorithm,
            assumed=case.collective == NATIVE,
            call_s=_parameter(fitted.call),
            gammas=tuple(GammaCost(nbytes=each.nbytes, s_per_byte=_parameter(each.value)) for each in fitted.gammas),
            fit=_fit(fitted.goodness),
            points=_points(measured_table, fitted.predicted),
        )
    return AllReduceCost(ranks=case.ranks, call=_line(call, measured_table), rounds=rounds)


def table(launches: Sequence[Launch], least: int = 1) -> Table:
    """The times of launches of one case, of sizes of at least `least` bytes; none of 0 bytes, which are not fitted.
    Launches that lack a size are left out."""
    frames = [by_size(launch.record, launch.samples) for launch in launches]
    rows = [dict(zip(frame["nbytes"], frame["time_s"], strict=True)) for frame in frames]
    nbytes = sorted({int(size) for row in rows for size in row if size >= least})
    return np.array(nbytes, float), np.array(
        [[row[size] for size in nbytes] for row in rows if all(size in row for size in nbytes)]
    )


def _by_ranks(launches: Sequence[Launch]) -> list[list[Launch]]:
    ranks = sorted({launch.record.case.ranks for launch in launches})
    return [[launch for launch in launches if launch.record.case.ranks == count] for count in ranks]


def _points(measured: Table, modelled: np.ndarray) -> tuple[Point, ...]:
    points = []
    for nbytes, column, model in zip(measured[0], measured[1].T, modelled, strict=True):
        interval = median_interval(column)
        low, high = (interval.low, interval.high) if interval else (None, None)
        points.append(
            Point(nbytes=int(nbytes), measured_s=float(np.median(column)), low_s=low, high_s=high, model_s=float(model))
        )
    return tuple(points)


def _line(line: Line, measured: Table) -> LineCost:
    parts = zip(line.segments, line.alphas, line.betas, strict=True)
    segments = [
        SegmentCost(upto_nbytes=segment.upto_nbytes, alpha_s=_parameter(alpha), beta_s_per_byte=_parameter(beta))
        for segment, alpha, beta in parts
    ]
    points = _points(measured, seconds(line.segments, measured[0]))
    return LineCost(
        launches=len(measured[1]), segments=tuple(segments), fit=_fit(line.goodness), aicc=line.aicc, points=points
    )


def _parameter(value: Value) -> Parameter:
    return Parameter(value=value.value, low=value.low, high=value.high)


def _fit(goodness: Goodness) -> Fit:
    return Fit(
        r_squared=goodness.r_squared,
        median_error=goodness.median_error,
        worst_error=goodness.worst_error,
        worst_nbytes=goodness.worst_nbytes,
    )
