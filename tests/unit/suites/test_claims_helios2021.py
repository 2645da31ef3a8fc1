"""The suite helios2021: rows as published, what judges them, and metrics on launches made by hand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from scaleproof.claims.claims_yaml import load_claims, load_published
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.judge import judge_suite
from scaleproof.claims.made_up import Event, MadeUp, events
from scaleproof.claims.metrics import Metric
from scaleproof.record.store import Store
from scaleproof.spec.case import OwnCase
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.suite import Suite
from tests.short_form import case_from
from tests.unit.claims.made_up_launches import judged

SUITE = "helios2021"
ROOT = Path(__file__).resolve().parents[3]


def launch(policy: str, values: dict[str, float], **options: object) -> Launch:
    case = case_from(
        {
            "program": "own",
            "entry": "scheduling",
            "suite": SUITE,
            "experiment": "synthetic",
            "arm": policy,
            "transport": "tcp",
            "fabric": {"name": "simulated", "costs": "stated"},
            "ranks": 1,
            "options": {"policy": policy, "cluster": "venus", "placement": "consolidate", "load": 0.85} | options,
        }
    )
    assert isinstance(case, OwnCase)
    made = events(*(Event(name, ranks=(0,), value=value) for name, value in values.items()))
    return Launch(made.record(case), made.samples(1))


def test_published_rows_are_those_of_their_sources(suite: Suite) -> None:
    rows = load_published(suite.folder)
    assert len(rows) == 303 and sum(row.gate for row in rows.values()) == 196
    assert {
        name: rows[f"helios2021.{name}"].value for name in ("qssf.jct.max", "ces.utilisation.max", "qssf.jct.min")
    } == {
        "qssf.jct.max": 6.5,
        "ces.utilisation.max": 13,
        "qssf.jct.min": 1.5,
    }
    assert rows["helios2021.t3.saturn.fifo.jct"].value == 55984
    assert rows["helios2021.philly.all.fifo.jct"].value == 86072
    assert rows["helios2021.fig14.utilisation_with_ces"].value == 95.06
    assert Counter(row.provenance for row in rows.values()) == {
        "author_code": 184,
        "derived": 66,
        "secondary": 32,
        "memory_high": 10,
        "memory_medium": 8,
        "paper": 2,
        "not_recovered": 1,
    }


def test_rows_of_a_trace_are_judged_on_that_trace_and_rows_of_the_generator_are_consistency(suite: Suite) -> None:
    traces = {"helios", "philly", "characteristics", "saving", "marginals"}
    for claim in load_claims(suite):
        if claim.form.origin == "own" or claim.form.kind == "context" or claim.form.needs:
            continue
        cases = [
            case
            for case in (
                each for size in suite.experiments[str(claim.form.experiment)].sizes.values() for each in size.cases
            )
            if all(
                case.value(key) in (want if isinstance(want, list) else [want])
                for key, want in claim.form.select.items()
            )
        ]
        sources = {case.value("options.trace") for case in cases}
        expected = {"generated"} if claim.form.kind == "consistency" else {"helios"}
        assert claim.form.experiment in traces
        assert sources in (expected, {"philly"} if claim.form.kind == "claim" else expected), claim.form.id


RECALLED = {f"helios2021.{name}" for name in ("qssf.queue.min", "qssf.queue.max", "ces.energy")}
NOT_RECOVERED = {"helios2021.t3.missing"}


def test_only_gated_rows_are_judged_and_the_readme_counts_them(suite: Suite) -> None:
    claims, rows = load_claims(suite), load_published(suite.folder)
    kinds = Counter((claim.form.origin, claim.form.kind) for claim in claims)
    context = {claim.form.id for claim in claims if claim.form.kind == "context" and claim.form.origin == "paper"}
    assert {name for name, row in rows.items() if not row.gate} == context | RECALLED | NOT_RECOVERED
    private = {claim.form.id for claim in claims if claim.form.needs} - RECALLED - NOT_RECOVERED
    philly = {name for name in rows if name.startswith("helios2021.philly.") and ".qssf." in name}
    assert private == philly | {f"helios2021.qssf.jct.{which}" for which in ("max", "min")} and len(private) == 28
    assert kinds == {
        ("paper", "claim"): 155 + 28 + 4,
        ("paper", "consistency"): 13,
        ("paper", "context"): 103,
        ("own", "claim"): 64,
        ("own", "check"): 10,
        ("own", "context"): 40,
        ("own", "consistency"): 1,
    }
    text = (suite.folder / "README.md").read_text()
    assert "| 155 | 74 on Philly, 31 on scheduling Helios, 29 on its jobs, 20 on switching nodes off, 1 on" in text
    own = "64 claims, 10 checks, 1 consistency, 40 shown"
    assert "| consistency | 13 |" in text and "| context | 103 |" in text and own in text


def test_without_launches_nothing_is_decided(suite: Suite, tmp_path: Path) -> None:
    results = {result.id: result.verdict for result in judge_suite(suite, "smoke", Store(tmp_path))}
    assert {results.pop(name) for name in RECALLED} == {"unverified"}
    assert {results.pop(name) for name in NOT_RECOVERED} == {"value not recovered"}
    private = [claim.form.id for claim in load_claims(suite) if claim.form.needs and claim.form.id in results]
    assert len(private) == 28 and {results.pop(name) for name in private} == {"not runnable here"}
    assert set(results.values()) == {None, "not run at this size"}


def test_gains_of_a_repetition(metrics: dict[str, Metric]) -> None:
    block = [
        launch("fifo", {"avg_jct": 80.0}),
        launch("qssf", {"avg_jct": 20.0}),
        launch("fifo", {"avg_jct": 30.0}, cluster="earth"),
        launch("qssf", {"avg_jct": 60.0}, cluster="earth"),
    ]
    assert metrics["better_than_fifo"].block(block, None) == 0.5  # type: ignore[misc]


def test_gain_with_load_and_with_placement(metrics: dict[str, Metric]) -> None:
    loads = [
        launch(policy, {"avg_jct": jct}, load=load)
        for policy, load, jct in (("fifo", 0.5, 20.0), ("qssf", 0.5, 10.0), ("fifo", 0.95, 90.0), ("qssf", 0.95, 15.0))
    ]
    assert metrics["gain_with_load"].block(loads, None) == pytest.approx(3.0)  # type: ignore[misc]
    assert metrics["gain_with_load"].block(loads[:2], None) is None  # type: ignore[misc]
    placed = [
        launch(policy, {"avg_jct": jct}, placement=placement)
        for policy, placement, jct in (
            ("fifo", "consolidate", 40.0),
            ("sjf", "consolidate", 10.0),
            ("fifo", "fungible", 30.0),
            ("sjf", "fungible", 10.0),
        )
    ]
    assert metrics["placement_change"].block(placed, None) == pytest.approx(0.75)  # type: ignore[misc]


def test_dispatchers_agree_where_the_simulation_tells_policies_apart(metrics: dict[str, Metric]) -> None:
    agree = metrics["dispatch_orders_agree"].block
    assert agree is not None
    far = [
        launch("fifo", {"dispatched_jct": 4.0, "simulated_jct": 4.0}),
        launch("qssf", {"dispatched_jct": 2.0, "simulated_jct": 1.0}),
        launch("fewest", {"dispatched_jct": 3.0, "simulated_jct": 0.5}),
    ]
    found = agree(far, 0.0)
    assert found is not None and found.value == pytest.approx(2 / 3)  # type: ignore[union-attr]
    unsure = agree(far, 0.4)
    assert (unsure.low, unsure.high) == pytest.approx((1 / 3, 2 / 3))  # type: ignore[union-attr]
    near = [
        launch("fifo", {"dispatched_jct": 4.0, "simulated_jct": 1.0}),
        launch("qssf", {"dispatched_jct": 3.0, "simulated_jct": 1.05}),
    ]
    assert agree(near, 0.0) is None
    error = metrics["dispatch_error"].launch
    assert error is not None and error(far[1].record, far[1].samples) == pytest.approx(1.0)


@pytest.mark.parametrize(("ratio", "expected"), [(3.0, "direction only"), (0.9, "not reproduced")])
def test_a_ratio_of_table_3_falls_both_ways(ratio: float, expected: str) -> None:
    def made(planned: PlannedLaunch) -> MadeUp:
        return events(Event("avg_jct", ranks=(0,), value=ratio if planned.case.arm == "fifo" else 1.0))

    assert judged("helios2021.t3.saturn.sjf.jct_ratio", made).verdict == expected


def test_a_published_dictionary_of_arms_is_complete(suite: Suite) -> None:
    """Every VC of Philly that has a row has its cases."""
    rows = load_published(suite.folder)
    stated = {row.x["vc"] for row in rows.values() if row.x.get("trace") == "philly" and "vc" in row.x}
    cases = suite.experiments["philly"].sizes["smoke"].cases
    assert stated == {str(case.value("options.vc")) for case in cases} and len(stated) == 12
