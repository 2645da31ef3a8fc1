"""The suite chimera2021: rows as published, its arithmetic, and its metrics on launches made by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pandas as pd
import pytest
import yaml

from scaleproof.claims.claims_yaml import load_claims, load_published
from scaleproof.claims.launch_pool import chosen
from scaleproof.claims.level_difference import level_independent_key
from scaleproof.claims.made_up import Event, events
from scaleproof.claims.metrics import METRICS as HARNESS
from scaleproof.claims.metrics import Metric
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.core.record_schema import Record
from scaleproof.spec.suite import load_suite
from scaleproof.workloads.datasets.markov_text import SHARES, TOKENS
from tests.unit.claims.claims_samples import arithmetic
from tests.unit.claims.made_up_launches import judged as claims_made_up
from tests.unit.claims.made_up_launches import with_value

SUITE = load_suite("chimera2021", Path(__file__).resolve().parents[3] / "suites")
METRICS: dict[str, Metric] = suite_metrics(SUITE.folder)
ROWS = load_published(SUITE.folder)
CLAIMS = {claim.form.id: claim for claim in load_claims(SUITE)}


def judged(name: str) -> float:
    form = CLAIMS[name].form
    assert form.metric is not None
    return float(arithmetic(METRICS[form.metric], ROWS, **form.x))


def test_every_row_has_its_entry_and_rows_that_repeat_or_calibrate_are_shown_only() -> None:
    assert set(ROWS) <= set(CLAIMS)
    shown = {name for name in ROWS if CLAIMS[name].form.kind == "context"}
    assert "chimera2021.fig15.2048.dapple" in shown, "it calibrates"
    assert {name for name in ROWS if name.startswith("chimera2021.fig1.tput.")} <= shown, "they repeat Figure 15"
    assert not [name for name in ROWS if not ROWS[name].gate and name not in shown]


def test_the_row_that_calibrates_is_met() -> None:
    assert judged("chimera2021.fig15.2048.dapple") == pytest.approx(370, rel=1e-6)


def test_a_gain_is_the_ratio_of_two_throughputs() -> None:
    ratio = judged("chimera2021.fig15.2048.chimera") / judged("chimera2021.fig15.2048.gpipe")
    assert judged("chimera2021.fig1.speedup.gpipe") == pytest.approx(ratio)


@pytest.mark.parametrize(("model", "nodes"), [("gpt2", (512, 1024, 2048)), ("bert48", (16, 32, 64))])
def test_chimera_over_each_other_scheme_is_there_once_for_all_nodes(model: str, nodes: tuple[int, ...]) -> None:
    for count in nodes:
        for scheme in ("dapple", "gpipe", "gems", "pipedream", "pipedream_2bw"):
            names = {f"chimera2021.own.ratio.{model}.{count}.{scheme}"}
            if count == 2048:
                names.add(f"chimera2021.fig1.speedup.{scheme}")
            (name,) = names & set(CLAIMS)
            faster, slower = (CLAIMS[name].form.x[side] for side in ("faster", "slower"))
            assert (faster["scheme"], slower["scheme"]) == ("chimera", scheme)
            assert (faster["workload"], slower["workload"]) == 2 * ({"gpt2": "gpt2_64"}.get(model, model),)
            assert (faster["nodes"], slower["nodes"]) == (count, count)


@pytest.mark.parametrize("nodes", [16, 32, 64])
def test_ways_of_adding_up_gradients_are_compared_on_what_is_else_the_same(nodes: int) -> None:
    for other in ("late", "eager"):
        x = CLAIMS[f"chimera2021.own.sync.{nodes}.opt_{other}"].form.x
        assert (x["faster"]["gradient_sync"], x["slower"]["gradient_sync"]) == ("eager_opt", other)
        assert {**x["slower"], "gradient_sync": "eager_opt"} == x["faster"]
        shown = CLAIMS[f"chimera2021.own.predicted.bert48.{nodes}.chimera"].form.x
        assert {**shown, "gradient_sync": "eager_opt"} == x["faster"]


def test_a_schedule_with_other_slots_misses_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judged("chimera2021.t2.gpipe") < 1e-9
    gap = arithmetic(METRICS["idle_share_gap"], ROWS, scheme="gems", formula="one_way")
    assert gap > 0.1


def test_memory_is_that_of_the_row_that_calibrates() -> None:
    assert judged("chimera2021.fig1.mem.chimera") == pytest.approx(15.2, rel=1e-6)
    assert CLAIMS["chimera2021.fig1.mem.chimera"].form.kind == "context"
    recomputed = {**CLAIMS["chimera2021.fig1.mem.dapple"].form.x, "recompute": True}
    assert arithmetic(METRICS["predicted_memory"], ROWS, **recomputed) < 16 < judged("chimera2021.fig1.mem.dapple")


def test_an_order_and_ratios_can_fail() -> None:
    predicted = CLAIMS["chimera2021.own.order.fig15"].form.x["predicted"]
    assert judged("chimera2021.own.order.fig15") == 1
    turned = dict(zip(predicted, reversed(predicted.values()), strict=True))
    assert arithmetic(METRICS["order_kept"], ROWS, predicted=turned) == 0
    ratio = judged("chimera2021.fig15.2048.chimera") / judged("chimera2021.fig15.2048.dapple")
    two = {name: predicted[name] for name in list(predicted)[:2]}
    assert arithmetic(METRICS["ratio_error"], ROWS, predicted=two) == pytest.approx(100 * abs(ratio / (510 / 370) - 1))


def test_the_model_picks_what_the_papers_model_picks_for_gpt2() -> None:
    picked = [judged(f"chimera2021.own.picked_{name}.gpt2_64") for name in ("stages", "samples", "recompute")]
    assert picked == [32, 1, 0]
    assert judged("chimera2021.own.picked_throughput.gpt2_64") == judged("chimera2021.fig13.gpt2.model")


def test_idle_shares_are_judged_by_points_of_cases_that_are_predicted() -> None:
    form = CLAIMS["chimera2021.own.idle"].form
    assert form.rule is not None and form.metric is not None and HARNESS[form.metric].points
    assert (form.rule.name, form.rule.value) == ("at_most", 0.03)
    for size in ("smoke", "small"):
        cases = SUITE.experiment("times").size(size).cases
        levels = [
            {level_independent_key(case) for case in cases if chosen(case, select or {})}
            for select in (form.select, form.against)
        ]
        assert levels[0] & levels[1] and {json.loads(key)["ranks"] for key in levels[1]} <= {4, 8}


def test_the_lines_beside_the_losses_are_the_entropy_of_the_text_and_half_way_to_it() -> None:
    anyone = (1 - sum(SHARES)) / TOKENS
    chances = [share + anyone for share in SHARES] + [anyone] * (TOKENS - len(SHARES))
    figures = {each["id"]: each for each in yaml.safe_load((SUITE.folder / "figures.yaml").read_text())}
    entropy = -sum(chance * math.log(chance) for chance in chances)
    lines = {line["label"]: line["value"] for line in figures["headline-learning"]["y"]["lines"]}
    half_way = (entropy + math.log(TOKENS)) / 2
    assert lines == pytest.approx({"entropy of the text": entropy, "target": half_way}, abs=0.005)
    words = METRICS["samples_to_loss"].instead
    assert words is not None
    assert words(*learned([2.61] * 5)) == f"not reached, best 2.61 of {lines['target']:g}"


def learned(losses: list[float]) -> tuple[Record, pd.DataFrame]:
    """A launch of 1F1B with these losses, one a step of 32 samples."""
    (case,) = (case for case in SUITE.experiment("learning").size("smoke").cases if case.arm == "dapple")
    steps = [Event("step", step, step + 1, step=step) for step in range(len(losses))]
    made = events(*steps, *(Event("loss", n + 1, n + 1, (3,), n, value=loss) for n, loss in enumerate(losses)))
    return made.record(case), made.samples(case.ranks)


@pytest.mark.parametrize(
    ("losses", "samples", "words"),
    [
        ([3.0] * 5 + [2.1] * 5, 8 * 32, None),
        ([3.0] * 5 + [2.0] + [3.0] * 5, None, "not reached, best 2.8 of 2.6"),
        ([2.0] * 5, 5 * 32, None),
        ([2.0] * 4, None, None),
        ([3.0] * 4 + [math.inf] * 5, None, "diverged at step 4"),
    ],
    ids=["at the mean of five steps", "one low step is not enough", "from the fifth step on", "too few", "diverged"],
)
def test_samples_to_a_loss_are_counted_on_the_mean_of_five_steps(
    losses: list[float], samples: float | None, words: str | None
) -> None:
    metric = METRICS["samples_to_loss"]
    assert metric.launch is not None and metric.instead is not None
    assert (metric.launch(*learned(losses)), metric.instead(*learned(losses))) == (samples, words)


@pytest.mark.parametrize("arm", ["dapple", "chimera", "pipedream", "pipedream_2bw"])
def test_a_launch_is_made_up_that_needs_so_many_samples_to_the_target(arm: str) -> None:
    result = claims_made_up(f"chimera2021.own.target.{arm}", with_value(f"chimera2021.own.target.{arm}", 640))
    assert (result.ours, result.verdict) == (640, None), "shown, not judged"


def test_what_is_shown_and_not_judged_says_why() -> None:
    shown = [claim.form for claim in CLAIMS.values() if claim.form.kind == "context"]
    assert shown and [form.id for form in shown if not form.deviations] == []


def test_a_prediction_says_which_configuration_it_is_of() -> None:
    predicted = [claim for name, claim in CLAIMS.items() if ".own.predicted." in name]
    for claim in predicted:
        x = claim.form.x
        words = f"D = {x['stages']}, W = {x['nodes'] // x['stages']}, B = {x['samples']}"
        assert f"mini-batch {x['minibatch']:,}: {words}" in claim.statement, claim.form.id
        assert claim.statement.endswith("with recomputation.") == x.get("recompute", False), claim.form.id
    assert predicted


@pytest.mark.parametrize(("figure", "groups"), [("headline-minibatch", 2), ("headline-minibatch-bert48", 4)])
def test_every_mini_batch_has_all_six_schemes(figure: str, groups: int) -> None:
    (found,) = (each for each in yaml.safe_load((SUITE.folder / "figures.yaml").read_text()) if each["id"] == figure)
    names = [CLAIMS[series["claim"]].form.x["scheme"] for series in found["series"]]
    schemes = ("chimera", "dapple", "gpipe", "gems", "pipedream", "pipedream_2bw")
    assert {scheme: names.count(scheme) for scheme in schemes} == dict.fromkeys(schemes, groups)


def test_weak_scaling_is_throughput_a_node_on_more_nodes_over_that_on_fewer() -> None:
    few, many = (judged(f"chimera2021.{name}.chimera") for name in ("own.predicted.gpt2.512", "fig15.2048"))
    assert judged("chimera2021.weak.eff") == pytest.approx(100 * many / 2048 / (few / 512))
