"""The suite narasimhan2014: rows as published, metrics on launches made by hand."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from scaleproof.claims.claims_yaml import load_claims, load_published
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.judge import judge_suite
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted
from scaleproof.claims.metrics import Metric
from scaleproof.record.store import Store
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.suite import Suite
from tests.short_form import case_from
from tests.unit.claims.claims_samples import value
from tests.unit.claims.made_up_launches import judged, with_value

SUITE = "narasimhan2014"
MODELS = Path(__file__).resolve().parents[3] / "suites" / SUITE / "models"
NAMES = "original 2_single 5pc_single 500_single 2_multi library library_unshrunk"
ACTIVE = [[0, 2000], [500, 1000]]
CURVES = {
    "original": {"active": [[0, 2000]], "reconstructions": []},
    "2_multi": {"active": ACTIVE, "reconstructions": [[1000, 300]]},
}
Points = Sequence[Sequence[float]]
FACTS = {"curves": CURVES, "data": {"longest": 10, "features": 10}}


def courses() -> ModuleType:
    """The package of the suite's models, imported by its path."""
    name = "narasimhan2014_models"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, MODELS / "__init__.py", submodule_search_locations=[])
        assert spec is not None and spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        module.__path__ = [str(MODELS)]
        spec.loader.exec_module(module)
    return importlib.import_module(f"{name}.courses")


def launch(
    values: dict[str, dict[str, float]],
    solved: dict[str, float] | None = None,
    facts: dict[str, Any] | None = None,
    further: tuple[Event, ...] = (),
    **fields: Any,
) -> Launch:
    """With events of variants on rank 0, and `solve` events of so many s on all ranks."""
    options = {"variants": NAMES, "samples": 2000, "parts": 16, **fields.pop("options", {})}
    base = {"program": "own", "entry": "training", "suite": SUITE, "experiment": "e", "arm": "a", "ranks": 1}
    case, names = case_from({**base, **fields, "options": options}), str(options["variants"]).split()
    noted = [
        Event(event, value=number, step=names.index(name), ranks=(0,))
        for event, of in values.items()
        for name, number in of.items()
    ]
    lasted = [Event("solve", 0.0, seconds, step=names.index(name)) for name, seconds in (solved or {}).items()]
    made = MadeUp((*noted, *lasted, *further), facts=facts or {})
    return Launch(made.record(case), made.samples(case.ranks))


def test_published_rows_are_those_of_their_sources(suite: Suite) -> None:
    rows = load_published(suite.folder)
    gated = {name.removeprefix("narasimhan2014."): row.value for name, row in rows.items() if row.gate}
    assert gated == {"speedup.max": 26, "improvement.low": 30, "improvement.high": 60}
    assert Counter(row.provenance for row in rows.values()) == {"paper": 3, "memory_medium": 1, "not_recovered": 1}


def test_what_our_own_code_counts_is_a_check(suite: Suite) -> None:
    claims = {claim.form.id.removeprefix("narasimhan2014."): claim for claim in load_claims(suite)}
    counted = {name for name, claim in claims.items() if claim.metric is not None and claim.metric.own_count}
    assert counted and all(claims[name].form.kind == "check" for name in counted)
    assert claims["speedup.max"].form.needs and not claims["own.time"].metric.own_count  # type: ignore[union-attr]


def test_without_launches_nothing_is_judged(suite: Suite, tmp_path: Path) -> None:
    results = judge_suite(suite, "smoke", Store(tmp_path))
    assert not [each.id for each in results if each.verdict in ("reproduced", "not reproduced")]


def test_elements_of_a_heuristic_are_compared_with_those_without_it(metrics: dict[str, Metric]) -> None:
    of = launch({"elements": {"original": 3e6, "2_single": 2e6, "5pc_single": 2.5e6, "500_single": 2.4e6}})
    assert value(metrics["elements_ratio_2_single"], of) == 1.5
    assert value(metrics["elements_ratio_2_multi"], of) is None
    assert value(metrics["aggressive_order_single"], of) == 0.5, "5 % (100 iterations) needs more than 500 iterations"
    assert value(metrics["aggressive_order_multi"], of) is None


def test_thresholds_that_are_equal_count_once(metrics: dict[str, Metric]) -> None:
    names = "500_single 5pc_single 50pc_single"
    elements = {"500_single": 1.0, "5pc_single": 2.0, "50pc_single": 3.0}
    assert value(
        metrics["aggressive_order_single"],
        launch({"elements": elements}, options={"variants": names, "samples": 10000}),
    ) in (0.0, 1.0)
    apart = launch({"elements": elements}, options={"variants": names, "samples": 2000})
    assert value(metrics["aggressive_order_single"], apart) == 0.5


