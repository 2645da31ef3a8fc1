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


def timed(method: str, labels: int, seconds: float, modelled: float | None = None) -> Launch:
    notes = [Event("active", value=0.0), Event("changed_rows", value=0.0), Event("rate_fixed", value=modelled or 0.0)]
    return launch(case(method=method, labels=labels), Event("step", 0.0, seconds), *(notes if modelled else []))


def test_every_row_is_as_published_and_has_an_entry(suite: Suite) -> None:
    assert len(ROWS) == 103
    assert sum(row["gate"] for row in ROWS) == 52
    assert all(not row["gate"] for row in ROWS if row["provenance"].startswith("memory"))
    claims = {claim.form.id: claim.form for claim in load_claims(suite)}
    assert {row["id"] for row in ROWS} <= set(claims)
    served = [name for row in ROWS if (name := row["id"]) in claims and claims[name].experiment]
    assert served == ["slide2020.active.fraction"], "times and rates of other machines are judged nowhere"
    assert all(claims[row["id"]].kind == "context" for row in ROWS if row["metric"] == "setting")
    for name in ("c1", "c2", "c3.filled", "c4", "c5.faster", "c6.speedup", "c7.insertion"):
        assert claims[f"slide2020.own.{name}"].origin == "own"


def test_arms_of_training_have_one_rate_grid_and_share_all_but_what_they_name(suite: Suite) -> None:
    planned = suite.experiment("learning").sizes["smoke"].cases
    cases = {each.arm: each for each in planned if isinstance(each, OwnCase)}
    assert set(cases) == {"full", "sampled", "sampled_20", "tables", "filled", "random", "shuffled", "permuted"}
    for name in ("labels", "train", "test", "batch", "two"):
        assert len({each.options[name] for each in cases.values()}) == 1
    assert cases["random"].options["fill"] == cases["filled"].options["fill"] == cases["sampled"].options["classes"]
    assert cases["sampled_20"].options["classes"] == 1000 and cases["full"].options["labels"] == 5000
    assert [name for name, each in cases.items() if each.options["permuted"]] == ["permuted"]


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
    block = [
        timed("full", 5000, 0.01, 0.01),
        timed("full", 50000, 0.1, 0.1),
        timed("slide", 5000, 0.02, 0.03),
        timed("slide", 50000, 0.02, 0.03),
    ]
    assert iterations.crossover_error(block) == pytest.approx(0.5)
    assert iterations.iteration_error(block) == pytest.approx(0.25)
    assert iterations.iteration_error([timed("full", 5000, 0.01)]) is None


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


def test_the_model_at_published_sizes_falls_with_the_rate_of_products() -> None:
    speedups = [
        arithmetic.modelled_speedup(arithmetic.Machine(**{**AMAZON, "peak_share": share}), NOTHING)
        for share in (0.05, 0.5, 1.0)
    ]
    assert speedups == sorted(speedups, reverse=True)
    many = arithmetic.modelled_speedup(arithmetic.Machine(**{**AMAZON, "active": 300_000.0}), NOTHING)
    assert many < 1 < speedups[1]


def test_metrics_have_pages_and_generators(metrics: dict[str, Metric]) -> None:
    ours = {metric.name for metric in MODELS.METRICS}
    assert ours <= set(metrics)
    assert all(metric.made_up or metric.model for metric in MODELS.METRICS)


def test_launches_that_one_thread_made_are_not_taken_for_slide(suite: Suite) -> None:
    forms = {claim.form.id: claim.form for claim in load_claims(load_suite(SUITE, FOLDER.parent))}
    arms = forms["slide2020.own.c5.crossover"].select["arm"]
    assert "one_thread_50k" not in arms and "dense_50k" not in arms
