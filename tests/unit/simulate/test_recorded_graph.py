"""All steps of strategies whose ranks are programs of their own, as a graph and as a trace: they take as long as the
run that they were taken from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scaleproof.cli import main
from scaleproof.rank_programs.graph.rank_graph import Kind
from scaleproof.simulate.buffered import buffered_nbytes
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.predict import Predictor, inputs_of
from scaleproof.simulate.rank_graph.graph_run import run_graph
from scaleproof.simulate.rank_graph.recorded_graph import recorded_graph
from scaleproof.spec.case import TrainCase
from scaleproof.spec.plan import PlannedLaunch
from tests.short_form import train_case

STEPS, WARMUP = 5, 1
STRATEGIES: list[dict[str, Any]] = [
    {"name": "gossip"},
    {"name": "push_sum", "tau": 2},
    {"name": "server"},
    {"name": "elastic_averaging", "tau": 2},
    {"name": "probabilistic_barrier", "sample": 1, "poll_s": 0.001},
    {"name": "local_sgd", "tau": 2},
    {"name": "job_server", "epoch_steps": 3},
]


def case_of(strategy: dict[str, Any]) -> TrainCase:
    return train_case(
        strategy=strategy,
        transport="tcp",
        collective="ring",
        workload="dnn_digits",
        ranks=4,
        minibatch=48,
        steps=STEPS,
        warmup=WARMUP,
        fabric={"name": "simulated", "link_mbit": 1000},
        compute={
            "name": "replay",
            "profile": "xeon_e5_2698v3_x2",
            "efficiency": 0.001,
            "jitter": "lognormal:0.5",
        },
    )


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy["name"])
def test_the_graph_of_all_steps_takes_as_long_as_the_run(tmp_path: Path, strategy: dict[str, Any]) -> None:
    case = case_of(strategy)
    inputs = inputs_of(case, tmp_path)
    graph, costs = recorded_graph(inputs), inputs.costs.central()
    ran = run_graph(graph, Network(inputs.cluster, costs.goodput), range(4), costs, buffer=buffered_nbytes(case))
    samples = Predictor(tmp_path).predict(PlannedLaunch(case, 0, 0, 0)).samples.to_pandas()
    predicted = (samples[samples.event == "end"].end_ns.max() - samples[samples.event == "start"].start_ns.min()) / 1e9
    assert ran.seconds == pytest.approx(predicted, rel=0.05)


def test_every_step_of_every_rank_is_there() -> None:
    graph = recorded_graph(inputs_of(case_of({"name": "gossip"}), Path("nowhere")))
    calls = 4 * (STEPS + WARMUP)
    assert len(graph.of_kind(Kind.SEND)) == len(graph.of_kind(Kind.RECEIVE)) == 2 * calls
    assert len(graph.of_kind(Kind.COMPUTE)) == 3 * calls, "gradient, update and the average"


def test_a_trace_of_all_steps_is_written_and_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "suites" / "mine"
    folder.mkdir(parents=True)
    base = (
        "{program: train, workload: dnn_digits, minibatch: 48, strategy: {name: server}, steps: 4, warmup: 0, "
        "ranks: 4, fabric: {name: simulated, cluster: ethernet_10g}, compute.profile: xeon_e5_2698v3_x2, "
        "compute.efficiency: 0.5}"
    )
    (folder / "suite.yaml").write_text(
        f"suite: mine\ntitle: mine\nexperiments:\n  e:\n    summary: s\n    base: {base}\n"
        "    arms: {tcp: {transport: tcp, collective: ring}}\n"
        "    sizes: {smoke: {launches: 1, matrix: [{arms: [tcp]}]}}\n"
    )
    suites = ["--suites", str(tmp_path / "suites"), "--results", str(tmp_path)]
    assert main(["chakra", "export", "", "--ranks", "6", "--out", str(tmp_path / "trace"), *suites]) == 0
    assert "6 files" in (told := capsys.readouterr().out) and "4 steps of dnn_digits on 6 ranks" in told
    assert main(["chakra", "replay", str(tmp_path / "trace"), "--json", "--results", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["step_s"] > 0
    goal = tmp_path / "steps.goal"
    assert main(["goal", "step", "", "--ranks", "6", "--out", str(goal), *suites]) == 0
    assert "4 steps of dnn_digits on 6 ranks" in capsys.readouterr().out
    replay = ["goal", "replay", str(goal), "--fabric", "10g", "--json", "--results", str(tmp_path)]
    assert main(replay) == 0
    pushed_and_pulled, last = 2 * 4 * 5, 5
    assert json.loads(capsys.readouterr().out)["messages"] == pushed_and_pulled + last
