"""The suite crosscheck without any tool: parsers of tool output, arithmetic, and claims that find their arms."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.claims_yaml import load_claims
from scaleproof.claims.launch_pool import matches
from scaleproof.claims.metrics import Metric
from scaleproof.commands.sequential import sequential
from scaleproof.launch.claim_stopping import SequentialClaims
from scaleproof.launch.preflight.case_preflight import obstacle
from scaleproof.programs.own import load_entry
from scaleproof.spec.suite import Suite
from tests.unit.claims.claims_samples import record, samples

ROOT = Path(__file__).resolve().parents[3]
SUITE = "crosscheck"
OWN = {"program": "own", "suite": "crosscheck", "experiment": "e", "arm": "a", "ranks": 2}
PINGPONG = """\
# MPI PingPong Test
# Size [B]  Bandwidth [MB/s] | Time Mean [s] \u00b1 StdDev [s]  Samples
         8             16.34 | 4.8973000e-07 \u00b1 3.0612e-08      500
        16             29.24 | 5.4720000e-07 \u00b1 3.5812e-08      500
"""
OSU_LATENCY = """\
# OSU MPI Latency Test v7.3
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
8                       0.25
1048576               120.50
"""
OSU_BW = """\
# OSU MPI Bandwidth Test v5.9
# Size      Bandwidth (MB/s)
1048576             9876.54
"""


def programs(suite: Suite, name: str) -> Any:
    return load_entry(suite.folder / "programs", name)


@pytest.mark.parametrize(
    ("tool", "printed", "rows"),
    [
        ("mpi4py_pingpong", PINGPONG, [(8, 4.8973e-07), (16, 5.472e-07)]),
        ("osu_latency", OSU_LATENCY, [(8, 0.25e-6), (1048576, 120.5e-6)]),
        ("osu_bw", OSU_BW, [(1048576, 9.87654)]),
        ("osu_latency", "ERROR: no such device\n", []),
    ],
)
def test_tables_of_mpi_benchmarks_are_read_in_s_and_gb_per_s(
    suite: Suite, tool: str, printed: str, rows: list[tuple[int, float]]
) -> None:
    parsed = list(programs(suite, "mpi_bench").rows(tool, printed))
    assert [size for size, _ in parsed] == [size for size, _ in rows]
    assert [value for _, value in parsed] == pytest.approx([value for _, value in rows])


@pytest.mark.parametrize(
    ("entry", "options"), [("iperf3", {}), ("mpi_bench", {"tool": "osu_bw"}), ("whole_launch", {"tool": "hyperfine"})]
)
def test_without_the_tool_a_case_is_not_runnable_and_says_what_to_type(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, entry: str, options: Any
) -> None:
    case = record({**OWN, "entry": entry, "options": options}).case
    monkeypatch.setenv("PATH", "/nowhere")
    reason = obstacle(case, str(suite.folder / "programs"))
    assert reason is not None
    assert reason[0].endswith("is not installed")
    assert "apt-get install" in reason[1] or "PATH" in reason[1]


@pytest.mark.parametrize("entry", ["mpi_bench", "whole_launch"])
def test_a_forgotten_option_ends_no_plan(suite: Suite, entry: str) -> None:
    assert obstacle(record({**OWN, "entry": entry, "options": {}}).case, str(suite.folder / "programs")) is None


def test_a_stream_is_timed_from_the_senders_first_to_the_receivers_last(metrics: dict[str, Metric]) -> None:
    streamed = record({**OWN, "entry": "stream", "transport": "tcp", "sizes": [1000]})
    rows = samples((0, "stream", 0, 100, 190, 5_000_000), (1, "stream", 0, 105, 200, 5_000_000))
    assert metrics["stream_bandwidth"].size(streamed, rows, 1000) == pytest.approx(0.05)  # type: ignore[misc]
    assert metrics["stream_bandwidth"].size(streamed, rows, 999) is None  # type: ignore[misc]


def test_half_a_round_trip_is_a_mean_of_the_timed_ones(metrics: dict[str, Metric]) -> None:
    transfer = record(
        {
            "program": "transfer",
            "suite": "s",
            "experiment": "e",
            "arm": "a",
            "transport": "mpi",
            "launcher": "mpirun",
            "sizes": [8],
        }
    )
    nan = float("nan")
    rows = samples(
        (0, "transfer", 0, 0, 90, 8, nan, True), (0, "transfer", 1, 100, 102, 8), (0, "transfer", 2, 110, 114, 8)
    )
    assert metrics["one_way_mean"].size(transfer, rows, 8) == pytest.approx(1.5e-3)  # type: ignore[misc]


def paced(pace_0: float, samples_0: int) -> Any:
    return record(
        {
            **OWN,
            "entry": "paced",
            "options": {"pace_ms_0": pace_0, "pace_ms_1": 10, "samples_0": samples_0, "samples_1": 16, "steps": 2},
        }
    )


def paced_rows(pace_0: float, samples_0: float) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for rank, pace, held in ((0, pace_0, samples_0), (1, 10, 16.0)):
        rows += [(rank, "step", step, step * pace, (step + 1) * pace, 0, held) for step in range(2)]
        rows += [(rank, "start", 0, 0, 0), (rank, "end", 1, 2 * pace, 2 * pace)]
    return rows


@pytest.mark.parametrize(("pace_0", "samples_0", "excess"), [(10, 16, 1.0), (10, 48, 1.5), (5, 16, 2.0)])
def test_rank_0_times_n_is_off_on_uneven_ranks_and_the_common_wall_time_is_not(
    metrics: dict[str, Metric], pace_0: float, samples_0: int, excess: float
) -> None:
    launch, rows = paced(pace_0, samples_0), samples(*paced_rows(pace_0, samples_0))
    assert metrics["rank0_over_known"].launch(launch, rows) == pytest.approx(excess)  # type: ignore[misc]
    assert metrics["rank0_excess"].launch(launch, rows) == pytest.approx(excess)  # type: ignore[misc]
    assert metrics["common_wall_over_known"].launch(launch, rows) == pytest.approx(1)  # type: ignore[misc]


def test_what_starting_costs_drops_out_of_the_added_processor_time(metrics: dict[str, Metric]) -> None:
    values = {("tool", 0): 0.5, ("tool", 1): 3.5, ("record", 0): 0.1, ("record", 1): 3.1}
    rows = samples(*((0, f"{side}_cpu", number, 0, 0, 0, value) for (side, number), value in values.items()))
    launch = record({**OWN, "entry": "whole_launch", "ranks": 1})
    assert metrics["launch_cpu_ratio"].launch(launch, rows) == pytest.approx(3.5 / 3.1)  # type: ignore[misc]
    assert metrics["launch_cpu_added_ratio"].launch(launch, rows) == pytest.approx(1)  # type: ignore[misc]
    assert metrics["launch_start_cpu_s"].launch(launch, rows) == pytest.approx(0.4)  # type: ignore[misc]


def test_every_claim_finds_its_arms_side_by_side_in_one_experiment(suite: Suite) -> None:
    for claim in load_claims(suite):
        assert claim.form.experiment is not None
        cases = suite.experiment(claim.form.experiment).size("small").cases
        assert any(matches(case, claim.form.select) for case in cases), claim.form.id
        assert any(matches(case, claim.form.against or {}) for case in cases), claim.form.id


def test_every_comparison_names_what_was_found_to_make_a_difference(suite: Suite) -> None:
    """Whatever the next run shows, a comparison that does not hold has its cause, or says that none was found or that
    nothing was measured. Figures of earlier launches would stand beside those of other ones."""
    causes = {claim.form.id: claim.form.cause or "" for claim in load_claims(suite) if claim.form.kind == "claim"}
    assert {"crosscheck.osu.latency", "crosscheck.launch.wall.hyperfine", "crosscheck.horovod.rank0"} < causes.keys()
    assert [name for name, cause in causes.items() if not cause] == []
    figure = re.compile(r"\d (ns|us|ms|s|GB/s|%)(\W|$)|\d %")
    assert [name for name, cause in causes.items() if figure.search(cause)] == []


def test_a_full_run_stops_by_the_width_of_each_comparison_or_after_ten_minutes(suite: Suite) -> None:
    for name in ("tcp", "mpi", "training"):
        stop, small = suite.experiment(name).size("full").stop, suite.experiment(name).size("small")
        assert stop is not None and (stop.metric, stop.target, stop.minutes) == (None, 0.025, 10)
        rule = sequential(suite, name, "full")
        assert isinstance(rule, SequentialClaims)
        compared = {number.claim for number in rule.numbers}
        assert compared == {claim.form.id for claim in load_claims(suite) if claim.form.experiment == name}
        assert small.stop is None and suite.experiment(name).size("full").cases == small.cases


def test_the_size_for_the_gate_runs_few_cheap_launches(suite: Suite) -> None:
    sizes = [experiment.sizes["ci"] for experiment in suite.experiments.values() if "ci" in experiment.sizes]
    assert sum(size.launches * len(size.cases) for size in sizes) <= 3


def test_every_metric_has_its_page(metrics: dict[str, Metric]) -> None:
    for metric in metrics.values():
        assert (ROOT / metric.page).read_text().startswith(f"# {metric.name}"), metric.page
