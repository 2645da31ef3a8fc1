"""Rows of slide2020 as published, and what its metrics make of launches."""

from __future__ import annotations

import math
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
from scaleproof.spec.suite import Suite, load_suite
from tests.short_form import case_from

SUITE = "slide2020"
FOLDER = Path(__file__).resolve().parents[3] / "suites" / SUITE
MODELS = load_models(FOLDER / "models" / "__init__.py")
iterations, learned, arithmetic = MODELS.iterations, MODELS.learned, MODELS.arithmetic
ROWS = yaml.safe_load((FOLDER / "published.yaml").read_text())["rows"]
NOTHING = Published()
AMAZON = {
    "labels": 670091,
    "batch": 256,
    "active": 3000.0,
    "functions": 400,
    "tables": 50,
    "period": 50,
    "gflops": 3379.2,
    "peak_share": 0.5,
    "gbytes": 153.6,
    "scattered": 0.5,
}


def case(**options: Any) -> OwnCase:
    given = {"method": "slide", "labels": 5000, "batch": 128, "tables": 50, "period": 50, "bits": 9, "hash": "simhash"}
    made = case_from(
        {
            "program": "own",
            "entry": "training",
            "suite": SUITE,
            "experiment": "speed",
            "arm": "a",
            "ranks": 1,
            "options": {**given, **options},
        }
    )
    assert isinstance(made, OwnCase)
    return made


def launch(of: OwnCase, *made: Event) -> Launch:
    found = events(*made)
    return Launch(found.record(of), found.samples(1))


def value(metric: Any, of: OwnCase, *made: Event) -> Any:
    found = launch(of, *made)
    return metric(found.record, found.samples)


def timed(method: str, labels: int, seconds: float, **rates: float) -> Launch:
    """A launch with these rates, if any; nothing is active."""
    notes = [Event("active", value=0.0), Event("changed_rows", value=0.0)]
    notes += [Event(f"rate_{name}", value=value) for name, value in {"fixed": 0.0, **rates}.items()]
    return launch(case(method=method, labels=labels), Event("step", 0.0, seconds), *(notes if rates else []))


def test_every_row_is_as_published_and_has_an_entry(suite: Suite) -> None:
    assert len(ROWS) == 103
    assert sum(row["gate"] for row in ROWS) == 52
    assert all(not row["gate"] for row in ROWS if row["provenance"].startswith("memory"))
    claims = {claim.form.id: claim.form for claim in load_claims(suite)}
    assert {row["id"] for row in ROWS} <= set(claims)
    assert [row["id"] for row in ROWS if claims[row["id"]].experiment] == [], "they are of other machines and data"
    assert all(claims[row["id"]].needs for row in ROWS if row["gate"] and claims[row["id"]].metric is None)
    assert all(claims[row["id"]].kind == "context" for row in ROWS if row["metric"] == "setting")
    for name in ("c1", "c2", "c3.filled", "c4", "c5.faster", "c6.speedup", "c7.insertion"):
        assert claims[f"slide2020.own.{name}"].origin == "own"


def test_arms_of_training_have_one_rate_grid_and_share_all_but_what_they_name(suite: Suite) -> None:
    planned = suite.experiment("learning").sizes["smoke"].cases
    cases = {each.arm: each for each in planned if isinstance(each, OwnCase)}
    of_tables = {"tables", "tables_often", "filled", "random", "shuffled", "permuted"}
    assert set(cases) == {"full", "sampled", "sampled_20"} | of_tables
    for name in ("labels", "train", "test", "batch", "two"):
        assert len({each.options[name] for each in cases.values()}) == 1
    assert cases["random"].options["fill"] == cases["sampled"].options["classes"] == 315, "the mean of filled"
    assert cases["filled"].options["fill"] == 250
    assert cases["sampled_20"].options["classes"] == 1000 and cases["full"].options["labels"] == 5000
    assert [name for name, each in cases.items() if each.options["permuted"]] == ["permuted"]
    assert [name for name, each in cases.items() if each.options["period"] != 50] == ["tables_often"]


def test_arms_on_grouped_labels_are_those_on_independent_ones(suite: Suite) -> None:
    learning, grouped = (
        {each.arm: each for each in suite.experiment(name).sizes["small"].cases if isinstance(each, OwnCase)}
        for name in ("learning", "grouped")
    )
    assert set(grouped) == {"full", "sampled", "tables", "filled", "random", "shuffled"}
    for name, each in grouped.items():
        changed = {key for key, value in each.options.items() if learning[name].options[key] != value}
        assert "data" in changed <= {"data", "rate"}, "and the rate that was tuned for them"


def test_ablations_have_no_random_neurons_and_the_papers_largest_step_between_rebuilds(suite: Suite) -> None:
    cases = [each for each in suite.experiment("ablations").sizes["small"].cases if isinstance(each, OwnCase)]
    assert {each.options["fill"] for each in cases} == {0}
    steps = {float(each.options["rate"]) * float(each.options["period"]) for each in cases}
    assert {round(step, 9) for step in steps} == {0.001 * 50}


