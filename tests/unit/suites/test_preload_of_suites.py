"""Libraries that take longer to import than a short launch are imported ahead by launches that use them alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.programs.own import load_entry
from scaleproof.spec.case import OwnCase
from scaleproof.spec.suite import load_suite

SUITES = Path(__file__).resolve().parents[3] / "suites"


@pytest.mark.parametrize(
    ("suite", "experiment", "arm", "library", "uses"),
    [
        ("slide2020", "learning", "tables", "torch", False),
        ("slide2020", "learning", "full", "torch", True),
        ("slide2020", "learning", "sampled", "torch", True),
        ("dira2019", "costs", "flat_8_3", "stable_baselines3", False),
        ("dira2019", "costs", "library_8_3", "stable_baselines3", True),
        ("narasimhan2014", "heuristics", "looks", "sklearn.svm", False),
        ("narasimhan2014", "heuristics", "easy", "sklearn.svm", True),
        ("saros2019", "planted", "bpr", "implicit.cpu.bpr", False),
        ("saros2019", "planted", "bpr_library", "implicit.cpu.bpr", True),
    ],
)
def test_a_heavy_library_is_imported_ahead_where_the_case_uses_it(
    suite: str, experiment: str, arm: str, library: str, uses: bool
) -> None:
    folder = SUITES / suite
    cases = load_suite(folder).experiment(experiment).size("smoke").cases
    case = next(case for case in cases if case.arm == arm)
    assert isinstance(case, OwnCase)
    assert (library in load_entry(folder / "programs", case.entry).preload(case)) is uses
