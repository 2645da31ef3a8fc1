"""Tuned values as a layer of a suite: where they stand, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from scaleproof.spec.case_layers import CaseLayers
from scaleproof.spec.errors import SpecError
from scaleproof.spec.locate import read_document
from scaleproof.spec.plan import plan
from scaleproof.spec.suite import Suite, load_suite
from scaleproof.spec.tuning import Tuning, tunings

SUITE: dict[str, Any] = {
    "suite": "x",
    "title": "t",
    "experiments": {
        "e": {
            "summary": "s",
            "tune": {"grid": {"learning_rate": [0.01, 0.1]}, "metric": "test_loss", "launches": 3, "by": ["ranks"]},
            "base": {
                "program": "train",
                "workload": {"name": "dnn_digits", "data": "digits"},
                "minibatch": 96,
                "steps": 4,
                "transport": "tcp",
                "fabric": {"name": "simulated", "link_mbit": 100},
                "compute": {"name": "real", "profile": "xeon_e5_2698v3_x2", "efficiency": 0.5},
            },
            "arms": {"gossip": {"strategy": "gossip", "learning_rate": 0.5}, "local": {"strategy": "local_sgd"}},
            "sizes": {
                "smoke": {"launches": 6, "matrix": [{"arms": ["gossip", "local"], "sweep": {"ranks": [2, 4]}}]},
                "ci": {"launches": 1, "matrix": [{"arms": ["gossip"], "set": {"ranks": 2}}]},
            },
        }
    },
}
HELPS = "type `scaleproof tune x --experiment e --size "


def changed(path: str, value: Any) -> dict[str, Any]:
    """The suite with another value at `experiments.e.PATH`."""
    copied: dict[str, Any] = yaml.safe_load(yaml.safe_dump(SUITE))
    place = copied["experiments"]["e"]
    *before, last = path.split(".")
    for key in before:
        place = place[key]
    place[last] = value
    return copied


def written(folder: Path, suite: dict[str, Any], cells: list[dict[str, Any]] | None = None) -> Path:
    """The suite's folder, with a tuned.yaml where there are cells."""
    path = folder / "x"
    path.mkdir(exist_ok=True)
    (path / "suite.yaml").write_text(yaml.safe_dump(suite))
    if cells is not None:
        size = {"metric": "test_loss", "launches": 3, "evidence": "simulated", "commit": None, "date": "2026-01-01"}
        tuned = {"experiments": {"e": {"smoke": {**size, "cells": cells}}}}
        (path / "tuned.yaml").write_text(yaml.safe_dump(tuned))
    return path


def cell(arm: str, ranks: int, rate: float) -> dict[str, Any]:
    points = [
        {"set": {"learning_rate": each}, "case": "0", "values": [1.0, 1.0, "diverged at step 1"]}
        for each in (0.01, 0.1)
    ]
    return {"arm": arm, "at": {"ranks": ranks}, "chosen": {"learning_rate": rate}, "points": points}


CELLS = [cell("gossip", 2, 0.01), cell("gossip", 4, 0.1), cell("local", 2, 0.1), cell("local", 4, 0.01)]


def rates(suite: Suite, size: str = "smoke") -> dict[tuple[str, int], float]:
    cases = suite.experiment("e").size(size).cases
    return {(case.arm, case.ranks): case.value("learning_rate") for case in cases}


def tuning(folder: Path, suite: dict[str, Any], size: str = "smoke") -> Tuning:
    (found,) = tunings(str(written(folder, suite)), None, None, size)
    return found


def test_a_suite_that_was_never_tuned_is_refused_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as refused:
        load_suite(written(tmp_path, SUITE))
    assert "suite.yaml:" in str(refused.value) and "experiments.e.tune: nothing tuned yet for arm 'gossip'" in str(
        refused.value
    )
    assert HELPS in str(refused.value) and "\n" not in str(refused.value)


def test_every_arm_gets_what_was_chosen_for_its_number_of_ranks(tmp_path: Path) -> None:
    suite = load_suite(written(tmp_path, SUITE, CELLS))
    assert rates(suite) == {("gossip", 2): 0.01, ("gossip", 4): 0.1, ("local", 2): 0.1, ("local", 4): 0.01}


def test_a_size_that_was_not_tuned_takes_the_values_of_the_one_that_was(tmp_path: Path) -> None:
    assert rates(load_suite(written(tmp_path, SUITE, CELLS)), "ci") == {("gossip", 2): 0.01}


def test_tuned_values_stand_over_the_arm_and_below_the_row_and_its_sweeps(tmp_path: Path) -> None:
    row = {"arms": ["gossip"], "set": {"ranks": 2, "learning_rate": 0.7}}
    assert rates(load_suite(written(tmp_path, changed("sizes.ci.matrix", [row]), CELLS)), "ci") == {("gossip", 2): 0.7}
    swept = {"arms": ["gossip"], "set": {"ranks": 2}, "sweep": {"learning_rate": [0.3]}}
    assert rates(load_suite(written(tmp_path, changed("sizes.ci.matrix", [swept]), CELLS)), "ci") == {
        ("gossip", 2): 0.3
    }


