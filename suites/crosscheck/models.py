"""What only this suite needs: one number per launch from a tool's output or from our own record, in the same unit and
by the same arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import timed, wall_s
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import OwnCase, TrainCase

SECOND = 1e9
GIGA = 1e9


def said(samples: pd.DataFrame, event: str, nbytes: int | None = None) -> float | None:
    """What a tool said of itself (the event's value), at a message size."""
    rows = timed(samples, event)
    if nbytes is not None:
        rows = rows[rows["nbytes"] == nbytes]
    return float(rows["value"].median()) if len(rows) else None


def stream_bandwidth(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """GB/s of a one-way stream: bytes over the time from the sender's first to the receiver's last."""
    rows = timed(samples, "stream")
    if rows.empty or getattr(record.case, "sizes", ())[:1] != (nbytes,):
        return said(samples, "bandwidth", nbytes)
    return float(rows["nbytes"].max() / (rows["end_ns"].max() - rows["start_ns"].min()) * SECOND / GIGA)


def one_way_mean(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """Mean s of half a round trip: mpi4py.bench and osu_latency print means, so ours is one too."""
    rows = timed(samples, "transfer")
    rows = rows[rows["nbytes"] == nbytes]
    if rows.empty:
        return said(samples, "one_way", nbytes)
    return float((rows["end_ns"] - rows["start_ns"]).mean() / 2 / SECOND)


def one_way_bandwidth(record: Record, samples: pd.DataFrame, nbytes: int) -> float | None:
    """GB/s of a message of that size on its way."""
    time_s = one_way_mean(record, samples, nbytes)
    return nbytes / time_s / GIGA if time_s else None


def training_rate(record: Record, samples: pd.DataFrame) -> float | None:
    """Samples per s: as the tool says, else those of all ranks over the common wall time."""
    rate = said(samples, "rate")
    return rate if rate is not None else common_wall_rate(record, samples)


def common_wall_rate(record: Record, samples: pd.DataFrame) -> float | None:
    """Samples of all ranks over the time from the first start to the last end."""
    done, wall = _done(record, samples), wall_s(record, samples)
    return float(done["samples"].sum()) / wall if wall and len(done) else None


def rank0_rate(record: Record, samples: pd.DataFrame) -> float | None:
    """Rank 0's samples over the time of its steps, times the number of ranks: Horovod's synthetic benchmarks with one
    round."""
    mine = _done(record, samples).query("rank == 0")
    if mine.empty:
        return None
    took = (mine["end_ns"].max() - mine["start_ns"].min()) / SECOND
    return float(mine["samples"].sum() / took) * record.case.ranks


def rank0_excess(record: Record, samples: pd.DataFrame) -> float | None:
    """Rank-0-times-N over samples-over-common-wall-time, of the same launch."""
    rank0, common = rank0_rate(record, samples), common_wall_rate(record, samples)
    return rank0 / common if rank0 and common else None


def rank0_over_known(record: Record, samples: pd.DataFrame) -> float | None:
    """Rank-0-times-N over the rate that the pace sets."""
    rate, known = rank0_rate(record, samples), known_rate(record)
    return rate / known if rate and known else None


def common_wall_over_known(record: Record, samples: pd.DataFrame) -> float | None:
    """Samples-over-common-wall-time over the rate that the pace sets."""
    rate, known = common_wall_rate(record, samples), known_rate(record)
    return rate / known if rate and known else None


def known_rate(record: Record) -> float | None:
    """Samples per s of a paced case: all ranks' samples over the time of the slowest rank."""
    options = _options(record)
    if "pace_ms_0" not in options:
        return None
    ranks = range(record.case.ranks)
    slowest_s = max(float(options[f"pace_ms_{rank}"]) for rank in ranks) / 1e3
    return float(sum(float(options[f"samples_{rank}"]) for rank in ranks)) / slowest_s


def launch_wall_ratio(record: Record, samples: pd.DataFrame) -> float | None:
    """Wall time of the inner launch: the tool's over our record's."""
    return _ratio(samples, "wall")


def launch_cpu_ratio(record: Record, samples: pd.DataFrame) -> float | None:
    """Processor time of the inner launch: the tool's over our record's."""
    return _ratio(samples, "cpu")


def launch_cpu_added_ratio(record: Record, samples: pd.DataFrame) -> float | None:
    """The same for what the busy inner launch used more than the idle one: the cost of starting drops out."""
    added = {side: _value(samples, f"{side}_cpu", 1) - _value(samples, f"{side}_cpu", 0) for side in ("tool", "record")}
    return added["tool"] / added["record"] if added["record"] > 0 else None


def launch_start_cpu_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Processor s of an idle inner launch that our record leaves out: interpreter, imports, and what follows a rank's
    last words."""
    missing = _value(samples, "tool_cpu", 0) - _value(samples, "record_cpu", 0)
    return missing if np.isfinite(missing) else None


def _ratio(samples: pd.DataFrame, what: str) -> float | None:
    tool, ours = _value(samples, f"tool_{what}", 1), _value(samples, f"record_{what}", 1)
    return tool / ours if ours > 0 else None


def _value(samples: pd.DataFrame, event: str, step: int) -> float:
    rows = timed(samples, event)
    found = rows.loc[rows["step"] == step, "value"]
    return float(found.iloc[0]) if len(found) else float("nan")


def _done(record: Record, samples: pd.DataFrame) -> pd.DataFrame:
    """Timed steps with their number of samples."""
    rows = timed(samples, "step").copy()
    case = record.case
    rows["samples"] = case.minibatch // case.ranks if isinstance(case, TrainCase) else rows["value"]
    return rows


def _options(record: Record) -> dict[str, Any]:
    return dict(record.case.options) if isinstance(record.case, OwnCase) else {}


METRICS = [
    Metric("stream_bandwidth", "GB/s", "higher", size=stream_bandwidth),
    Metric("one_way_mean", "s", "lower", size=one_way_mean),
    Metric("one_way_bandwidth", "GB/s", "higher", size=one_way_bandwidth),
    Metric("training_rate", "samples/s", "higher", launch=training_rate),
    Metric("rank0_excess", "1", None, launch=rank0_excess),
    Metric("rank0_over_known", "1", None, launch=rank0_over_known),
    Metric("common_wall_over_known", "1", None, launch=common_wall_over_known),
    Metric("launch_wall_ratio", "1", None, launch=launch_wall_ratio, clocked=True),
    Metric("launch_cpu_ratio", "1", None, launch=launch_cpu_ratio, clocked=True),
    Metric("launch_cpu_added_ratio", "1", None, launch=launch_cpu_added_ratio, clocked=True),
    Metric("launch_start_cpu_s", "s", "lower", launch=launch_start_cpu_s),
]
