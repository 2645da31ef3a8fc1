"""Size ci of suite narasimhan2014 in real processes: one rank beside scikit-learn's SVC, three ranks beside one."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from scaleproof.spec.plan import plan
from scaleproof.spec.suite import load_suite

SUITE = load_suite("narasimhan2014", Path(__file__).parents[2] / "suites")


def launched(experiment: str, folder: Path) -> Launch:
    """The one launch of an experiment at size ci."""
    outcome = run_plan(plan(SUITE, experiment, "ci"), folder, size="ci", deadline_s=60)
    record, _ = Store(folder).load(outcome.launches[0])
    assert (record.status, record.failure) == ("ok", None)
    return Launch(record, Store(folder).samples(record).to_pandas())


@pytest.mark.parametrize(
    ("experiment", "expected"),
    [
        ("heuristics", {"objective_apart": 0.0, "prediction_agreement": 1.0, "library_objective_apart": 0.0}),
        ("same", {"alpha_apart": 0.0, "objective_apart": 0.0}),
    ],
)
def test_what_is_found_is_the_same(experiment: str, expected: dict[str, float], tmp_path: Path) -> None:
    launch, metrics = launched(experiment, tmp_path), suite_metrics(SUITE.folder)
    for name, number in expected.items():
        function = metrics[name].launch
        assert function is not None
        assert function(launch.record, launch.samples) == pytest.approx(number, abs=1e-4), name
    violation = metrics["violation"].launch
    assert violation is not None and (violation(launch.record, launch.samples) or 9) <= 2.001