def test_both_readings_of_the_gain(metrics: dict[str, Metric]) -> None:
    of = launch({}, {"original": 3.0, "2_multi": 2.0, "library": 0.5, "library_unshrunk": 0.6})
    assert value(metrics["shrinking_time_ratio"], of) == pytest.approx(1.5)
    assert value(metrics["time_improvement"], of) == pytest.approx(50)
    assert value(metrics["training_time_saved"], of) == pytest.approx(100 / 3)
    assert value(metrics["library_time_ratio"], of) == pytest.approx(1.2)
    assert value(metrics["library_over_ours"], of) == pytest.approx(0.25)
    slow = launch({}, {"original": 3.0, "2_single": 4.0})
    assert value(metrics["shrinking_time_ratio_single"], slow) == pytest.approx(0.75)


def test_the_worst_heuristic_counts(metrics: dict[str, Metric]) -> None:
    values = {
        "objective": {"original": -100.0, "2_single": -100.01, "2_multi": -99.9, "library": -100.02},
        "agree": {"original": 1.0, "2_single": 0.999, "2_multi": 0.99, "library": 0.98},
        "violation": {"original": 1.9, "2_single": 1.5, "2_multi": 7.0, "library": 9.0},
        "at_bound": {"original": 0.4, "2_multi": 0.9},
    }
    of = launch(values)
    assert value(metrics["objective_apart"], of) == pytest.approx(1e-3)
    assert value(metrics["library_objective_apart"], of) == pytest.approx(2e-4, rel=1e-3)
    assert value(metrics["prediction_agreement"], of) == 0.99
    assert value(metrics["library_agreement"], of) == 0.98
    assert value(metrics["violation"], of) == 7.0, "the library is not ours"
    assert value(metrics["bound_share"], of) == 0.4


def test_what_is_lost_without_reconstruction_is_beyond_what_is_lost_with_it(metrics: dict[str, Metric]) -> None:
    names = {"variants": "original 2_multi 2_never"}
    of = launch({"objective": {"original": -100.0, "2_multi": -99.9, "2_never": -100.3}}, options=names)
    assert value(metrics["objective_lost"], of) == pytest.approx(2e-3)
    alone = launch({"objective": {"original": -100.0, "2_never": -99.0}}, options={"variants": "original 2_never"})
    assert value(metrics["objective_lost"], alone) is None


def test_reconstructions_are_timed_one_by_one(metrics: dict[str, Metric]) -> None:
    curves = {"2_multi": {"active": ACTIVE, "reconstructions": [[1000, 300], [900, 310]]}}
    names, number = {"variants": "original 2_multi"}, 1
    back = (Event("reconstruct", 0.0, 1.0, step=number), Event("reconstruct", 2.0, 2.5, step=number))
    of = launch({}, {}, {"curves": curves}, back, options=names, ranks=2, transport="tcp")
    assert value(metrics["reconstruction_s"], of) == pytest.approx(0.75)
    assert value(metrics["reconstruction_s"], launch({}, {"original": 1.0}, {"curves": curves}, options=names)) is None


def test_processes_are_compared_with_rank_0_alone(metrics: dict[str, Metric]) -> None:
    alone = Event("alone", 0.0, 1.0, (0,), 0, value=1e6)
    of = launch(
        {"iterations": {"original": 500.0}, "apart": {"original": 0.0, "2_multi": 0.25}},
        {"original": 4.0},
        further=(alone,),
        ranks=2,
        transport="tcp",
    )
    assert value(metrics["processes_speedup"], of) == pytest.approx(0.25)
    assert value(metrics["solver_iteration_s"], of) == pytest.approx(0.008)
    assert value(metrics["alpha_apart"], of) == 0.25


def of_processes(own_s: float, element_s: float, measured_s: float, **fields: Any) -> Launch:
    """100 iterations on 2,000 samples, of which an iteration took so long; with what they cost one process."""
    whole, part = (100 * 4000, 80 * 1000)
    further = (
        Event("alone", 0.0, 100 * own_s + whole * element_s, (0,), 0, value=whole),
        Event("part", 0.0, 80 * own_s + part * element_s, (0,), 0, value=part),
        Event("exchange", 0.0, 0.3, (0,), 0, value=1000),
    )
    facts = {"curves": {"original": CURVES["original"]}, "data": FACTS["data"]}
    noted = {"iterations": {"original": 100.0}, "part_iterations": {"original": 80.0}}
    return launch(noted, {"original": 100 * measured_s}, facts, further, transport="tcp", **fields)


