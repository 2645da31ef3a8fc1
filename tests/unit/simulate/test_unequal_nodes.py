"""One case on nodes of several types: the slowest rank decides in synchronous training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.cli import main
from scaleproof.simulate.case_costs import cost_model
from scaleproof.simulate.cost_model import FREE
from scaleproof.simulate.predict import Predictor, inputs_of
from scaleproof.simulate.step_engine import simulate
from scaleproof.simulate.training_on_engine import simulate_each_rank
from scaleproof.simulate.unequal_nodes import on_its_nodes
from scaleproof.spec.case import TrainCase, parse_case
from scaleproof.spec.cluster import cluster_of
from scaleproof.spec.errors import SpecError
from scaleproof.spec.gpu_node import rank_type
from scaleproof.spec.relative_times import relative_times
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.jitter_model import Stragglers
from scaleproof.workloads.profile import profile_of

HERE = Path("/nowhere")
FAST, SLOW = "xeon_e5_2698v3_x2", "xeon_e5_2666v3_x2"


def case(others: str | None = f"1*{SLOW}@0.5", **changes: Any) -> TrainCase:
    fields = {
        "suite": "s",
        "experiment": "e",
        "arm": "a",
        "program": "train",
        "fabric": {"name": "simulated", "link_mbit": 10000},
        "workload": "vgg_a",
        "strategy": "sync",
        "transport": "tcp",
        "collective": "ring",
        "ranks": 4,
        "minibatch": 64,
        "warmup": 0,
        "steps": 2,
        "compute": {"profile": FAST, "efficiency": 0.5, "others": others},
    }
    parsed = parse_case(fields | changes)
    assert isinstance(parsed, TrainCase)
    return parsed


def compute_s(chosen: TrainCase, node: str, efficiency: float) -> float:
    """FLOP of a rank's samples over the rate of its node."""
    flop = network_of(chosen).train_flop * chosen.minibatch / chosen.ranks
    return flop / (rank_type(node).peak_flops * efficiency)


def step_s(chosen: TrainCase, **options: Any) -> float:
    costs = cost_model(chosen, HERE, "m").central()
    return simulate(chosen, profile_of(chosen, HERE), cluster_of(chosen), costs, **options).step_s


@pytest.mark.parametrize("strategy", ["sync", "sync_overlap"])
def test_without_costs_a_step_is_the_compute_of_the_slowest_rank(strategy: str) -> None:
    chosen = case(fabric="simulated", strategy=strategy)
    found = simulate(chosen, profile_of(chosen, HERE), cluster_of(chosen), FREE)
    assert found.step_s == pytest.approx(compute_s(chosen, SLOW, 0.5))
    assert found.step_s > 1.3 * compute_s(chosen, FAST, 0.5)


@pytest.mark.parametrize("transport", ["tcp", "mpi"])
def test_one_slow_node_is_as_slow_as_a_whole_cluster_of_them(transport: str) -> None:
    launcher = {"transport": transport, "launcher": "mpirun" if transport == "mpi" else "local"}
    mixed = case(**launcher, fabric={"name": "simulated", "link_mbit": 10000, "costs": "stated"})
    costs = cost_model(mixed, HERE, "m").central()
    slow = case(None, **launcher, compute={"profile": SLOW, "efficiency": 0.5})
    found = [simulate(chosen, profile_of(chosen, HERE), cluster_of(chosen), costs).step_s for chosen in (mixed, slow)]
    assert found[0] == pytest.approx(found[1], rel=1e-3)
    assert found[0] > 1.1 * simulate(case(None), profile_of(mixed, HERE), cluster_of(mixed), costs).step_s


def test_an_efficiency_makes_a_node_slow_too_and_faster_others_help_nobody() -> None:
    slow, fast, alike = (case(others) for others in (f"1*{FAST}@0.25", f"2*{FAST}@1.0", None))
    assert step_s(slow) - step_s(alike) == pytest.approx(compute_s(slow, FAST, 0.5), rel=1e-3)
    assert step_s(fast) == pytest.approx(step_s(alike), rel=1e-3)


