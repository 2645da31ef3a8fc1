"""What a launch of programs/all_reduce.py measured: its ping-pong, and its all-reduces."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import SECOND, timed, times_count
from scaleproof.claims.made_up import Event, MadeUp
from scaleproof.core.record_schema import Record
from scaleproof.simulate.alpha_beta_fit import fit_line

from .formulas import Costs

LINE = Costs(1e-4, 8e-9)
"""Of made-up ping-pongs: latency and rate weigh equally at 12.5 KB, as on the links of experiment `calls`."""


def calls(record: Record, samples: pd.DataFrame) -> dict[int, float]:
    """s of an all-reduce by the bytes of its array: median over calls of the slowest rank. Empty where times do not
    count."""
    return _medians(record, samples, "all_reduce")


def ways(record: Record, samples: pd.DataFrame) -> dict[int, float]:
    """s of one way of a ping-pong by its bytes: half of the median round trip. Empty where times do not count."""
    return {nbytes: seconds / 2 for nbytes, seconds in _medians(record, samples, "transfer").items()}


def _medians(record: Record, samples: pd.DataFrame, event: str) -> dict[int, float]:
    if not times_count(record):
        return {}
    rows = timed(samples, event)
    took = (rows["end_ns"] - rows["start_ns"]).groupby([rows["nbytes"], rows["step"]]).max()
    medians = took.groupby(level=0).median() / SECOND
    return {int(nbytes): float(seconds) for nbytes, seconds in medians.items()}


def costs(record: Record, samples: pd.DataFrame) -> Costs | None:
    """a and b of the line a + b n through the ping-pong, by least squares of relative errors; None with one size or
    none."""
    one_way = ways(record, samples)
    if len(one_way) < 2:
        return None
    return Costs(*fit_line(np.array(list(one_way), float), np.array(list(one_way.values()))))


def made_up(reduced: dict[int, float], sizes: tuple[int, ...]) -> MadeUp:
    """A launch whose ping-pong lies on LINE and whose all-reduces take so many s."""
    round_trips = [Event("transfer", 0.0, 2 * (LINE.a + LINE.b * n), ranks=(0,), nbytes=n) for n in sizes]
    return MadeUp((*round_trips, *(Event("all_reduce", 0.0, took, nbytes=n) for n, took in reduced.items())))
