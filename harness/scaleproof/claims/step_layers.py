"""Intervals of a launch's events by rank, and the time of each step by the first interval that covers it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scaleproof.claims.calls_in_order import calls_in_order
from scaleproof.claims.sample_columns import Columns, index_in_group, largest_by_row, numbered, offsets_of
from scaleproof.core.record_schema import Record
from scaleproof.stats.interval_union import OUTSIDE, Intervals, label

NOTHING: Intervals = (np.empty(0, np.int64), np.empty(0, np.int64))


def joined(intervals: Sequence[Intervals]) -> Intervals:
    """Several lists of intervals as one."""
    if not intervals:
        return NOTHING
    return np.concatenate([start for start, _ in intervals]), np.concatenate([end for _, end in intervals])


def spans(rows: Columns, chosen: np.ndarray) -> dict[tuple[int, str], Intervals]:
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


def totals(layers: list[Intervals], inside: Intervals) -> np.ndarray:
    """Of one rank: ns of each layer, and of none of them, in each of its steps, which are in order."""
    edges, labels = label(layers, inside)
    in_steps = labels != OUTSIDE
    step_index = np.searchsorted(inside[0], edges[:-1][in_steps], side="right") - 1
    found = np.zeros((len(inside[0]), len(layers) + 1), np.int64)
    np.add.at(found, (step_index, labels[in_steps]), np.diff(edges)[in_steps])
    return found


def late(record: Record, rows: Columns, *events: str) -> dict[int, Intervals]:
    """By rank, intervals in which its all-reduce ran while another rank had not yet computed its part; on the rank's
    own clock. `events`: of all-reduces."""
    calls, ready = calls_in_order(rows, rows.timed(*events), rows.timed("queue"))
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
    waits = (together == record.case.ranks) & (until > rows.start[calls])
    calls, until = calls[waits], until[waits]
    return {
        int(rank): (rows.start[calls[rows.rank[calls] == rank]], until[rows.rank[calls] == rank])
        for rank in np.unique(rows.rank[calls])
    }
