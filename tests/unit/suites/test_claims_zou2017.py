"""The suite zou2017: rows as published, its lemmas against the derived figures, metrics on records made by hand, and
the integer program."""

from __future__ import annotations

import math
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from scaleproof.claims.arithmetic import Published
from scaleproof.claims.beyond_floor import FloorRange
from scaleproof.claims.claims_yaml import load_claims, load_published
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.judge import judge_suite
from scaleproof.claims.launch_pool import matches
from scaleproof.claims.metrics import Metric
from scaleproof.claims.suite_metrics import load_models
from scaleproof.record.store import Store
from scaleproof.spec.suite import Suite
from scaleproof.workloads.alexnet import alexnet
from tests.unit.claims.claims_samples import arithmetic, record, samples
from tests.unit.claims.made_up_launches import judged, with_value

ROOT = Path(__file__).resolve().parents[3]
SUITE = "zou2017"
MODELS = load_models(ROOT / "suites" / "zou2017" / "models" / "__init__.py")
CHOICE = MODELS.algorithm_choice
OWN = {"program": "own", "suite": "zou2017", "experiment": "overhead", "entry": "overhead", "arm": "slept"}
SWEEP = {"workers": 4, "nbytes": 1 << 20, "compute_ms": 140, "first_share": 0}
MEASURED = st.tuples(st.floats(1e-4, 10), st.integers(0, 1 << 30))
TABLES = st.lists(
    st.dictionaries(st.sampled_from(["direct", "gemm", "fft", "winograd"]), MEASURED, min_size=1),
    min_size=1,
    max_size=5,
)


def test_rows_are_those_of_their_sources_and_none_may_decide(suite: Suite) -> None:
    rows = load_published(suite.folder)
    assert Counter(row.provenance for row in rows.values()) == {"derived": 15, "memory_high": 2, "memory_medium": 1}
    assert not any(row.gate for row in rows.values())
    assert [claim.form.id for claim in load_claims(suite) if claim.row] == list(rows)


def test_without_launches_algebra_alone_is_judged(suite: Suite, tmp_path: Path) -> None:
    results = {result.id.removeprefix("zou2017."): result for result in judge_suite(suite, "smoke", Store(tmp_path))}
    assert {name for name, result in results.items() if result.verdict == "reproduced"} == {"own.algebra"}
    assert {results[name].verdict for name in ("lemma1", "lemma1.example", "lemma2")} == {"unverified"}
    derived = [result for result in results.values() if result.provenance == "derived"]
    assert {result.verdict for result in derived} == {None}
    for result in derived:
        assert result.ours == pytest.approx(result.published, rel=0.005), result.id


def test_a_wrong_lemma_fails_the_derived_rows(suite: Suite, metrics: dict[str, Metric]) -> None:
    rows = load_published(suite.folder)
    assert arithmetic(metrics["lemma_rows_off"], rows) == 0
    wrong = Published(
        row.model_copy(update={"value": 3.15}) if row.id == "zou2017.speedup.r10.g4" else row for row in rows.values()
    )
    assert arithmetic(metrics["lemma_rows_off"], wrong) == 1


@given(st.floats(0, 10), st.integers(1, 128))
def test_lemma_1_and_its_inverse_agree(ratio: float, workers: int) -> None:
    alpha = MODELS.lemmas.efficiency(ratio, workers)
    assert 1 / workers <= alpha * (1 + 1e-9) and alpha <= 1
    assert alpha * workers <= (1 + ratio) / ratio * (1 + 1e-9) if ratio else alpha == 1
    if workers > 1 and ratio > 1e-6:
        assert MODELS.lemmas.largest_overhead_ratio(workers, alpha) == pytest.approx(ratio, rel=1e-4)


def steps(ranks: int, compute_ms: float, overhead_ms: float) -> Launch:
    rows = [
        (rank, event, number, 0, length)
        for rank in range(ranks)
        for number in range(3)
        for event, length in (("compute", compute_ms), ("overhead", overhead_ms), ("step", compute_ms + overhead_ms))
    ]
    return Launch(record({**OWN, "ranks": ranks, "transport": "shm"}), samples(*rows))


def test_efficiency_is_held_against_the_overhead_ratio_of_one_worker(metrics: dict[str, Metric]) -> None:
    ratio, pair = metrics["overhead_ratio"].launch, metrics["over_lemma1"].pair
    assert ratio is not None and pair is not None
    single = steps(1, 100, 10)
    assert ratio(single.record, single.samples) == pytest.approx(0.1)
    assert pair(steps(4, 25, 10), single, None) == pytest.approx(1)
    assert pair(steps(4, 25, 20), single, None) == pytest.approx(35 / 45)
    assert ratio(steps(4, 25, 10).record, steps(4, 25, 10).samples) is None


def rounds(ranks: int, took_ms: float, **options: Any) -> Launch:
    case = {
        **OWN,
        "experiment": "servers",
        "entry": "servers",
        "arm": "workers_4",
        "ranks": ranks,
        "transport": "tcp",
        "options": {**SWEEP, **options},
    }
    return Launch(
        record(case), samples(*((rank, "round", number, 0, took_ms) for rank in range(ranks) for number in range(3)))
    )


