"""The benchmarks' arithmetic on samples: medians of a launch, ratios against targets, the printed table."""

from __future__ import annotations

import pyarrow as pa

from benchmarks.arms import BOUND, PLAIN, RANKS, RING_OVER_GRPC, SIZES, TENSORFLOW_GRPC, Arm
from benchmarks.interleaved import Measured
from benchmarks.launches import PLAIN_BOUND, bound_of, launch_medians, obstacle
from benchmarks.outcome import outcome
from benchmarks.table import markdown, summary
from benchmarks.targets import above_bound
from benchmarks.test_remote import compared
from benchmarks.tuning import untuned

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


def test_targets_compare_rates_and_say_met_missed_undecided_or_not_measured() -> None:
    slow_and_fast = [3.6, 3.6, 3.6, 3.9, 3.9, 3.9]
    result = summary(
        measured(shm=[1.0] * 6, gloo=[4.5] * 6, mpi=[2.0] * 6, tcp=slow_and_fast, **{BOUND: [0.9] * 6}), {}
    )
    targets = {(target["arm"], target["against"], target["nbytes"]): target for target in result["targets"]}
    assert targets["shm", "gloo", 64 * MIB]["outcome"] == "met"
    assert targets["shm", "gloo", 64 * MIB]["ratio"] == 4.5
    assert targets["shm", "gloo", MIB]["outcome"] == "missed"
    assert targets["shm", "mpi", 64 * MIB]["outcome"] == "missed"
    assert targets["shm", BOUND, 64 * MIB]["outcome"] == "met"
    assert targets["tcp", "gloo", 64 * MIB]["outcome"] == "undecided"
    assert targets["grpc", RING_OVER_GRPC, 64 * MIB]["outcome"] == "not measured"


def test_a_target_is_met_only_where_the_whole_interval_is_and_nothing_is_decided_without_one() -> None:
    assert [outcome(*ends, 1.2) for ends in ((1.2, 2.0), (1.1, 1.9), (1.0, 1.2), (0.8, 1.19))] == [
        "met",
        "undecided",
        "undecided",
        "missed",
    ]
    few = measured(tcp=[1.0] * 5, gloo=[9.0] * 5)
    [row] = [row for row in summary(few, {})["targets"] if row["arm"] == "tcp"]
    assert (row["ratio"], row["low"], row["outcome"]) == (9, None, "undecided")


def test_the_bound_is_the_fastest_launch_and_a_launch_with_unlucky_pages_does_not_move_it() -> None:
    result = summary(measured(shm=[1.0] * 6, **{BOUND: [0.8, *[5.0] * 5]}), {})
    [target] = [row for row in result["targets"] if row["against"] == BOUND]
    assert (target["ratio"], target["low"], target["high"]) == (0.8, 0.8, 0.8)
    [bound] = [row for row in result["rates"] if row["arm"] == BOUND and row["nbytes"] == MIB]
    assert bound["bytes_per_second"] == MIB / 0.8


def test_a_rate_above_the_bound_is_impossible_and_says_so() -> None:
    samples = measured(shm=[1.0] * 6, tcp=[2.0] * 6, **{BOUND: [1.5] * 6})
    assert "impossible: shm with 2 ranks" in above_bound(samples, Arm("shm", 2, "all_reduce"), MIB)
    assert above_bound(samples, Arm("tcp", 2, "all_reduce"), MIB) == ""
    assert above_bound(samples, Arm(BOUND, 2, "all_reduce"), MIB) == ""
    assert len(summary(samples, {})["impossible"]) == len(SIZES)
    assert markdown(summary(samples, {})).count("the measurement of the bound is wrong.") == len(SIZES)


def test_plain_buffers_have_a_bound_of_their_own() -> None:
    plain, registered = f"shm{PLAIN}", "shm"
    samples = measured(**{registered: [1.0] * 6, plain: [2.0] * 6, BOUND: [0.95] * 6, PLAIN_BOUND: [1.6] * 6})
    shares = {
        (row["arm"], row["against"]): (row["ratio"], row["outcome"])
        for row in summary(samples, {})["targets"]
        if "bound" in row["against"]
    }
    assert shares == {(registered, BOUND): (0.95, "met"), (plain, PLAIN_BOUND): (0.8, "missed")}
    assert above_bound(measured(**{plain: [1.0] * 6, PLAIN_BOUND: [1.6] * 6}), Arm(plain, 2, "all_reduce"), MIB)
    assert bound_of(Arm(plain, 2, "transfer")) == Arm(PLAIN_BOUND, 2, "transfer")
    assert obstacle(Arm(plain, 2, "all_reduce")) == obstacle(Arm(registered, 2, "all_reduce")) == ""


