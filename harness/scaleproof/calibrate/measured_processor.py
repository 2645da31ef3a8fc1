"""Fits the time of a core that messages take to windows of messages whose ranks recorded their processor time; runs no
launches."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import Launch, timed
from scaleproof.claims.launch_pool import Pool
from scaleproof.record.store import Store
from scaleproof.simulate.cost_file import Parameter
from scaleproof.simulate.cost_fit import Value
from scaleproof.simulate.processor_file import ProcessorCost, ProcessorTimes, SideTime
from scaleproof.simulate.processor_fit import WindowTimes, fit_sides
from scaleproof.spec.case import AnyCase, OwnCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.suite import Suite

SENDER, RECEIVER = 0, 1
MESSAGES, SPENT = "window", "processor"
"""Events: a window, whose value is its number of messages; the processor time of a rank over the windows of a size."""


def has_windows(case: AnyCase) -> bool:
    """Whether rank 0 sends windows of messages to rank 1, in one direction. A rank that polls is as busy without
    messages, so its processor time says nothing about them."""
    if not isinstance(case, OwnCase) or case.options.get("flows") != "one_way" or case.transport is None:
        return False
    return not case.plugin("transport").polls


def fit_processor(suite: Suite, experiment: str, size: str, store: Store) -> ProcessorTimes:
    """Of every transport of an experiment with such windows. Raises SpecError without launches, and for a transport
    that cannot be fitted."""
    pool = Pool(store, suite, experiment, size)
    arms = dict.fromkeys(record.case.arm for record in pool.records if has_windows(record.case))
    launches = {arm: pool.launches({"arm": arm, "program": "own"}, "measured") for arm in arms}
    fitted = [_of_arm(arm, found) for arm, found in launches.items() if found]
    if not fitted:
        raise SpecError(
            f"no finished windows of messages in one direction of {suite.name} {experiment} at size {size} in "
            f"{store.results}; `scaleproof run` makes them"
        )
    record = next(found for found in launches.values() if found)[0].record
    return ProcessorTimes(
        machine=record.machine,
        code=record.code.digest,
        fitted_at=datetime.now(UTC).isoformat(timespec="seconds"),
        suite=suite.name,
        experiment=experiment,
        size=size,
        transports=tuple(fitted),
    )


def _of_arm(arm: str, launches: Sequence[Launch]) -> ProcessorCost:
    case, times = launches[0].record.case, window_times(launches)
    sides = fit_sides(f"windows over {arm}", times)
    parameters = [_parameter(value) for value in sides.values]
    return ProcessorCost(
        arm=arm,
        transport=str(case.transport),
        buffers=case.buffers,
        fabric=case.fabric,
        interface=case.interface,
        launches=len(times.sender),
        send=SideTime(message_s=parameters[0], byte_s=parameters[1]),
        receive=SideTime(message_s=parameters[2], byte_s=parameters[3]),
        worst_error=sides.worst_error,
        worst_nbytes=sides.worst_nbytes,
        runs=tuple(launch.record.launch for launch in launches),
    )


def window_times(launches: Sequence[Launch]) -> WindowTimes:
    """The times of launches of one case, without messages of 0 bytes."""
    tables = [_by_size(launch.samples) for launch in launches]
    nbytes = np.array(sorted(size for size in tables[0].index if size), float)
    chosen = [table.reindex(nbytes) for table in tables]
    return WindowTimes(
        nbytes,
        np.median([table["window"] for table in chosen], axis=0),
        np.array([table[SENDER] for table in chosen]),
        np.array([table[RECEIVER] for table in chosen]),
    )


def _by_size(samples: pd.DataFrame) -> pd.DataFrame:
    """By message size: messages of a window, and s of a core a message of the sender (0) and the receiver (1)."""
    windows = timed(samples, MESSAGES).groupby("nbytes")["value"]
    spent = timed(samples, SPENT).groupby(["nbytes", "rank"])["value"].sum().unstack()
    table = spent.div(windows.sum(), axis=0)
    return table.assign(window=windows.median())


def _parameter(value: Value) -> Parameter:
    return Parameter(value=value.value, low=value.low, high=value.high)
