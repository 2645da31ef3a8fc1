"""Comparisons by the metrics that a suite adds."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.spec.errors import SpecError
from tests.short_form import case_from
from tests.unit.compare.compare_records import FAST, SLOW, code, compared, launches, two_commits, warning_messages


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two commits of which the second is half as fast."""
    return two_commits(tmp_path / "results", SLOW)


OWN = """
from scaleproof.claims.metrics import Metric

METRICS = [
    Metric("loudness", "dB", "lower", launch=lambda record, samples: float(samples["value"].mean())),
    Metric("at_size", "s", "lower", size=lambda record, samples, nbytes: float(samples["value"].mean()) * nbytes),
]
"""


def suites_with(folder: Path, models: str) -> Path:
    """A folder of suites with the one of the made-up records."""
    suite = folder / "suites" / "s"
    suite.mkdir(parents=True)
    (suite / "suite.yaml").write_text("suite: s\n")
    (suite / "models.py").write_text(models)
    return suite.parent


def test_metrics_that_a_suite_adds_are_compared(results: Path, tmp_path: Path) -> None:
    comparison = compared(results, metrics=("loudness", "at_size"), suites=suites_with(tmp_path, OWN))
    assert [(row.metric, row.nbytes, row.unit, row.change) for row in comparison.rows] == [
        ("loudness", None, "dB", "worse"),
        ("at_size", 1024, "s", "inconclusive"),
    ]
    assert "suite_missing" not in warning_messages(comparison)


def test_a_metric_without_a_clock_needs_no_noise_floor_and_one_with_a_clock_cannot_get_one(
    results: Path, tmp_path: Path
) -> None:
    suites = suites_with(tmp_path, OWN)
    comparison = compared(results, metrics=("loudness", "at_size"), suites=suites)
    assert [(row.floor, row.regression) for row in comparison.rows] == [(0.0, True), (None, False)]
    alone = compared(results, metrics=("at_size",), suites=suites)
    assert "calibration measures none for the metrics that a suite adds" in warning_messages(alone)["no_noise_floor"]


def test_a_missing_suite_is_a_warning(tmp_path: Path) -> None:
    own = case_from({"program": "own", "suite": "gone", "experiment": "e", "arm": "a", "entry": "x", "ranks": 2})
    for prefix in ("a", "b"):
        launches(tmp_path, FAST, prefix, case=own, code=code(f"{prefix}0"))
    assert (
        "no suite gone is found here"
        in warning_messages(compared(tmp_path, "@commit:a0", "@commit:b0"))["suite_missing"]
    )
    with pytest.raises(SpecError, match="unknown metric 'loudness'.*not found here.*: gone"):
        compared(tmp_path, "@commit:a0", "@commit:b0", metrics=("loudness",))


def test_a_suite_that_cannot_be_imported_is_one_line(results: Path, tmp_path: Path) -> None:
    suites = suites_with(tmp_path, "import nothing_of_this_name")
    with pytest.raises(SpecError, match=r"models.py: ModuleNotFoundError: No module named 'nothing_of_this_name'$"):
        compared(results, suites=suites)
    assert compared(results, metrics=("collective_latency",), suites=suites).rows