def test_the_knee_of_a_sweep_is_held_against_the_bound_with_the_measured_rate(metrics: dict[str, Metric]) -> None:
    beyond, rate = metrics["beyond_bound"].block, metrics["server_rate"].launch
    assert beyond is not None and rate is not None

    def block(launches: list[Launch], floor: float | None) -> tuple[float, float, float] | None:
        found = beyond(launches, floor)
        return (found.value, found.low, found.high) if isinstance(found, FloorRange) else None

    alone = rounds(5, 350, compute_ms=0)
    assert rate(alone.record, alone.samples) == pytest.approx(8 * (1 << 20) / 0.35)
    assert rate(rounds(5, 350).record, rounds(5, 350).samples) is None
    masked = [rounds(4 + servers, max(140, 350 / servers)) for servers in (1, 2, 3, 4)]
    assert block([alone, *masked], None) == (0, 0, 0)
    assert block([alone, *masked[:2], rounds(7, 200), masked[3]], None) == (1, 1, 1)
    assert block(masked, None) is None
    two = rounds(6, 200, compute_ms=0)
    assert rate(two.record, two.samples) == pytest.approx(8 * (1 << 20) / 0.2 / 2), "of one server, not of both"
    assert block([two, alone, *masked], None) == (0, 0, 0)
    assert block([two, *masked], None) is None, "the bound's rate is that of one server"
    assert block([alone, *masked], 0.01) == (0, 0, 0)
    assert block([alone, *masked], 0.3) == (0, -2, 2), "two servers may be as fast as three, and the bound 2 to 4"


def test_launches_of_other_experiments_have_no_rounds(metrics: dict[str, Metric]) -> None:
    trained = {
        "program": "train",
        "suite": "zou2017",
        "experiment": "training",
        "arm": "servers",
        "ranks": 2,
        "transport": "tcp",
        "collective": "ring",
    }
    trained |= {"strategy": "parameter_server", "workload": "cd_dnn", "minibatch": 8, "steps": 1}
    for case in (trained, OWN | {"ranks": 1}):
        launch = Launch(record(case), samples((0, "round", 0, 0, 5)))
        for name in ("server_rate", "round_s"):
            metric = metrics[name].launch
            assert metric is not None and metric(launch.record, launch.samples) is None


@settings(deadline=None, max_examples=60)
@given(TABLES, st.floats(0, 1))
def test_the_integer_program_is_as_fast_as_brute_force_and_keeps_the_bound(
    table: list[dict[str, tuple[float, int]]], share: float
) -> None:
    most = sum(max(nbytes for _, nbytes in choices.values()) for choices in table)
    bound = round(share * most)
    ours, theirs = CHOICE.fastest(table, bound), CHOICE.by_brute_force(table, bound)
    assert (ours is None) == (theirs is None)
    if ours is not None:
        assert ours.time_s == pytest.approx(theirs.time_s, rel=1e-6)
        assert ours.nbytes <= bound * (1 + 1e-6)


def test_a_bound_that_shrinks_changes_the_choice_and_none_at_all_takes_the_fastest() -> None:
    table = [{"direct": (3.0, 0), "fft": (1.0, 100)}, {"direct": (2.0, 0), "winograd": (1.0, 40)}]
    fastest = CHOICE.fastest
    assert fastest(table, math.inf).algorithms == ("fft", "winograd")
    assert fastest(table, 120).algorithms == ("fft", "direct")
    assert fastest(table, 99).algorithms == ("direct", "winograd")
    assert fastest(table, 0).algorithms == ("direct", "direct")
    assert fastest(table, -1) is None and fastest([{"gemm": (1.0, 8)}], 7) is None


def test_the_procedure_takes_the_minibatch_with_most_points_per_second_that_fits() -> None:
    tables = {4: [{"direct": (4.0, 10)}], 16: [{"direct": (8.0, 100)}]}
    assert CHOICE.best_minibatch(tables, {4: 1000, 16: 1000})[0] == 16
    assert CHOICE.best_minibatch(tables, {4: 1000, 16: 50})[0] == 4
    assert CHOICE.best_minibatch(tables, {4: 0, 16: 0}) is None


def test_memory_left_shrinks_by_the_maps_of_every_point() -> None:
    network = alexnet(None, 1.0)
    of_one_point, of_two_points = (CHOICE.memory_left(network, points, 1 << 40) for points in (1, 2))
    rest = (1 << 40) - of_one_point - 4 * 3 * network.parameters
    assert of_one_point - of_two_points == rest > 4 * 3 * 224 * 224


