"""What a prediction of TensorFlow's parameter servers rests on: where parameters lie, who serves, costs within a run,
links whose rate is not known, and nodes with a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.simulate.cost_model import FREE
from scaleproof.simulate.cost_sheet import read_sheet
from scaleproof.simulate.predict import drawn_cluster, inputs_of, predict
from scaleproof.simulate.stated_model import stated_model
from scaleproof.simulate.step_engine import simulate
from scaleproof.spec.case import TrainCase
from scaleproof.spec.cluster import cluster_of, load_cluster
from scaleproof.spec.errors import SpecError
from scaleproof.spec.gpu_node import gpus, host_of, rank_type
from scaleproof.strategies.server_placement import owners
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.profile import peak_profile
from tests.unit.simulate.test_predict import case_of, training
from tests.unit.simulate.test_stated_costs import sheet_file

P2 = {"compute.profile": "aws_p2_xlarge", "compute.efficiency": 0.24}


def served(**fields: Any) -> TrainCase:
    case = training(**{"strategy": "parameter_server", "transport": "tensorflow-grpc", **P2, **fields})
    assert isinstance(case, TrainCase)
    return case


def sizes(case: TrainCase) -> list[int]:
    return [variable.elements for layer in network_of(case).layers for variable in layer.variables]


def test_by_bytes_no_server_has_more_than_the_least_and_one_parameter() -> None:
    case = served(**{"strategy.servers": 3, "strategy.placement": "bytes", "workload": "vgg_digits"})
    held = [0, 0, 0]
    for owner, elements in zip(owners(case, network_of(case)), sizes(case), strict=True):
        assert held[owner] == min(held), "each goes to the server with the fewest bytes so far"
        held[owner] += elements
    turns = owners(served(**{"strategy.servers": 3}), network_of(served()))
    assert turns == [index % 3 for index in range(len(turns))]


def test_a_server_of_its_own_does_not_wait_for_the_worker_beside_it() -> None:
    def step_s(server: str) -> float:
        case = served(**{"strategy.servers": 1, "strategy.server": server, "fabric.cluster": "ethernet_1g"})
        network = network_of(case)
        profile = peak_profile(network, case.minibatch // case.ranks, "aws_p2_xlarge", 1e-5)
        return simulate(case, profile, cluster_of(case), FREE).step_s

    assert step_s("process") < 0.99 * step_s("worker")


def test_such_a_server_exists_only_on_fabric_simulated() -> None:
    with pytest.raises(ValueError, match="only simulated"):
        training(**{"strategy": "parameter_server", "strategy.server": "process", "fabric": "netns"})


def test_a_message_among_many_of_one_run_has_costs_of_its_own(tmp_path: Path) -> None:
    single = stated_model(case_of(transport="tensorflow-grpc", collective="native"))
    many = stated_model(served())
    assert single.alphas[0].value > 10 * many.alphas[0].value / 2.1
    assert many.betas[0].value == pytest.approx(single.betas[0].value * 4.13 / 2.7 * 1.36)
    own = {"loopback": {"source": "measured", "alpha": [1e-7, 1e-8, 1e-6]}}
    sheet = read_sheet(sheet_file(tmp_path, "one_run", value=own)).of_one_run()
    assert sheet.stated("one_link", "alpha").cost == [1e-7, 1e-8, 1e-6], "a class that is like it, too"
    assert sheet.stated("loopback", "beta").cost == [1e-9, 5e-10, 2e-9]
    with pytest.raises(SpecError, match="'memory' is no class in `hops`"):
        read_sheet(sheet_file(tmp_path, "one_run", value={"memory": own["loopback"]}))


def test_a_process_has_no_more_threads_than_its_node_has_cores() -> None:
    host = host_of("aws_p2_xlarge")
    assert host is not None and stated_model(served()).threads == host.cores == 2
    assert stated_model(case_of(transport="tensorflow-grpc", collective="native")).threads == 8


def test_a_gpu_computes_in_the_place_of_the_cores() -> None:
    computes, host = rank_type("piz_daint_p100"), host_of("piz_daint_p100")
    assert computes.peak_flops == gpus()["p100_pcie"].tflops * 1e12 == 9.3e12
    assert host is not None and (host.cores, host.ghz) == (12, 2.6)


def test_software_runs_on_the_host_of_a_node_with_gpus() -> None:
    daint = {"compute.profile": "piz_daint_p100", "compute.efficiency": 0.5}
    slower, faster = stated_model(served()), stated_model(served(**daint))
    assert slower.betas[0].value / faster.betas[0].value == pytest.approx(2.6 / 2.7)
    unknown = stated_model(served(**{"compute.profile": "h100x8", "compute.efficiency": 0.4}))
    assert any("as fast as on the cores" in assumption for assumption in unknown.assumed)


def test_a_rate_that_is_not_known_is_drawn_for_all_links_alike(tmp_path: Path) -> None:
    known = load_cluster("aws_p2_xlarge", 3)
    assert drawn_cluster(known, None) == known
    rates = [{link.mbit for link in drawn_cluster(known, seed).links} for seed in range(40)]
    assert all(len(of_one) == 1 for of_one in rates) and len(set(map(tuple, rates))) == 40
    assert 35 <= sum(700 <= (rate or 0.0) <= 10_000 for (rate,) in rates) < 41
    case = served(**{"fabric.cluster": "aws_p2_xlarge", "strategy.servers": 1, "workload": "vgg_a"})
    inputs = inputs_of(case, tmp_path)
    assert len({predict(inputs, seed).step_s for seed in (None, 1, 2, 3)}) == 4


@pytest.mark.parametrize("bad", ["[2, 10]", "[0.5, 0.9]", "[1.5, 0.5]"])
def test_a_range_that_does_not_hold_its_value_is_refused_in_one_line(tmp_path: Path, bad: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(f"summary: a star\nsource: made up\nstar: {{gbit: 1, gbit_range: {bad}}}\n")
    with pytest.raises(SpecError) as caught:
        load_cluster(str(file), 2)
    assert "gbit_range" in str(caught.value) and len(str(caught.value).splitlines()) == 1
