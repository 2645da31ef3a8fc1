"""A rate beside its bound: a percentage only where a bound was measured or set, a reason where there is none, and no
launch with a rate that memory cannot give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.calibrate.attainable import CERTAIN_FACTOR, Attainable, NoBound, attainable, impossible
from scaleproof.claims.metrics import METRICS
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.fabric.netns.veth_links import SHAPED_MBIT
from scaleproof.record.machine import Bound, MachineProfile, read_profile, write_profile
from scaleproof.spec.case import TrainCase
from scaleproof.workloads.case_network import network_of
from tests.unit.claims.claims_samples import TRAIN, record, samples

ROOT = Path(__file__).parents[3]
BASE: dict[str, Any] = {
    "suite": "s",
    "experiment": "e",
    "arm": "a",
    "sizes": [1000],
    "iterations": 1,
    "warmup": 0,
    "ranks": 2,
}
TRANSFER = BASE | {"program": "transfer", "transport": "shm"}
REDUCE = BASE | {"program": "collective", "transport": "tcp", "collective": "ring"}


def bound(name: Any, rate: float, nbytes: int | None = None, reach: float = 0.1) -> Bound:
    return Bound(
        name=name,
        nbytes=nbytes,
        value=rate,
        low=rate * (1 - reach),
        high=rate * (1 + reach),
        n=6,
        unit="B/s",
        taken=f"taken as {name}",
    )


BOUNDS = (
    bound("memory_copy", 20e9, 1000),
    bound("memory_copy", 10e9, 1 << 20),
    bound("two_rank_all_reduce", 8e9, 1000),
    bound("plain_memory_copy", 12e9, 1000),
    bound("plain_two_rank_all_reduce", 6e9, 1000),
    bound("loopback", 4e9),
    bound("single_core_flop", 50e9),
)
PROFILE = MachineProfile(machine="m", code="d", measured_at="2026-01-01T00:00:00+00:00", bounds=BOUNDS)


def launch(case: dict[str, Any], path: str | None) -> Any:
    ranks = [{"path": path} if path else None for _ in range(case["ranks"])]
    return record(case, transport={"ranks": ranks})


@pytest.mark.parametrize(
    ("case", "path", "metric", "value", "limit"),
    [
        (TRANSFER, "shared memory", "transfer_bandwidth", 15, 20),
        (TRANSFER | {"transport": "tcp"}, "socket", "transfer_bandwidth", 1, 4),
        (REDUCE, "socket", "busbw", 2, 4),
        (REDUCE, "socket", "algbw", 2, 4),  # 2 ranks: busbw is algbw
        (REDUCE | {"ranks": 4}, "socket", "algbw", 2, 4 / 1.5),
        (REDUCE | {"transport": "shm"}, "shared memory", "algbw", 2, 8),
        (TRANSFER | {"buffers": "plain"}, "shared memory", "transfer_bandwidth", 2, 12),
        (REDUCE | {"transport": "shm", "buffers": "plain"}, "shared memory", "algbw", 2, 6),
        (REDUCE | {"transport": "shm", "buffers": "plain"}, "shared memory", "busbw", 2, 6),
    ],
)
def test_the_bound_is_that_of_the_path_that_the_bytes_took(
    case: dict[str, Any], path: str, metric: str, value: float, limit: float
) -> None:
    bound = attainable(launch(case, path), METRICS[metric], value, PROFILE, 1000)
    assert isinstance(bound, Attainable) and bound.limit == pytest.approx(limit) and bound.unit == "GB/s"
    assert (
        bound.share == pytest.approx(value / limit)
        and not bound.above
        and not bound.impossible
        and bound.why.startswith("taken as")
    )


@pytest.mark.parametrize(
    ("case", "path", "metric", "machine", "why"),
    [
        (TRANSFER, "shared memory", "transfer_bandwidth", "other", "memory_copy was not measured on machine m"),
        (TRANSFER, None, "transfer_bandwidth", "m", "the path of its bytes is not recorded"),
        (
            TRANSFER | {"transport": "tcp", "interface": "eth0"},
            "socket",
            "transfer_bandwidth",
            "m",
            "no network but loopback",
        ),
        (TRANSFER | {"transport": "mpi", "launcher": "mpirun"}, "library's choice", "transfer_bandwidth", "m", "path"),
        (REDUCE | {"transport": "shm", "ranks": 4}, "shared memory", "algbw", "m", "all-reduces of two ranks"),
        (REDUCE | {"ranks": 1}, "socket", "algbw", "m", "one rank"),
        (REDUCE | {"fabric": "simulated"}, None, "algbw", "m", "a prediction"),
    ],
)
def test_without_a_measured_bound_there_is_no_percentage(
    case: dict[str, Any], path: str | None, metric: str, machine: str, why: str
) -> None:
    profile, rate = PROFILE.model_copy(update={"machine": machine}), METRICS[metric]
    attained = attainable(launch(case, path), rate, 1.0, profile, 1000)
    assert isinstance(attained, NoBound) and why in attained.why
    assert isinstance(attainable(launch(case, path), rate, 1.0, None, 1000), NoBound)


def test_a_time_is_no_rate() -> None:
    assert attainable(launch(TRANSFER, "shared memory"), METRICS["transfer_latency"], 1.0, PROFILE, 1000) is None


NETNS = {"fabric": {"name": "netns", "link_mbit": 1000}, "transport": "tcp"}
MIB = 1 << 20
ON_LINKS = REDUCE | NETNS | {"ranks": 4, "sizes": [MIB]}
FULL = 125e6 * 1448 / 1514 / 1e9
"""GB/s of payload of 1000 Mbit/s."""


def in_a_message(carried: float, mbit: float = 1000) -> float:
    """GB/s on a link for so many bytes on it: a bucket of 1 ms passes at once."""
    rate = mbit * 1e6 / 8
    return carried / ((carried * 1514 / 1448 - rate / 1e3) / rate) / 1e9


def on_links(case: dict[str, Any], mbit: float | None = 1000, ends: str = "switch", each: int = 1) -> Any:
    links = [{"ends": [f"node{n}", ends], "mbit": mbit, "delay_ms": 0.0} for n in range(case["ranks"])] * each
    path = {"path": "socket"}
    return record(case, transport={"ranks": [path] * case["ranks"], "fabric": {"kind": "netns", "links": links}})


@pytest.mark.parametrize(
    ("case", "metric", "nbytes", "mbit", "limit"),
    [
        (TRANSFER | NETNS, "transfer_bandwidth", None, 1000, FULL),
        (TRANSFER | NETNS, "transfer_bandwidth", 64 * MIB, 1000, in_a_message(64 * MIB)),
        (ON_LINKS, "busbw", None, 1000, FULL),
        (ON_LINKS, "algbw", None, 1000, FULL / 1.5),
        (ON_LINKS, "busbw", 4 * MIB, 1000, in_a_message(6 * MIB)),
        (ON_LINKS, "algbw", 4 * MIB, 1000, in_a_message(6 * MIB) / 1.5),
        # a quarter of the bytes on a sixteenth of the rate, in a clock four times as slow
        (ON_LINKS | {"dilation": 4, "shrink": 4}, "algbw", None, 62.5, FULL / 1.5),
        (ON_LINKS | {"dilation": 4, "shrink": 4}, "busbw", 4 * MIB, 62.5, 16 * in_a_message(6 * MIB / 4, 62.5)),
    ],
)
def test_links_with_a_set_rate_bound_what_passes_them_by_their_payload(
    case: dict[str, Any], metric: str, nbytes: int | None, mbit: float, limit: float
) -> None:
    attained = attainable(on_links(case, mbit), METRICS[metric], limit / 2, None, nbytes)
    assert isinstance(attained, Attainable) and attained.limit == pytest.approx(limit)
    assert attained.share == pytest.approx(0.5) and attained.name == "link" and "95.6 %" in attained.why


def test_a_parameter_servers_rate_counts_both_directions_of_its_link() -> None:
    rate = suite_metrics(ROOT / "suites" / "zou2017")["server_rate"]
    case = own("servers", "tcp", ranks=5, workers=4, nbytes=MIB, compute_ms=0)
    attained = attainable(on_links(case | NETNS), rate, 1e8, PROFILE)
    assert isinstance(attained, Attainable) and attained.limit == pytest.approx(2 * FULL * 1e9)
    assert isinstance(attainable(launch(case, "socket"), rate, 1e8, PROFILE), NoBound), "loopback has no directions"


@pytest.mark.parametrize(
    ("launched", "nbytes", "why"),
    [
        (on_links(ON_LINKS, None), 4 * MIB, "no rate is set"),
        (on_links(ON_LINKS, SHAPED_MBIT), 4 * MIB, "too fast to be shaped"),
        (on_links(ON_LINKS, each=2), 4 * MIB, "several links"),
        (on_links(ON_LINKS | {"nodes": 2}), 4 * MIB, "several ranks share a node"),
        (on_links(ON_LINKS), 64 << 10, "token bucket"),
        (launch(ON_LINKS, "socket"), 4 * MIB, "names no links"),
    ],
)
def test_links_without_one_set_rate_are_no_bound(launched: Any, nbytes: int, why: str) -> None:
    attained = attainable(launched, METRICS["algbw"], 1.0, PROFILE, nbytes)
    assert isinstance(attained, NoBound) and why in attained.why


def own(entry: str, transport: str | None, ranks: int = 2, **options: int | str | float) -> dict[str, Any]:
    return BASE | {"program": "own", "entry": entry, "transport": transport, "ranks": ranks, "options": options}


@pytest.mark.parametrize(
    ("suite", "metric", "case", "path", "limit"),
    [
        ("micro", "one_way_rate", TRANSFER, "shared memory", 20),
        ("micro", "one_way_rate", own("copy", None, ranks=1), None, None),  # it is the bound
        ("micro", "window_bandwidth", own("windows", "tcp", flows="one_way"), "socket", 4),
        ("micro", "window_bandwidth", own("windows", "tcp", flows="both_ways"), "socket", None),
        ("micro", "window_bandwidth", own("windows", "tcp", ranks=3, flows="incast"), "socket", None),
        ("crosscheck", "stream_bandwidth", own("stream", "tcp"), "socket", 4),
        ("crosscheck", "stream_bandwidth", own("iperf3", None), None, None),  # a tool's path is not recorded
        ("crosscheck", "one_way_bandwidth", own("mpi_calls", "shm", written=1), "shared memory", 20),
        ("crosscheck", "one_way_bandwidth", own("mpi_calls", "shm", written=0), "shared memory", None),
        ("xue2019", "send_reduce_gbs", own("send_reduce", "shm"), "shared memory", 20),
        ("xue2019", "send_reduce_gbs", own("send_reduce", "tcp"), "socket", 4),
        ("xue2019", "send_reduce_s", own("send_reduce", "shm"), "shared memory", None),
    ],
)
def test_a_rate_of_a_suites_own_program_has_the_bound_where_bytes_move_from_one_rank_to_one_other(
    suite: str, metric: str, case: dict[str, Any], path: str | None, limit: float | None
) -> None:
    rate = suite_metrics(ROOT / "suites" / suite)[metric]
    bound = attainable(launch(case, path), rate, 1.0, PROFILE, 1000)
    assert isinstance(bound, Attainable) is (limit is not None)
    assert not isinstance(bound, Attainable) or bound.limit == pytest.approx(limit)
    assert (bound is None) is (rate.unit == "s"), "a rate has a bound or a reason"


@pytest.mark.parametrize(
    ("ranks", "threads", "cores", "working"), [(2, 1, 2, 2), (4, 1, 2, 2), (1, 1, 8, 1), (2, 2, 8, 4)]
)
def test_images_per_second_stand_beside_the_arithmetic_of_the_cores_that_work(
    ranks: int, threads: int, cores: int, working: int
) -> None:
    case = {**TRAIN, "ranks": ranks, "threads_per_rank": threads}
    launch_record = record(case, environment={"cores": cores})
    throughput = METRICS["throughput"]
    limit = attainable(launch_record, throughput, 10.0, PROFILE)
    assert isinstance(launch_record.case, TrainCase)
    flop = network_of(launch_record.case).train_flop
    assert isinstance(limit, Attainable) and not limit.impossible
    assert limit.limit == pytest.approx(working * 50e9 / flop)
    forward = attainable(launch_record, METRICS["forward_throughput"], 10.0, PROFILE)
    assert isinstance(forward, Attainable) and forward.limit > 2 * limit.limit
    assert attainable(launch_record, METRICS["step_s"], 1.0, PROFILE) is None
    for not_computed in ({"compute": "none"}, {"compute": "replay"}, {"fabric": "simulated"}):
        other = record({**case, **not_computed}, environment={"cores": cores})
        assert isinstance(attainable(other, throughput, 1.0, PROFILE), NoBound)
    assert isinstance(attainable(record(case), throughput, 1.0, PROFILE), NoBound), "nobody knows how many cores"


def test_a_tools_training_rate_has_the_bound_of_the_network_that_its_options_name() -> None:
    rate = suite_metrics(ROOT / "suites" / "crosscheck")["training_rate"]
    ours, tools, paced = (
        attainable(record(case, environment={"cores": 2}), rate, 1.0, PROFILE)
        for case in (
            {**TRAIN, "workload": {"name": "cd_dnn", "width": 0.25}},
            own("ddp", None, workload="cd_dnn", width=0.25),
            own("paced", None, slept=1),
        )
    )
    assert isinstance(ours, Attainable) and isinstance(tools, Attainable) and tools.limit == ours.limit
    assert isinstance(paced, NoBound) and "no core" in paced.why


def test_a_value_beyond_the_bounds_interval_is_above_it_and_far_beyond_memory_impossible() -> None:
    limits = [
        attainable(launch(TRANSFER, "shared memory"), METRICS["transfer_bandwidth"], value, PROFILE, 1000)
        for value in (21, 23, 22 * CERTAIN_FACTOR + 1)
    ]
    assert [(limit.above, limit.impossible) for limit in limits if isinstance(limit, Attainable)] == [
        (False, False),
        (True, False),
        (True, True),
    ]


def test_the_bound_of_the_nearest_size_counts_and_without_a_size_the_highest() -> None:
    transfer, rate = launch(TRANSFER, "shared memory"), METRICS["transfer_bandwidth"]
    limits = [attainable(transfer, rate, 1.0, PROFILE, nbytes) for nbytes in (2000, 1 << 24, None)]
    assert [limit.limit for limit in limits if isinstance(limit, Attainable)] == [20, 10, 20]


@pytest.mark.parametrize(("end_ms", "fails"), [(1.0, False), (1e-6, True), (0.0, True)])
def test_a_launch_with_a_rate_that_memory_cannot_give_fails(end_ms: float, fails: bool) -> None:
    """1000 B there and back in 1 ms, in 1 ns (2000 GB/s), in no time."""
    failure = impossible(record(TRANSFER), samples((0, "transfer", 0, 0, end_ms, 1000)), PROFILE)
    assert (failure is not None) is fails
    assert failure is None or (
        failure.code == "impossible_value"
        and "4 times the fastest copy of memory" in failure.message
        and failure.advice
    )


def test_without_a_measured_memory_nothing_is_called_impossible() -> None:
    rows = samples((0, "transfer", 0, 0, 0.0, 1000))
    assert impossible(record(TRANSFER), rows, None) is None
    assert impossible(record(TRANSFER), rows, PROFILE.model_copy(update={"bounds": (bound("loopback", 4e9),)})) is None


def test_a_profile_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_profile(tmp_path, "m") is None
    write_profile(tmp_path, PROFILE)
    assert read_profile(tmp_path, "m") == PROFILE
