"""The suite chimera2021: rows as published, its arithmetic, and its metrics on launches made by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import yaml

from scaleproof.claims.claims_yaml import load_claims, load_published
from scaleproof.claims.launch_pool import chosen
from scaleproof.claims.level_difference import level_independent_key
from scaleproof.claims.metrics import METRICS as HARNESS
from scaleproof.claims.metrics import Metric
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.spec.suite import load_suite
from scaleproof.workloads.datasets.markov_text import SHARES, TOKENS
from tests.unit.claims.claims_samples import arithmetic

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
    gap = arithmetic(METRICS["formula_gap"], ROWS, scheme="gems", formula="one_way")
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


def test_the_dashed_line_of_the_losses_is_the_entropy_of_the_text() -> None:
    anyone = (1 - sum(SHARES)) / TOKENS
    chances = [share + anyone for share in SHARES] + [anyone] * (TOKENS - len(SHARES))
    figures = {each["id"]: each for each in yaml.safe_load((SUITE.folder / "figures.yaml").read_text())}
    entropy = -sum(chance * math.log(chance) for chance in chances)
    assert figures["headline-learning"]["y"]["ideal"] == pytest.approx(entropy, abs=0.005)