def test_an_iteration_over_links_is_elements_and_three_messages_in_rounds(metrics: dict[str, Metric]) -> None:
    message, byte_s, rounds = 2e-3 + 1e-4, 8e-8, 3
    row = 8 * (5 + 2 * 10)
    sent_s = rounds * (message + 16 * byte_s + 2 * (message + row * byte_s))
    seconds = 3e-5 + 2 * 2000 / 8 * 1e-7 + sent_s
    fields = {"ranks": 8, "fabric": {"name": "netns", "link_mbit": 100, "link_delay_ms": 2}}
    for factor, expected in ((1.0, 0.0), (1.25, 0.2), (0.5, 1.0)):
        of = of_processes(3e-5, 1e-7, factor * seconds, **fields)
        assert value(metrics["solver_iteration_error"], of) == pytest.approx(expected, abs=1e-6)
    of = of_processes(3e-5, 1e-7, seconds, **fields)
    assert value(metrics["solver_iteration_error_no_messages"], of) == pytest.approx(sent_s / seconds, abs=1e-6)


def test_on_this_machine_messages_take_what_they_took_by_themselves(metrics: dict[str, Metric]) -> None:
    parts = {"own": 3e-5, "elements": 2 * 2000 / 2 * 1e-7, "messages": 3e-4}
    of = of_processes(parts["own"], 1e-7, sum(parts.values()), ranks=2)
    assert value(metrics["solver_iteration_error"], of) == pytest.approx(0, abs=1e-6)
    for name, took in parts.items():
        error = value(metrics[f"solver_iteration_error_no_{name}"], of)
        assert error == pytest.approx(took / sum(parts.values()), abs=1e-6), "each cost left out alone"


def test_a_launch_that_timed_no_exchange_alone_predicts_nothing(metrics: dict[str, Metric]) -> None:
    untimed = Event("exchange", 0.0, 0.0, (0,), 0, value=0)
    of = launch({"iterations": {"original": 100.0}}, {"original": 1.0}, further=(untimed,), ranks=2, transport="tcp")
    assert value(metrics["solver_iteration_error"], of) is None


def test_two_sizes_tell_an_iteration_from_its_elements() -> None:
    module = courses()
    found = of_processes(3e-5, 1e-7, 1e-3, ranks=2)
    cost = module.cost_of(found.record, found.samples, "original")
    assert (cost.own_s, cost.element_s) == (pytest.approx(3e-5), pytest.approx(1e-7))
    slower_part = of_processes(9e-4, -1e-7, 1e-3, ranks=2)
    assert module.cost_of(slower_part.record, slower_part.samples, "original") is None, "no time is left for an element"


def course(active: Points, reconstructions: Points, looks: int) -> Any:
    module = courses()
    made = (tuple((float(a), float(b)) for a, b in each) for each in (active, reconstructions))
    return module.Course(1000.0, *made, 10, module.Cost(2e-5, 1e-7), looks)


def test_a_course_adds_up_iterations_and_reconstructions() -> None:
    module, free, slow = courses(), courses().Network(0.0, 0.0), courses().Network(1.0, 0.0)
    plain = course([[0, 2000], [500, 1000]], [[1000, 300]], 0)
    elements_s = 1e-7 * (500 * 4000 + 500 * 2000 + 300_000)
    assert plain.seconds(free, 1) == pytest.approx(1000 * 2e-5 + elements_s)
    assert plain.seconds(free, 4) == pytest.approx(1000 * 2e-5 + elements_s / 4)
    assert plain.seconds(slow, 4) == pytest.approx(plain.seconds(free, 4) + 1000 * 2 * 3 + 3)
    assert plain.scaled(10).seconds(free, 1) == pytest.approx(10 * 1000 * 2e-5 + 100 * elements_s)
    looking = course([[0, 2000], [500, 1000]], [[1000, 300]], 10)
    looks = 500 * 10 / 2000 + 500 * 10 / 1000
    assert looking.seconds(slow, 4) == pytest.approx(plain.seconds(slow, 4) + 2 * looks)
    assert module.fast_network().seconds(54.55e9 / 8) == pytest.approx(1 + 2e-6)


