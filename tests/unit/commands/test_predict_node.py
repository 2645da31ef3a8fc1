"""`scaleproof predict --node`: a node type with its GPUs, links and network cards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scaleproof.cli import main
from scaleproof.spec import gpu_node as gpu_node_module
from scaleproof.spec.cluster import StatedJitter
from scaleproof.spec.gpu_node import gpu_node, gpus

BASE = ["predict", "--workload", "vgg_a", "--node", "h100x8", "--nodes", "1,2"]


def predicted(tmp_path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*BASE, "--json", "--results", str(tmp_path), *arguments]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_a_node_has_a_rank_for_each_gpu_unless_told_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = predicted(tmp_path, capsys, "--transport", "nccl", "--per-rank", "64")
    assert (found["ranks_per_node"], [point["ranks"] for point in found["points"]]) == (8, [8, 16])
    assert [point["batch"] for point in found["points"]] == [512, 512]
    half = predicted(tmp_path, capsys, "--transport", "nccl", "--per-rank", "64", "--ranks-per-node", "4")
    assert [point["ranks"] for point in half["points"]] == [4, 8]
    ratio = found["points"][0]["compute_s"]["value"] / half["points"][0]["compute_s"]["value"]
    assert ratio == pytest.approx(1), "each rank has a GPU and its own samples"


def test_the_algorithm_and_protocol_of_nccl_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = predicted(tmp_path, capsys, "--transport", "nccl")
    assert {call["algorithm"] for call in found["points"][0]["calls"]} <= {"nvls", "ring", "tree"}
    assert "nvls_tree" in {call["algorithm"] for call in found["points"][1]["calls"]}
    assert main([*BASE, "--results", str(tmp_path), "--transport", "nccl", "-o", str(tmp_path / "p.png")]) == 0
    printed = capsys.readouterr().out
    assert "NCCL at 2 nodes: " in printed and "nvls_tree with Simple" in printed
    assert "8 ranks a node; inside: 18 NVLinks a GPU, to a switch" in printed


def test_efficiency_is_the_stated_range_of_the_gpu_or_as_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    low, high = gpus()["h100"].efficiency
    compute = predicted(tmp_path, capsys, "--transport", "nccl")["points"][0]["compute_s"]
    assert compute["high"] / compute["low"] == pytest.approx(high / low)
    given = predicted(tmp_path, capsys, "--transport", "nccl", "--efficiency", "0.4")
    assert given["points"][0]["compute_s"]["low"] == given["points"][0]["compute_s"]["high"]
    other = predicted(tmp_path, capsys, "--transport", "nccl", "--efficiency", "0.4", "--peak", "494.5")
    ratio = other["points"][0]["compute_s"]["value"] / given["points"][0]["compute_s"]["value"]
    assert ratio == pytest.approx(2)


def test_the_network_is_that_of_the_nodes_cards_or_of_the_fabric(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = predicted(tmp_path, capsys, "--transport", "nccl", "--efficiency", "0.4")
    assert "8 cards of 400 Gbit/s" in own["fabric"]
    slow = predicted(tmp_path, capsys, "--transport", "nccl", "--efficiency", "0.4", "--fabric", "10g")
    assert slow["points"][0]["step_s"] == own["points"][0]["step_s"], "one node uses no network"
    assert slow["points"][1]["binds"] == "link"
    assert slow["points"][1]["exposed_s"]["value"] > 50 * own["points"][1]["exposed_s"]["value"]


def test_other_transports_stand_beside_nccl_by_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = predicted(tmp_path, capsys, "--transports", "nccl,tcp", "--efficiency", "0.4")
    calls = {each["transport"]: each["points"][1]["calls"] for each in found["transports"]}
    assert calls["nccl"] and not calls["tcp"]
    assert found["against_fastest"][0]["fastest"] == "nccl" and found["against_fastest"][0]["separate"]
    assumed = {each["transport"]: " ".join(each["assumed"]) for each in found["transports"]}
    assert "the memory of their host in no time" in assumed["tcp"] and "NCCL's model" in assumed["nccl"]


def test_ranks_count_all_nodes_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*BASE[:5], "--transport", "nccl", "--results", str(tmp_path)]
    assert main([*arguments, "--json", "--ranks", "8,32"]) == 0
    assert [point["nodes"] for point in json.loads(capsys.readouterr().out)["points"]] == [1, 4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--node", "h100x9"], "unknown node type 'h100x9' in clusters/gpu_nodes.yaml; did you mean 'h100x8'?"),
        (["--node", "h200x8", "--nodes", "2"], "--node h200x8 says no network between nodes"),
        (["--node", "h100x8", "--ranks-per-node", "9"], "h100x8 has 8"),
        (["--node", "h100x8", "--ranks-per-node", "0"], "--ranks-per-node 0: give at least one"),
        (["--node", "h100x8", "--ranks", "12"], "--ranks 12: 12 do not fill nodes of 8"),
        (["--fabric", "10g", "--ranks-per-node", "2"], "give --node NAME"),
        (["--node", "h100x8", "--profile", "xeon_e5_2698v3_x2"], "one of them"),
        (["--node", "h100x8", "--peak", "60"], "--efficiency LOW..HIGH is missing"),
        (["--node", "h100x8", "--per-node", "30"], "--per-node 30 does not divide over 8 ranks"),
        (["--node", "h100x8", "--minibatch", "4"], "of 8 ranks each: no such number divides --minibatch 4"),
        (["--node", "h100x8", "--per-rank", "0"], "--per-rank 0: give at least one sample"),
        ([], "--fabric is missing"),
    ],
)
def test_a_mistake_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    command = ["predict", "--workload", "vgg_a", "--transport", "nccl", "--json", "--results", str(tmp_path)]
    assert main([*command, *arguments]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said and len(said.splitlines()) == 1


def test_help_teaches_a_node_type_by_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["predict", "--help"])
    printed = capsys.readouterr().out
    assert "--node h100x8 --nodes 1,2,4" in printed and gpu_node("h100x8").gpus == 8


def test_a_node_type_that_states_a_law_is_predicted_with_its_stragglers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["--transport", "nccl", "--efficiency", "0.4"]
    even = predicted(tmp_path, capsys, *arguments)
    uneven = gpu_node("h100x8").model_copy(update={"jitter": StatedJitter(law="slow:3,0.5", source="made up")})
    known = {**gpu_node_module.gpu_nodes(), "h100x8": uneven}
    monkeypatch.setattr(gpu_node_module, "gpu_nodes", lambda: known)
    found = predicted(tmp_path, capsys, *arguments)
    assert found["stragglers"] == "slow:3,0.5 (made up)" and even["stragglers"] is None
    ratio = found["points"][1]["compute_s"]["value"] / even["points"][1]["compute_s"]["value"]
    assert ratio == pytest.approx(3, rel=0.01), "of 16 ranks one is slow in nearly every step"
    assert found["points"][1]["gains"]["stragglers"] > 0.3
    stated = predicted(tmp_path, capsys, *arguments, "--stragglers", "slow:2,1")
    assert stated["points"][1]["compute_s"]["value"] == pytest.approx(2 * even["points"][1]["compute_s"]["value"])
    off = predicted(tmp_path, capsys, *arguments, "--stragglers", "none")
    assert off["points"] == even["points"] and off["stragglers"] is None
