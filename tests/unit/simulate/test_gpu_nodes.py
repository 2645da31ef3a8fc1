"""Trainings on node types with GPUs: NCCL's calls by its model, other transports by messages over the node's cards, and
mistakes in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.simulate.case_costs import cost_model
from scaleproof.simulate.halved_resources import halved
from scaleproof.simulate.link_network import MBIT, Network
from scaleproof.simulate.nccl.device_calls import chosen_calls, devices_of
from scaleproof.simulate.nccl.prediction import predict
from scaleproof.simulate.predict import Predictor, inputs_of
from scaleproof.simulate.step_engine import simulate
from scaleproof.spec.case import TrainCase, parse_case
from scaleproof.spec.cluster import cluster_of, node_types, star
from scaleproof.spec.errors import SpecError
from scaleproof.spec.gpu_node import gpu_node, gpu_nodes, gpus, rank_type
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.profile import profile_of

HERE = Path("/nowhere")


def case(**changes: Any) -> TrainCase:
    fields = {
        "suite": "s",
        "experiment": "e",
        "arm": "a",
        "program": "train",
        "fabric": "simulated",
        "workload": "vgg_a",
        "strategy": "sync",
        "transport": "nccl",
        "collective": "native",
        "compute": {"profile": "h100x8", "efficiency": 0.4},
        "ranks": 16,
        "nodes": 2,
        "minibatch": 512,
        "warmup": 0,
        "steps": 1,
    }
    parsed = parse_case(fields | changes)
    assert isinstance(parsed, TrainCase)
    return parsed


def step_s(chosen: TrainCase) -> float:
    costs = cost_model(chosen, HERE, "m").central()
    return simulate(chosen, profile_of(chosen, HERE), cluster_of(chosen), costs).step_s


def linked(mbit: float, cards: int = 1) -> dict[str, Any]:
    return {"fabric": {"name": "simulated", "link_mbit": mbit, "cards": cards}}


def network_gbit(chosen: TrainCase) -> float | None:
    devices = devices_of(chosen)
    assert devices is not None
    return devices.node.network_gbit


def test_a_step_over_nccl_is_its_compute_and_the_calls_of_the_model() -> None:
    chosen = case()
    calls = chosen_calls(chosen, network_of(chosen))
    assert sum(call.nbytes * call.count for call in calls) >= 4 * network_of(chosen).parameters
    each = [predict(gpu_node("h100x8"), "allreduce", 2, call.nbytes) for call in calls]
    assert [(call.algorithm, call.protocol) for call in calls] == [(way.algorithm, way.protocol) for way in each]
    told = sum(way.seconds * call.count for way, call in zip(each, calls, strict=True))
    assert step_s(chosen) == pytest.approx(profile_of(chosen, HERE).step_s + told)


def test_a_rank_computes_at_the_peak_of_one_gpu() -> None:
    assert rank_type("h100x8").peak_flops == pytest.approx(gpus()["h100"].tflops * 1e12)
    one, eight = (profile_of(case(ranks=ranks, nodes=1, minibatch=32 * ranks), HERE) for ranks in (1, 8))
    assert one.step_s == pytest.approx(eight.step_s)


def test_the_links_of_the_case_are_the_network_of_the_model() -> None:
    own, slow, cards = (case(**fabric) for fabric in ({}, linked(10000), linked(10000, 4)))
    assert [network_gbit(chosen) for chosen in (own, slow, cards)] == [3200, 10, 40]
    assert step_s(slow) - profile_of(slow, HERE).step_s > 50 * (step_s(own) - profile_of(own, HERE).step_s)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"strategy": {"name": "parameter_server", "servers": 2}}, "servers are sent messages"),
        ({"compute": {"profile": "xeon_e5_2698v3_x2", "efficiency": 0.5}}, "a node type without GPUs"),
        ({"transport": "tcp", "collective": "ring"}, "another transport"),
        (
            {"compute": {"profile": "roce_server_p100", "efficiency": 0.2}, "nodes": 4},
            "GPUs that NCCL's constants leave out",
        ),
    ],
)
def test_what_is_no_call_of_nccl_between_gpus_is_simulated_by_messages(changes: dict[str, Any], what: str) -> None:
    assert devices_of(case(**changes)) is None, what
    assert chosen_calls(case(**changes), network_of(case())) == []


def test_a_message_uses_one_card_and_all_messages_of_a_node_use_all() -> None:
    network = Network(star("s", 2, 1000.0, 0.0, cards=8))
    route = network.route(0, 1)
    assert network.most(route, 0.0) == pytest.approx(1000 * MBIT)
    assert network.capacities[list(route)] == pytest.approx([8000 * MBIT] * 2)


def test_more_cards_help_ranks_that_send_at_one_time() -> None:
    def over(cards: int) -> TrainCase:
        return case(transport="tcp", collective="hierarchical", **linked(1000, cards))

    assert step_s(over(1)) > 4 * step_s(over(8))


def test_halves_of_nccls_calls_are_those_of_its_latency_and_of_its_bytes() -> None:
    chosen = case()
    profile, costs = profile_of(chosen, HERE), cost_model(chosen, HERE, "m").central()
    changed = halved(chosen, profile, cluster_of(chosen), costs)
    assert set(changed) == {"compute", "link", "latency"}
    whole = step_s(chosen) - profile.step_s
    saved = [step_s(chosen) - simulate(*changed[name]).step_s for name in ("link", "latency")]
    assert sum(saved) == pytest.approx(whole / 2) and min(saved) > 0


def test_draws_vary_what_the_model_says_within_the_bounds_of_its_suite() -> None:
    chosen = case()
    model, profile = cost_model(chosen, HERE, "m"), profile_of(chosen, HERE)
    told = step_s(chosen) - profile.step_s
    drawn = [simulate(chosen, profile, cluster_of(chosen), model.drawn(seed)).step_s for seed in range(1, 40)]
    ratios = [(step - profile.step_s) / told for step in drawn]
    assert 0.4 < min(ratios) < 0.9 and 1.1 < max(ratios) < 2.5
    assert any("factor of 2" in assumption for assumption in model.assumed)


def test_a_record_says_which_algorithm_nccl_takes() -> None:
    predicted = Predictor(HERE).predict(_launch(case()))
    assert "NCCL's nvls_tree with Simple" in predicted.facts["algorithm"]


def _launch(chosen: TrainCase) -> Any:
    return type("Launch", (), {"case": chosen, "programs": "", "plan_index": 0, "seed": 0})()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ranks": 32, "minibatch": 512}, "16 ranks on a node of type 'h100x8', which has 8 GPUs"),
        ({"ranks": 9, "minibatch": 9}, "9 ranks on 2 nodes of type 'h100x8'"),
        ({"compute": {"profile": "h200x8", "efficiency": 0.4}}, "'h200x8' has no network_gbit"),
        ({"compute": {"profile": "h100x9", "efficiency": 0.4}}, "unknown node type 'h100x9'.*did you mean 'h100x8'"),
    ],
)
def test_ranks_that_a_node_type_cannot_hold_are_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message) as refused:
        inputs_of(case(**changes), HERE)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("read", "entry", "message"),
    [
        (gpus, "{summary: s, tflops: 1, efficiency: [0.5, 0.4], source: s}", "low at most high"),
        (gpus, "{summary: s, tflops: 0, efficiency: [0.4, 0.5], source: s}", r"gpus.yaml:1: .*tflops"),
        (gpu_nodes, "{summary: s, gpus: 8, gpu: h1000, architecture: hopper, nvlinks: 1, source: s}", "mean 'h100'"),
    ],
)
def test_a_mistake_in_a_file_of_gpus_is_one_line(tmp_path: Path, read: Any, entry: str, message: str) -> None:
    file = tmp_path / "gpus.yaml"
    file.write_text(f"mine: {entry}\n")
    with pytest.raises(SpecError, match=message):
        read(file)


def test_a_node_type_is_described_once() -> None:
    assert node_types().keys().isdisjoint(gpu_nodes())


def test_the_model_of_nccl_refuses_a_node_whose_links_are_not_described() -> None:
    with pytest.raises(SpecError, match="no architecture and links inside"):
        predict(gpu_node("roce_server_p100"), "allreduce", 1, 1 << 20)


def test_every_node_type_has_a_gpu_with_a_source() -> None:
    assert all(node.gpu in gpus() for node in gpu_nodes().values())
    assert all("peak:" in gpu.source for gpu in gpus().values())