def test_many_processes_are_predicted_from_one_with_their_own_looks(metrics: dict[str, Metric]) -> None:
    module, name = courses(), "2_multi_of_4096"
    often = {"active": [[0, 2000], [10, 500]], "reconstructions": [[1500, 300]]}
    facts = {"curves": {**CURVES, name: often}, "data": FACTS["data"]}
    noted = {
        "iterations": {"original": 1000.0, "2_multi": 1000.0, name: 1000.0},
        "elements": {"original": 4e6},
        "part_iterations": {"original": 800.0},
    }
    part = Event("part", 0.0, 800 * 2e-5 + 800 * 1000 * 1e-7, (0,), 0, value=800 * 1000)
    fields: dict[str, Any] = {"options": {"variants": f"original 2_multi {name}", "parts": 1}}
    of = launch(noted, {"original": 1000 * 2e-5 + 0.4}, facts, (part,), **fields)
    factor, fast = module.SCALED / 2000, module.fast_network()
    original = course([[0, 2000]], [], 0).scaled(factor)
    one, many = (
        course(curve["active"], curve["reconstructions"], looks).scaled(factor)
        for curve, looks in ((CURVES["2_multi"], 1), (often, 4096))
    )
    alone_s, on_many = original.seconds(fast, 1), many.seconds(fast, 4096)
    assert value(metrics["predicted_speedup_1"], of) == pytest.approx(alone_s / one.seconds(fast, 1))
    assert value(metrics["predicted_speedup_4096"], of) == pytest.approx(alone_s / on_many)
    assert value(metrics["predicted_gain_4096"], of) == pytest.approx(original.seconds(fast, 4096) / on_many)
    assert value(metrics["predicted_share_4096"], of) == pytest.approx(many.reconstruction_s(fast, 4096) / on_many)
    assert value(metrics["predicted_speedup_256"], of) is None, "no solution has the looks of 256 processes"
    two = launch(noted, {"original": 0.42}, facts, (part,), ranks=2, transport="tcp", **fields)
    assert value(metrics["predicted_gain_4096"], two) is None, "elements of two ranks are not those of one core"


def test_a_look_that_is_never_reached_is_exact(metrics: dict[str, Metric]) -> None:
    options = {"variants": "original beyond_single"}
    elements = {"original": 3e6, "beyond_single": 3e6}
    of = launch({"elements": elements, "from_original": {"original": 0.0, "beyond_single": 0.5}}, options=options)
    assert value(metrics["elements_ratio_beyond_single"], of) == 1.0
    assert value(metrics["beyond_alpha_apart"], of) == 0.5


def test_the_rows_of_the_paper_are_judged_on_all_data(suite: Suite) -> None:
    claims = {claim.form.id.removeprefix("narasimhan2014."): claim.form for claim in load_claims(suite)}
    drawn = suite.experiment("heuristics").sizes["full"].cases
    arms = {case.arm for case in drawn} - {"never", "looks"}
    for name in ("improvement.low", "improvement.high", "own.time", "own.time.saved"):
        assert set(claims[name].select["arm"]) == arms and claims[name].over == ("arm",), name
    single, far = (claims[f"own.elements.{name}"].select["arm"] for name in ("single", "far"))
    assert {*single, far} == arms and far not in single
    links = suite.experiment("links").sizes
    assert {case.ranks for case in links["smoke"].cases} == {2}
    assert sorted(case.ranks for case in links["small"].cases) == [2, 4, 8]
    assert claims["own.iteration.error"].over == ("ranks",)
    pair = {case.arm: case.value("options.samples") for case in drawn if case.arm in ("easy", "noisy")}
    assert pair["easy"] == pair["noisy"]


@pytest.mark.parametrize(
    ("claim", "number", "verdict"),
    [
        ("own.same", 0.0, "holds"),
        ("own.same", 1e-3, "fails"),
        ("own.work.2.multi", 1.1, "fails"),
        ("own.work.2.multi", 2.0, "holds"),
        ("own.beyond.elements", 1.0, "holds"),
        ("own.beyond.elements", 1.0001, "fails"),
    ],
)
def test_claims_fall_both_ways(claim: str, number: float, verdict: str) -> None:
    name = f"{SUITE}.{claim}"
    make = with_value(name, number)

    def made(planned: PlannedLaunch) -> MadeUp:
        try:
            return make(planned)
        except ImpossibleValue:  # a case that the claim does not select
            return MadeUp()

    assert judged(name, made).verdict == verdict


def test_a_made_up_prediction_has_its_value(metrics: dict[str, Metric], suite: Suite) -> None:
    case = next(case for case in suite.experiment("heuristics").sizes["smoke"].cases if case.arm == "looks")
    wanted_values = {
        "predicted_speedup_1": 1.5,
        "predicted_speedup_4096": 900.0,
        "predicted_gain_4096": 0.8,
        "predicted_share_4096": 0.3,
    }
    for name, wanted in wanted_values.items():
        metric = metrics[name]
        assert metric.made_up is not None
        made = metric.made_up(Wanted(case, wanted))
        found = value(metric, Launch(made.record(case), made.samples(1)))
        assert found is not None and math.isclose(found, wanted, rel_tol=1e-3)