def test_the_last_nodes_are_the_others_in_their_order_with_all_their_ranks() -> None:
    chosen = case(f"1*{FAST}@0.25, 2*h100x8@0.4", ranks=8, nodes=4)
    ratio = rank_type(FAST).peak_flops * 0.5 / (rank_type("h100x8").peak_flops * 0.4)
    assert relative_times(chosen) == pytest.approx([1, 1, 2, 2, ratio, ratio, ratio, ratio])


def test_every_rank_by_itself_has_the_same_times() -> None:
    chosen = case()
    costs, profile = cost_model(chosen, HERE, "m").central(), profile_of(chosen, HERE)
    unequal = on_its_nodes(chosen, None)
    alone = simulate_each_rank(chosen, profile, cluster_of(chosen), costs, buffer=4 << 20, jitter=unequal)
    assert alone.step_s == pytest.approx(step_s(chosen), rel=2e-5)


def test_stragglers_are_drawn_on_top_of_node_types() -> None:
    always = Stragglers("slow", (3.0, 1.0))
    chosen = case(fabric="simulated")
    found = simulate(chosen, profile_of(chosen, HERE), cluster_of(chosen), FREE, jitter=always)
    assert found.step_s == pytest.approx(3 * compute_s(chosen, SLOW, 0.5))


def test_a_record_says_how_much_longer_each_rank_computes() -> None:
    launch: Any = type("Launch", (), {"case": case(), "programs": "", "plan_index": 0, "seed": 0})()
    facts = Predictor(HERE).predict(launch).facts
    ratio = rank_type(FAST).peak_flops / rank_type(SLOW).peak_flops
    assert facts["relative_times"] == pytest.approx([1, 1, 1, ratio])
    assert f"software is as fast on all nodes as on {FAST}" in facts["assumed"]
    assert inputs_of(case(), HERE).digest != inputs_of(case(None), HERE).digest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"others": "xeon"}, "'xeon' is no COUNT\\*NODE_TYPE@EFFICIENCY"),
        ({"others": f"0*{SLOW}@0.5"}, "give at least one node"),
        ({"others": f"1*{SLOW}@1.5"}, "a share of the peak rate above 0 and at most 1"),
        ({"others": f"1*{SLOW}@e"}, "'e' is no number"),
        ({"others": f"4*{SLOW}@0.5"}, "4 nodes of other types, and the case has 4"),
        ({"compute": {"others": f"1*{SLOW}@0.5"}}, "give the type of the first ones as profile"),
        (
            {
                "fabric": "netns",
                "compute": {"name": "none", "profile": FAST, "efficiency": 0.5, "others": f"1*{SLOW}@0.5"},
            },
            "is for replayed compute|are replayed or simulated",
        ),
    ],
)
def test_a_mistake_in_a_mixed_case_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        case(**changes)


def test_an_unknown_type_among_the_others_is_one_line_and_nccl_needs_equal_nodes() -> None:
    with pytest.raises(SpecError, match="unknown node type 'xeon_e5_2666v3'.*did you mean") as refused:
        inputs_of(case("1*xeon_e5_2666v3@0.5"), HERE)
    assert "\n" not in str(refused.value)
    gpus = {"profile": "p5", "efficiency": 0.4, "others": "1*dgxa100@0.4"}
    with pytest.raises(SpecError, match="knows equal nodes only"):
        inputs_of(case(transport="nccl", collective="native", compute=gpus), HERE)


SUITE = """\
suite: mixed
title: Nodes of two types
experiments:
  train:
    summary: Training
    base: {program: train, workload: vgg_a, strategy: sync, transport: tcp, collective: ring, ranks: 4, minibatch: 64,
           steps: 2, fabric: {name: simulated, link_mbit: 10000}}
    arms:
      mixed: {compute: {profile: xeon_e5_2698v3_x2, efficiency: 0.5, others: "OTHERS"}}
    sizes:
      ci: {launches: 1, matrix: [{arms: [mixed]}]}
"""


def test_a_mistake_in_a_suite_is_one_line_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "suite.yaml").write_text(SUITE.replace("OTHERS", "9*xeon_e5_2666v3_x2@0.5"))
    assert main(["run", str(folder), "--size", "ci", "--dry-run", "--results", str(tmp_path / "results")]) == 2
    said = capsys.readouterr().err.strip()
    assert len(said.splitlines()) == 1 and "suite.yaml:" in said and "9 nodes of other types" in said
