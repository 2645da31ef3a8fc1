"""Replayed compute that lasts longer in some steps: equal draws in processes and in virtual time, with the spread that
was fitted or stated."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from scaleproof.calibrate.measured_jitter import spread
from scaleproof.launch.obstacle import Obstacle
from scaleproof.launch.start.replay_profile import Replayed, described, replayed_for, same_replay, stall_limit_s
from scaleproof.programs.replayed import factors_of
from scaleproof.record.digest import machine_id
from scaleproof.simulate.predict import Predictor, inputs_of
from scaleproof.spec.case import TrainCase, parse_case
from scaleproof.spec.cluster import node_types
from scaleproof.spec.errors import FieldError, SpecError
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.workloads import pace as paces
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.jitter_model import FittedJitter, Jitter, drawn_from, resolved, write_jitter
from scaleproof.workloads.profile import profile_of
from scaleproof.workloads.replay import NoData, ReplayModel
from tests.unit.claims.claims_samples import record

HERE = Path("/nowhere")
NODE = "xeon_e5_2666v3_x2"
SEED = 7
CASE: dict[str, Any] = {
    "suite": "s",
    "experiment": "e",
    "arm": "a",
    "program": "train",
    "ranks": 3,
    "strategy": "local_only",
    "workload": "vgg_a",
    "minibatch": 24,
    "steps": 4,
    "warmup": 1,
}


def case(jitter: str | None = "spread:0.2,0.3,5,0.3", fabric: str = "host", **changes: Any) -> TrainCase:
    compute = {"name": "replay", "profile": NODE, "efficiency": 0.6, "jitter": jitter}
    parsed = parse_case({**CASE, "fabric": fabric, "compute": compute, **changes})
    assert isinstance(parsed, TrainCase)
    return parsed


class Clock:
    """Time passes only by sleeping."""

    ns = 0

    def sleep(self, seconds: float) -> None:
        self.ns += round(seconds * 1e9)


def replayed_s(chosen: TrainCase, rank: int, monkeypatch: pytest.MonkeyPatch, law: str) -> list[float]:
    """How long a rank sleeps in each step."""
    clock = Clock()
    monkeypatch.setattr(paces, "now", lambda: clock.ns)
    monkeypatch.setattr(paces.time, "sleep", clock.sleep)
    context: Any = SimpleNamespace(jitter=law, seed=SEED, rank=rank)
    factors = factors_of(context, chosen)
    model = ReplayModel(network_of(chosen), profile_of(chosen, HERE), chosen.dilation, 1.0, factors=factors)
    model.bind([], 1.0, lambda index: None)
    lengths = []
    for _ in range(chosen.warmup + chosen.steps):
        before = clock.ns
        model.forward(NoData.test)
        model.backward()
        model.update()
        lengths.append((clock.ns - before) / 1e9)
    return lengths


def predicted_s(chosen: TrainCase, rank: int) -> list[float]:
    """How long a rank computes in each step of the prediction, in true time."""
    launch: Any = SimpleNamespace(case=chosen, programs="", plan_index=0, seed=SEED)
    table = Predictor(HERE).predict(launch).samples.to_pandas()
    rows = table[table.event.isin(["forward", "backward", "update"]) & (table["rank"] == rank)]
    took: list[float] = ((rows.end_ns - rows.start_ns).groupby(rows.step).sum() / 1e9).tolist()
    return took


@pytest.mark.parametrize(("law", "dilation"), [("spread:0.2,0.3,5,0.3", 1), ("pareto:3", 1), ("exponential:0.5", 4)])
def test_processes_and_the_simulator_draw_the_same_compute_times_from_one_seed(
    law: str, dilation: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated = case(law, "simulated", dilation=dilation)
    ranks = [
        (
            np.array(replayed_s(case(law, dilation=dilation), rank, monkeypatch, law)) / dilation,
            predicted_s(simulated, rank),
        )
        for rank in range(3)
    ]
    for slept, predicted in ranks:
        assert slept == pytest.approx(predicted, rel=1e-6)
    usual = profile_of(simulated, HERE).step_s
    assert all(length != pytest.approx(usual, rel=1e-3) for slept, _ in ranks for length in slept)
    assert ranks[0][1] != pytest.approx(ranks[1][1], rel=1e-3), "ranks differ"


def test_another_seed_draws_other_times_and_the_same_one_repeats_them(monkeypatch: pytest.MonkeyPatch) -> None:
    once, again = (replayed_s(case(), 1, monkeypatch, "spread:0.2") for _ in range(2))
    assert once == again and len(set(once)) == len(once)
    assert once != pytest.approx([profile_of(case(), HERE).step_s] * len(once), rel=1e-3)


def test_replay_without_jitter_lasts_equally_long_in_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    assert replayed_s(case(None), 1, monkeypatch, "") == pytest.approx([profile_of(case(), HERE).step_s] * 5)
    assert inputs_of(case(None, "simulated"), HERE).jitter is None


def fitted(results: Path, **fields: Any) -> FittedJitter:
    values = {"step_sigma": 0.03, "rank_sigma": 0.08, "straggler_share": 0.02, "straggler_factor": 3.0, **fields}
    return FittedJitter(
        machine=machine_id(), code="c", fitted_at="", suite="s", experiment="e", size="smoke", steps=9, beyond=0.05,
        runs=(), **values,
    )  # fmt: skip


def test_what_is_drawn_has_the_spread_that_was_fitted(tmp_path: Path) -> None:
    write_jitter(tmp_path, fitted(tmp_path))
    replayed = replayed_for(case("fitted"), tmp_path)
    assert isinstance(replayed, Replayed)
    chosen = case("fitted", ranks=8, minibatch=64, steps=200, warmup=0)
    launches = []
    for seed in range(6):
        contexts: list[Any] = [SimpleNamespace(jitter=replayed.law, seed=seed, rank=rank) for rank in range(8)]
        launches.append(pd.DataFrame({context.rank: factors_of(context, chosen) for context in contexts}))
    again = spread(launches)
    assert again is not None
    assert again.step_sigma == pytest.approx(0.03, rel=0.05) and again.rank_sigma == pytest.approx(0.08, rel=0.25)
    assert again.straggler_share == pytest.approx(0.02, rel=0.25)
    assert again.straggler_factor == pytest.approx(3.0, rel=0.05)
    assert inputs_of(case("fitted", "simulated"), tmp_path).jitter == Jitter(0.03, 0.08, 0.02, 3.0)


def test_a_launch_with_another_jitter_is_run_again(tmp_path: Path) -> None:
    write_jitter(tmp_path, fitted(tmp_path))
    replayed = replayed_for(case("fitted"), tmp_path)
    assert isinstance(replayed, Replayed)
    then = record(case("fitted").model_dump(mode="json"), environment={"replay": described(replayed, case("fitted"))})
    assert described(replayed, case("fitted"))["jitter"] == "spread:0.03,0.08,3.0,0.02" and same_replay(then, tmp_path)
    write_jitter(tmp_path, fitted(tmp_path, step_sigma=0.04))
    assert not same_replay(then, tmp_path)
    even = replayed_for(case(None), tmp_path)
    assert isinstance(even, Replayed) and "jitter" not in described(even, case(None)), (
        "records without it stay as they are"
    )


def test_a_step_that_was_drawn_long_is_no_stall() -> None:
    chosen = case("slow:50,0.5")
    replayed = replayed_for(chosen, HERE)
    assert isinstance(replayed, Replayed)
    limit = stall_limit_s(PlannedLaunch(chosen, 0, SEED, 0), replayed, 0.0)
    assert limit == pytest.approx(100 * replayed.profile.step_s)


def test_jitter_that_nobody_fitted_makes_the_case_not_runnable_here(tmp_path: Path) -> None:
    obstacle = replayed_for(case("fitted"), tmp_path)
    assert isinstance(obstacle, Obstacle) and "`scaleproof fit micro jitter`" in obstacle.advice
    with pytest.raises(SpecError, match=f"node type '{NODE}' states none; state a law"):
        inputs_of(case("node", "simulated"), tmp_path)


@pytest.mark.parametrize(
    ("changes", "field", "why"),
    [
        ({"compute": {"jitter": "spread:0.1"}}, "jitter", "only compute that is replayed has it, not 'real'"),
        (
            {"compute": {"name": "replay", "jitter": "spred:0.1"}},
            "jitter",
            "unknown law 'spred'; did you mean 'spread'",
        ),
        ({"compute": {"name": "replay", "jitter": "spread:-1"}}, "jitter", "STEP of spread is a number of at least 0"),
        ({"compute": {"name": "replay", "jitter": "node"}}, "jitter", "give a node type as profile"),
        ({"fabric": {"name": "simulated", "stragglers": "pareto:3"}}, "fabric.stragglers", "leave one of them out"),
    ],
)
def test_a_mistake_in_jitter_is_one_line_that_names_its_field(changes: dict[str, Any], field: str, why: str) -> None:
    with pytest.raises(ValidationError, match=why) as raised:
        case(**changes)
    error = raised.value.errors()[0]["ctx"]["error"]
    assert isinstance(error, FieldError) and error.field == field and "\n" not in str(error)


NODES = """
fast:
  summary: a node
  cores: 4
  ghz: 2
  flop_per_cycle: 32
  jitter: {LAW}
  source: made up
"""


def test_a_node_type_states_a_law_with_its_source(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text(NODES.replace("{LAW}", '{law: "spread:0.02,0.05", source: made up}'))
    stated = node_types(file)["fast"].jitter
    assert stated is not None and drawn_from(resolved(stated.law, HERE, "m")) == Jitter(0.02, 0.05)


@pytest.mark.parametrize(
    ("law", "why"),
    [
        ("{law: fitted, source: x}", "'fitted' has no numbers of its own"),
        ('{law: "spread:x", source: x}', "STEP of spread is a number"),
        ('{law: "pareto:3"}', "source"),
    ],
)
def test_a_mistake_in_a_node_types_law_names_file_and_line(tmp_path: Path, law: str, why: str) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text(NODES.replace("{LAW}", law))
    with pytest.raises(SpecError, match=why) as raised:
        node_types(file)
    assert "nodes.yaml:7" in str(raised.value) and "\n" not in str(raised.value)
