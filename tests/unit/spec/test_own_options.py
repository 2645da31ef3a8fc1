"""Options of a suite's own program lie over each other one by one, as those of plugins do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from scaleproof.spec.suite import load_suite

BASE = {"program": "own", "entry": "one", "transport": "tcp", "ranks": 1, "iterations": 1, "warmup": 0}


def options_of(tmp_path: Path, arm: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    folder = tmp_path / "mine"
    (folder / "programs").mkdir(parents=True)
    for entry in ("one", "other"):
        (folder / "programs" / f"{entry}.py").write_text("def run(context):\n    pass\n")
    experiment = {
        "summary": "x",
        "base": {**BASE, "options": {"size": 1, "rate": 0.5}},
        "arms": {"a": arm},
        "sizes": {"ci": {"launches": 1, "matrix": [{"arms": ["a"], **row}]}},
    }
    text = {"suite": "mine", "title": "x", "summary": "x", "experiments": {"e": experiment}}
    (folder / "suite.yaml").write_text(yaml.safe_dump(text, sort_keys=False))
    (case,) = load_suite(folder).experiment("e").size("ci").cases
    return dict(case.value("options"))


@pytest.mark.parametrize(
    ("arm", "row", "expected"),
    [
        ({}, {}, {"size": 1, "rate": 0.5}),
        ({"options": {"size": 2}}, {}, {"size": 2, "rate": 0.5}),
        ({"options": {"size": 2}}, {"set": {"options": {"size": 3, "more": 1}}}, {"size": 3, "rate": 0.5, "more": 1}),
        ({"entry": "other", "options": {"count": 4}}, {}, {"count": 4}),
    ],
)
def test_an_arm_states_what_differs_and_another_program_starts_anew(
    tmp_path: Path, arm: dict[str, Any], row: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert options_of(tmp_path, arm, row) == expected