def test_an_arm_that_is_fixed_keeps_its_own_fields(tmp_path: Path) -> None:
    suite = changed("tune.fixed", ["gossip"])
    assert rates(load_suite(written(tmp_path, suite, CELLS[2:])))["gossip", 2] == 0.5
    assert {each.arm for each in tuning(tmp_path, suite).cells} == {"local"}


@pytest.mark.parametrize(
    ("path", "value"),
    [("tune.grid", {"learning_rate": [0.01, 0.2]}), ("tune.launches", 4), ("tune.metric", "final_loss")],
)
def test_values_of_another_grid_are_refused(tmp_path: Path, path: str, value: Any) -> None:
    with pytest.raises(SpecError, match="another grid, metric or number of launches") as refused:
        load_suite(written(tmp_path, changed(path, value), CELLS))
    assert HELPS in str(refused.value)


@pytest.mark.parametrize(
    ("path", "value", "wrong"),
    [
        (
            "tune.arms",
            {"local": {"strategy.tau": [1, 2, 4]}},
            "3 points, and `grid` has 2: every arm gets the same budget",
        ),
        ("tune.arms", {"lokal": {"learning_rate": [1, 2]}}, "unknown arm 'lokal'; did you mean 'local'"),
        ("tune.fixed", ["gosip"], "unknown arm 'gosip'; did you mean 'gossip'"),
        ("tune.by", ["rank"], "unknown field 'rank'; did you mean 'ranks'"),
        ("tune.grid", {"learning_rate": []}, "learning_rate"),
        ("tune.grid", {"learnin_rate": [0.1]}, "learning_rate"),
        ("tune.grid", {"learning_rate": [-1.0]}, "learning_rate"),
        ("tune.launches", 0, "launches"),
        ("tune.by", [], "ranks: name that in `by`"),
    ],
)
def test_a_tuning_that_cannot_be_made_is_one_line(tmp_path: Path, path: str, value: Any, wrong: str) -> None:
    with pytest.raises(SpecError) as refused:
        tuning(tmp_path, changed(path, value))
    text = str(refused.value)
    assert "suite.yaml:" in text and "\n" not in text
    assert wrong in text


def test_every_arm_has_the_same_points_and_launches_with_seeds_of_their_own(tmp_path: Path) -> None:
    found = tuning(tmp_path, SUITE)
    assert [(each.arm, each.at["ranks"], len(each.points)) for each in found.cells] == [
        ("gossip", 2, 2),
        ("gossip", 4, 2),
        ("local", 2, 2),
        ("local", 4, 2),
    ]
    launches = found.launches
    assert len(launches) == 4 * 2 * 3 and len({launch.order for launch in launches}) == 24
    assert {launch.case.experiment for launch in launches} == {"e-tune"}
    suite = load_suite(written(tmp_path, SUITE, CELLS))
    judged = plan(suite, "e", "smoke")
    assert not {launch.seed for launch in launches} & {launch.seed for launch in judged}
    assert not {launch.case.case_id for launch in launches} & {launch.case.case_id for launch in judged}
    assert len({launch.seed for launch in launches}) == 3, "arms and points are paired on equal seeds"


def test_an_arm_with_options_of_its_own_has_a_grid_of_its_own(tmp_path: Path) -> None:
    found = tuning(tmp_path, changed("tune.arms", {"local": {"strategy.tau": [1, 4]}}))
    tried = {(each.arm, point.case.value("strategy.tau")) for each in found.cells for point in each.points}
    assert {("local", 1), ("local", 4), ("gossip", 1)} == tried


def test_fields_that_are_set_while_tuning_leave_one_case_an_arm(tmp_path: Path) -> None:
    suite = changed("tune.set", {"ranks": 4, "steps": 2})
    suite["experiments"]["e"]["tune"]["by"] = []
    found = tuning(tmp_path, suite)
    assert [(each.arm, each.at) for each in found.cells] == [("gossip", {}), ("local", {})]
    assert {(point.case.ranks, point.case.value("steps")) for each in found.cells for point in each.points} == {(4, 2)}


def test_what_is_not_tuned_is_one_line(tmp_path: Path) -> None:
    folder = str(written(tmp_path, SUITE))
    for experiment, size, wrong in (
        ("f", "smoke", "has no experiment 'f'; known: e"),
        (None, "full", "no experiment with `tune` has size"),
    ):
        with pytest.raises(SpecError, match=wrong):
            tunings(folder, None, experiment, size)
    plain = changed("tune", None)
    with pytest.raises(SpecError, match="has no `tune`"):
        tunings(str(written(tmp_path, plain)), None, None, "smoke")


def test_a_tuned_option_of_an_own_program_goes_over_that_of_the_arm_and_leaves_the_others(tmp_path: Path) -> None:
    layers = CaseLayers(read_document(written(tmp_path, SUITE) / "suite.yaml"))
    arm = layers.over({"program": "own", "entry": "e", "options": {"rate": 1, "width": 2, "depth": 3}}, ())
    row = arm.over({"options": {"width": 4}}, ())
    tuned = row.between({"options": {"rate": 7, "width": 7}}, (), arm.height)
    assert tuned.values["options"] == {"rate": 7, "width": 4, "depth": 3}
    assert row.values["options"] == {"rate": 1, "width": 4, "depth": 3}
