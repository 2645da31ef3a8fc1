"""Dilation and shrink are undone where samples are read, so that no metric has to know them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaleproof.claims.metrics import PER_LAUNCH
from scaleproof.claims.metrics_sizes import by_size
from scaleproof.core.record_schema import SAMPLES, Clock, Record
from scaleproof.record.store import Store, as_emulated
from tests.short_form import case_from
from tests.unit.claims.claims_samples import record

KNOBS = st.tuples(st.integers(1, 64), st.sampled_from([1.0, 1.5, 4.0, 16.0, 37.0]))
TRAIN: dict[str, Any] = {
    "suite": "s",
    "experiment": "e",
    "arm": "a",
    "program": "train",
    "ranks": 2,
    "transport": "tcp",
    "collective": "ring",
    "strategy": "sync_overlap",
    "workload": "cd_dnn",
    "minibatch": 8,
    "steps": 3,
    "fabric": "netns",
    "compute": "replay",
}
COLLECTIVE: dict[str, Any] = {
    "suite": "s",
    "experiment": "e",
    "arm": "a",
    "program": "collective",
    "ranks": 2,
    "transport": "tcp",
    "collective": "ring",
    "fabric": "netns",
    "sizes": [16 * 3 * 37 * 64],
}


def rows(start: int, lengths: list[int], nbytes: int, events: tuple[str, ...]) -> pd.DataFrame:
    """Steps one after the other on two ranks, with events inside them; times in units that stay whole ns under any
    dilation."""
    events_of_ranks, at = list[tuple[Any, ...]](), start
    for number, length in enumerate(lengths):
        for rank in range(2):
            events_of_ranks += [(rank, "step", number, False, at, at + 8 * length, 0, np.nan)]
            events_of_ranks += [
                (rank, event, number, False, at + slot * length, at + (slot + 1) * length, nbytes, np.nan)
                for slot, event in enumerate(events)
            ]
        at += 8 * length
    for rank in range(2):
        events_of_ranks += [
            (rank, "start", 0, False, start, start, 0, np.nan),
            (rank, "end", len(lengths) - 1, False, at, at, 0, np.nan),
        ]
    return pd.DataFrame(events_of_ranks, columns=list(SAMPLES.names))


def as_table(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame.astype({"event": "category"}), preserve_index=False).cast(SAMPLES)


def slowed(frame: pd.DataFrame, dilation: float, shrink: float) -> pd.DataFrame:
    """The same samples as a dilated and shrunk launch records them."""
    return frame.assign(
        start_ns=(frame["start_ns"] * dilation).astype("int64"),
        end_ns=(frame["end_ns"] * dilation).astype("int64"),
        nbytes=(frame["nbytes"] / shrink).round().astype("int64"),
    )


def values(launch: Record, frame: pd.DataFrame) -> dict[str, float]:
    metric_values = {name: metric(launch, frame) for name, metric in PER_LAUNCH.items()}
    return {name: value for name, value in metric_values.items() if value is not None}


@given(
    KNOBS,
    st.lists(st.integers(10**6, 10**9).map(lambda length: 2 * length), min_size=2, max_size=4),
    st.integers(0, 10**6),
)
@settings(max_examples=30, deadline=None)
def test_every_metric_of_a_training_is_that_of_the_launch_that_was_not_slowed(
    knobs: tuple[float, float], lengths: list[int], offset: int
) -> None:
    dilation, shrink = knobs
    plain = rows(10**12, lengths, 64 * 16 * 37 * 3, ("forward", "backward", "communication", "update"))
    clocks = [Clock(rank=0, offset_ns=0, uncertainty_ns=1), Clock(rank=1, offset_ns=offset, uncertainty_ns=1)]
    apart = [clocks[0], clocks[1].model_copy(update={"offset_ns": int(offset * dilation)})]
    base, launch = record(TRAIN, clocks=clocks), record({**TRAIN, "dilation": dilation, "shrink": shrink}, clocks=apart)
    back = as_emulated(launch.case, as_table(slowed(plain, dilation, shrink))).to_pandas()
    expected = values(base, as_table(plain).to_pandas())
    assert {"throughput", "step_s", "forward_s", "exposed_communication_s"} <= expected.keys()
    assert values(launch, back) == pytest.approx(expected, rel=1e-9)
    assert (
        back["nbytes"].to_numpy() == plain["nbytes"].to_numpy()
    ).all() and launch.clock_offsets == base.clock_offsets


@given(KNOBS, st.lists(st.integers(10**6, 10**9).map(lambda length: 2 * length), min_size=2, max_size=4))
@settings(max_examples=30, deadline=None)
def test_bandwidths_are_those_of_the_sizes_that_the_case_names(knobs: tuple[float, float], lengths: list[int]) -> None:
    dilation, shrink = knobs
    nbytes = COLLECTIVE["sizes"][0]
    plain = rows(10**12, lengths, nbytes, ("all_reduce",))
    launch = record(
        {**COLLECTIVE, "dilation": dilation, "shrink": shrink},
        transport={"traffic": [{"nbytes": round(nbytes / shrink)}] * 2},
    )
    base = record(COLLECTIVE, transport={"traffic": [{"nbytes": nbytes}] * 2})
    back, unslowed = (
        as_emulated(launch.case, as_table(slowed(plain, dilation, shrink))).to_pandas(),
        as_table(plain).to_pandas(),
    )
    pd.testing.assert_frame_equal(by_size(launch, back), by_size(base, unslowed))
    assert values(launch, back) == pytest.approx(values(base, unslowed), rel=1e-6) and "bytes_per_rank_ratio" in values(
        base, unslowed
    )


@given(st.floats(1, 64), st.lists(st.integers(0, 10**16), min_size=2, max_size=20))
def test_moments_keep_their_order(dilation: float, moments: list[int]) -> None:
    case = case_from({**TRAIN, "dilation": dilation})
    frame = pd.DataFrame(
        [(0, "step", 0, False, moment, moment, 0, np.nan) for moment in sorted(moments)], columns=list(SAMPLES.names)
    )
    back = as_emulated(case, as_table(frame)).to_pandas()["start_ns"]
    assert back.is_monotonic_increasing


def test_a_store_gives_emulated_time_and_keeps_the_launchs_own() -> None:
    launch = record({**TRAIN, "dilation": 4, "shrink": 2})
    plain = rows(10**12, [2000], 1000, ("communication",))
    with TemporaryDirectory() as name:
        store = Store(Path(name))
        staging = store.staging / launch.launch
        staging.mkdir(parents=True)
        target = store.commit(staging, launch, as_table(slowed(plain, 4, 2)))
        read, stored = store.samples(launch).to_pandas(), pd.read_parquet(target / "samples.parquet")
    assert (read["end_ns"] == plain["end_ns"]).all() and (read["nbytes"] == plain["nbytes"]).all()
    assert (stored["end_ns"] == 4 * plain["end_ns"]).all() and (stored["nbytes"] == plain["nbytes"] / 2).all()


def test_a_simulated_record_is_in_true_time_as_it_is() -> None:
    case = case_from({**TRAIN, "fabric": "simulated", "dilation": 4, "shrink": 2})
    table = as_table(rows(10**12, [2000], 1000, ("communication",)))
    assert as_emulated(case, table).equals(table)
