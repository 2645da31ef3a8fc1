"""sun2015's rows as published, and its metrics on launches made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from scaleproof.claims.arithmetic import Published
from scaleproof.claims.claims_yaml import load_claims
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import Event, events
from scaleproof.claims.metrics import Metric
from scaleproof.claims.suite_metrics import load_models
from scaleproof.spec.case import OwnCase
from scaleproof.spec.suite import Suite
from tests.short_form import case_from

SUITE = "sun2015"
FOLDER = Path(__file__).resolve().parents[3] / "suites" / SUITE
MODELS = load_models(FOLDER / "models" / "__init__.py")
encoding, counts, costs = MODELS.encoding, MODELS.counts, MODELS.costs


def case(ranks: int = 2, entry: str = "mapreduce", iterations: int = 1, **options: Any) -> OwnCase:
    given = {
        "layers": "64-100-30",
        "images": 60,
        "maps": 4,
        "reducers": 4,
        "decimals": 0,
        "workers": 2,
        "jobs": "naive",
    }
    fields = {"program": "own", "entry": entry, "suite": SUITE, "experiment": "cost", "arm": "a", "transport": "tcp"}
    run = {"collective": "ring", "ranks": ranks, "iterations": iterations, "warmup": 0}
    made = case_from(fields | run | {"fabric": {"name": "netns", "link_mbit": 100}, "options": given | options})
    assert isinstance(made, OwnCase)
    return made


def names(job: str) -> str:
    return job if job in ("start_up", "class_archive") else f"step.{job}"


def launch(of: OwnCase, **values: float) -> Launch:
    """With events of these names, `_` for the dot after the first word, and values."""
    made = events(*(Event(name.replace("_", ".", 1), value=value, ranks=(0,)) for name, value in values.items()))
    return Launch(made.record(of), made.samples(of.ranks))


def steps(of: OwnCase, **seconds: float | list[float]) -> Launch:
    """With steps of each job."""
    made = []
    for job, times in seconds.items():
        for number, each in enumerate(times if isinstance(times, list) else [times]):
            made.append(Event(names(job), 1.0, 1.0 + each, ranks=(0,), step=number, value=1.0))
    found = events(*made)
    return Launch(found.record(of), found.samples(of.ranks))


def value(metrics: dict[str, Metric], name: str, of: Launch) -> float | None:
    function = metrics[name].launch
    assert function is not None
    return function(of.record, of.samples)


def test_rows_are_those_that_are_known_and_each_has_its_entry(suite: Suite) -> None:
    rows = yaml.safe_load((FOLDER / "published.yaml").read_text())["rows"]
    assert {row["id"].removeprefix("sun2015."): row["value"] for row in rows} == {
        "train_records_default": 60_000,
        "epochs": 20,
        "weight_init_sigma": 0.1,
        "learning_rate": 0.1,
        "weight_cost": 0.0,
        "weight_decimals": 3,
        "records_used_on_ec2": 5923,
        "arch1": None,
        "arch2": None,
        "shuffle.pairs": 784 * 1000 * 60_000,
        "missing": None,
    }
    assert [row["id"] for row in rows if row["gate"]] == ["sun2015.shuffle.pairs"]
    judged = {claim.form.id: claim.form.kind for claim in load_claims(suite)}
    assert {row["id"] for row in rows} <= judged.keys()
    assert judged["sun2015.shuffle.pairs"] == judged["sun2015.own.shuffle.combined"] == "consistency"


def test_arithmetic_on_constants_is_shown_for_each_number_of_maps_and_not_judged(suite: Suite) -> None:
    own = [claim for claim in load_claims(suite) if claim.form.id.startswith("sun2015.own.paper.")]
    shown = [claim for claim in own if claim.metric is not None and claim.metric.model is not None]
    assert {claim.form.kind for claim in shown} == {"context"}
    for kind in ("bytes", "bytes.naive", "sort", "sort.naive", "pairs"):
        found = {claim.form.x["maps"] for claim in shown if claim.form.id.rpartition(".")[0].endswith(f"paper.{kind}")}
        assert {1, 4, 16, 64} <= found, kind


def test_pairs_are_weights_times_records_or_times_maps() -> None:
    layer = {"layers": "784-1000", "records": 60_000}
    assert encoding.intermediate_pairs(encoding.OfEpoch(**layer), Published()) == 47_040_000_000
    combined = encoding.OfEpoch(**layer, maps=16, combined=True)
    assert encoding.intermediate_pairs(combined, Published()) == 12_544_000


def test_keys_take_two_three_or_five_bytes() -> None:
    assert [encoding.key_bytes(key) for key in (0, 255, 256, 65_535, 65_536)] == [2, 2, 3, 3, 5]
    for size in (1, 256, 300, 65_536, 70_000):
        assert encoding.keys_bytes(size) == sum(encoding.key_bytes(key) for key in range(size))


def test_batches_grow_by_half_and_hold_more_than_ten_pairs_a_reducer_at_first() -> None:
    assert encoding.batches(21, 2) == 2
    assert encoding.batches(22, 2) == 2 + 1, "the second batch has one pair"
    assert encoding.batches(21 + 31, 2) == 4 and encoding.batches(21 + 31 + 1, 2) == 5
    assert encoding.batches(0, 4) == 0


def test_an_empty_map_writes_nothing_and_images_are_divided_evenly() -> None:
    assert encoding.shares(60, 4) == [15, 15, 15, 15], "as Spark does"
    assert encoding.shares(10, 4) == [2, 3, 2, 3] and encoding.shares(2, 4) == [0, 1, 0, 1], "records of the paper"
    assert encoding.map_bytes(0, 100, True, 2) == encoding.map_bytes(0, 100, False, 2) == 0


def test_in_mapper_combining_divides_bytes_by_the_images_of_a_map() -> None:
    of = {"layers": "784-1000-500-250-30", "records": 60_000, "maps": 64, "reducers": 64}
    naive, combined = (
        encoding.shuffled_gib(encoding.OfEpoch(**of, combined=each), Published()) for each in (False, True)
    )
    assert naive / combined == pytest.approx(60_000 / 64, rel=5e-3)


def test_sorting_takes_n_log_n_of_each_map() -> None:
    x = encoding.OfEpoch(layers="4-4", records=8, maps=2)
    assert encoding.sort_comparisons(x, Published()) == 128 * 6, "16 weights of 8 records, 64 pairs in each map"


def test_counts_are_compared_with_formulas_and_the_worst_form_counts(metrics: dict[str, Metric]) -> None:
    of = case()
    naive, combined = (counts.bytes_by_formula(of, job) for job in ("naive", "in_mapper"))
    assert counts.bytes_by_formula(of, "combiner") == combined
    found = launch(of, bytes_naive=1.01 * naive, bytes_in_mapper=0.98 * combined)
    assert value(metrics, "shuffle_error", found) == pytest.approx(0.02)
    pairs = 60 * (6400 + 3000)
    assert counts.pairs_by_formula(of, "naive") == counts.pairs_by_formula(of, "combiner") == pairs
    assert counts.pairs_by_formula(of, "in_mapper") == pairs / 15
    assert value(metrics, "pairs_error", launch(of, pairs_naive=pairs, pairs_in_mapper=pairs / 15)) == 0
    assert value(metrics, "pairs_error", launch(of, pairs_naive=pairs + 1)) == pytest.approx(1 / pairs)
    assert value(metrics, "shuffle_error", launch(of)) is None


def test_what_a_killed_worker_cost(metrics: dict[str, Metric]) -> None:
    made = {"pairs_killed": 60 * 9400 * 1.25, "lost_killed": 2, "difference_killed": 1e-3, "difference_naive": 1e-15}
    found = launch(case(iterations=3), **made)  # the job has one epoch all the same
    assert value(metrics, "pairs_again", found) == pytest.approx(0.25)
    assert value(metrics, "lost_tasks", found) == 2
    assert value(metrics, "killed_difference", found) == 1e-3
    assert value(metrics, "weight_difference", found) == 1e-15, "the killed job has a claim of its own"


@pytest.mark.parametrize(("workers", "share", "error"), [(0, 0.0, 0.0), (1, 0.1, 0.1), (2, 0.4, 0.1), (4, 0.75, 0.0)])
def test_bytes_from_other_nodes_are_expected_of_all_but_one_worker(
    metrics: dict[str, Metric], workers: int, share: float, error: float
) -> None:
    found = launch(case(ranks=4, workers=workers), remote_naive=share)
    assert value(metrics, "remote_error", found) == pytest.approx(error)


def test_ratios_of_bytes(metrics: dict[str, Metric]) -> None:
    found = launch(
        case(), bytes_naive=300, bytes_in_mapper=20, bytes_combiner=25, wire_in_mapper=50, wire_all_reduce=10
    )
    assert value(metrics, "shuffle_saved", found) == 15 and value(metrics, "combiner_saved", found) == 12
    assert value(metrics, "wire_over_all_reduce", found) == 5
    assert value(metrics, "wire_over_all_reduce", launch(case(), wire_in_mapper=50, wire_all_reduce=0)) is None


def test_an_epoch_is_the_sum_of_both_layers_medians(metrics: dict[str, Metric]) -> None:
    of = case(iterations=3)
    found = steps(of, naive=[1.0, 2.0, 9.0, 0.1, 0.3, 0.2], all_reduce=[0.01, 0.03, 0.02, 0.001, 0.003, 0.002])
    assert value(metrics, "naive_epoch_s", found) == pytest.approx(2.2)
    assert value(metrics, "all_reduce_epoch_s", found) == pytest.approx(0.022)
    assert value(metrics, "naive_over_all_reduce", found) == pytest.approx(100)
    assert value(metrics, "naive_epoch_s", steps(of, naive=[1.0, 2.0, 9.0])) is None, "no step of the second layer"


def test_a_step_before_the_timed_ones_is_not_in_an_epoch(metrics: dict[str, Metric]) -> None:
    warm = [Event("step.naive", 0.0, 50.0, ranks=(0,), step=number, warmup=True) for number in (0, 1)]
    timed = [Event("step.naive", 0.0, 1.0, ranks=(0,), step=number) for number in (0, 1)]
    made = events(*warm, *timed)
    assert value(metrics, "naive_epoch_s", Launch(made.record(case()), made.samples(2))) == 2


def test_costs_are_epochs_over_those_of_the_all_reduce(metrics: dict[str, Metric]) -> None:
    times = {"naive": [1.0, 3.0], "combiner": [0.5, 0.5], "in_mapper": [0.2, 0.4], "all_reduce": [0.01, 0.03]}
    found = steps(case(), **times, start_up=[10.0], class_archive=[0.0])
    for form, ratio in (("naive", 100), ("combiner", 25), ("in_mapper", 15)):
        assert value(metrics, f"{form}_over_all_reduce", found) == pytest.approx(ratio)
    assert value(metrics, "start_in_epochs", found) == pytest.approx(250)
    assert value(metrics, "naive_over_all_reduce", steps(case(), naive=[1.0, 1.0])) is None


def test_the_start_of_a_launch_without_an_archive_of_classes_does_not_count(metrics: dict[str, Metric]) -> None:
    assert value(metrics, "start_in_epochs", steps(case(), all_reduce=[0.01, 0.03], start_up=10.0)) is None
    made = events(
        Event("start_up", 0.0, 10.0, ranks=(0,)),
        Event("class_archive", value=0.0, ranks=(0,)),
        *(Event("step.all_reduce", 0.0, 0.01, ranks=(0,), step=number) for number in (0, 1)),
    )
    assert value(metrics, "start_in_epochs", Launch(made.record(case()), made.samples(2))) is None


def test_a_speed_up_is_one_worker_over_two_in_a_repetition(metrics: dict[str, Metric]) -> None:
    one, two = steps(case(workers=1), combiner=[2.0, 1.0]), steps(case(workers=2), combiner=[1.5, 0.5])
    function = metrics["combiner_speedup"].block
    assert function is not None
    assert function([two, one], None) == pytest.approx(1.5)
    assert function([one], None) is None


def test_a_time_per_pair_predicts_the_other_layer_and_the_papers(metrics: dict[str, Metric]) -> None:
    """Two workers have half of the pairs each: 2 us for one of the first layer, beside 0.5 s of the job."""
    of = case(iterations=2)
    first, second = 60 * 6400, 60 * 3000
    naive = [0.5 + first * 1e-6] * 2 + [0.25 + second * 2e-6] * 2
    found = steps(of, naive=naive, in_mapper=[0.5, 0.5, 0.25, 0.25])
    predicted, measured = 0.25 + second * 1e-6, 0.25 + second * 2e-6
    assert value(metrics, "pair_time_error", found) == pytest.approx(1 - predicted / measured)
    assert value(metrics, "naive_epoch_hours", found) == pytest.approx(784e3 * 60e3 * 2e-6 / 16 / 3600)
    assert value(metrics, "pair_time_error", steps(of, naive=naive)) is None


def test_a_launch_in_which_noise_leaves_no_time_per_pair_has_no_hours(metrics: dict[str, Metric]) -> None:
    found = steps(case(), naive=[0.5, 0.4], in_mapper=[0.6, 0.3])
    assert value(metrics, "naive_epoch_hours", found) is None and value(metrics, "pair_time_error", found) is None


def test_penalty_and_passes(metrics: dict[str, Metric]) -> None:
    found = launch(case(ranks=1, entry="learning", iterations=20), error_cut=0.066, error_exact=0.06, passes=0.5)
    assert value(metrics, "rounding_penalty", found) == pytest.approx(0.1)
    assert value(metrics, "passes_saved", found) == 40