def test_each_rate_of_a_transfer_between_registered_buffers_has_its_share_of_one_copy() -> None:
    samples, copy = Measured(launches=6, seed=0), Arm(BOUND, 1, "copy")
    transfers = [Arm(name, ranks, "transfer") for name in ("shm", "grpc+shm") for ranks in RANKS]
    assert {bound_of(arm) for arm in transfers} == {copy}
    without = ("gloo", "mpi", "rdma", f"rdma{PLAIN}", TENSORFLOW_GRPC)
    assert [bound_of(Arm(name, 2, "transfer")) for name in without] == [None] * len(without)
    samples.samples[copy] = [dict.fromkeys(SIZES, seconds) for seconds in (0.5, 9.0)]
    for arm, seconds in zip(transfers, (1.0, 2.0, 0.8, 0.4), strict=True):
        samples.samples[arm] = [dict.fromkeys(SIZES, seconds)] * 6
    result = summary(samples, {})
    shares = {(row["arm"], row["ranks"]): row["of_bound"] for row in result["rates"] if row["operation"] == "transfer"}
    assert shares == {("shm", 2): 0.5, ("shm", 4): 0.25, ("grpc+shm", 2): 0.625, ("grpc+shm", 4): 1.25}
    assert len(result["impossible"]) == len(SIZES)
    assert "| shm | 2 | 1.02e-06 (0.5) |" in markdown(result)


def test_a_transfer_meets_its_target_only_with_the_whole_interval() -> None:
    fast, slow = [10e-6] * 6, [10e-6] * 4 + [25e-6] * 2
    assert [compared(4 << 10, seconds, 1e-6)["outcome"] for seconds in (fast, slow, [30e-6] * 6)] == [
        "met",
        "undecided",
        "missed",
    ]
    assert [compared(MIB, seconds, 9e-6)["outcome"] for seconds in (fast, slow)] == ["met", "undecided"]
    assert compared(64 << 10, fast, 9e-6)["outcome"] == ""
    assert compared(MIB, fast, 12e-6)["ratio"] == 1.2, "the benchmark fails"


def test_peers_that_are_not_tuned_are_marked_and_with_4_ranks_no_rate_is_compared_with_theirs() -> None:
    assert [untuned(Arm("gloo", *arm)) for arm in ((2, "all_reduce"), (2, "transfer"), (4, "all_reduce"))] == [
        False,
        True,
        True,
    ]
    result = measured(shm=[0.5] * 6, gloo=[1.0] * 6)
    for name in ("shm", "gloo"):
        result.samples[Arm(name, 4, "all_reduce")] = result.samples[Arm(name, 2, "all_reduce")]
    rows = [line for line in markdown(summary(result, {})).splitlines() if line.startswith(("| shm", "| gloo"))]
    assert [(row.split(" | ")[0], row.split(" | ")[-1]) for row in rows if " against " not in row] == [
        ("| gloo", "1.00 |"),
        ("| shm", "2.00 |"),
        ("| gloo, as shipped", " |"),
        ("| shm", " |"),
    ]
    assert [row["times_gloo"] for row in summary(result, {})["rates"] if row["ranks"] == 4] == [None] * 2 * len(SIZES)


def test_the_table_names_what_is_missing_and_why() -> None:
    result = measured(shm=[0.5] * 6, gloo=[1.0] * 6)
    result.missing[Arm("horovod", 2, "all_reduce")] = ["not installed", "not installed"]
    text = markdown(summary(result, {}))
    assert text.count("Not measured: horovod: not installed.") == 1
    assert "| shm | 2 | 2.05e-06 | 0.000131 | 0.0021 | 0.134 | 2.00 |" in text
