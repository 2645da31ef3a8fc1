"""A model of NCCL: rings on the links of a node, the way that NCCL takes, and mistakes in node types."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.simulate.nccl.prediction import Collective, bus_factor, channels_of, predict, ways_of
from scaleproof.simulate.nccl.rings import disjoint_rings, hops
from scaleproof.spec.errors import SpecError
from scaleproof.spec.gpu_node import gpu_node, gpu_nodes

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def test_the_rings_of_a_cube_mesh_use_every_link_of_every_gpu_once() -> None:
    links = gpu_node("v100hcm").pairs()
    rings = disjoint_rings(links, 8)
    used = [pair for ring in rings for pair in hops(ring)]
    assert len(rings) == 3 and all(sorted(ring) == list(range(8)) for ring in rings)
    assert {pair: used.count(pair) for pair in set(used)} == links


@pytest.mark.parametrize(
    ("links", "gpus", "count"),
    [({(0, 1): 3}, 2, 1), ({(0, 1): 1, (1, 2): 1, (0, 2): 1}, 3, 1), ({(0, 1): 2, (1, 2): 2}, 3, 0)],
)
def test_small_graphs_have_as_many_rings_as_links_allow(
    links: dict[tuple[int, int], int], gpus: int, count: int
) -> None:
    assert len(disjoint_rings(links, gpus)) == count


@pytest.mark.parametrize(
    ("name", "total"), [("v100hcm", 120), ("a100x8", 240), ("p5", 360), ("gcpa4", 720), ("v100pcie4", 12)]
)
def test_channels_fill_the_links_at_a_rate_of_nccls_list(name: str, total: float) -> None:
    assert channels_of(gpu_node(name)).total == pytest.approx(total, rel=0.01)


def test_large_arrays_take_the_links_and_small_ones_the_latency() -> None:
    node = gpu_node("a100x8")
    large, small = predict(node, "allreduce", 1, 8 * GIB), predict(node, "allreduce", 1, KIB)
    assert (large.algorithm, large.protocol) == ("ring", "Simple")
    assert large.busbw("allreduce", 8) == pytest.approx(240, rel=0.02)
    assert small.protocol == "LL" and small.seconds < 20e-6


def test_a_switch_that_reduces_is_taken_for_large_all_reduces_only() -> None:
    node = gpu_node("h200x8")
    assert predict(node, "allreduce", 1, 16 * GIB).algorithm == "nvls"
    assert predict(node, "allgather", 1, 16 * GIB).algorithm == "ring"
    assert predict(node, "allreduce", 1, KIB).algorithm != "nvls"
    assert "nvls" not in {way.algorithm for way in ways_of(gpu_node("a100x8"), "allreduce", 1, GIB)}


def test_between_nodes_the_network_binds_and_trees_send_less_over_it_than_busbw_says() -> None:
    node = gpu_node("gcpa3mega")
    gathered, reduced = predict(node, "allgather", 2, 8 * GIB), predict(node, "allreduce", 2, 8 * GIB)
    assert gathered.busbw("allgather", 16) == pytest.approx(192, rel=0.02)
    assert reduced.algorithm == "nvls_tree" and reduced.algbw == pytest.approx(192)
    trees = next(way for way in ways_of(node, "allreduce", 4, 8 * GIB) if way.algorithm == "nvls_tree")
    assert trees.algbw == pytest.approx(96) and predict(node, "allreduce", 4, 8 * GIB).algorithm == "ring"


def test_an_algorithm_that_is_set_is_taken() -> None:
    assert predict(gpu_node("p5"), "allreduce", 1, GIB, "ring").algorithm == "ring"
    with pytest.raises(SpecError, match="no algorithm 'nvls'"):
        predict(gpu_node("a100x8"), "allreduce", 1, GIB, "nvls")


def test_what_a_node_cannot_do_is_one_line() -> None:
    with pytest.raises(SpecError, match="several nodes need network_gbit"):
        predict(gpu_node("a100x8"), "allreduce", 2, GIB)
    with pytest.raises(SpecError, match=r"unknown node type 'h200x9' .*did you mean 'h200x8'"):
        gpu_node("h200x9")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("gpus: 0", r"nodes.yaml:\d+: .*gpus"),
        ("architecture: kepler", r"nodes.yaml:\d+: .*architecture"),
        ("nvlinks: 0", "without NVLinks needs pcie_gb_per_s"),
        ("links: {0-9: 1}", "give two of GPUs 0 to 7"),
        ("links: {left: 1}", "is no pair of GPUs"),
        ("architecture: null", "links inside are for the model of NCCL, which needs architecture"),
    ],
)
def test_a_mistake_in_a_node_type_is_one_line(tmp_path: Path, change: str, message: str) -> None:
    lines = ["summary: s", "gpus: 8", "architecture: volta", "nvlinks: 6", "source: s"]
    kept = [line for line in lines if line.partition(":")[0] != change.partition(":")[0]]
    file = tmp_path / "nodes.yaml"
    file.write_text("\n  ".join(["mine:", *kept, change]) + "\n")
    with pytest.raises(SpecError, match=message):
        gpu_nodes(file)


def test_bus_factors_are_those_of_nccl_tests() -> None:
    names: tuple[Collective, ...] = ("allreduce", "allgather", "reducescatter", "alltoall", "broadcast")
    assert [bus_factor(name, 8) for name in names] == [1.75, 0.875, 0.875, 0.875, 1.0]