def test_metrics_of_the_integer_program_read_medians_of_the_samples(metrics: dict[str, Metric]) -> None:
    case = {**OWN, "experiment": "convolutions", "entry": "convolutions", "arm": "alexnet", "ranks": 1}
    rows = []
    for points in (4, 16):
        for layer, (slow, quick) in enumerate(((30, 10), (20, 25))):
            rows += [(0, "conv.direct", layer, 0, slow + extra, 0, points) for extra in (0, 1, 90)]
            rows += [(0, "conv.fft", layer, 0, quick, points << 10, points)]
    measured = record(case), samples(*rows, (0, "conv.fft", 0, 0, 900, 1, 4, True))
    assert MODELS.measured_choices.tables(*measured)[4][0] == {"direct": (0.031, 0.0), "fft": (0.01, 4096.0)}
    values = {
        name: launch(*measured)
        for name, metric in metrics.items()
        if name.startswith("ilp_") and (launch := metric.launch)
    }
    assert values == {"ilp_difference": 0, "ilp_fastest_share": 1, "ilp_minibatch": 16, "ilp_tight_minibatch": 16}
    shortest = metrics["shortest_convolution_s"].launch
    assert shortest is not None and shortest(*measured) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("floor", "changed"), [(None, (1, 1, 1)), (0.1, (1, 1, 1)), (0.5, (1, 1, 2)), (3.0, (0, 0, 2))]
)
def test_a_layer_changes_only_where_its_algorithm_gets_slower_by_more_than_the_floor(
    metrics: dict[str, Metric], floor: float | None, changed: tuple[float, float, float]
) -> None:
    """Without memory the first layer takes 30 ms in place of 10; the second has its fastest one, 20 ms beside 25."""
    case = {**OWN, "experiment": "convolutions", "entry": "convolutions", "arm": "alexnet", "ranks": 1}
    rows = []
    for layer, (small, large) in enumerate(((30, 10), (20, 25))):
        rows += [(0, "conv.direct", layer, 0, small, 0, 4), (0, "conv.fft", layer, 0, large, 4096, 4)]
    block = metrics["ilp_changed_layers"].block
    assert block is not None
    found = block([Launch(record(case), samples(*rows))], floor)
    assert found == FloorRange(*map(float, changed))
    assert block([Launch(record(case), samples())], floor) is None


@pytest.mark.parametrize("check", ["brute_force", "unbounded", "cudnn"])
def test_a_broken_integer_program_fails_the_checks_on_it(monkeypatch: pytest.MonkeyPatch, check: str) -> None:
    """The same launches, whose layers have a fast algorithm and a slow one; the broken program takes the slow ones."""
    claim_id, made = f"zou2017.own.ilp.{check}", with_value("zou2017.own.ilp.changes", 2.0)
    assert judged(claim_id, made).verdict == "holds"
    milp = scipy.optimize.milp
    monkeypatch.setattr(scipy.optimize, "milp", lambda times, **limits: milp(-times, **limits))
    assert judged(claim_id, made).verdict == "fails"


@pytest.mark.parametrize(
    ("points", "maps", "out", "side", "kernel", "stride", "pad"),
    [
        (2, 3, 8, 35, (11, 11), 4, 2),
        (2, 16, 24, 13, (3, 3), 1, 1),
        (1, 8, 8, 17, (5, 5), 1, 2),
        (3, 4, 8, 8, (3, 3), 1, 0),
        (2, 4, 6, 9, (1, 7), 1, 3),
    ],
)
def test_every_algorithm_convolves(
    points: int, maps: int, out: int, side: int, kernel: tuple[int, int], stride: int, pad: int
) -> None:
    torch = pytest.importorskip("torch")
    algorithms = runpy.run_path(str(ROOT / "suites" / "zou2017" / "programs" / "algorithms.py"))
    random = torch.Generator().manual_seed(1)
    images, weights = (
        torch.randn(points, maps, side, side, generator=random),
        torch.randn(out, maps, *kernel, generator=random),
    )
    shape = algorithms["Shape"](maps, out, kernel, stride, ((pad, pad), (pad, pad)))
    expected = torch.nn.functional.conv2d(images, weights, stride=stride, padding=pad)
    fitting = {name: algorithm for name, algorithm in algorithms["ALGORITHMS"].items() if algorithm.fits(shape)}
    assert len(fitting) == {(3, 3): 5, (11, 11): 3}.get(kernel, 4)
    for name, algorithm in fitting.items():
        output = algorithm.compute(torch, shape.padded(torch, images), weights, stride)
        assert output.shape == expected.shape and float((output - expected).abs().max()) < 1e-4, name


MORE_CORES = ("zou2017.own.lemma1.multiplied.g4", "zou2017.own.lemma1.multiplied.g8")
"""Claims on real compute that need more cores than size smoke asks for."""


@pytest.mark.parametrize("size", ["smoke", "small", "full"])
def test_every_claim_has_launches_on_all_its_sides(suite: Suite, size: str) -> None:
    for claim in load_claims(suite):
        form = claim.form
        if form.experiment is None or (size == "smoke" and form.id in MORE_CORES):
            continue
        chosen = suite.experiment(form.experiment).size(size)
        assert chosen.launches >= 6
        for side in (form.select, form.against):
            assert side is None or any(matches(case, side) for case in chosen.cases), f"{form.id}: {side}"


def test_every_metric_has_its_page(metrics: dict[str, Metric]) -> None:
    for metric in metrics.values():
        assert (ROOT / metric.page).read_text().startswith(f"# {metric.name}"), metric.page
