"""Transports side by side: each with its own costs, and told apart only where the ranges of their costs allow it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scaleproof.cli import main
from scaleproof.commands.predict_transports import Against, Candidate, against_each_other, against_fastest, alike
from scaleproof.simulate import stated_model
from scaleproof.simulate.cost_model import CostModel, Gamma
from scaleproof.simulate.predicted_scaling import Range
from scaleproof.simulate.uncertain import Uncertain
from scaleproof.spec import registry
from tests.unit.simulate.test_scaling_predicted import question

BASE = ["predict", "--workload", "vgg_a", "--fabric", "10g", "--peak", "2", "--efficiency", "0.5", "--nodes", "1,8"]


def predicted(tmp_path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*BASE, "--json", "--results", str(tmp_path), *arguments]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def candidate(transport: str, costs: CostModel) -> Candidate:
    asked = question(costs)
    request: Any = type("Request", (), {"question": asked})()
    return Candidate(transport, request, [asked.point(8)])


def costs(name: str, alpha: float, low: float, high: float) -> CostModel:
    alphas = (Uncertain(f"alpha of {name}", alpha, low, high),)
    return CostModel((None,), alphas, (Uncertain("beta", 0.0),), (Gamma(1, Uncertain("gamma", 0.0)),), 1.0, name)


def test_transports_whose_costs_differ_have_different_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = predicted(tmp_path, capsys, "--transports", "tcp,mpi")
    steps = {each["transport"]: each["points"][-1]["step_s"]["value"] for each in found["transports"]}
    assert set(steps) == {"tcp", "mpi"} and steps["tcp"] != steps["mpi"]
    assert [each["transport"] for each in found["against_fastest"]] == [max(steps, key=lambda name: steps[name])]


SOCKETS = ("tcp", "grpc", "gloo", "horovod")


def steps_over(found: dict[str, Any]) -> dict[str, float]:
    return {each["transport"]: each["points"][-1]["step_s"]["value"] for each in found["transports"]}


def test_transports_over_the_same_sockets_are_told_apart_by_their_own_costs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = predicted(tmp_path, capsys, "--transports", ",".join(SOCKETS))
    assert len(set(steps_over(found).values())) == len(SOCKETS)
    apart = {each["transport"] for each in found["against_fastest"] if each["separate"]}
    assert {"grpc"} <= apart < set(SOCKETS), "some ranges separate, and some do not"


def test_transports_with_equal_costs_have_equal_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sheet = stated_model._beside(registry.get("transport", "tcp"))
    monkeypatch.setattr(stated_model, "_beside", lambda plugin: sheet)
    assert len(set(steps_over(predicted(tmp_path, capsys, "--transports", ",".join(SOCKETS))).values())) == 1


def test_an_unknown_transport_is_named_with_the_nearest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BASE, "--results", str(tmp_path), "--transports", "tcp,gprc"]) == 2
    said = capsys.readouterr().err.strip()
    assert len(said.splitlines()) == 1 and "'gprc'" in said and "did you mean 'grpc'" in said


def test_all_names_the_transports_that_cannot_be_predicted_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = predicted(tmp_path, capsys, "--transports", "all")
    assert {"tcp", "grpc", "gloo", "mpi", "nccl"} <= {each["transport"] for each in found["transports"]}
    assert "ends at the node" in found["not_predicted"]["shm"]
    assert main([*BASE, "--results", str(tmp_path), "--transports", "tcp,shm"]) == 2
    assert "--transport shm ends at the node" in capsys.readouterr().err


def test_the_table_has_a_row_for_each_transport_and_number_of_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*BASE, "--results", str(tmp_path), "--transports", "tcp,mpi"]) == 0
    printed = capsys.readouterr().out
    assert sum(line.split()[:1] in (["tcp"], ["mpi"]) for line in printed.splitlines()) == 4
    assert "times as long as over" in printed and "costs of tcp: stated" in printed


def test_ranges_that_overlap_do_not_tell_transports_apart_and_others_do() -> None:
    slow, near, fast = (
        candidate(name, costs(name, *alphas))
        for name, alphas in (("slow", (5e-3, 4e-3, 6e-3)), ("near", (6e-5, 1e-5, 4e-4)), ("fast", (5e-5, 1e-5, 3e-4)))
    )
    pairs = against_each_other([slow, near, fast])
    against = {each.transport: each for each in against_fastest(pairs)}
    assert set(against) == {"slow", "near"} and {each.fastest for each in against.values()} == {"fast"}
    assert against["slow"].separate and not against["near"].separate
    assert "they differ" in against["slow"].sentence and "do not tell them apart" in against["near"].sentence


def test_every_two_transports_are_compared_not_only_with_the_fastest() -> None:
    pairs = against_each_other(
        [
            candidate(name, costs(name, *alphas))
            for name, alphas in (("a", (5e-3, 4e-3, 6e-3)), ("b", (5.1e-3, 4e-3, 6e-3)), ("c", (5e-5, 1e-5, 3e-4)))
        ]
    )
    told = {frozenset((each.fastest, each.transport)): each.separate for each in pairs}
    assert told == {frozenset("ac"): True, frozenset("bc"): True, frozenset("ab"): False}
    assert alike(pairs) == ["a is not told apart from b"]


def test_equal_costs_are_called_so() -> None:
    assert Against("gloo", "tcp", Range(1.0, 1.0, 1.0)).sentence == "gloo and tcp have the same costs"