def test_controls_are_of_the_method_that_they_control(suite: Suite) -> None:
    forms = {claim.form.id.removeprefix("slide2020.own."): claim.form for claim in load_claims(suite)}
    controls = {name: form.control.select["arm"] for name, form in forms.items() if form.control}
    assert controls["grouped.filled"] == "random", "as many neurons without tables"
    assert controls["c3.sampled_20"] == "sampled" and controls["exact"] == "most_neurons"
    assert "permuted" not in controls.values(), "nothing can be learned there, whatever is active"


def test_an_iteration_has_its_share_of_the_last_rebuild() -> None:
    made = [Event("step", 0.0, 0.01), Event("step", 1.0, 1.03), Event("step", 2.0, 2.02)]
    built = [Event("rebuild", 0.0, 9.0, warmup=True), Event("rebuild", 3.0, 3.5)]
    assert value(iterations.iteration_s, case(), *made, *built) == pytest.approx(0.02 + 0.5 / 50)
    assert value(iterations.iteration_s, case(), *made) == pytest.approx(0.02)
    assert value(iterations.iteration_s, case()) is None


def test_the_crossover_is_where_the_lines_of_logarithms_meet() -> None:
    block = [timed("full", 5000, 0.01), timed("full", 50000, 0.1), timed("slide", 5000, 0.02)]
    block.append(timed("slide", 50000, 0.02))
    assert iterations.crossover_labels(block) == pytest.approx(10000)
    assert iterations.advantage_growth(block) == pytest.approx(1)
    assert iterations.crossover_labels(block[:3]) is None
    slower = [timed("full", 5000, 0.01), timed("full", 50000, 0.1), timed("slide", 5000, 0.2)]
    assert iterations.crossover_labels([*slower, timed("slide", 50000, 0.2)]) == pytest.approx(100000), (
        "beyond the last"
    )
    falling = [timed("full", 5000, 0.1), timed("full", 50000, 0.01), timed("slide", 5000, 0.02)]
    assert iterations.crossover_labels([*falling, timed("slide", 50000, 0.02)]) is None


def test_the_model_is_held_against_the_measured_times() -> None:
    flop = 0.01 / 5000 / (6 * 128 * 128)
    block = [
        timed("full", 5000, 0.01, flop=flop),
        timed("full", 50000, 0.1, flop=9.0),
        timed("slide", 5000, 0.02, fixed=0.03),
        timed("slide", 50000, 0.04, fixed=9.0),
    ]
    assert iterations.crossover_error(block[:3]) is None
    assert iterations.modelled_crossover(block) == pytest.approx(15000), "with the rates of the fewest labels alone"
    measured = iterations.crossover_labels(block)
    assert iterations.crossover_error(block) == pytest.approx(abs(15000 / measured - 1))
    assert iterations.iteration_error(block) == pytest.approx((0 + 0.25) / 2), (
        "the launches with the rates are left out"
    )
    assert iterations.iteration_error(block[::2]) is None
    assert iterations.iteration_error([timed("full", 5000, 0.01)]) is None


def test_the_parts_of_an_iteration_are_shares_of_all_of_it() -> None:
    counted = [Event("active", value=10.0), Event("changed_rows", value=100.0)]
    rates = {"visit": 1e-3, "adam": 1e-2, "hash": 5e-3, "insert": 1e-4, "fixed": 0.5}
    made = [*counted, *(Event(f"rate_{name}", value=value) for name, value in rates.items())]
    parts = {
        "hashing": 128 * 5e-3,
        "forward": 128 * 10 * 1e-3 / 4,
        "backward": 128 * 10 * 1e-3 * 3 / 4,
        "adam": 100 * 1e-2,
        "rebuild": 5000 * (5e-3 + 50 * 1e-4) / 50,
    }
    whole = 0.5 + sum(parts.values())
    for metric in MODELS.parts.METRICS:
        part = metric.name.removeprefix("modelled_").removesuffix("_share")
        assert value(metric.launch, case(), *made) == pytest.approx(100 * parts[part] / whole)
        assert value(metric.launch, case(method="full"), *made) is None
        assert value(metric.launch, case(), *counted) is None


def test_operations_of_an_iteration_are_counted() -> None:
    costs = MODELS.iterations.slide_s.__globals__
    counts = costs["Counts"](labels=1000, batch=10, active=20, changed=300, tables=5, period=50)
    one = costs["Rates"]
    assert costs["slide_s"](counts, one(visit=1.0)) == 200
    assert costs["slide_s"](counts, one(adam=1.0)) == 300
    assert costs["slide_s"](counts, one(hash=1.0)) == 10 + 1000 / 50
    assert costs["slide_s"](counts, one(insert=1.0)) == 1000 * 5 / 50
    assert costs["full_s"](counts, one(flop=1.0)) == 6 * 10 * 1000 * 128
    assert costs["full_s"](counts, one(byte=1.0)) == 4 * 1000 * (7 * 128 + 8 * 10)
    assert costs["full_s"](counts, one(fixed=2.0)) == costs["slide_s"](counts, one(fixed=2.0)) == 2


