"""What dira2019 claims, and what its metrics make of launches made by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.arithmetic import Published
from scaleproof.claims.claims_yaml import load_claims, load_published
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import Event, MadeUp
from scaleproof.claims.suite_metrics import load_models
from scaleproof.spec.case import AnyCase
from scaleproof.spec.suite import Suite
from tests.short_form import case_from

SUITE = "dira2019"
FOLDER = Path(__file__).resolve().parents[3] / "suites" / SUITE
MODELS = load_models(FOLDER / "models" / "__init__.py")
ROWS = {
    "dira2019.claim": (1, "paper", True),
    "dira2019.systems": (20, "memory_low", False),
    "dira2019.channels": (15, "memory_low", False),
    "dira2019.actions.unordered": (15504, "derived", True),
    "dira2019.actions.ordered": (20274183401472000, "derived", True),
    "dira2019.missing": (None, "not_recovered", False),
}


def case(entry: str = "scheduling", **options: Any) -> AnyCase:
    base = {"program": "own", "entry": entry, "suite": SUITE, "experiment": "costs", "arm": "a", "ranks": 1}
    return case_from({**base, "iterations": 1, "warmup": 0, "options": options})


def launch(costs: dict[str, float] | None = None, work: dict[str, float] | None = None) -> Launch:
    made = MadeUp(facts={"costs": costs or {}, "work": work or {}})
    return Launch(made.record(case()), made.samples(1))


def test_rows_are_as_published() -> None:
    rows = load_published(FOLDER).values()
    assert {row.id: (row.value, row.provenance, row.gate) for row in rows} == ROWS


def test_every_row_has_its_entry_and_controls_belong_to_the_claims_on_cost(suite: Suite) -> None:
    claims = {claim.form.id: claim.form for claim in load_claims(suite)}
    assert set(ROWS) <= set(claims)
    assert {claims[row].kind for row in ("dira2019.systems", "dira2019.channels")} == {"context"}
    assert {claims[f"dira2019.actions.{kind}"].kind for kind in ("ordered", "unordered")} == {"consistency"}
    controls = {"round_robin": "shuffled_8_3", "greedy": "shuffled_8_3"}
    controls |= {"plain": "shuffled_plain_8_3", "plain.greedy": "shuffled_plain_8_3"}
    for name, arm in controls.items():
        form = claims[f"dira2019.own.{name}"]
        assert form.over == ("arm",) and form.control is not None and form.control.select == {"arm": arm}


def test_the_row_of_the_paper_is_judged_on_the_network_over_the_whole_state(suite: Suite) -> None:
    claims = {claim.form.id: claim.form for claim in load_claims(suite)}
    row, costs = claims["dira2019.claim"], suite.experiment("costs")
    planned = {case.arm: case for case in costs.sizes["small"].cases}
    own = {"shuffled_plain_8_3", "plain_step_20_8"}
    whole = {name for name, case in planned.items() if case.value("options.scheduler") == "iterative"} - own
    assert row.control is not None and row.control.select == {"arm": "shuffled_plain_8_3"}
    assert set(row.select["arm"]) == whole and len(whole) == 4
    assert {planned[name].value("options.plants") for name in row.select["arm"]} == {8, 20, 50}
    assert claims["dira2019.own.plain"].select == claims["dira2019.own.plain.greedy"].select == row.select


def test_at_least_six_launches_are_planned_for_every_claim_on_cost(suite: Suite) -> None:
    for name, size in (("costs", "smoke"), ("coherence", "smoke"), ("decisions", "small")):
        assert suite.experiment(name).sizes[size].launches >= 6


@pytest.mark.parametrize(("ordered", "expected"), [(False, 15504.0), (True, 20274183401472000.0)])
def test_schedules_are_counted_exactly(ordered: bool, expected: float) -> None:
    x = MODELS.action_spaces.Schedule(systems=20, channels=15, ordered=ordered)
    assert MODELS.action_spaces.action_space(x, Published()) == expected
    assert expected == (math.factorial(20) // math.factorial(5)) / (1 if ordered else math.factorial(15))


def test_costs_are_compared_within_a_launch(metrics: Any) -> None:
    found = launch({"learned": 3.0, "round_robin": 6.0, "greedy": 4.0, "heuristic": 2.0, "random": 12.0})
    values = {name: metrics[name].launch(found.record, found.samples) for name in metrics if metrics[name].launch}
    assert values["learned_cost"] == 3 and values["learned_over_round_robin"] == 0.5
    assert values["learned_over_greedy"] == 0.75 and values["learned_over_heuristic"] == 1.5
    assert values["heuristic_over_greedy"] == 0.5 and values["learned_over_random"] == 0.25
    assert values["gap_closed"] == 0.75 and values["round_robin_over_greedy"] == 1.5
    assert values["greedy_over_greedy_unaware"] is None and values["network_updates"] is None


def test_the_better_controller_of_a_rule_counts(metrics: Any) -> None:
    rules = {"round_robin": 6.0, "greedy": 4.0, "heuristic": 2.0}
    worse = {f"{rule}_unaware": 2 * cost for rule, cost in rules.items()}
    for costs in ({**rules, **worse}, {**{f"{rule}_unaware": cost for rule, cost in rules.items()}, "greedy": 9.0}):
        found = launch({"learned": 3.0, **costs})
        values = {name: metrics[name].launch(found.record, found.samples) for name in metrics if metrics[name].launch}
        assert values["learned_over_round_robin"] == 0.5 and values["learned_over_greedy"] == 0.75
        assert values["heuristic_over_greedy"] == 0.5 and values["gap_closed"] == 0.75
    aware = launch({**rules, **worse})
    for rule in ("greedy", "round_robin"):
        assert metrics[f"{rule}_over_{rule}_unaware"].launch(aware.record, aware.samples) == 0.5
    ahead = launch({"learned": 3.0, "round_robin": 4.0, "round_robin_unaware": 2.0})
    assert MODELS.costs.learned_scales([ahead]) == 0


def test_a_gap_that_is_none_has_no_share() -> None:
    worse = launch({"learned": 3.0, "round_robin": 2.0, "heuristic": 2.0})
    assert MODELS.costs.gap_closed(worse.record, worse.samples) is None


def test_one_size_that_costs_more_than_round_robin_does_not_scale() -> None:
    better, worse = launch({"learned": 1.0, "round_robin": 2.0}), launch({"learned": 2.0, "round_robin": 2.0})
    assert MODELS.costs.learned_scales([better, better]) == 1
    assert MODELS.costs.learned_scales([better, worse]) == 0
    assert MODELS.costs.learned_scales([better]) == 1 and MODELS.costs.learned_scales([]) is None
    assert MODELS.costs.learned_scales([better, launch()]) is None


def test_work_is_counted(metrics: Any) -> None:
    counts = {"outputs": 56, "plants": 8, "pairs": 24, "values_of_schedule": 24, "updates": 1200}
    found = launch(work={**counts, "multiply_adds_of_schedule": 9792})
    assert metrics["values_per_pair"].launch(found.record, found.samples) == 1
    assert metrics["outputs_per_plant"].launch(found.record, found.samples) == 7
    assert metrics["network_updates"].launch(found.record, found.samples) == 1200
    assert metrics["schedule_multiply_adds"].launch(found.record, found.samples) == 9792
    counted = ("outputs_per_plant", "values_per_pair", "network_updates", "schedule_multiply_adds", "outputs_growth")
    assert all(metrics[name].own_count for name in counted)


@pytest.mark.parametrize(("outputs", "growth"), [((20, 20, 20), 0.0), ((10, 20, 30), 1.0)])
def test_the_growth_of_outputs_is_their_slope(outputs: tuple[int, ...], growth: float) -> None:
    work = {str(channels): {"outputs": each} for channels, each in zip((5, 10, 15), outputs, strict=True)}
    made = MadeUp(facts={"schedules": work})
    found = MODELS.decisions.outputs_growth(made.record(case("decisions")), made.samples(1))
    assert found == pytest.approx(growth, abs=1e-12)
    assert MODELS.decisions.outputs_growth(launch().record, launch().samples) is None


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_exponent_of_a_decision_is_the_slope_of_its_time(power: float) -> None:
    times = {5: 1e-3, 10: 1e-3 * 2**power, 15: 1e-3 * 3**power}
    made = MadeUp(tuple(Event(f"decide_{channels}", 0.0, seconds) for channels, seconds in times.items()))
    of = case("decisions", channels="5-10-15")
    assert MODELS.decisions.decision_growth(made.record(of), made.samples(1)) == pytest.approx(power, rel=1e-3)
    assert MODELS.decisions.decision_growth(made.record(case()), made.samples(1)) is None
