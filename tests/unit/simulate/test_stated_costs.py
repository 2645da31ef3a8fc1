"""Stated costs: each transport has its own, by class of hops, in ranges with a source; what is wrong in a file is said
in one line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from scaleproof.record.digest import machine_id
from scaleproof.simulate import stated_model as stated_model_module
from scaleproof.simulate.case_costs import cost_model
from scaleproof.simulate.cost_model import CostModel
from scaleproof.simulate.cost_sheet import REFERENCE, read_sheet
from scaleproof.simulate.hop_classes import HOPS, Hop
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.simulated_sweeps import round_trip_s
from scaleproof.simulate.stated_model import stated_model
from scaleproof.simulate.uncertain import Uncertain
from scaleproof.spec import registry
from scaleproof.spec.cluster import load_cluster, node_types, star
from scaleproof.spec.errors import SpecError
from scaleproof.transports import tcp
from tests.unit.simulate.test_predict import case_of, fitted, line, stored, training

GOOD = {
    "summary": "a transport",
    "goodput": 1.0,
    "gamma": {"by": "it", "s_per_byte": [1e-10, 1e-11, 1e-9], "source": "chosen"},
    "hops": {
        "loopback": {
            "source": "chosen",
            "alpha": [3e-6, 1e-6, 9e-6],
            "beta": [1e-9, 5e-10, 2e-9],
            "send": {"message": [1e-6, 0.0, 2e-6], "byte": [0.0, 0.0, 1e-10]},
            "receive": {"message": [1e-6, 0.0, 2e-6], "byte": [0.0, 0.0, 1e-10]},
        },
        "one_link": {"like": "loopback", "source": "chosen", "card": [1e-5, 1e-6, 1e-4]},
    },
}
STATED_CALL = "call: {s: [2.0e-5, 1.0e-5, 4.0e-5], source: x}\n"
GRAPH = """
summary: two switches
source: made up
nodes: 3
switches: [left, right]
links:
  - {between: [node0, left], gbit: 8}
  - {between: [node1, left], gbit: 8}
  - {between: [node2, right], gbit: 8}
  - {between: [left, right], gbit: 8}
