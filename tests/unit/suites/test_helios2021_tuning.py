"""What is tuned in helios2021: the rolling estimate, LightGBM's share and trees, and forecasts of used nodes."""

from __future__ import annotations

import importlib
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleproof.programs.own import load_entry
from scaleproof.simulate.predict import Predictor
from scaleproof.spec.case import OwnCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.suite import load_suite
from tests.short_form import case_from

PROGRAMS = Path(__file__).resolve().parents[3] / "suites" / "helios2021" / "programs"
NAMES = ("jobs", "simulation", "policies", "forest", "forecasts", "node_series", "sources", "traces")
load_entry(PROGRAMS, "scheduling")
jobs, simulation, policies, forest, forecasts, node_series, sources, traces = (
    importlib.import_module(f"suite_programs.{name}") for name in NAMES
)
DAY = 144
EXTRA = "extra helios2021 (type: python3 -m tools.setup extras helios2021)"


@pytest.fixture(autouse=True)
def _programs() -> None:
    """The programs of this suite, also after those of another one were loaded."""
    load_entry(PROGRAMS, "scheduling")
    globals().update({name: importlib.import_module(f"suite_programs.{name}") for name in NAMES})


def made(rows: list[tuple[int, int, int]]) -> Any:
    """Jobs of 1 GPU on a pool of 1, of submission, duration and user."""
    submit, duration, user = (np.array(column) for column in zip(*rows, strict=True))
    none = np.zeros(len(rows), np.int64)
    pools = jobs.Pools(("vc",), np.array([1]), 1)
    return jobs.Jobs("made", pools, submit.astype(float), duration.astype(float), none + 1, none, user, none - 1, none)


def scheduled(some: Any, **tuned: float) -> Any:
    """Under QSSF."""
    return simulation.simulate(some, policies.rule_of("qssf", some, 1, rolling=simulation.Rolling(**tuned)))


def case(entry: str, **given: object) -> OwnCase:
    """A case of generated jobs or nodes."""
    found = case_from(
        {
            "program": "own",
            "entry": entry,
            "suite": "helios2021",
            "experiment": "tuned",
            "arm": "tuned",
            "transport": "tcp",
            "fabric": {"name": "simulated", "costs": "stated"},
            "ranks": 1,
            "iterations": 1,
            "warmup": 0,
            "options": {"trace": "generated", "cluster": "venus", "jobs": 400, "nodes": 2, "vcs": 1, "load": 0.9}
            | {"policy": "qssf", "placement": "consolidate", "queue": "blocking"}
            | {"total": 143, "days": 30, "forecast": "linear"}
            | given,
        }
    )
    assert isinstance(found, OwnCase)
    return found


LAST_TWO = [(0, 100, 1), (100, 20, 1), (120, 30, 2), (150, 50, 3), (160, 9, 1), (161, 8, 2)]
"""User 1 had jobs of 100 s and, later, of 20 s, user 2 one of 30 s; while user 3's runs both submit one more."""


def test_a_decay_forgets_early_durations_so_that_another_job_goes_first() -> None:
    some = made(LAST_TWO)
    plain, fading = scheduled(some), scheduled(some, decay=0.1)
    assert plain.guess[4:].tolist() == [60.0, 30.0] and plain.first[5] < plain.first[4]
    assert fading.guess[4] == pytest.approx((0.1 * 100 + 20) / 1.1) and fading.guess[5] == 30.0
    assert fading.first[4] < fading.first[5]


def test_a_pull_moves_an_estimate_to_that_of_the_less_specific_group() -> None:
    some = made([(0, 40, 1), (40, 80, 2), (120, 5, 1), (125, 5, 3)])
    found = scheduled(some, prior_count=1.0)
    everyone = (40 + 80 + simulation.PRIOR_S) / 3
    user = (40 + everyone) / 2
    assert found.guess[2] == pytest.approx((40 + user) / 2)
    assert found.guess[3] == pytest.approx((40 + 80 + 5 + simulation.PRIOR_S) / 4)  # a user without a past
    assert scheduled(some).guess[2] == 40.0
    alike = scheduled(some, prior_count=1e9).guess
    assert alike == pytest.approx(np.full(4, simulation.PRIOR_S))


def test_the_share_of_a_prediction_decides_which_job_goes_first() -> None:
    some = made(LAST_TWO)
    given = np.array([1.0, 1.0, 1.0, 1.0, 10.0, 70.0])

    def mixed(share: float) -> Any:
        rule = simulation.Rule(policies.engine.MIXED, given, rolling=simulation.Rolling(share=share))
        return simulation.simulate(some, rule)

    assert mixed(0.0).first.tolist() == scheduled(some).first.tolist()
    assert mixed(0.9).first[4] < mixed(0.9).first[5] and mixed(0.1).first[5] < mixed(0.1).first[4]


def test_trees_of_few_leaves_predict_otherwise() -> None:
    pytest.importorskip("lightgbm", reason=EXTRA)
    some = traces.read_slice()
    ended = simulation.simulate(some, policies.rule_of("fifo", some, 1)).end
    plain, few = (forest.predictions(some, ended, 1, replace(forest.QUEUE_TREES, leaves=of)) for of in (31, 2))
    assert np.array_equal(plain, forest.predictions(some, ended, 1)) and not np.allclose(plain, few)


