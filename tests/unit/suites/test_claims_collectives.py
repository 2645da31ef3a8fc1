"""The suite collectives: rows as published, formulas that are wrong are refused, metrics on records made by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.arithmetic import Published
from scaleproof.claims.beyond_floor import FloorRange
from scaleproof.claims.claims_yaml import load_claims, load_published
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.metrics import Metric
from scaleproof.claims.suite_metrics import load_models
from scaleproof.core.record_schema import Check, RankNetwork, Warning
from scaleproof.spec.suite import load_suite
from tests.unit.claims.claims_samples import record, samples

ROOT = Path(__file__).resolve().parents[3]
SUITE = load_suite("collectives", ROOT / "suites")
MODELS = load_models(SUITE.folder / "models" / "__init__.py")
FORMULAS, ROWS, ENGINE, CROSSOVER = MODELS.formulas, MODELS.rows, MODELS.engine, MODELS.crossover
METRICS: dict[str, Metric] = {metric.name: metric for metric in MODELS.METRICS}
EXACT = [row for row in FORMULAS.ROWS if row not in ("allreduce.rabenseifner.nonpof2", "allreduce.dbtree")]
A, B = 0.002, 1.6e-7
"""s, and s per byte: the links of experiment `calls`."""
SIZES = (4, 1 << 16, 1 << 18)
OWN: dict[str, Any] = {
    "suite": "collectives",
    "experiment": "calls",
    "program": "own",
    "entry": "all_reduce",
    "transport": "tcp",
    "options": {"slept": 1},
}


def test_rows_are_those_of_their_sources_and_memory_decides_nothing() -> None:
    rows, claims = load_published(SUITE.folder), load_claims(SUITE)
    assert [claim.form.id for claim in claims if claim.row] == list(rows)
    judged = {claim.form.id for claim in claims if claim.row and claim.judged}
    assert judged == {name for name, row in rows.items() if row.gate}
    assert {row.provenance for row in rows.values() if row.gate} == {"author_code", "secondary"}


def gap(row: str) -> float:
    ROWS.gap.cache_clear()
    return float(ROWS.formula_gap(ROWS.RowFormula(formula=row), Published()))


@pytest.mark.parametrize("row", EXACT)
def test_a_formula_whose_terms_are_off_by_five_per_cent_is_refused(monkeypatch: pytest.MonkeyPatch, row: str) -> None:
    right = FORMULAS.ROWS[row]
    monkeypatch.setitem(ROWS.RANKS, row, tuple(p for p in ROWS.RANKS.get(row, ROWS.POWERS) if p <= 64))
    assert gap(row) < 1e-9
    for term in ("a", "b"):
        monkeypatch.setitem(FORMULAS.ROWS, row, with_a_wrong_term(right, term))
        assert gap(row) > 0.04, term


def with_a_wrong_term(formula: Callable[..., float], term: str) -> Callable[..., float]:
    def wrong(p: int, n: float, costs: Any) -> float:
        changed = {name: getattr(costs, name) * (1.05 if name == term else 1.0) for name in ("a", "b", "g")}
        return formula(p, n, FORMULAS.Costs(**changed))

    return wrong


def test_the_formula_of_mpich_for_other_numbers_asks_for_too_many_bytes() -> None:
    assert gap("allreduce.rabenseifner.nonpof2") == pytest.approx(1 - 3 / (10 / 3))


@pytest.mark.parametrize("ranks", [3, 5, 6, 12])
def test_recursive_doubling_on_other_numbers_takes_two_rounds_more(ranks: int) -> None:
    costs, pattern = FORMULAS.Costs(A, B, 1e-9), ENGINE.schedule("allreduce.recdoubling", ranks)
    expected = FORMULAS.of_call("recursive_doubling", ranks)(ranks, 1 << 18, costs)
    assert ENGINE.seconds(pattern, 1 << 18, costs) == pytest.approx(expected)


def test_sends_that_go_before_their_receivers_are_ready_share_a_link() -> None:
    costs, pattern = FORMULAS.Costs(0.0, B), ENGINE.schedule("allreduce.recdoubling", 5)
    rounds = [ENGINE.seconds(pattern, 1 << 18, costs, buffer) / (B * (1 << 18)) for buffer in (0.0, 4 << 20)]
    assert rounds[0] == pytest.approx(4) and rounds[1] > 5


def test_a_wrong_factor_of_our_busbw_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    x = ROWS.BusFactor(collective="allgather")
    assert ROWS.bus_factor_gap(x, Published()) < 1e-12
    monkeypatch.setattr(ROWS.metrics_sizes, "bus_factor", lambda operation, ranks: 1.0)
    assert ROWS.bus_factor_gap(x, Published()) == pytest.approx(1)


def test_a_constant_of_nccl_that_the_model_changes_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = load_published(SUITE.folder)
    assert MODELS.constants.nccl_constants_off(MODELS.constants.Nothing(), rows) == 0
    monkeypatch.setitem(MODELS.constants.USED, "NET_BW", 12.5)
    assert MODELS.constants.nccl_constants_off(MODELS.constants.Nothing(), rows) == 1


def launch(collective: str, ranks: int, times: dict[int, float]) -> Launch:
    """A ping-pong on the line A + B n, and one all-reduce of each size on every rank."""
    ways = [(0, "transfer", step, 0, round(2e9 * (A + B * n)), n) for step, n in enumerate(SIZES)]
    calls = [
        (rank, "all_reduce", step, 0, round(took * 1e9 * (1 if rank else 0.5)), n)
        for step, (n, took) in enumerate(times.items())
        for rank in range(ranks)
    ]
    return Launch(record(case(collective, ranks)), samples(*ways, *calls))


def case(collective: str, ranks: int, fabric: str = "netns") -> dict[str, Any]:
    named = {"arm": collective, "collective": collective, "ranks": ranks, "nodes": ranks, "fabric": fabric}
    return {**OWN, **named, "sizes": SIZES}


def error(name: str, reduced: Launch) -> float | None:
    metric = METRICS[name].launch
    assert metric is not None
    return metric(reduced.record, reduced.samples)


def test_the_error_is_the_largest_from_64_kib_on_by_the_slowest_rank() -> None:
    times = {n: 6 * A + 1.5 * B * n for n in SIZES}
    reduced = launch("ring", 4, {**times, SIZES[0]: 1.0, SIZES[2]: times[SIZES[2]] / 1.1})
    assert error("formula_error", reduced) == pytest.approx(0.1, rel=1e-3)
    assert error("engine_error", reduced) == pytest.approx(0.1, rel=1e-3)
    alone = 6 * A / times[SIZES[1]]
    assert error("formula_error_without_latency", launch("ring", 4, times)) == pytest.approx(alone, rel=1e-3)
    bytes_alone = 1.5 * B * SIZES[2] / times[SIZES[2]]
    assert error("formula_error_without_bytes", launch("ring", 4, times)) == pytest.approx(bytes_alone, rel=1e-3)


def test_a_launch_whose_cores_were_saturated_has_no_times() -> None:
    reduced = launch("ring", 4, {n: 6 * A + 1.5 * B * n for n in SIZES})
    crowded = reduced.record.model_copy(update={"warnings": [Warning(code="saturated", message="", advice="")]})
    assert error("formula_error", Launch(crowded, reduced.samples)) is None
    call_s = METRICS["call_s"].size
    assert call_s is not None and call_s(reduced.record, reduced.samples, SIZES[1]) is not None
    assert call_s(crowded, reduced.samples, SIZES[1]) is None


def crossover(doubling: dict[int, float], ringed: dict[int, float], floor: float | None = None) -> FloorRange:
    found = CROSSOVER.crossover_ratio([launch("ring", 8, ringed), launch("recursive_doubling", 8, doubling)], floor)
    assert isinstance(found, FloorRange)
    return found


def test_the_crossover_lies_between_two_sizes_and_the_floor_moves_it() -> None:
    predicted = (14 - 3) * A / ((3 - 1.75) * B)
    ringed = dict.fromkeys(SIZES, 0.1)
    found = crossover({4: 0.05, 1 << 16: 0.05, 1 << 18: 0.2}, ringed, 0.1)
    assert found.value == pytest.approx((1 << 17) / predicted, rel=1e-3)
    assert found.low < found.value < found.high
    faster, slower = (dict.fromkeys(SIZES, took) for took in (0.05, 0.2))
    assert crossover(faster, ringed).value == pytest.approx((1 << 18) / predicted, rel=1e-3)
    assert crossover(slower, ringed).value == pytest.approx(4 / predicted, rel=1e-3)
    assert CROSSOVER.crossover_ratio([launch("ring", 8, ringed)], None) is None


def test_two_ranks_have_no_crossover() -> None:
    assert CROSSOVER.predicted(2, FORMULAS.Costs(A, B)) is None


def node(rank: int, sent: tuple[int, int], received: tuple[int, int]) -> RankNetwork:
    """A node whose link carried so many bytes in so many packets."""
    before = dict.fromkeys(("tx_bytes", "tx_packets", "rx_bytes", "rx_packets"), 7)
    after = {name: 7 + count for name, count in zip(before, (*sent, *received), strict=True)}
    loopback = dict.fromkeys(before, 10**9)
    return RankNetwork(
        rank=rank,
        namespace=f"node{rank}",
        asked_bytes=9000,
        before={"eth0": before, "lo": before},
        after={"eth0": after, "lo": loopback},
    )


def test_payload_is_what_the_busiest_link_carried_without_headers() -> None:
    network = [node(rank, (6000 + 66 * 5, 5), (100, 1)) for rank in range(3)]
    network.append(node(3, (66, 1), (12000 + 66 * 9, 9)))
    verified = [
        Check(rank=0, name=name, passed=True, detail="") for name in ("all_reduce.1000.1", "transfer.1000.last")
    ]
    reduced = record(case("ring", 4), network=network, checks=verified)
    rows = samples(*[(rank, event, 0, 0, 1, 3000) for rank in range(4) for event in ("all_reduce", "transfer")])
    share, ratio, asked = (METRICS[name].launch for name in ("payload_share", "payload_ratio", "asked_ratio"))
    assert share is not None and ratio is not None and asked is not None
    assert (share(reduced, rows), ratio(reduced, rows)) == (pytest.approx(3), pytest.approx(2))
    assert asked(reduced, rows) == pytest.approx(1.5)
    alone = record(case("ring", 1), network=[node(0, (0, 0), (0, 0))])
    assert share(alone, samples((0, "all_reduce", 0, 0, 1, 4000))) == 0
    assert ratio(alone, samples((0, "all_reduce", 0, 0, 1, 4000))) is None


def test_sums_are_compared_in_the_algorithm_that_differs_most() -> None:
    made = record(case("ring", 2))
    for rank, status in enumerate(made.ranks):
        sums = {"int64": {"differ": rank, "elements": 8}, "float32": {"differ": 2, "elements": 8}}
        status.facts["order"] = {"ring": sums, "tree": {**sums, "float32": {"differ": 4, "elements": 8}}}
    assert MODELS.order.integers_wrong(made, samples()) == 1
    assert MODELS.order.order_dependence(made, samples()) == 0.5
    assert MODELS.order.integers_wrong(record(case("ring", 2)), samples()) is None