"""


def sheet_file(folder: Path, *path: str, value: object = None) -> Path:
    """The good sheet with one value replaced."""
    data = yaml.safe_load(yaml.safe_dump(GOOD))
    place = data
    for key in path[:-1]:
        place = place[key]
    if path:
        place[path[-1]] = value
    file = folder / "mine.costs.yaml"
    file.write_text(yaml.safe_dump(data))
    return file


def refusal(folder: Path, *path: str, value: object = None, needed: tuple[Hop, ...] = ()) -> str:
    with pytest.raises(SpecError) as caught:
        read_sheet(sheet_file(folder, *path, value=value), needed)
    text = str(caught.value)
    assert len(text.splitlines()) == 1 and "mine.costs.yaml:" in text
    return text


def of_ours() -> list[str]:
    return [
        name
        for name in registry.names("transport")
        if registry.module_of("transport", name).startswith("scaleproof.transports.")
    ]


def model_of(name: str) -> CostModel:
    plugin = registry.get("transport", name)
    collective = "ring" if plugin.point_to_point else "native"
    where = {"nodes": 1} if plugin.one_node else {}
    return stated_model(case_of(transport=name, collective=collective, launcher=plugin.launcher, **where))


def test_every_transport_of_ours_states_costs_of_its_own() -> None:
    models = {name: model_of(name) for name in of_ours()}
    assert len(models) >= 18 and len({model.source for model in models.values()}) == len(models)
    assert not any("no costs of its own" in assumption for model in models.values() for assumption in model.assumed)


def test_a_beta_that_is_stated_has_an_interval_on_every_class_of_hops() -> None:
    for name in of_ours():
        model = model_of(name)
        betas = [*model.betas, *(beta for other in model.others for beta in other.betas)]
        assert all(beta.low is not None and beta.high is not None and beta.low < beta.high for beta in betas), name


def test_what_a_call_takes_can_be_stated_with_its_source_and_is_scaled_by_the_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, node = tmp_path / "tcp.costs.yaml", "xeon_e5_2698v3_x2"
    file.write_text(f"{Path(tcp.__file__).with_name('tcp.costs.yaml').read_text()}{STATED_CALL}")
    monkeypatch.setattr(stated_model_module, "_beside", lambda plugin: file)
    here, there = (
        stated_model(training(transport="tcp", **fields))
        for fields in ({}, {"compute.profile": node, "compute.efficiency": 0.5})
    )
    assert here.central().call == pytest.approx(2e-5) and here.call.low == pytest.approx(1e-5)
    ratio = there.central().alpha(np.ones(1), ["loopback"]) / here.central().alpha(np.ones(1), ["loopback"])
    assert there.central().call == pytest.approx(2e-5 * ratio[0]) and ratio[0] > 2
    assert "call" in refusal(tmp_path, "call", value={"s": [2e-5, 1e-5, 4e-5]}), "a source is missing"
    assert "call.s" in refusal(tmp_path, "call", value={"s": [1.0, 1.0, 1.0], "source": "x"})


def test_an_unknown_class_of_hops_is_named_with_the_nearest(tmp_path: Path) -> None:
    said = refusal(tmp_path, "hops", "one_lnk", value={"like": "loopback", "source": "x"})
    assert "hops.one_lnk" in said and "one_link" in said.partition("unknown")[2]


def test_a_file_without_a_class_that_messages_cross_is_refused(tmp_path: Path) -> None:
    assert "'several_switches' are missing" in refusal(tmp_path, needed=("one_link", "several_switches"))


@pytest.mark.parametrize("range_", [[1e-9, 1e-9, 1e-9], [3e-9, 1e-9, 2e-9], [0.0, 0.0, 0.0]])
def test_a_range_without_width_or_out_of_order_is_refused(tmp_path: Path, range_: list[float]) -> None:
    said = refusal(tmp_path, "hops", "loopback", "beta", value=range_)
    assert "hops.loopback.beta" in said and "[value, low, high]" in said


def test_a_class_is_like_another_but_for_what_it_says(tmp_path: Path) -> None:
    sheet = read_sheet(sheet_file(tmp_path))
    assert sheet.stated("one_link", "alpha") == ([3e-6, 1e-6, 9e-6], "loopback")
    assert sheet.stated("one_link", "card") == ([1e-5, 1e-6, 1e-4], "one_link")
    assert "has no costs of its own" in refusal(tmp_path, "hops", "one_link", "like", value="memory")


def test_costs_of_software_are_scaled_by_the_ratio_of_cores() -> None:
    node, core = "xeon_e5_2698v3_x2", yaml.safe_load(REFERENCE.read_text())
    there = stated_model(training(transport="grpc", **{"compute.profile": node, "compute.efficiency": 0.5}))
    here = stated_model(case_of(transport="grpc"))
    ratio = core["ghz"] / node_types()[node].ghz * core["per_clock"][0]
    assert there.alphas[0].value == pytest.approx(ratio * here.alphas[0].value)
    assert there.processor[2].value == pytest.approx(ratio * here.processor[2].value)
    assert there.card == here.card and there.gammas == here.gammas, "neither is software of the transport"
    assert any("as fast as on the cores" in assumption for assumption in here.assumed) and not there.assumed


def test_the_ratio_of_cores_is_drawn_once_for_all_that_share_it() -> None:
    unsure = Uncertain("core", 1.0, 0.5, 2.0)
    one, other = (Uncertain(name, value, scale=unsure) for name, value in (("a", 1.0), ("b", 3.0)))
    assert one.drawn(5) != 1.0 and other.drawn(5) == pytest.approx(3 * one.drawn(5))


def test_messages_cost_what_the_class_of_their_hop_does(tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text(GRAPH)
    model = stated_model(case_of(transport="grpc"))
    costs = model.central()
    graph = Network(load_cluster(str(tmp_path / "two.yaml"), 3), costs.goodput)
    pairs: dict[Hop, list[int]] = {"loopback": [0, 0], "one_link": [0, 1], "several_switches": [0, 2]}
    times = {hop: round_trip_s(graph, nodes, costs, 0) / 2 for hop, nodes in pairs.items()}
    assert len(set(times.values())) == 3
    assert times == {hop: pytest.approx(costs.on(hop).segments[0].alpha) for hop in pairs}


def test_fitted_messages_inside_a_node_cost_what_was_fitted_there(tmp_path: Path) -> None:
    both = stored(
        tmp_path,
        fitted("tcp", "host", line((None, 1e-5, 2e-9)), 3e-10),
        fitted("tcp", "netns", line((None, 4e-5, 8e-8)), 1e-10).model_copy(update={"nodes": 2}),
    )
    costs = cost_model(case_of(nodes=2), both, machine_id()).central()
    assert costs.on("loopback").segments[0].alpha == 1e-5 and costs.on("one_link").segments[0].alpha == 4e-5


def test_a_server_with_fitted_costs_has_the_stated_time_of_a_core_and_says_so(tmp_path: Path) -> None:
    fits = stored(tmp_path, fitted("tcp", "host", line((None, 1e-5, 2e-9)), 3e-10))
    served = cost_model(training(strategy="parameter_server"), fits, machine_id())
    assert served.processor == stated_model(case_of()).processor and "the time of a core" in " ".join(served.assumed)
    assert "the time of a core" not in " ".join(cost_model(training(), fits, machine_id()).assumed)


def test_a_transport_without_costs_of_its_own_has_general_ones_and_says_so() -> None:
    registry.replace(replace(registry.get("transport", "tcp"), stated_costs=""))
    try:
        model = stated_model(case_of())
    finally:
        registry._replaced.clear()
        registry.forget()
    assert "tcp states no costs of its own" in model.assumed and set(HOPS) >= {other.hop for other in model.others}


def test_two_ranks_of_a_node_and_of_two_nodes_are_told_apart() -> None:
    costs = stated_model(case_of(transport="mpi", launcher="mpirun")).central()
    assert costs.within_node == "memory"
    network = Network(star("s", 2, None, 0.0))
    assert round_trip_s(network, [0, 0], costs, 0) < round_trip_s(network, [0, 1], costs, 0)
