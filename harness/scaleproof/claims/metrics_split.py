"""Where the time of a training step goes: every moment of a step belongs to one part, by interval union, per rank and
step (docs/decomposition.md)."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from scaleproof.claims.calls_in_order import calls_in_order
from scaleproof.claims.finished_launch import SECOND, times_count
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, MakeUp, Wanted, events, possible
from scaleproof.claims.sample_columns import (
    Columns,
    columns,
    index_in_group,
    largest_by_row,
    numbered,
    of_last_launch,
    offsets_of,
)
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import TrainCase
from scaleproof.stats.interval_union import OUTSIDE, Intervals, label

MAIN = ("forward", "backward", "update", "input")
"""Parts on the main thread; a moment of two of them belongs to the first."""
PARTS = ("input", "forward", "backward", "exposed_transfer", "imbalance", "update", "other")
"""All parts of a step, in the order in which they are shown."""
ACTIVATIONS = "activations"
"""Within a pass: the main thread waits for activations of other ranks (strategy hybrid)."""
_LABELS = (ACTIVATIONS, *MAIN, "imbalance", "exposed_transfer", "other")
UNEXPLAINED = 0.05
"""Share of the step that `other` may have; above, the split is flagged."""


@of_last_launch
def part_arrays(record: Record, samples: pd.DataFrame) -> dict[str, np.ndarray]:
    """Per rank and timed step, in ns: `step` and PARTS, which add up to it exactly, with `rank` and `number`. Empty
    where nothing was trained. Callers must not change the arrays."""
    rows = columns(record, samples)
    steps = rows.timed("step")
    parts = rows.timed(ACTIVATIONS, *MAIN, "communication", "wait")
    # A prediction for many ranks keeps the parts of the first ranks only.
    steps = steps[np.isin(rows.rank[steps], rows.rank[parts])]
    steps = steps[np.lexsort((rows.start[steps], rows.rank[steps]))]
    spans, late, step_spans = _spans(rows, parts), _late(record, rows), _spans(rows, steps)
    empty = np.empty(0, np.int64), np.empty(0, np.int64)

    def of(rank: int, *names: str) -> Intervals:
        intervals = [spans.get((rank, name), empty) for name in names]
        return np.concatenate([start for start, _ in intervals]), np.concatenate([end for _, end in intervals])

    totals = []
    for (rank, _), inside in step_spans.items():
        on_main_thread = [of(rank, name) for name in (ACTIVATIONS, *MAIN)]
        layers = [*on_main_thread, late.get(rank, empty), of(rank, "communication", "wait")]
        totals.append(_totals(layers, inside))
    if not totals:
        return {name: np.empty(0, np.int64) for name in (*PARTS, "rank", "number", "step")}
    by_label = dict(zip(_LABELS, np.concatenate(totals).T, strict=True))
    step_ns = np.sum(list(by_label.values()), axis=0)
    by_label["exposed_transfer"] = by_label["exposed_transfer"] + by_label[ACTIVATIONS]
    of_steps = {"rank": rows.rank[steps], "number": rows.step[steps], "step": step_ns}
    return {part: by_label[part] for part in PARTS} | of_steps


def _spans(rows: Columns, chosen: np.ndarray) -> dict[tuple[int, str], Intervals]:
    """Starts and ends by rank and event, ranks ascending, in the order of the rows."""
    names = {code: name for name, code in rows.names.items()}
    chosen = chosen[np.lexsort((rows.codes[chosen], rows.rank[chosen]))]
    group = numbered(rows.rank[chosen], rows.codes[chosen])
    edges = [0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), len(group)] if len(group) else [0]
    return {
        (int(rows.rank[chosen[first]]), names[int(rows.codes[chosen[first]])]): (
            rows.start[chosen[first:last]],
            rows.end[chosen[first:last]],
        )
        for first, last in zip(edges, edges[1:], strict=False)
    }


def _totals(layers: list[Intervals], inside: Intervals) -> np.ndarray:
    """Of one rank: ns of each of _LABELS in each of its steps, which are in order."""
    edges, labels = label(layers, inside)
    in_steps = labels != OUTSIDE
    step_index = np.searchsorted(inside[0], edges[:-1][in_steps], side="right") - 1
    totals = np.zeros((len(inside[0]), len(_LABELS)), np.int64)
    np.add.at(totals, (step_index, labels[in_steps]), np.diff(edges)[in_steps])
    return totals


def _late(record: Record, rows: Columns) -> dict[int, Intervals]:
    """By rank, intervals in which its all-reduce ran while another rank had not yet computed its part; on the rank's
    own clock."""
    calls, ready = calls_in_order(rows, rows.timed("communication"), rows.timed("queue"))
    both = np.concatenate((calls, ready))
    ranks, steps = rows.rank[both], rows.step[both]
    call = index_in_group(numbered(np.repeat([0, 1], [len(calls), len(ready)]), ranks, steps))
    same, among = numbered(ranks, steps, call), numbered(steps, call)[: len(calls)]
    # Without `queue` events a rank arrives at the start of its call.
    arrival = rows.start[calls].astype(np.int64)
    _, mine, theirs = np.intersect1d(same[: len(calls)], same[len(calls) :], assume_unique=True, return_indices=True)
    arrival[mine] = rows.start[ready[theirs]]
    offset = offsets_of(record, ranks[: len(calls)])
    arrival += offset
    last, together = largest_by_row(among, arrival)
    until = np.minimum(last - offset, rows.end[calls])
    late = (together == record.case.ranks) & (until > rows.start[calls])
    calls, until = calls[late], until[late]
    return {
        int(rank): (rows.start[calls[rows.rank[calls] == rank]], until[rows.rank[calls] == rank])
        for rank in np.unique(rows.rank[calls])
    }


@of_last_launch
def step_split(record: Record, samples: pd.DataFrame) -> dict[str, float] | None:
    """Mean s per step and rank of each of PARTS; they add up to the mean step."""
    parts = part_arrays(record, samples)
    return {part: float(parts[part].mean()) / SECOND for part in PARTS} if len(parts["step"]) else None


def split_metric(name: str, record: Record, samples: pd.DataFrame) -> float | None:
    """One of: PARTS with `_s`, `exposed_communication_s` (transfer and imbalance), `unexplained_share`. None where
    nothing was trained."""
    split = step_split(record, samples) if isinstance(record.case, TrainCase) and times_count(record) else None
    if split is None:
        return None
    values = {f"{part}_s": seconds for part, seconds in split.items()}
    values["exposed_communication_s"] = split["exposed_transfer"] + split["imbalance"]
    total = sum(split.values())
    return (values | ({"unexplained_share": split["other"] / total} if total else {})).get(name)


def making(name: str) -> MakeUp:
    """Launches in which a metric of `split_metric` has the wanted value."""
    return partial(_making, name=name)


def _making(wanted: Wanted, name: str) -> MadeUp:
    value, ranks = possible(wanted.known), wanted.case.ranks
    if name == "unexplained_share":
        return events(Event("step", 0.0, 1.0), Event("forward", 0.0, 1.0 - possible(value, 0, 1)))
    part = name.removesuffix("_s")
    if part in MAIN or part == "other":
        took = Event("forward") if part == "other" else Event(part, 0.0, value)
        return events(Event("step", 0.0, value), took)
    if part != "imbalance":  # all ranks exchange at the same time
        return events(Event("step", 0.0, 1.0 + value), Event("communication", 0.0, value))
    if ranks < 2:
        raise ImpossibleValue("one rank has no imbalance")
    arrival = Event("queue", value, value, ranks=(ranks - 1,))  # for which all ranks wait
    return events(Event("step", 0.0, 1.0 + value), Event("communication", 0.0, value), arrival)


PAGES = {
    "input_s": """
        input_s = time inside `input` intervals / steps, over all ranks

        The time in which the main thread makes or slices the batch. It is a mean per step and rank, because only means
        of parts add up to the mean of the whole. Warm-up steps are in the record and not included here.
        """,
    "forward_s": """
        forward_s = time inside `forward` intervals / steps, over all ranks

        It is a mean per step and rank, because only means of parts add up to the mean of the whole. Warm-up steps are
        in the record and not included here.
        """,
    "backward_s": """
        backward_s = time inside `backward` intervals / steps, over all ranks

        It is a mean per step and rank, because only means of parts add up to the mean of the whole. This part may grow
        when an exchange runs at the same time: if cores are few, the communication thread takes turns with the compute
        thread. Warm-up steps are in the record and not included here.
        """,
    "exposed_transfer_s": """
        exposed_transfer_s = exposed_communication_s - imbalance_s

        The time of the exchange itself during which nothing else of the step runs. All ranks have arrived, and bytes
        are moved, reduced, or handed from one thread to the next. A faster network or a better overlap can reduce this
        time. Definitions and limits: docs/decomposition.md.
        """,
    "imbalance_s": """
        imbalance_s = time per step in which a rank's all-reduce runs, nothing else of its step runs, and some other
        rank has not yet computed the gradients of that bucket

        It is a mean over timed steps and ranks. A rank arrives when its last gradient of a bucket is complete (start of
        its `queue` event), on rank 0's clock. If a bucket only waits for its turn in another rank's communication
        thread, the time counts as transfer, not as imbalance. Ranks that are equally late give 0. The last rank's own
        imbalance is 0 for that bucket. No network can shorten this part. Formula and limits: docs/decomposition.md.
        """,
    "update_s": """
        update_s = time inside `update` intervals / steps, over all ranks

        The time of the optimiser's step. It is a mean per step and rank, because only means of parts add up to the mean
        of the whole. Warm-up steps are in the record and not included here.
        """,
    "other_s": """
        other_s = time of a step in which none of its parts runs, mean over timed steps and ranks

        This is the time that no event explains: the interpreter between the parts, reports to the supervisor about the
        next operation, a process that lost its core between two parts. With this part the split is complete, to the
        nanosecond:

            input + forward + backward + exposed transfer + imbalance + update + other = step

        [unexplained_share](unexplained_share.md) is this time over the step. Warm-up steps are in the record and not
        included here.
        """,
    "exposed_communication_s": """
        Time of a step in which a rank communicates and does nothing else.

            exposed = |(C or W) and S| - |(C or W) and S and M|
                      per rank, over all timed steps; then / steps, mean over ranks
            C = union of `communication`, W = union of `wait`, S = union of `step`,
            M = union of input, forward, backward, update

        This is the time in which a rank communicates, or waits for its communication thread, while no other event of
        the step runs. It is computed from unions of intervals, never from sums: buckets that are under way at the same
        time count once, and communication that is hidden behind the backward pass does not count. It is
        [exposed_transfer_s](exposed_transfer_s.md) + [imbalance_s](imbalance_s.md). Warm-up steps are in the record and
        not included here.

        Pitfalls: hidden communication is not free when it shares cores with compute (see also
        [backward_s](backward_s.md)). The control arm `alone` has exactly 0.
        """,
}
"""Text of the metrics' pages in docs/metrics/, of those that `split_metric` gives under several names."""
