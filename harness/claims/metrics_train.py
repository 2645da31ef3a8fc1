"""Per-launch metrics of `train`: throughput over the common wall time, first use, and how well it learned."""

from __future__ import annotations

import pandas as pd

from harness.claims.launch import SECOND, timed, times_count, wall_s
from harness.claims.metrics_split import step_split
from harness.record.schema import Record
from harness.spec.case import TrainCase


def throughput(record: Record, samples: pd.DataFrame) -> float | None:
    """Samples per s: those of all ranks over the common wall time, never one rank's times the number of ranks."""
    case = record.case
    if not isinstance(case, TrainCase) or case.compute == "none" or not times_count(record):
        return None  # steps that compute nothing train nothing
    wall = wall_s(record, samples)
    trained = len(timed(samples, "step")) * (case.minibatch // case.ranks)
    return trained / wall if wall and trained else None


def step_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Median over steps of the slowest rank's step, in s."""
    steps = timed(samples, "step")
    if steps.empty or not times_count(record):
        return None
    slowest = (steps["end_ns"] - steps["start_ns"]).groupby(steps["step"]).max()
    return float(slowest.median()) / SECOND


def forward_throughput(record: Record, samples: pd.DataFrame) -> float | None:
    """Samples per s of the forward pass alone; of one rank only, since ranks run their forward passes at different times."""
    case = record.case
    if not isinstance(case, TrainCase) or case.ranks != 1 or not times_count(record):
        return None
    split = step_split(record, samples)
    return case.minibatch / split["forward"] if split and split["forward"] else None


def first_step_s(record: Record, samples: pd.DataFrame) -> float | None:
    """What the first step costs above a steady one, in s: memory touched and buffers registered for the first time. Only where it is warm-up."""
    first = samples[(samples["event"] == "step") & samples["warmup"] & (samples["step"] == 0)]
    steady = step_s(record, samples)
    return float((first["end_ns"] - first["start_ns"]).max()) / SECOND - steady if len(first) and steady is not None else None


def first_exchange_s(record: Record, samples: pd.DataFrame) -> float | None:
    """What the first all-reduce of each bucket costs above its steady median, in s: summed over buckets, of the rank where that is most."""
    if not times_count(record):
        return None
    calls = samples[samples["event"] == "communication"].sort_values(["rank", "step", "start_ns"])
    calls = calls.assign(bucket=calls.groupby(["rank", "step"]).cumcount(), length=calls["end_ns"] - calls["start_ns"])
    first = calls[calls["warmup"] & (calls["step"] == 0)].set_index(["rank", "bucket"])["length"]
    steady = calls[~calls["warmup"]].groupby(["rank", "bucket"])["length"].median()
    above = (first - steady).dropna()
    return float(above.groupby("rank").sum().max()) / SECOND if len(above) else None


def final_loss(record: Record, samples: pd.DataFrame) -> float | None:
    """Mean loss over the global minibatch of the last step."""
    losses = timed(samples, "loss")
    return float(losses.loc[losses["step"].idxmax(), "value"]) if len(losses) else None


def test_accuracy(record: Record, samples: pd.DataFrame) -> float | None:
    """Share of test samples that the last evaluation got right."""
    found = samples[samples["event"] == "test_accuracy"]
    return float(found.loc[found["step"].idxmax(), "value"]) if len(found) else None
