"""The suite micro without any launch: its claims and files fit its cases, and its metrics count what happened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleproof.claims.claims_yaml import load_claims
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.launch_pool import matches
from scaleproof.claims.made_up import MadeUp
from scaleproof.claims.metrics import METRICS, Metric
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.programs.common import repetitions
from scaleproof.programs.own import load_entry
from scaleproof.spec import registry
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.suite import Suite, load_suite
from scaleproof.spec.suite_form import SIZES
from tests.short_form import case_from
from tests.unit.claims.claims_samples import record, samples
from tests.unit.claims.made_up_launches import judged, with_value

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "suites" / "micro"
TRANSFER = {
    "program": "transfer",
    "suite": "micro",
    "experiment": "costs",
    "arm": "tcp",
    "transport": "tcp",
    "sizes": [4, 1024],
}
MIB = 1 << 20


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_suite(FOLDER)


@pytest.fixture(scope="module")
def metrics() -> dict[str, Metric]:
    return {name: metric for name, metric in suite_metrics(FOLDER).items() if name not in METRICS}


def windows(flows: str, ranks: int) -> dict[str, Any]:
    case = {
        "program": "own",
        "entry": "windows",
        "suite": "micro",
        "experiment": "e",
        "arm": "a",
        "transport": "shm",
        "ranks": ranks,
        "sizes": [100],
    }
    return {**case, "options": {"flows": flows, "window": 4}}


def test_every_claim_finds_its_arms_where_all_transports_are(suite: Suite) -> None:
    for claim in load_claims(suite):
        for size in ("small", "full"):
            cases = suite.experiment(str(claim.form.experiment)).size(size).cases
            for side in [{**claim.form.select, **arm} for arm in claim.form.arms] or [
                claim.form.select,
                claim.form.against or {},
            ]:
                matching = [case for case in cases if matches(case, side)]
                assert matching, (claim.form.id, size)
                assert claim.form.nbytes is None or all(
                    claim.form.nbytes in case.sizes for case in matching if hasattr(case, "sizes")
                ), claim.form.id


def test_every_metric_has_its_page(metrics: dict[str, Metric]) -> None:
    for metric in metrics.values():
        assert (ROOT / metric.page).read_text().startswith(f"# {metric.name}"), metric.page


def test_every_program_and_transport_has_its_file_and_no_other_has(suite: Suite) -> None:
    """A new transport in suite.yaml fails here until its files of three lines each exist."""
    from suites.micro.bench.launches import PROGRAMS, points

    arms = suite.experiment("costs").arms
    expected = {
        f"bench_{program}_{arm}.py"
        for program in PROGRAMS
        for arm in arms
        if any(points(suite, size, program, arm) for size in SIZES)
    }
    present = {path.name for path in (FOLDER / "bench").glob("bench_*.py")}
    assert present == {name.replace("-", "_").replace("+", "_") for name in expected}


def test_a_transport_with_memory_of_its_own_is_measured_both_ways(suite: Suite) -> None:
    for experiment in ("costs", "collectives", "bandwidth", "message_rate", "bidirectional"):
        cases = suite.experiment(experiment).size("small").cases
        ways: dict[str, set[str]] = {}
        for case in cases:
            if case.transport is not None and not case.value("fabric.link_mbit"):
                ways.setdefault(case.transport, set()).add(case.buffers)
        assert set(registry.with_trait("transport", "own_memory")) <= ways.keys(), experiment
        for transport, of_transport in ways.items():
            both = registry.get("transport", transport).own_memory
            assert of_transport == ({"registered", "plain"} if both else {"registered"}), (experiment, transport)


def test_full_goes_from_4_bytes_to_1_gib(suite: Suite) -> None:
    for name in ("costs", "collectives", "bandwidth", "bidirectional"):
        sizes = {size for case in suite.experiment(name).size("full").cases for size in case.value("sizes")}
        assert (min(sizes), max(sizes)) == (4, 1 << 30), name
    assert {
        case.operation
        for name in ("costs", "collectives")
        for case in suite.experiment(name).size("full").cases
        if case.program == "collective"
    } == {
        "all_reduce",
        "reduce_scatter",
        "all_gather",
        "broadcast",
    }


@pytest.mark.parametrize(
    ("nbytes", "count"), [(4, 200), (64 << 10, 200), (MIB, 64), (16 * MIB, 5), (1 << 30, 5), (0, 200)]
)
def test_large_messages_get_as_many_iterations_as_their_budget_allows(nbytes: int, count: int) -> None:
    case = case_from({**TRANSFER, "iterations": 200, "budget_mib": 64})
    assert case.program == "transfer" and repetitions(case, nbytes) == count
    without = case_from({**TRANSFER, "iterations": 200})
    assert without.program == "transfer" and repetitions(without, nbytes) == 200


def test_a_transport_that_cannot_be_polled_is_not_runnable_in_an_incast() -> None:
    obstacle = load_entry(FOLDER / "programs", "windows").obstacle
    reason = obstacle(case_from({**windows("incast", 3), "transport": "gloo"}))
    assert reason is not None and "over gloo the arrival of a message shows only in a wait for it" in reason[0]
    assert obstacle(case_from({**windows("one_way", 2), "transport": "gloo"})) is None
    assert obstacle(case_from(windows("incast", 3))) is None


def test_flows_are_named_in_the_mistake() -> None:
    with pytest.raises(
        ValueError, match="flows 'ring' of 2 ranks; for two or more ranks there are: one_way, both_ways, incast"
    ):
        load_entry(FOLDER / "programs", "windows").flows("ring", 2)


def test_rates_count_only_windows_while_every_flow_was_under_way(metrics: dict[str, Metric]) -> None:
    """Rank 1 sends from 0 to 40 ms, rank 2 from 10 to 100 ms: windows that ended between 10 and 40 ms count."""
    rows = [(1, "window", k, 10 * k, 10 * k + 10, 100, 4) for k in range(4)] + [
        (2, "window", k, 10 + 30 * k, 40 + 30 * k, 100, 4) for k in range(3)
    ]
    rows_of_ranks, launch = samples(*rows), record(windows("incast", 3))
    assert value(metrics, "message_rate", launch, rows_of_ranks) == pytest.approx((3 * 4 + 4) / 0.030)
    assert value(metrics, "window_bandwidth", launch, rows_of_ranks) == pytest.approx(16 * 100 / 0.030 / 1e9)
    assert value(metrics, "sender_fairness", launch, rows_of_ranks) == pytest.approx(16**2 / (2 * (12**2 + 4**2)))


def test_a_sender_that_got_nothing_through_counts_against_fairness(metrics: dict[str, Metric]) -> None:
    rows = samples((1, "window", 0, 0, 10, 100, 4), (1, "window", 1, 10, 20, 100, 4))
    assert value(metrics, "sender_fairness", record(windows("incast", 4)), rows) == pytest.approx(1 / 3)
    assert value(metrics, "sender_fairness", record(windows("one_way", 2)), rows) is None


def test_processor_time_is_given_for_both_sides(metrics: dict[str, Metric]) -> None:
    rows = samples(
        (0, "window", 0, 0, 10, 100, 4),
        (0, "window", 1, 10, 20, 100, 4, True),
        (0, "processor", 0, 0, 10, 100, 2e-6),
        (1, "processor", 0, 0, 10, 100, 6e-6),
    )
    launch = record(windows("one_way", 2))
    costs = [
        value(metrics, name, launch, rows) for name in ("cpu_per_byte", "sender_cpu_per_byte", "receiver_cpu_per_byte")
    ]
    assert costs == pytest.approx([20.0, 5.0, 15.0])  # ns a byte: 400 bytes in the timed window
    assert value(metrics, "sender_cpu_per_byte", record(windows("both_ways", 2)), rows) is None
    incast = samples(
        (1, "window", 0, 0, 10, 100, 4), (0, "processor", 0, 0, 10, 100, 6e-6), (1, "processor", 0, 0, 10, 100, 2e-6)
    )
    assert value(metrics, "receiver_cpu_per_byte", record(windows("incast", 3)), incast) == pytest.approx(15.0)


def test_the_fits_of_a_launch_are_those_of_its_times(metrics: dict[str, Metric]) -> None:
    sizes = [4**k for k in range(1, 13)]
    sent = samples(*((0, "transfer", 0, 0, 2 * (0.01 + 1e-6 * size), size) for size in sizes))
    reduced = [
        (rank, "all_reduce", 0, 0, 0.02 + 1e-6 * size + 0.5e-6 * size / 2, size) for size in sizes for rank in range(2)
    ]
    transfer = record({**TRANSFER, "sizes": sizes})
    call = record({**TRANSFER, "program": "collective", "collective": "ring", "ranks": 2, "sizes": sizes})
    assert metrics["line_r_squared"].launch(transfer, sent) == pytest.approx(1, abs=1e-3)  # type: ignore[misc]
    pair = metrics["all_reduce_prediction_error"].pair
    assert pair is not None
    base = Launch(transfer, sent)
    assert pair(Launch(call, samples(*reduced)), base, None) == pytest.approx(0, abs=1e-3)
    slower = samples(*((*row[:4], row[4] * (2 if row[5] == MIB else 1), row[5]) for row in reduced))
    assert pair(Launch(call, slower), base, None) == pytest.approx(0.5, abs=0.05)
    assert pair(base, base, None) is None


def test_a_message_faster_than_a_copy_fails_a_check_and_refutes_no_claim() -> None:
    """It is copied once, so that a copy is a bound that cannot be missed."""

    def at(rate: float) -> Callable[[PlannedLaunch], MadeUp]:
        messages, copies = (with_value("micro.shm.below_copy.16mib", value) for value in (rate, 1.0))
        return lambda launch: (copies if launch.case.arm == "copy" else messages)(launch)

    assert judged("micro.shm.below_copy.16mib", at(0.9)).verdict == "holds"
    assert judged("micro.shm.below_copy.16mib", at(1.1)).verdict == "fails"


def test_a_copy_stands_beside_a_message(metrics: dict[str, Metric]) -> None:
    copy = record(
        {
            "program": "own",
            "entry": "copy",
            "suite": "micro",
            "experiment": "costs",
            "arm": "copy",
            "ranks": 1,
            "sizes": [1000],
        }
    )
    assert value(metrics, "one_way_rate", copy, samples((0, "copy", 0, 0, 0, 1000, 1e-7)), 1000) == pytest.approx(10.0)
    assert value(
        metrics, "one_way_rate", record(TRANSFER), samples((0, "transfer", 0, 0, 1, 1024)), 1024
    ) == pytest.approx(1024 / 0.0005 / 1e9)


def value(metrics: dict[str, Metric], name: str, launch: Any, rows: Any, nbytes: int = 100) -> float | None:
    function = metrics[name].size
    assert function is not None
    result = function(launch, rows, nbytes)
    assert result is None or np.isfinite(result)
    return result
