"""Where the time of a training step goes: every moment of a step belongs to one part, by interval union, per rank and
step (docs/decomposition.md)."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from scaleproof.claims import replica_split
from scaleproof.claims.finished_launch import SECOND, of_workers, times_count
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, MakeUp, Wanted, events, possible
from scaleproof.claims.sample_columns import Columns, columns, of_last_launch
from scaleproof.claims.step_layers import NOTHING, joined, late, spans, totals
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import TrainCase
from scaleproof.stats.interval_union import Intervals

MAIN = replica_split.MAIN
PARTS = ("input", "forward", "backward", "exposed_transfer", "imbalance", "update", "other")
"""All parts of a step of ranks in lockstep, in the order in which they are shown."""
OF_REPLICAS = (*replica_split.WAITS, replica_split.DELAYED)
"""Parts that only steps of ranks at their own pace have."""
COMMUNICATION = ("exposed_transfer", "imbalance", *replica_split.WAITS)
"""Parts in which a rank exchanges, or waits for others, and does nothing else."""
ACTIVATIONS = "activations"
"""Within a pass: the main thread waits for activations of other ranks (strategy hybrid)."""
_LABELS = (ACTIVATIONS, *MAIN, "imbalance", "exposed_transfer", "other")
UNEXPLAINED = 0.05
"""Share of the step that `other` may have; above, the split is flagged."""


def parts_of(record: Record) -> tuple[str, ...]:
    """The parts of a launch's steps."""
    case = record.case
    return replica_split.PARTS if isinstance(case, TrainCase) and case.replicas is not None else PARTS


@of_last_launch
def part_arrays(record: Record, samples: pd.DataFrame) -> dict[str, np.ndarray]:
    """Per rank and timed step, in ns: `step` and `parts_of` it, which add up to it exactly, with `rank` and `number`,
    and the sum of COMMUNICATION as `communication`. Empty where nothing was trained. Callers must not change the
    arrays."""
    rows, names = columns(record, samples), parts_of(record)
    case = record.case
    if names is replica_split.PARTS and isinstance(case, TrainCase):
        layers = replica_split.layers_of(record, case, rows)
        steps = of_workers(record, samples, rows.timed("step"))
        labels: tuple[str, ...] = replica_split.LABELS
    else:
        layers, steps = _layers(record, rows)
        labels = _LABELS
    steps = steps[np.lexsort((rows.start[steps], rows.rank[steps]))]
    of_ranks = [
        totals(layers.get(rank, [NOTHING] * (len(labels) - 1)), inside)
        for (rank, _), inside in spans(rows, steps).items()
    ]
    if not of_ranks:
        return {name: np.empty(0, np.int64) for name in (*names, "rank", "number", "step", "communication")}
    by_label = dict(zip(labels, np.concatenate(of_ranks).T, strict=True))
    step_ns = np.sum(list(by_label.values()), axis=0)
    if ACTIVATIONS in by_label:
        by_label["exposed_transfer"] = by_label["exposed_transfer"] + by_label[ACTIVATIONS]
    exchanged = np.sum([by_label[part] for part in COMMUNICATION if part in names], axis=0)
    of_steps = {"rank": rows.rank[steps], "number": rows.step[steps], "step": step_ns, "communication": exchanged}
    return {part: by_label[part] for part in names} | of_steps


def _layers(record: Record, rows: Columns) -> tuple[dict[int, list[Intervals]], np.ndarray]:
    """Of ranks in lockstep: intervals of _LABELS but the last, by rank, and the steps that have parts."""
    steps, parts = rows.timed("step"), rows.timed(ACTIVATIONS, *MAIN, "communication", "wait")
    # A prediction for many ranks keeps the parts of the first ranks only.
    steps = steps[np.isin(rows.rank[steps], rows.rank[parts])]
    by_event, arriving_late = spans(rows, parts), late(record, rows, "communication")

    def of(rank: int, *names: str) -> Intervals:
        return joined([by_event.get((rank, name), NOTHING) for name in names])

    return {
        rank: [
            *(of(rank, name) for name in (ACTIVATIONS, *MAIN)),
            arriving_late.get(rank, NOTHING),
            of(rank, "communication", "wait"),
        ]
        for rank in np.unique(rows.rank[steps]).tolist()
    }, steps


@of_last_launch
def step_split(record: Record, samples: pd.DataFrame) -> dict[str, float] | None:
    """Mean s per step and rank of each of `parts_of` the launch; they add up to the mean step."""
    parts = part_arrays(record, samples)
    if not len(parts["step"]):
        return None
    return {part: float(parts[part].mean()) / SECOND for part in parts_of(record)}


def split_metric(name: str, record: Record, samples: pd.DataFrame) -> float | None:
    """One of: `parts_of` a launch with `_s`, `exposed_communication_s` (the sum of COMMUNICATION), `unexplained_share`.
    None where nothing was trained, or for a part that its steps do not have."""
    split = step_split(record, samples) if isinstance(record.case, TrainCase) and times_count(record) else None
    if split is None:
        return None
    values = {f"{part}_s": seconds for part, seconds in split.items()}
    values["exposed_communication_s"] = sum(split.get(part, 0.0) for part in COMMUNICATION)
    total = sum(split.values())
    return (values | ({"unexplained_share": split["other"] / total} if total else {})).get(name)


def making(name: str) -> MakeUp:
    """Launches in which a metric of `split_metric` has the wanted value."""
    if name.removesuffix("_s") in OF_REPLICAS:
        return replica_split.making(name.removesuffix("_s"))
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


PAGES: dict[str, str] = {
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
PAGES |= replica_split.PAGES