def test_retrieval_is_compared_with_theory_at_the_worst_cosine() -> None:
    theory = {cosine: learned.retrieval_theory(cosine / 100, 9, 50) for cosine in (90, 70, 50)}
    assert theory[70] == pytest.approx(1 - (1 - (1 - math.acos(0.7) / math.pi) ** 9) ** 50)
    made = [Event("retrieved", nbytes=90, value=theory[90]), Event("retrieved", nbytes=50, value=theory[50] - 0.04)]
    assert value(learned.retrieval_error, case(), *made) == pytest.approx(0.04)
    assert value(learned.retrieval_error, case(hash="dwta"), *made) is None


def test_a_deviation_from_theory_is_counted_in_half_widths_of_the_binomial_interval() -> None:
    theory = learned.retrieval_theory(0.7, 9, 50)
    of = case(queries=500)
    assert of.iterations * 500 == learned._queries(of)
    half = learned.half_width(theory, of.iterations * 500)
    assert learned.half_width(0.8, 2000) == pytest.approx(2.394 * math.sqrt(0.8 * 0.2 / 2000), rel=0.01)
    assert learned.half_width(1.0, 2000) > 0, "Wilson's interval of a share of 1 has a width"
    found = value(learned.retrieval_deviation, of, Event("retrieved", nbytes=70, value=theory - 2 * half))
    assert found == pytest.approx(2)
    assert value(learned.retrieval_deviation, case(queries=500, hash="dwta"), Event("retrieved", nbytes=70)) is None


def test_a_gain_of_one_is_that_of_random_neurons() -> None:
    found = value(learned.recall_gain, case(), Event("recall", value=0.3), Event("share", value=0.1))
    assert found == pytest.approx(3)
    assert value(learned.recall_gain, case(), Event("recall", value=0.0), Event("share", value=0.0)) is None
    trained = value(learned.recall_gain, case(), Event("recall", value=0.3), Event("retrieved_share", value=0.2))
    assert trained == pytest.approx(1.5), "of a training"
    assert value(learned.active_share, case(), Event("active", value=250.0)) == pytest.approx(5)


def test_the_authors_shift_reaches_few_of_the_buckets() -> None:
    codes = arithmetic.Codes
    assert arithmetic.reachable_buckets(codes(codes=6, values=8, shift=2), NOTHING) == 9556
    assert arithmetic.reachable_buckets(codes(codes=6, values=8, shift=3), NOTHING) == 8**6
    assert arithmetic.reachable_buckets(codes(codes=2, values=3, shift=1), NOTHING) == 7


def test_the_stated_crossover_is_where_the_model_has_both_alike() -> None:
    machine = {name: given for name, given in AMAZON.items() if name != "labels"}
    labels = arithmetic.stated_crossover(arithmetic.Machine(**machine), NOTHING)
    at = arithmetic.Layer(**machine, labels=round(labels))
    assert arithmetic.modelled_speedup(at, NOTHING) == pytest.approx(1, rel=1e-4)
    shares = [arithmetic.stated_share(arithmetic.Part(**AMAZON, part=part), NOTHING) for part in MODELS.parts.PARTS]
    assert sum(shares) == pytest.approx(100) and min(shares) > 0


def test_tables_whose_buckets_overflow_return_what_they_have_room_for() -> None:
    buckets = arithmetic.Buckets
    even = arithmetic.stated_active_share(buckets(labels=20000, buckets=512, tables=50, room=128), NOTHING)
    assert even == pytest.approx(100 * (1 - (1 - 1 / 512) ** 50))
    full = arithmetic.stated_active_share(buckets(labels=205443, buckets=512, tables=50, room=128), NOTHING)
    assert full == pytest.approx(100 * (1 - (1 - 128 / 205443) ** 50)) and full < even


def test_the_model_at_published_sizes_falls_with_the_rate_of_products() -> None:
    speedups = [
        arithmetic.modelled_speedup(arithmetic.Layer(**{**AMAZON, "peak_share": share}), NOTHING)
        for share in (0.05, 0.5, 1.0)
    ]
    assert speedups == sorted(speedups, reverse=True)
    many = arithmetic.modelled_speedup(arithmetic.Layer(**{**AMAZON, "active": 300_000.0}), NOTHING)
    assert many < 1 < speedups[1]


def test_metrics_have_pages_and_generators(metrics: dict[str, Metric]) -> None:
    ours = {metric.name for metric in MODELS.METRICS}
    assert ours <= set(metrics)
    assert all(metric.made_up or metric.model for metric in MODELS.METRICS)


def test_launches_that_one_thread_made_are_not_taken_for_slide(suite: Suite) -> None:
    forms = {claim.form.id: claim.form for claim in load_claims(load_suite(SUITE, FOLDER.parent))}
    arms = forms["slide2020.own.c5.crossover"].select["arm"]
    assert "one_thread_50k" not in arms and "dense_50k" not in arms
