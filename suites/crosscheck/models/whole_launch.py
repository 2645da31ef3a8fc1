"""Wall and processor time of a whole launch: a tool's over our record's."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import timed
from scaleproof.claims.made_up import Event, MadeUp, Wanted, possible
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record


def launch_wall_ratio(record: Record, samples: pd.DataFrame) -> float | None:
    """Wall time of a launch: the tool's over our record's.

    launch_wall_ratio = wall time of a launch as GNU time or hyperfine reports it / `wall_s` of its record

    Both measure the same launch. The tool measures the launcher's processes, the supervisor measures the tool. A value
    below 1 is expected: the record also includes starting and ending the launch. GNU time has a resolution of 0.01 s.
    Suite: crosscheck.
    """
    return _ratio(samples, "wall")


def launch_cpu_ratio(record: Record, samples: pd.DataFrame) -> float | None:
    """Processor time of a launch: the tool's over our record's.

    launch_cpu_ratio = user and system time of a launch as GNU time or hyperfine reports it / sum of `user_s` and
    `system_s` over the ranks of its record

    A value above 1 is expected: the record does not contain the processor time of the ranks' parent
    ([launch_start_cpu_s](launch_start_cpu_s.md)). Suite: crosscheck.
    """
    return _ratio(samples, "cpu")


def launch_cpu_added_ratio(record: Record, samples: pd.DataFrame) -> float | None:
    """Additional processor time of a busy launch over an idle one: the tool's over our record's.

    launch_cpu_added_ratio = (tool's processor time of a busy launch - of an idle one) / (record's of the busy one - of
    the idle one)

    The differences cancel the cost of starting. A value of 1 therefore means that the record misses nothing of what the
    ranks do between their fork and their report. Suite: crosscheck.
    """
    added = {side: _value(samples, f"{side}_cpu", 1) - _value(samples, f"{side}_cpu", 0) for side in ("tool", "record")}
    return added["tool"] / added["record"] if added["record"] > 0 else None


def launch_start_cpu_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Processor time of an idle launch that our record leaves out, in s.

    launch_start_cpu_s = processor time of an idle launch as GNU time or hyperfine reports it - sum of `user_s` and
    `system_s` over the ranks of its record

    It consists of the interpreter's start, the imports before the fork, and what a rank does after its report. Suite:
    crosscheck.
    """
    missing = _value(samples, "tool_cpu", 0) - _value(samples, "record_cpu", 0)
    return missing if np.isfinite(missing) else None


def _ratio(samples: pd.DataFrame, quantity: str) -> float | None:
    tool, ours = _value(samples, f"tool_{quantity}", 1), _value(samples, f"record_{quantity}", 1)
    return tool / ours if ours > 0 else None


def _value(samples: pd.DataFrame, event: str, step: int) -> float:
    rows = timed(samples, event)
    values = rows.loc[rows["step"] == step, "value"]
    return float(values.iloc[0]) if len(values) else float("nan")


def made_up_launch(wanted: Wanted) -> MadeUp:
    """A busy launch for which the tool reports so many times what the record has, and an idle one of 0 s."""
    values = {"tool": possible(wanted.known), "record": 1.0}
    rows = [
        Event(f"{side}_{quantity}", ranks=(0,), step=step, value=value * step)
        for side, value in values.items()
        for quantity in ("wall", "cpu")
        for step in (0, 1)
    ]
    return MadeUp(tuple(rows))


def made_up_start(wanted: Wanted) -> MadeUp:
    """An idle launch of which the record leaves this out."""
    tool, record = max(wanted.known, 0.0), max(-wanted.known, 0.0)
    return MadeUp((Event("tool_cpu", ranks=(0,), value=tool), Event("record_cpu", ranks=(0,), value=record)))


METRICS = [
    Metric("launch_wall_ratio", "1", None, launch=launch_wall_ratio, clocked=True, made_up=made_up_launch),
    Metric("launch_cpu_ratio", "1", None, launch=launch_cpu_ratio, clocked=True, made_up=made_up_launch),
    Metric("launch_cpu_added_ratio", "1", None, launch=launch_cpu_added_ratio, clocked=True, made_up=made_up_launch),
    Metric(
        "launch_start_cpu_s",
        "s",
        "lower",
        launch=launch_start_cpu_s,
        made_up=made_up_start,
        range=(-math.inf, math.inf),
    ),
]
