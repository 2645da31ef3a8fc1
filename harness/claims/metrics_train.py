"""Per-launch metrics of `train`: throughput over the common wall time, where a step's time goes, and how well it learned."""

from __future__ import annotations

import numpy as np
import pandas as pd

from harness.claims.launch import timed
from harness.record.schema import Record
from harness.spec.case import TrainCase
from harness.stats.union import uncovered_length, union_length

SECOND = 1e9
"""Nanoseconds."""
PARTS = ("input", "forward", "backward", "update")


def wall_s(samples: pd.DataFrame, ranks: int) -> float | None:
    """Common wall time of the timed region in s: last end minus first start over all ranks; None when a rank lacks one of them."""
    starts, ends = timed(samples, "start"), timed(samples, "end")
    if starts["rank"].nunique() < ranks or ends["rank"].nunique() < ranks:
        return None
    return float(ends["end_ns"].max() - starts["start_ns"].min()) / SECOND


def throughput(record: Record, samples: pd.DataFrame) -> float | None:
    """Samples per s: those of all ranks over the common wall time, never one rank's times the number of ranks."""
    case = record.case
    if not isinstance(case, TrainCase):
        return None
    wall = wall_s(samples, case.ranks)
    trained = len(timed(samples, "step")) * (case.minibatch // case.ranks)
    return trained / wall if wall and trained else None


def step_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Median over steps of the slowest rank's step, in s."""
    steps = timed(samples, "step")
    if steps.empty:
        return None
    slowest = (steps["end_ns"] - steps["start_ns"]).groupby(steps["step"]).max()
    return float(slowest.median()) / SECOND


def step_split(samples: pd.DataFrame) -> dict[str, float] | None:
    """Mean s per step and rank of each part, `exposed_communication` and `other`; they add up to the mean step.

    Exposed: the union of communication outside the union of the parts. Steps do not overlap on a rank, so the unions are taken over all steps at once.
    """
    steps = timed(samples, "step")
    if steps.empty:
        return None
    rows = timed(samples, "step", "communication", *PARTS)
    ranks, events, starts, ends = (rows[column].to_numpy() for column in ("rank", "event", "start_ns", "end_ns"))
    total = dict.fromkeys((*PARTS, "exposed_communication", "other"), 0.0)
    for rank in np.unique(ranks):

        def of(*names: str, mine: np.ndarray = ranks == rank) -> tuple[np.ndarray, np.ndarray]:
            chosen = mine & np.isin(events, names)
            return starts[chosen], ends[chosen]

        for part in PARTS:
            total[part] += union_length(*of(part))
        total["exposed_communication"] += uncovered_length(*of("communication"), *of(*PARTS))
        total["other"] += uncovered_length(*of("step"), *of("communication", *PARTS))
    return {part: nanoseconds / SECOND / len(steps) for part, nanoseconds in total.items()}


def _part(name: str, samples: pd.DataFrame) -> float | None:
    split = step_split(samples)
    return split[name] if split else None


def input_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Mean s per step spent making the batch."""
    return _part("input", samples)


def forward_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Mean s per step of the forward pass."""
    return _part("forward", samples)


def backward_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Mean s per step of the backward pass."""
    return _part("backward", samples)


def update_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Mean s per step of the optimiser."""
    return _part("update", samples)


def forward_throughput(record: Record, samples: pd.DataFrame) -> float | None:
    """Samples per s of the forward pass alone; of one rank only, since ranks run their forward passes at different times."""
    case, split = record.case, step_split(samples)
    if not isinstance(case, TrainCase) or case.ranks != 1 or not split or not split["forward"]:
        return None
    return case.minibatch / split["forward"]


def exposed_communication_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Mean s per step in which a rank communicates and does nothing else."""
    return _part("exposed_communication", samples)


def other_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Mean s per step that no event explains."""
    return _part("other", samples)


def final_loss(record: Record, samples: pd.DataFrame) -> float | None:
    """Mean loss over the global minibatch of the last step."""
    losses = timed(samples, "loss")
    return float(losses.loc[losses["step"].idxmax(), "value"]) if len(losses) else None


def test_accuracy(record: Record, samples: pd.DataFrame) -> float | None:
    """Share of test samples that the last evaluation got right."""
    found = samples[samples["event"] == "test_accuracy"]
    return float(found.loc[found["step"].idxmax(), "value"]) if len(found) else None
