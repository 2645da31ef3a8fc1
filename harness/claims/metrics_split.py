"""Where the time of a training step goes: every moment of a step belongs to one part, by interval union, per rank and step (docs/decomposition.md)."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import numpy as np
import pandas as pd

from harness.claims.launch import SECOND, clock_offsets, timed, times_count
from harness.record.schema import Record
from harness.spec.case import TrainCase
from harness.stats.union import OUTSIDE, Intervals, label

MAIN = ("forward", "backward", "update", "input")
"""Parts on the main thread; a moment of two of them belongs to the first."""
PARTS = ("input", "forward", "backward", "exposed_transfer", "imbalance", "update", "other")
"""All parts of a step, in the order in which they are shown."""
ACTIVATIONS = "activations"
"""Within a pass: the main thread waits for activations of other ranks (strategy hybrid)."""
_LABELS = (ACTIVATIONS, *MAIN, "imbalance", "exposed_transfer", "other")
UNEXPLAINED = 0.05
"""Share of the step that `other` may have; above, the split is flagged."""


def step_parts(record: Record, samples: pd.DataFrame) -> pd.DataFrame:
    """A row per rank and timed step, in ns: `step` and PARTS, which add up to it exactly. Empty where nothing was trained. Not to be changed."""
    global _last
    if _last[0]() is not samples or _last[1] is not record:  # one launch is asked for several metrics of it in a row
        _last = weakref.ref(samples), record, _parts(record, samples)
    return _last[2]


_last: tuple[Callable[[], pd.DataFrame | None], Record | None, pd.DataFrame] = (lambda: None, None, pd.DataFrame())


def _parts(record: Record, samples: pd.DataFrame) -> pd.DataFrame:
    steps = timed(samples, "step").sort_values("start_ns")
    rows = timed(samples, ACTIVATIONS, *MAIN, "communication", "wait")
    steps = steps[steps["rank"].isin(rows["rank"].unique())]  # of a prediction for many ranks only the first ones' parts are kept
    busy, late, lasting = _spans(rows), _spans(_late(record, samples).assign(event="late")), _spans(steps.assign(event="step"))
    nothing = np.empty(0, np.int64), np.empty(0, np.int64)

    def of(rank: int, *names: str) -> Intervals:
        found = [busy.get((rank, name), nothing) for name in names]
        return np.concatenate([start for start, _ in found]), np.concatenate([end for _, end in found])

    totals = [
        _totals([*(of(rank, name) for name in (ACTIVATIONS, *MAIN)), late.get((rank, "late"), nothing), of(rank, "communication", "wait")], inside)
        for (rank, _), inside in lasting.items()
    ]  # fmt: skip
    if not totals:
        return pd.DataFrame(columns=["rank", "number", "step", *PARTS])
    found = pd.DataFrame(np.concatenate(totals), columns=list(_LABELS))
    steps = steps.sort_values("rank", kind="stable")
    whole = found.sum(axis=1)
    found["exposed_transfer"] += found[ACTIVATIONS]
    return found[list(PARTS)].assign(rank=steps["rank"].to_numpy(), number=steps["step"].to_numpy(), step=whole)


def _spans(rows: pd.DataFrame) -> dict[tuple[int, str], Intervals]:
    """Starts and ends by rank and event, ranks ascending, in the order of the rows; pandas takes a millisecond a group, and many ranks have many."""
    ranks, (codes, names) = rows["rank"].to_numpy(), pd.factorize(rows["event"])
    order = np.lexsort((codes, ranks))
    starts, ends, keys = rows["start_ns"].to_numpy()[order], rows["end_ns"].to_numpy()[order], ranks[order].astype(np.int64) * max(len(names), 1) + codes[order]
    edges = [0, *(np.flatnonzero(np.diff(keys)) + 1), len(keys)] if len(keys) else [0]
    return {
        (int(ranks[order[first]]), str(names[codes[order[first]]])): (starts[first:last], ends[first:last])
        for first, last in zip(edges, edges[1:], strict=False)
    }


def _totals(layers: list[Intervals], inside: Intervals) -> np.ndarray:
    """Of one rank: ns of each of _LABELS in each of its steps, which are in order."""
    edges, labels = label(layers, inside)
    kept = labels != OUTSIDE
    place = np.searchsorted(inside[0], edges[:-1][kept], side="right") - 1
    totals = np.zeros((len(inside[0]), len(_LABELS)), np.int64)
    np.add.at(totals, (place, labels[kept]), np.diff(edges)[kept])
    return totals


def _late(record: Record, samples: pd.DataFrame) -> pd.DataFrame:
    """Intervals in which a rank's all-reduce ran while another rank had not yet computed what it was to give; on the rank's own clock."""
    calls = _in_order(timed(samples, "communication"))
    ready = _in_order(timed(samples, "queue")).rename(columns={"start_ns": "ready_ns"})
    calls = calls.merge(ready[["rank", "step", "call", "ready_ns"]], how="left", on=["rank", "step", "call"])
    offset = clock_offsets(record, calls)
    # Without `queue` events the start of a call is when its rank was there.
    there = calls["ready_ns"].fillna(calls["start_ns"]).astype("int64") + offset
    same = there.groupby([calls["step"], calls["call"]])
    everyone = same.transform("size") == record.case.ranks
    until = np.minimum(same.transform("max") - offset, calls["end_ns"])
    found = calls.assign(end_ns=until)[everyone & (until > calls["start_ns"])]
    return found[["rank", "start_ns", "end_ns"]]


def _in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Numbered per rank and step in the order of their starts; ranks call in the same order."""
    rows = rows.sort_values(["rank", "step", "start_ns", "end_ns"])
    return rows.assign(call=rows.groupby(["rank", "step"]).cumcount())


def step_split(record: Record, samples: pd.DataFrame) -> dict[str, float] | None:
    """Mean s per step and rank of each of PARTS; they add up to the mean step."""
    table = step_parts(record, samples)
    return {part: float(table[part].mean()) / SECOND for part in PARTS} if len(table) else None


def split_metric(name: str, record: Record, samples: pd.DataFrame) -> float | None:
    """One of: PARTS with `_s`, `exposed_communication_s` (transfer and imbalance), `unexplained_share`. None where nothing was trained."""
    found = step_split(record, samples) if isinstance(record.case, TrainCase) and times_count(record) else None
    if found is None:
        return None
    values = {f"{part}_s": seconds for part, seconds in found.items()}
    values["exposed_communication_s"] = found["exposed_transfer"] + found["imbalance"]
    total = sum(found.values())
    return (values | ({"unexplained_share": found["other"] / total} if total else {})).get(name)