def test_a_penalty_shrinks_the_weights_of_least_squares() -> None:
    used = node_series.generated(143, 20, 1)
    inputs, train = forecasts.features(used, 6), 10 * DAY
    free, tiny, strong = (forecasts.least_squares(inputs, used, train, of) for of in (0.0, 1e-9, 1e6))
    mean = np.full(len(used), used[:train].mean())
    assert tiny == pytest.approx(free, abs=0.05) and strong == pytest.approx(mean, abs=0.1)


def test_forecasts_have_the_models_that_they_are_given() -> None:
    used = node_series.generated(143, 20, 1)
    plain = forecasts.MODELS
    kinds = [("linear", replace(plain, penalty=0.5))]
    if find_spec("lightgbm"):
        kinds.append(("causal", replace(plain, trees=replace(plain.trees, leaves=2))))
    for kind, models in kinds:
        ours, theirs = (forecasts.forecasts(used, 10 * DAY, 36, 1, kind, models=of) for of in (plain, models))
        assert not np.allclose(ours, theirs), kind


def test_generated_jobs_may_be_without_names() -> None:
    named, bare = (sources.jobs_of(case("scheduling", **given), 1) for given in ({}, {"names": "withheld"}))
    assert (named.name >= 0).all() and set(bare.name) == {jobs.NO_NAME}
    assert np.array_equal(named.duration, bare.duration)
    with pytest.raises(SpecError, match="options.names: unknown value 'none'"):
        sources.jobs_of(case("scheduling", names="none"), 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"decay": 1.1}, "options.decay: 1.1 is no number from 0 to 1"),
        ({"decay": "slow"}, "options.decay: 'slow' is no number from 0 to 1"),
        ({"prior_count": -1}, "options.prior_count: -1 is no number of at least 0"),
        ({"share": 2}, "options.share: 2 is no number from 0 to 1"),
        ({"leaves": 1}, "options.leaves: 1 is no whole number from 2 to 131072"),
        ({"leaves": 7.5}, "options.leaves: 7.5 is no whole number from 2 to 131072"),
        ({"rate": 0}, "options.rate: 0 lets nothing be learned"),
    ],
)
def test_an_option_of_a_queue_that_cannot_be_is_named(given: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as raised:
        predicted("scheduling", tmp_path, **given)
    assert str(raised.value) == f"programs/scheduling.py: rank 0, step 0, schedule: {message}"


def test_a_penalty_that_cannot_be_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as raised:
        predicted("node_saving", tmp_path, cluster="earth", penalty=-0.1)
    message = "options.penalty: -0.1 is no number of at least 0"
    assert str(raised.value) == f"programs/node_saving.py: rank 0, step 0, saving: {message}"


def predicted(entry: str, folder: Path, **given: object) -> dict[str, float]:
    """What a launch of the case notes."""
    found = Predictor(folder).predict(PlannedLaunch(case(entry, **given), 0, 3, 0, str(PROGRAMS), 0))
    rows = found.samples.to_pandas()
    return dict(zip(rows["event"], rows["value"], strict=True))


def test_options_of_a_case_reach_its_schedule_and_its_forecast(tmp_path: Path) -> None:
    plain = predicted("scheduling", tmp_path)
    same = predicted("scheduling", tmp_path, decay=1.0, prior_count=0)
    assert plain["avg_jct"] == same["avg_jct"]
    for name, value in (("decay", 0.5), ("prior_count", 5)):
        other = predicted("scheduling", tmp_path, **{name: value})
        assert other["estimate_error"] != plain["estimate_error"] and other["avg_jct"] != plain["avg_jct"], name
    nodes = [predicted("node_saving", tmp_path, cluster="earth", penalty=of)["forecast_rmse"] for of in (0, 0.5)]
    assert nodes[0] != nodes[1]


@pytest.mark.parametrize("experiment", ["venus", "synthetic"])
def test_arms_with_the_estimate_of_qssf_have_what_was_tuned_for_it(experiment: str) -> None:
    cases = load_suite(PROGRAMS.parent).experiment(experiment).size("smoke").cases
    like_qssf = [each for each in cases if each.value("options.policy") in ("qssf", "leaky")]
    tuned = {each.arm: (each.value("options.decay"), each.value("options.prior_count")) for each in like_qssf}
    assert len(tuned) > 2 and set(tuned.values()) == {tuned["qssf"]} and None not in tuned["qssf"]


@pytest.mark.parametrize(
    ("entry", "needs", "other"),
    [
        ("scheduling", {"policy": "qssf_lightgbm"}, {"policy": "qssf"}),
        ("node_saving", {"forecast": "causal"}, {"forecast": "linear"}),
    ],
)
def test_without_lightgbm_the_cases_that_need_it_alone_say_what_to_type(
    entry: str, needs: dict[str, str], other: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = importlib.import_module(f"suite_programs.{entry}")
    monkeypatch.setattr(program, "find_spec", lambda _: None)
    assert program.obstacle(case(entry, **needs)) == forest.MISSING
    assert "extras helios2021" in forest.MISSING[1] and program.obstacle(case(entry, **other)) is None
    monkeypatch.setattr(program, "find_spec", lambda name: name)
    assert program.obstacle(case(entry, **needs)) is None
