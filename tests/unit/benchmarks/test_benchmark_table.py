"""The benchmarks' arithmetic on samples: medians of a launch, ratios against targets, the printed table."""

from __future__ import annotations

import pyarrow as pa

from benchmarks.arms import BOUND, SIZES, Arm
from benchmarks.interleaved import Measured, launch_medians
from benchmarks.table import markdown, summary

MIB = 1 << 20


def samples(event: str, rows: list[tuple[int, int, int, int, bool]]) -> pa.Table:
    """Rows of (rank, step, nbytes, duration in ns, warmup)."""
    return pa.table(
        {
            "rank": [row[0] for row in rows],
            "event": [event] * len(rows),
            "step": [row[1] for row in rows],
            "warmup": [row[4] for row in rows],
            "start_ns": [0] * len(rows),
            "end_ns": [row[3] for row in rows],
            "nbytes": [row[2] for row in rows],
        }
    )


def measured(**seconds: list[float]) -> Measured:
    """All-reduce of 2 ranks, the same times at every size."""
    result = Measured(launches=6, seed=0)
    for name, values in seconds.items():
        result.samples[Arm(name, 2, "all_reduce")] = [dict.fromkeys(SIZES, value) for value in values]
    return result


def test_an_all_reduce_takes_as_long_as_its_slowest_rank_and_warm_up_does_not_count() -> None:
    rows = [(0, 0, 8, 9_000, True), (1, 0, 8, 9_000, True)]
    rows += [(rank, step, 8, 1_000 * (step + 3 * rank), False) for rank in range(2) for step in (1, 2, 3)]
    assert launch_medians(samples("all_reduce", rows), "all_reduce") == {8: 5e-6}


def test_a_transfer_is_half_of_a_round_trip() -> None:
    rows = [(0, step, 8, nanoseconds, False) for step, nanoseconds in enumerate((2_000, 4_000, 60_000))]
    assert launch_medians(samples("transfer", rows), "transfer") == {8: 2e-6}


def test_targets_compare_rates_and_say_met_missed_or_not_measured() -> None:
    result = summary(measured(shm=[1.0] * 6, gloo=[4.5] * 6, mpi=[2.0] * 6, tcp=[4.0] * 6, **{BOUND: [0.7] * 6}), {})
    targets = {(target["arm"], target["against"], target["nbytes"]): target for target in result["targets"]}
    assert targets["shm", "gloo", 64 * MIB]["met"] is True
    assert targets["shm", "gloo", 64 * MIB]["ratio"] == 4.5
    assert targets["shm", "gloo", MIB]["met"] is False
    assert targets["shm", "mpi", 64 * MIB]["met"] is False
    assert targets["shm", BOUND, 64 * MIB]["met"] is False
    assert targets["tcp", "gloo", 64 * MIB]["met"] is False
    assert targets["grpc", "TensorFlow RING over gRPC", 64 * MIB]["met"] is None


def test_the_table_names_what_is_missing_and_why() -> None:
    result = measured(shm=[0.5] * 6, gloo=[1.0] * 6)
    result.missing[Arm("horovod", 2, "all_reduce")] = ["not installed", "not installed"]
    text = markdown(summary(result, {}))
    assert text.count("Not measured: horovod: not installed.") == 1
    assert "| shm | 2 | 2.05e-06 | 0.000131 | 0.0021 | 0.134 | 2.00 |" in text
